//! The jobs that are kept on disk: `docs/internals/jobs.md` ("The store") describes the tables.

use crate::model::{EndedRow, JobRow, Prefer, preference};
use midflight_host::{Saved, SavedCounters, SavedName, SavedState, TaskKey};
use midflight_wire::tasks::TaskInfo;
use redb::{Database, ReadableDatabase, TableDefinition, WriteTransaction};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use zerocopy::{FromBytes, IntoBytes};

const FORMAT: u32 = 1;
const CACHE_BYTES: usize = 64 << 20;
/// Timeout for readers before the file is reopened.
const READERS_PATIENCE: Duration = Duration::from_secs(5);

type Rows = TableDefinition<'static, (u64, u32), &'static [u8]>;
const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
const JOBS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("jobs");
const ITEMS: Rows = TableDefinition::new("items");
const OPEN: Rows = TableDefinition::new("open");
const ENDED: Rows = TableDefinition::new("ended");
const OUTPUTS: Rows = TableDefinition::new("outputs");

/// Why an operation on the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// An error of the disk, or of the file's content.
    #[error("the jobs' store {path}: {source}{}", advice(.source))]
    Failed {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Box<redb::Error>,
    },
    /// Another version of Midflight wrote the file.
    #[error(
        "the jobs' store {path} has format {found}, and this midflight knows {FORMAT}: use the version that wrote it, or set MIDFLIGHT_STATE to another directory"
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// The file's pages contradict each other.
    #[error("the jobs' store {path} is damaged: restore a copy of it, or move it away and lose its jobs")]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// A row is malformed.
    #[error(
        "the jobs' store {path} is damaged: a row of `{table}` is malformed; restore a copy of it, or move it away and lose its jobs"
    )]
    Row {
        /// The file.
        path: PathBuf,
        /// The row's table.
        table: &'static str,
    },
}

fn advice(error: &redb::Error) -> &'static str {
    match error {
        redb::Error::Io(error) if error.kind() == std::io::ErrorKind::StorageFull => {
            "; make room on this disk: nothing that was accepted is lost"
        }
        redb::Error::Io(error) if error.kind() == std::io::ErrorKind::QuotaExceeded => {
            "; make room in your quota: nothing that was accepted is lost"
        }
        redb::Error::Corrupted(_) | redb::Error::Io(_) | redb::Error::UpgradeRequired(_) => {
            "; if it was cut short or changed, restore a copy of it, or move it away and lose its jobs"
        }
        _ => "",
    }
}

/// The client of the tasks program: its identity and its progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClientRow {
    pub(crate) identity: u64,
    pub(crate) secret: u128,
    pub(crate) switches: Vec<SocketAddr>,
    pub(crate) udp_port: u16,
    pub(crate) tcp_port: u16,
    /// Sequence number, number of PROBEs, key of the next task.
    pub(crate) saved_counters: (u32, u32, u64),
    pub(crate) epoch: Option<(SocketAddr, u32)>,
}

impl ClientRow {
    pub(crate) fn saved_counters(&self) -> SavedCounters {
        let (sequence, probes, next_key) = self.saved_counters;
        SavedCounters { sequence, probes, next_key }
    }
}

/// A command that was begun and has not ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct OpenRow {
    pub(crate) tries: u32,
    /// What the endpoint asked to save; `None` while the command waits to be run again.
    pub(crate) sent: Option<SentRow>,
}

/// [`Saved`], as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SentRow {
    pub(crate) key: u64,
    jid: u32,
    info: Vec<u8>,
    attempts_left: u32,
    retry_failed: bool,
    prefer: Prefer,
    names: Vec<(u32, u8, u8)>,
    state: u8,
}

impl SentRow {
    pub(crate) fn of(saved: &Saved) -> Self {
        Self {
            key: saved.key.0,
            jid: saved.jid,
            info: saved.info.as_bytes().to_vec(),
            attempts_left: saved.attempts_left,
            retry_failed: saved.retry_failed,
            prefer: saved.prefer.map(|it| (it.place, it.patience_ms)),
            names: saved.names.iter().map(|name| (name.submission, name.index, name.of)).collect(),
            state: match saved.state {
                SavedState::Waiting => 0,
                SavedState::Sent => 1,
                SavedState::Open => 2,
            },
        }
    }

    /// `None` if it is malformed.
    pub(crate) fn saved(&self) -> Option<Saved> {
        let name = |&(submission, index, of): &(u32, u8, u8)| SavedName { submission, index, of };
        Some(Saved {
            key: TaskKey(self.key),
            jid: self.jid,
            info: TaskInfo::read_from_bytes(&self.info).ok()?,
            attempts_left: self.attempts_left,
            retry_failed: self.retry_failed,
            prefer: preference(self.prefer),
            names: self.names.iter().map(name).collect(),
            state: [SavedState::Waiting, SavedState::Sent, SavedState::Open].get(usize::from(self.state)).copied()?,
        })
    }
}

/// Bounds of one read; the first row is always read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

impl Page {
    const ALL: Self = Self { rows: usize::MAX, bytes: usize::MAX };

    fn of<T>(
        self,
        rows: impl Iterator<Item = Result<T, redb::Error>>,
        bytes_of: impl Fn(&T) -> usize,
    ) -> Result<Vec<T>, redb::Error> {
        let (mut page, mut bytes) = (Vec::new(), 0);
        for row in rows {
            let row = row?;
            bytes += bytes_of(&row);
            if !page.is_empty() && (page.len() == self.rows || bytes > self.bytes) {
                break;
            }
            page.push(row);
        }
        Ok(page)
    }
}

/// The store. Any number of threads may read; one writes.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    /// `None` while the file is reopened.
    database: Mutex<Option<Arc<Database>>>,
}

impl Store {
    /// Opens the store, or creates it.
    ///
    /// # Errors
    /// If the file cannot be used: see [`StoreError`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if !path.exists() {
            Self::make(path)?;
        }
        let store = Self { path: path.to_owned(), database: Mutex::new(None) };
        store.open_file()?;
        let found: Option<u32> = store.meta("format")?;
        match found {
            Some(FORMAT) => {}
            Some(found) => return Err(StoreError::Format { path: store.path, found }),
            None => return Err(StoreError::Row { path: store.path, table: "meta" }),
        }
        Ok(store)
    }

    /// Renames the file when it is complete: a process killed halfway leaves none that the next one cannot open.
    fn make(path: &Path) -> Result<(), StoreError> {
        let unfinished = path.with_extension("new");
        let store = Self { path: unfinished.clone(), database: Mutex::new(None) };
        let failed = |error: std::io::Error| store.failed(redb::Error::Io(error));
        match std::fs::remove_file(&unfinished) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let made = store.fill().and_then(|()| std::fs::rename(&unfinished, path).map_err(failed));
        if made.is_err() {
            let _ = std::fs::remove_file(&unfinished); // the remains would only take space
        }
        let directory = path.parent().unwrap_or(Path::new("."));
        made.and_then(|()| std::fs::File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed))
    }

    fn fill(&self) -> Result<(), StoreError> {
        // redb leaves the mode of a new file to the umask.
        midflight_files::create(&self.path).map_err(|error| self.failed(redb::Error::Io(error)))?;
        let database = Database::builder().create(&self.path).map_err(|error| self.failed(error))?;
        self.set(Some(database));
        let mut change = self.change()?;
        change.put_meta("format", &FORMAT)?;
        change.make_tables()?;
        change.commit()?;
        self.close();
        Ok(())
    }

    fn set(&self, database: Option<Database>) {
        *self.database.lock().unwrap_or_else(PoisonError::into_inner) = database.map(Arc::new);
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn open_file(&self) -> Result<(), StoreError> {
        if std::fs::metadata(&self.path).is_ok_and(|about| about.len() == 0) {
            let empty = std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the file is empty");
            return Err(self.failed(redb::Error::Io(empty)));
        }
        let database = Database::builder().set_cache_size(CACHE_BYTES).open(&self.path);
        self.set(Some(database.map_err(|error| self.failed(error))?));
        Ok(())
    }

    /// Reopens the file, which redb requires after an error of the disk.
    ///
    /// # Errors
    /// If it still cannot be used.
    pub(crate) fn reopen(&self) -> Result<(), StoreError> {
        self.close();
        self.open_file()
    }

    /// Another process may open the file then.
    pub(crate) fn close(&self) {
        let old = self.database.lock().unwrap_or_else(PoisonError::into_inner).take();
        let began = Instant::now();
        while old.as_ref().is_some_and(|old| Arc::strong_count(old) > 1) && began.elapsed() < READERS_PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn failed(&self, error: impl Into<redb::Error>) -> StoreError {
        StoreError::Failed { path: self.path.clone(), source: Box::new(error.into()) }
    }

    fn database(&self) -> Result<Arc<Database>, StoreError> {
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner).clone();
        database.ok_or_else(|| self.failed(redb::Error::PreviousIo))
    }

    pub(crate) fn change(&self) -> Result<Change<'_>, StoreError> {
        let mut transaction = self.database()?.begin_write().map_err(|error| self.failed(error))?;
        // A start after a kill must not read the whole file: completions are waiting.
        transaction.set_quick_repair(true);
        Ok(Change { store: self, transaction })
    }

    fn decode<T: DeserializeOwned>(&self, table: &'static str, bytes: &[u8]) -> Result<T, StoreError> {
        postcard::from_bytes(bytes).map_err(|_| StoreError::Row { path: self.path.clone(), table })
    }

    pub(crate) fn meta<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, StoreError> {
        let read = || -> Result<Option<Vec<u8>>, redb::Error> {
            let Some(database) = self.database().ok() else { return Err(redb::Error::PreviousIo) };
            match database.begin_read()?.open_table(META) {
                Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
                table => Ok(table?.get(name)?.map(|value| value.value().to_vec())),
            }
        };
        let bytes = read().map_err(|error| self.failed(error))?;
        bytes.map(|bytes| self.decode("meta", &bytes)).transpose()
    }

    /// One job.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn job(&self, job: u64) -> Result<Option<JobRow>, StoreError> {
        let database = self.database()?;
        let read = || -> Result<Option<Vec<u8>>, redb::Error> {
            Ok(database.begin_read()?.open_table(JOBS)?.get(job)?.map(|value| value.value().to_vec()))
        };
        let bytes = read().map_err(|error| self.failed(error))?;
        bytes.map(|bytes| self.decode("jobs", &bytes)).transpose()
    }

    /// A page of the jobs from `first` on.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) fn jobs(&self, first: u64, page: Page) -> Result<Vec<JobRow>, StoreError> {
        let database = self.database()?;
        let read = || -> Result<Vec<Vec<u8>>, redb::Error> {
            let table = database.begin_read()?.open_table(JOBS)?;
            let rows = table.range(first..)?.map(|row| Ok(row?.1.value().to_vec()));
            page.of(rows, Vec::len)
        };
        let rows = read().map_err(|error| self.failed(error))?;
        rows.iter().map(|bytes| self.decode("jobs", bytes)).collect()
    }

    fn row(&self, table: Rows, job: u64, place: u32) -> Result<Option<Vec<u8>>, StoreError> {
        let database = self.database()?;
        let read = || -> Result<Option<Vec<u8>>, redb::Error> {
            Ok(database.begin_read()?.open_table(table)?.get((job, place))?.map(|value| value.value().to_vec()))
        };
        read().map_err(|error| self.failed(error))
    }

    fn rows<T: DeserializeOwned>(
        &self,
        (table, name): (Rows, &'static str),
        range: std::ops::RangeInclusive<(u64, u32)>,
        page: Page,
    ) -> Result<Vec<(u64, u32, T)>, StoreError> {
        let database = self.database()?;
        let read = || -> Result<Vec<(u64, u32, Vec<u8>)>, redb::Error> {
            let table = database.begin_read()?.open_table(table)?;
            let rows = table.range(range)?.map(|row| {
                let (key, value) = row?;
                let (job, place) = key.value();
                Ok((job, place, value.value().to_vec()))
            });
            page.of(rows, |(_, _, bytes)| bytes.len())
        };
        let rows = read().map_err(|error| self.failed(error))?;
        rows.iter().map(|(job, place, bytes)| Ok((*job, *place, self.decode(name, bytes)?))).collect()
    }

    /// `None` if the commands do not each have their own.
    pub(crate) fn item(&self, job: u64, place: u32) -> Result<Option<Vec<u8>>, StoreError> {
        self.row(ITEMS, job, place)
    }

    pub(crate) fn ended(&self, job: u64, place: u32) -> Result<Option<EndedRow>, StoreError> {
        self.row(ENDED, job, place)?.map(|bytes| self.decode("ended", &bytes)).transpose()
    }

    pub(crate) fn ended_from(&self, job: u64, place: u32, page: Page) -> Result<Vec<(u32, EndedRow)>, StoreError> {
        let rows = self.rows((ENDED, "ended"), (job, place)..=(job, u32::MAX), page)?;
        Ok(rows.into_iter().map(|(_, place, row)| (place, row)).collect())
    }

    /// stdout and stderr of a command, concatenated.
    pub(crate) fn outputs(&self, job: u64, place: u32) -> Result<Vec<u8>, StoreError> {
        Ok(self.row(OUTPUTS, job, place)?.unwrap_or_default())
    }

    pub(crate) fn open_rows(&self) -> Result<Vec<(u64, u32, OpenRow)>, StoreError> {
        self.rows((OPEN, "open"), (0, 0)..=(u64::MAX, u32::MAX), Page::ALL)
    }
}

/// A transaction. Dropped without [`Self::commit`], it changes nothing.
pub(crate) struct Change<'a> {
    store: &'a Store,
    transaction: WriteTransaction,
}

impl Change<'_> {
    fn failed(&self, error: impl Into<redb::Error>) -> StoreError {
        self.store.failed(error)
    }

    fn make_tables(&mut self) -> Result<(), StoreError> {
        self.transaction.open_table(JOBS).map_err(|error| self.failed(error))?;
        for table in [ITEMS, OPEN, ENDED, OUTPUTS] {
            self.transaction.open_table(table).map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    pub(crate) fn put_meta(&mut self, name: &str, value: &impl Serialize) -> Result<(), StoreError> {
        let bytes = encode(value);
        let put = || -> Result<(), redb::Error> {
            self.transaction.open_table(META)?.insert(name, bytes.as_slice())?;
            Ok(())
        };
        put().map_err(|error| self.failed(error))
    }

    pub(crate) fn put_job(&mut self, row: &JobRow) -> Result<(), StoreError> {
        let bytes = encode(row);
        let put = || -> Result<(), redb::Error> {
            self.transaction.open_table(JOBS)?.insert(row.job, bytes.as_slice())?;
            Ok(())
        };
        put().map_err(|error| self.failed(error))
    }

    fn put(&mut self, table: Rows, job: u64, place: u32, bytes: &[u8]) -> Result<(), StoreError> {
        let put = || -> Result<(), redb::Error> {
            self.transaction.open_table(table)?.insert((job, place), bytes)?;
            Ok(())
        };
        put().map_err(|error| self.failed(error))
    }

    pub(crate) fn put_item(&mut self, job: u64, place: u32, item: &[u8]) -> Result<(), StoreError> {
        self.put(ITEMS, job, place, item)
    }

    pub(crate) fn put_open(&mut self, job: u64, place: u32, row: &OpenRow) -> Result<(), StoreError> {
        self.put(OPEN, job, place, &encode(row))
    }

    pub(crate) fn put_ended(&mut self, job: u64, place: u32, row: &EndedRow) -> Result<(), StoreError> {
        self.put(ENDED, job, place, &encode(row))
    }

    pub(crate) fn put_outputs(&mut self, job: u64, place: u32, outputs: &[u8]) -> Result<(), StoreError> {
        self.put(OUTPUTS, job, place, outputs)
    }

    /// Returns whether there was one.
    pub(crate) fn remove_open(&mut self, job: u64, place: u32) -> Result<bool, StoreError> {
        let remove =
            || -> Result<bool, redb::Error> { Ok(self.transaction.open_table(OPEN)?.remove((job, place))?.is_some()) };
        remove().map_err(|error| self.failed(error))
    }

    pub(crate) fn remove_job(&mut self, job: u64) -> Result<(), StoreError> {
        let remove = || -> Result<(), redb::Error> {
            self.transaction.open_table(JOBS)?.remove(job)?;
            for table in [ITEMS, ENDED, OUTPUTS] {
                let mut table = self.transaction.open_table(table)?;
                table.retain_in((job, 0)..=(job, u32::MAX), |_, _| false)?;
            }
            Ok(())
        };
        remove().map_err(|error| self.failed(error))
    }

    /// Returns when the transaction is on disk.
    pub(crate) fn commit(self) -> Result<(), StoreError> {
        let Self { store, transaction } = self;
        transaction.commit().map_err(|error| store.failed(error))
    }
}

fn encode(value: &impl Serialize) -> Vec<u8> {
    // Fails only for types that the store does not have: maps and sequences of unknown length.
    postcard::to_allocvec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;

    #[test]
    fn what_was_committed_is_there_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs.redb");
        let store = Store::open(&path).unwrap();
        let mut change = store.change().unwrap();
        change.put_open(1, 2, &OpenRow { tries: 3, sent: None }).unwrap();
        change.commit().unwrap();
        let mut change = store.change().unwrap();
        assert!(change.remove_open(1, 2).unwrap());
        drop(change);
        drop(store);
        let store = Store::open(&path).unwrap();
        assert_eq!(store.open_rows().unwrap(), [(1, 2, OpenRow { tries: 3, sent: None })]);
    }

    #[test]
    fn what_a_process_has_left_that_was_killed_while_it_made_the_store_is_no_store() {
        let directory = tempfile::tempdir().unwrap();
        let (path, unfinished) = (directory.path().join("jobs.redb"), directory.path().join("jobs.new"));
        std::fs::write(&unfinished, "half").unwrap();
        drop(Store::open(&path).unwrap());
        assert!(!unfinished.exists());
        std::fs::write(&path, "").unwrap();
        let error = Store::open(&path).unwrap_err().to_string();
        assert!(error.contains("the file is empty"), "somebody has cut it: {error}");
    }

    #[test]
    fn a_store_that_was_cut_short_or_is_of_another_format_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs.redb");
        let store = Store::open(&path).unwrap();
        let mut change = store.change().unwrap();
        change.put_meta("format", &9u32).unwrap();
        change.commit().unwrap();
        drop(store);
        let error = Store::open(&path).unwrap_err().to_string();
        assert!(error.contains("has format 9") && error.contains("MIDFLIGHT_STATE"), "{error}");
        OpenOptions::new().write(true).open(&path).unwrap().set_len(5_000).unwrap();
        let error = Store::open(&path).unwrap_err().to_string();
        assert!(error.contains("jobs.redb") && error.contains("cut short"), "{error}");
        std::fs::write(&path, "this is no store, and longer than its head").unwrap();
        let error = Store::open(&path).unwrap_err().to_string();
        assert!(error.contains("jobs.redb"), "{error}");
    }
}
