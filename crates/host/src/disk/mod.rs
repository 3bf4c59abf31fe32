//! A directory of files, and a thread that makes batches of changes durable; `spill`: unlinked files for large data.
//!
//! A failed sync is never repeated: the kernel may have dropped the pages, and a second sync would report success. The caller ends the
//! process; the other replicas continue. A write to a full disk changes nothing and is repeated once there is room, from the reserve
//! (`Reserve`) or otherwise.

mod reserve;
pub(crate) mod spill;

use crate::driver::spawn;
use crate::error::Error;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, unbounded};
use midflight_endpoint::{Change, File, Persist};
use reserve::Reserve;
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Suffix of a file that is written but not yet renamed.
const UNFINISHED: &str = ".new";
/// Permission bits of group and others.
const OTHERS: u32 = 0o077;
const RETRY: Duration = Duration::from_millis(50);
const REFILL: Duration = Duration::from_secs(1);

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The kernel refused an operation.
    #[error("cannot {what} {}: {source}; {}", path.display(), advice(source))]
    Failed {
        /// The operation.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The disk thread has ended.
    #[error("the thread of the disk has ended: the log of this process says why")]
    Ended,
    /// Another process uses it.
    #[error("another process uses the data directory {}: stop it, or give this one a directory of its own", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free space on its file system and start this process again; nothing that was acknowledged is lost"
        }
        ErrorKind::PermissionDenied => "give this user the right to write there",
        ErrorKind::NotFound => "create it, or name a directory that exists",
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => "that is a file: name a directory",
        _ => "see `dmesg` for what the disk reports; the other replicas continue without this one",
    }
}

/// A data directory, locked by this process.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Holds the lock.
    handle: fs::File,
}

impl Directory {
    /// Locks a directory, created if necessary.
    ///
    /// # Errors
    ///
    /// If it cannot be created or opened, or another process has locked it.
    pub fn take(path: &Path) -> Result<Self, DiskError> {
        let failed = |what| move |source| DiskError::Failed { what, path: path.to_owned(), source };
        midflight_files::create_directory(path).map_err(failed("create the directory"))?;
        let handle = fs::File::open(path).map_err(failed("open the directory"))?;
        match flock(&handle, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { path: path.to_owned(), handle }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(DiskError::InUse { path: path.to_owned() }),
            Err(errno) => Err(failed("lock the directory")(errno.into())),
        }
    }

    /// Reads an endpoint's files and syncs them, because the endpoint relies on them. Removes unfinished files; ignores others.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or synced.
    pub fn read(&self) -> Result<Vec<(File, Vec<u8>)>, DiskError> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(|source| self.failed("read", source))? {
            let name = entry.map_err(|source| self.failed("read", source))?.file_name();
            let Some(name) = name.to_str() else { continue };
            let path = self.path.join(name);
            if name.strip_suffix(UNFINISHED).and_then(file_of).is_some() {
                fs::remove_file(&path).map_err(|source| DiskError::Failed { what: "remove", path, source })?;
            } else if let Some(file) = file_of(name) {
                let bytes = read_safe(&path).map_err(|source| DiskError::Failed { what: "read", path, source })?;
                files.push((file, bytes));
            }
        }
        self.handle.sync_all().map_err(|source| self.failed("sync", source))?;
        files.sort_unstable_by_key(|(file, _)| *file);
        Ok(files)
    }

    fn failed(&self, what: &'static str, source: io::Error) -> DiskError {
        DiskError::Failed { what, path: self.path.clone(), source }
    }

    fn path_of(&self, file: File) -> PathBuf {
        self.path.join(name_of(file))
    }
}

/// Also removes the access of other users that versions up to 0.1 granted.
fn read_safe(path: &Path) -> io::Result<Vec<u8>> {
    let file = fs::File::open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if about.permissions().mode() & OTHERS != 0 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    file.sync_all()?;
    let mut bytes = Vec::new();
    midflight_files::BoundedReader::new(file, about.len()).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn name_of(file: File) -> String {
    match file {
        File::Identity => "identity".to_owned(),
        File::Log(number) => format!("log-{number}"),
        File::Snapshot(number) => format!("snapshot-{number}"),
        File::Safe => "safe".to_owned(),
    }
}

fn file_of(name: &str) -> Option<File> {
    let file = match name.split_once('-') {
        Some(("log", number)) => File::Log(number.parse().ok()?),
        Some(("snapshot", number)) => File::Snapshot(number.parse().ok()?),
        _ if name == "safe" => File::Safe,
        _ => File::Identity,
    };
    (name_of(file) == name).then_some(file)
}

/// A thread that writes to a directory.
#[derive(Debug)]
pub struct Disk {
    /// `None` while it is being stopped.
    batches: Option<Sender<Persist>>,
    reports: Receiver<Result<Report, DiskError>>,
    /// Makes the thread stop waiting for free disk space.
    is_ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A report of the disk thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// This batch and all before it are durable.
    Safe {
        /// Number of the batch.
        id: u64,
        /// Duration of the sync, if there was one.
        sync: Option<Duration>,
    },
    /// Whether the disk has room beyond the reserve's uses. Initially true.
    Room(bool),
}

impl Disk {
    /// Starts the thread, which calls `wake` after each report. Without `fsync`, reported batches survive the process, but not a power
    /// failure.
    ///
    /// # Errors
    ///
    /// If there is no thread.
    pub fn start(
        directory: Directory,
        fsync: bool,
        reserve_bytes: u64,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Self, Error> {
        let (batches, waiting) = unbounded::<Persist>();
        let (reporter, reports) = unbounded();
        let is_ending = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&is_ending);
        let report = move |report| {
            // Fails only while `Disk` is being dropped.
            let _ = reporter.send(report);
            wake();
        };
        let thread = spawn("mf-disk", move || {
            let room = Room {
                reserve: Reserve::new(&directory.path, reserve_bytes),
                told: true,
                refill_at: Instant::now(),
                report: Box::new(report),
                is_ending: of_thread,
            };
            Writer { directory, fsync, open: BTreeMap::new(), entries_changed: false, room }.run(&waiting);
        })?;
        Ok(Self { batches: Some(batches), reports, is_ending, thread: Some(thread) })
    }

    /// Queues a batch. The endpoint bounds the bytes in the queue.
    pub fn write(&self, batch: Persist) {
        if let Some(batches) = &self.batches {
            // Fails after the thread's last report, an error.
            let _ = batches.send(batch);
        }
    }

    /// Waits until all queued batches are durable.
    ///
    /// # Errors
    ///
    /// The first failure.
    pub fn finish(mut self) -> Result<(), DiskError> {
        self.end();
        self.reports.try_iter().try_for_each(|report| report.map(drop))
    }

    /// Waits until the queued batches are written, as far as the disk has room.
    fn end(&mut self) {
        self.is_ending.store(true, Ordering::Relaxed);
        drop(self.batches.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    /// The next report. After an error the process must end.
    pub fn report(&self) -> Option<Result<Report, DiskError>> {
        match self.reports.try_recv() {
            Ok(report) => Some(report),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(DiskError::Ended)),
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.end();
    }
}

struct Writer {
    directory: Directory,
    fsync: bool,
    /// Files appended to since the last sync, and the last one before.
    open: BTreeMap<File, fs::File>,
    /// Whether files were created, renamed or removed.
    entries_changed: bool,
    room: Room,
}

struct Room {
    reserve: Reserve,
    /// The last reported state.
    told: bool,
    /// Time of the next attempt to restore the reserve.
    refill_at: Instant,
    report: Box<dyn Fn(Result<Report, DiskError>) + Send>,
    is_ending: Arc<AtomicBool>,
}

impl Room {
    fn tell(&mut self, has_room: bool) {
        if self.told != has_room {
            self.told = has_room;
            (self.report)(Ok(Report::Room(has_room)));
        }
    }

    /// Releases a part of the reserve, or waits if it is empty. Returns whether to retry the write.
    fn make(&mut self) -> bool {
        self.tell(false);
        if !self.reserve.give_up() {
            std::thread::sleep(RETRY);
        }
        !self.is_ending.load(Ordering::Relaxed)
    }

    fn refill(&mut self) {
        let has_room = self.reserve.refill();
        self.refill_at = Instant::now() + REFILL;
        self.tell(has_room);
    }
}

impl Writer {
    fn run(&mut self, waiting: &Receiver<Persist>) {
        self.room.refill();
        loop {
            // Also between batches without a pause: deletes continue on a full disk.
            if !self.room.told && self.room.refill_at <= Instant::now() {
                self.room.refill();
            }
            let first = if self.room.told {
                waiting.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                waiting.recv_deadline(self.room.refill_at)
            };
            match first {
                Ok(first) => {
                    let result = self.write_all(std::iter::once(first).chain(waiting.try_iter()));
                    let has_failed = result.is_err();
                    (self.room.report)(result);
                    if has_failed {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn write_all(&mut self, batches: impl Iterator<Item = Persist>) -> Result<Report, DiskError> {
        let mut last = (0, None);
        for batch in batches {
            for change in batch.changes {
                if let Change::Append { file, .. } = &change {
                    last.1 = Some(*file);
                }
                self.change(&change)?;
            }
            last.0 = batch.id;
        }
        let begun = Instant::now();
        if self.fsync {
            self.sync()?;
        }
        self.open.retain(|file, _| Some(*file) == last.1);
        Ok(Report::Safe { id: last.0, sync: self.fsync.then(|| begun.elapsed()) })
    }

    fn change(&mut self, change: &Change) -> Result<(), DiskError> {
        let (what, file) = match change {
            Change::Append { file, .. } | Change::Replace { file, .. } => ("write", *file),
            Change::Remove { file } => ("remove", *file),
        };
        let path = self.directory.path_of(file);
        loop {
            let result = match change {
                Change::Append { bytes, .. } => self.append(file, &path, bytes),
                Change::Replace { bytes, .. } => self.replace(file, &path, bytes),
                Change::Remove { .. } => self.remove(file, &path),
            };
            match result {
                Err(source) if is_full(&source) && self.room.make() => {}
                done => return done.map_err(|source| DiskError::Failed { what, path, source }),
            }
        }
    }

    fn append(&mut self, file: File, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if !self.open.contains_key(&file) {
            self.entries_changed |= !path.exists();
            self.open.insert(file, midflight_files::append(path)?);
        }
        let Some(opened) = self.open.get_mut(&file) else { return Ok(()) };
        let length = opened.metadata()?.len();
        let written = opened.write_all(bytes);
        if written.as_ref().is_err_and(is_full) {
            // Removes the part that was written.
            opened.set_len(length)?;
        }
        written
    }

    fn replace(&mut self, file: File, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.open.remove(&file);
        self.entries_changed = true;
        let unfinished = path.with_extension(&UNFINISHED[1..]);
        let mut written = midflight_files::create(&unfinished)?;
        written.write_all(bytes)?;
        if self.fsync {
            written.sync_data()?;
        }
        fs::rename(&unfinished, path)
    }

    fn remove(&mut self, file: File, path: &Path) -> io::Result<()> {
        self.open.remove(&file);
        self.entries_changed = true;
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        for (&file, opened) in &self.open {
            let path = self.directory.path_of(file);
            opened.sync_data().map_err(|source| DiskError::Failed { what: "sync", path, source })?;
        }
        if std::mem::take(&mut self.entries_changed) {
            self.directory.handle.sync_all().map_err(|source| self.directory.failed("sync", source))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
