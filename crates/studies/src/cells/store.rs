//! A directory of results: a file for each cell that was run lately, and packs, a file a scheme with a line for each cell that was run
//! before. A result is reused if it is for the same cell and the same sources; otherwise it is replaced. Files are written atomically.

use super::pack::{self, Results};
use anyhow::{Context, Result};
use midflight_papers::cell::{Cell, CellResult};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What is kept of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The hash of the sources that decide the result: of its scheme's family.
    version: String,
    pub cell: Cell,
    pub result: CellResult,
    pub cost: Cost,
}

/// What a run took: differs from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cost {
    pub wall_s: f64,
    pub peak_mib: f64,
}

impl Kept {
    pub(crate) fn new(cell: Cell, result: CellResult, cost: Cost) -> Self {
        Self { version: cell.scheme.version().into(), cell, result, cost }
    }

    /// Whether it is of today's sources.
    pub(super) fn is_current(&self) -> bool {
        self.version == self.cell.scheme.version()
    }
}

/// A directory of results.
#[derive(Clone, Debug)]
pub(crate) struct Store(PathBuf);

impl Store {
    /// The directory is made where it is not there.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
        Ok(Self(directory.to_owned()))
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.0
    }

    /// Where the result of `cell` is kept until it is packed.
    pub(crate) fn path(&self, cell: &Cell) -> Result<PathBuf> {
        Ok(self.0.join(format!("{}.json", pack::key(cell)?)))
    }

    /// The stored result of `cell`. Files that are damaged, of other sources or of another cell are ignored.
    pub(crate) fn load(&self, cell: &Cell) -> Option<Kept> {
        let alone = || serde_json::from_slice(&fs::read(self.path(cell).ok()?).ok()?).ok();
        let is_its = |kept: &Kept| kept.is_current() && kept.cell == *cell;
        alone().filter(is_its).or_else(|| pack::find(&self.0, cell))
    }

    /// All results, to look for many cells.
    pub(crate) fn results(&self) -> Result<Results> {
        Results::read(&self.0)
    }

    /// Moves the results of single cells into the packs, and drops those of other sources.
    ///
    /// # Errors
    /// Where a pack cannot be written; then no result is lost.
    pub(crate) fn pack(&self) -> Result<Results> {
        pack::pack(&self.0)
    }

    /// # Errors
    /// Where it cannot be written, for example because the disk is full; then nothing is left of it.
    pub(crate) fn keep(&self, kept: &Kept) -> Result<()> {
        write_whole(&self.path(&kept.cell)?, &serde_json::to_vec(kept)?)
    }
}

/// Whoever reads the file sees all of it, or what was there before.
pub(super) fn write_whole(path: &Path, text: &[u8]) -> Result<()> {
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let written: io::Result<()> = fs::write(&part, text).and_then(|()| fs::rename(&part, path));
    written.inspect_err(|_| drop(fs::remove_file(&part))).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use midflight_papers::cell::{Cluster, Load, Scheme, Work};

    /// A cell that takes no time.
    pub(crate) fn cell(seed: u64) -> Cell {
        Cell {
            scheme: Scheme::Spark,
            cluster: Cluster::uniform(2, 2),
            load: Load::Sw1 { clients: 2, utilisation: 0.3, work: Work::Sleep },
            seed,
            warmup_ms: 0,
            duration_ms: 200,
            drain_ms: 10_000,
        }
    }

    pub(crate) fn store(name: &str) -> Store {
        let directory = std::env::temp_dir().join(format!("midflight-store-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        Store::open(&directory).unwrap()
    }

    #[test]
    fn a_result_is_reused_and_of_the_same_cell_only() {
        let store = store("reuse");
        assert_eq!(store.load(&cell(1)), None);
        let kept = super::super::run(&cell(1), Some(&store), None).unwrap();
        assert_eq!(store.load(&cell(1)), Some(kept));
        assert_eq!(store.load(&cell(2)), None);
        fs::remove_dir_all(store.directory()).unwrap();
    }

    #[test]
    fn a_result_of_other_sources_or_a_damaged_one_is_none() {
        let store = store("other");
        let kept = super::super::run(&cell(1), Some(&store), None).unwrap();
        store.keep(&Kept { version: "other".into(), ..kept.clone() }).unwrap();
        assert_eq!(store.load(&cell(1)), None);
        let path = store.path(&cell(1)).unwrap();
        let whole = serde_json::to_vec(&kept).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        assert_eq!(store.load(&cell(1)), None);
        fs::remove_dir_all(store.directory()).unwrap();
    }

    #[test]
    fn what_is_kept_comes_back_to_the_bit() {
        let kept = super::super::run(&cell(3), None, None).unwrap();
        let back: Kept = serde_json::from_slice(&serde_json::to_vec(&kept).unwrap()).unwrap();
        assert_eq!(back, kept);
    }
}
