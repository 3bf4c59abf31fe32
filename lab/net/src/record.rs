//! The record of a lab: a small file, which is also the lock.
//!
//! `/run/midflight/labs/NAME` is empty during setup and removal, and describes the lab once it is complete. The process that sets a lab up
//! or removes it holds a lock on the file until it exits. An empty file without a lock means that this process was killed.

use crate::{HOSTS_MAX, LabError, Loss, RACKS_MAX, names};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The parent is removed too when empty.
const DIRECTORY: &str = "/run/midflight/labs";
const RECORD_MAX: u64 = 64 << 10;
/// Timeout for the lock, and the polling interval.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Record {
    pub(crate) hosts: usize,
    /// 0: all hosts connect to the central switch.
    #[serde(default)]
    pub(crate) racks: usize,
    pub(crate) loss: Loss,
    pub(crate) xdp: bool,
}

fn path(lab: &str) -> PathBuf {
    Path::new(DIRECTORY).join(lab)
}

/// `None` if there is no lab.
pub(crate) fn read(lab: &str) -> Result<Option<Record>, LabError> {
    let whole = |text: Vec<u8>| {
        let record: Option<Record> = serde_json::from_slice(&text).ok();
        record.filter(|record| (1..=HOSTS_MAX).contains(&record.hosts) && record.racks <= RACKS_MAX)
    };
    match midflight_files::read(&path(lab), RECORD_MAX) {
        Ok(text) => whole(text).map(Some).ok_or_else(|| LabError::Incomplete(lab.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LabError::io(format!("read {}", path(lab).display()))(error)),
    }
}

pub(crate) fn names() -> Result<Vec<String>, LabError> {
    let files = |entries: std::fs::ReadDir| {
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect::<io::Result<Vec<_>>>()
    };
    match std::fs::read_dir(DIRECTORY).and_then(files) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(LabError::io(format!("list {DIRECTORY}"))(error)),
        Ok(mut files) => {
            files.retain(|name| names::check(name).is_ok());
            Ok(files)
        }
    }
}

/// Required to set up or take down a lab.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Waits up to `PATIENCE`. Creates the file if it is missing.
    pub(crate) fn take(lab: &str) -> Result<Self, LabError> {
        Self::wait_for(lab, true)?.ok_or_else(|| LabError::Busy(lab.to_owned()))
    }

    /// `None` without a file, also if another process removes it meanwhile. So a process that is killed while it waits leaves no record.
    pub(crate) fn take_existing(lab: &str) -> Result<Option<Self>, LabError> {
        Self::wait_for(lab, false)
    }

    fn wait_for(lab: &str, create: bool) -> Result<Option<Self>, LabError> {
        let path = path(lab);
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let failed = || LabError::io(format!("lock {}", path.display()));
            if create {
                midflight_files::create_directory(Path::new(DIRECTORY)).map_err(failed())?;
            }
            let file = midflight_files::options().read(true).write(true).create(create).truncate(false).open(&path);
            let file = match file {
                Err(error) if error.kind() == ErrorKind::NotFound && !create => return Ok(None),
                Err(error) if error.kind() == ErrorKind::NotFound => continue, // another process removed the directory
                file => file.map_err(failed())?,
            };
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&file, &path) => return Ok(Some(Self { file, path })),
                Ok(()) => {} // another process removed the file
                Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(LOOK_EVERY),
                Err(error) => return Err(failed()(error.into())),
            }
        }
        Err(LabError::Busy(lab.to_owned()))
    }

    /// A process that inherits the open file also holds the lock.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn complete(&self, record: Record) -> Result<(), LabError> {
        let failed = || LabError::io(format!("write {}", self.path.display()));
        self.incomplete()?;
        let text = serde_json::to_vec(&record).map_err(|error| failed()(error.into()))?;
        (&self.file).write_all(&text).map_err(failed())
    }

    pub(crate) fn incomplete(&self) -> Result<(), LabError> {
        self.file.set_len(0).map_err(LabError::io(format!("write {}", self.path.display())))
    }

    pub(crate) fn remove(self) -> Result<(), LabError> {
        std::fs::remove_file(&self.path).map_err(LabError::io(format!("remove {}", self.path.display())))?;
        // Fails, as intended, if they are not empty.
        let _ = std::fs::remove_dir(DIRECTORY);
        let _ = Path::new(DIRECTORY).parent().map(std::fs::remove_dir);
        Ok(())
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(ours), Ok(theirs)) => (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino()),
        _ => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may")]
mod tests {
    use super::*;
    use crate::testing::{labs_work, traces_of};

    /// Two threads of a command that a signal ends remove its lab, and the process exits when the first is done.
    #[test]
    fn who_waits_to_remove_a_lab_leaves_nothing_once_another_has_removed_it() {
        if !labs_work() {
            return;
        }
        let name = &format!("lock{}", std::process::id());
        let first = Lock::take(name).unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| Lock::take_existing(name).unwrap().map(|lock| lock.path));
            std::thread::sleep(2 * LOOK_EVERY);
            first.remove().unwrap();
            assert_eq!(second.join().unwrap(), None);
        });
        assert_eq!(traces_of(name), Vec::<String>::new());
    }
}
