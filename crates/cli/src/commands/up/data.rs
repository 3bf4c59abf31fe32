//! The data directory of `midflight up --store`.
//!
//! A client may hear of a write as soon as two of three replicas have it. So a replica may start without data only before any client was
//! served: while the file `founding` exists. See docs/internals/store-replica.md.

use anyhow::{Context, Result, bail};
use midflight_control::store::{ANY_CLUSTER, ReplicaStart, SetTable};
use midflight_host::disk::Directory;
use midflight_terminal::files::temporary;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// File with the store's number, and its largest size in bytes.
const CLUSTER: &str = "cluster";
const CLUSTER_MAX: u64 = 64;
/// Exists before any client is served.
const FOUNDING: &str = "founding";
/// Its text, for a user who finds it.
const ABOUT_FOUNDING: &str = "The replicas in this directory get their first state: no client of their store has been served. \
                              `midflight up --store --data` goes on with that, and removes this file.\n";

pub(super) struct Data {
    path: PathBuf,
    /// Removed on drop.
    temporary: Option<TempDir>,
    /// A lock against other processes.
    _held: Directory,
}

impl Data {
    /// Temporary if not `named`.
    pub(super) fn new(named: Option<&Path>) -> Result<Self> {
        let (path, temporary) = match named {
            Some(path) => (path.to_owned(), None),
            None => {
                let directory = temporary("midflight-store-")?;
                (directory.path().to_owned(), Some(directory))
            }
        };
        let held = Directory::take(&path)?;
        Ok(Self { path, temporary, _held: held })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    pub(super) fn of(&self, replica: u64) -> PathBuf {
        self.path.join(replica.to_string())
    }

    /// Random, and kept with the data. A process that knows it can speak to the replicas as one of them.
    pub(super) fn cluster(&self) -> Result<u64> {
        let path = self.path.join(CLUSTER);
        let number = match midflight_files::read_text(&path, CLUSTER_MAX) {
            Ok(text) => {
                let number = text.trim().parse().ok().filter(|&number| number != ANY_CLUSTER);
                return number.with_context(|| format!("{} is damaged: it has the store's number", path.display()));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => rand::random_range(1..=i64::MAX as u64),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let has_data = |id: u64| self.of(id).read_dir().is_ok_and(|mut files| files.next().is_some());
        if (1..=u64::from(super::store::REPLICAS)).any(has_data) {
            bail!("{} is missing: it contains the number of the store in this directory; restore it", path.display());
        }
        let unfinished = path.with_extension("new");
        let write = || {
            let mut file = midflight_files::create(&unfinished)?;
            writeln!(file, "{number}")?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)?;
            self.sync()
        };
        write().with_context(|| format!("cannot write {}", path.display()))?;
        Ok(number)
    }

    /// A new store gets its first state. Replicas of an existing store must have theirs: an empty one would have forgotten acknowledged
    /// writes. Call before any client is served.
    pub(super) fn prepare(&self, set: &SetTable) -> Result<()> {
        let founding = self.path.join(FOUNDING);
        let has_data = |id: &u64| self.of(*id).read_dir().is_ok_and(|mut files| files.next().is_some());
        let (with, without): (Vec<u64>, Vec<u64>) = set.replicas.iter().map(|replica| replica.id).partition(has_data);
        match without.first() {
            _ if founding.exists() => self.found(set, &founding),
            _ if with.is_empty() => {
                self.begin(&founding).with_context(|| format!("cannot write {}", founding.display()))?;
                self.found(set, &founding)
            }
            Some(gone) => bail!(
                "replica {gone} has no data in {}, though others of this store have: put it back, or begin a new store in another \
                 directory (--data)",
                self.of(*gone).display()
            ),
            None => Ok(()),
        }
    }

    fn begin(&self, founding: &Path) -> std::io::Result<()> {
        let mut file = midflight_files::create(founding)?;
        file.write_all(ABOUT_FOUNDING.as_bytes())?;
        file.sync_all()?;
        self.sync()
    }

    fn found(&self, set: &SetTable, founding: &Path) -> Result<()> {
        let founders: BTreeMap<u64, u64> = set.replicas.iter().map(|replica| (replica.id, rand::random())).collect();
        for replica in &set.replicas {
            let mut config = set.replica_config(replica.id, ReplicaStart::IsNew, rand::random());
            config.founders.clone_from(&founders);
            midflight_host::store::replica::found(config, &self.of(replica.id), !self.is_temporary())?;
        }
        let served = self.sync().and_then(|()| fs::remove_file(founding)).and_then(|()| self.sync());
        served.with_context(|| format!("cannot remove {}", founding.display()))
    }

    /// Syncs the directory, but not its subdirectories.
    fn sync(&self) -> std::io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}
