//! A directory of results: a file for each recent cell, and packs of older ones. A result is valid for the same cell, sources and content
//! of the cell's trace.

use super::equal::{Equal, Equals};
use super::pack::{self, Results};
use anyhow::{Context, Result};
use midflight_papers::experiment::{Experiment, Outcome};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// What determines the result besides the cell ([`version`]).
    version: String,
    pub cell: Experiment,
    pub result: Outcome,
    pub cost: Cost,
}

/// Differs from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cost {
    pub wall_s: f64,
    pub peak_mib: f64,
}

impl Kept {
    pub(crate) fn new(version: String, cell: Experiment, result: Outcome, cost: Cost) -> Self {
        Self { version, cell, result, cost }
    }

    /// Version of its sources.
    pub(crate) fn sources(&self) -> &str {
        self.version.split(',').next().unwrap_or_default()
    }

    /// Whether it was computed by other sources than the current ones.
    pub(crate) fn is_of_earlier(&self) -> bool {
        self.sources() != self.cell.version()
    }

    /// Whether it is valid for the current sources, whatever its trace.
    pub(super) fn is_current(&self, equals: &Equals) -> bool {
        equals.leads(self.sources(), self.cell.version())
    }

    /// Whether its trace matches the one in `version`, or both have none.
    fn has_trace_of(&self, version: &str) -> bool {
        self.version.split_once(',').map(|(_, trace)| trace) == version.split_once(',').map(|(_, trace)| trace)
    }
}

/// What determines a cell's result besides the cell: the hash of its family's sources, and the length and hash of its trace. A trace named
/// without a folder is in `traces`.
///
/// # Errors
/// If the trace cannot be read.
pub(super) fn version(cell: &Experiment, traces: Option<&Path>) -> Result<String> {
    let there = traces.map(|traces| cell.with_traces(traces));
    let sources = cell.version();
    let Some(file) = there.as_ref().unwrap_or(cell).trace() else { return Ok(sources.into()) };
    let content = midflight_files::read(file, TRACE_MAX).with_context(|| format!("load.file {}", file.display()))?;
    Ok(format!("{sources}, trace of {} bytes {:016x}", content.len(), fnv(&content)))
}

/// FNV-1a: detects accidental changes only.
pub(super) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// In bytes: of a trace, and of the result of one cell.
const TRACE_MAX: u64 = 2048 * midflight_files::MIB;
const RESULT_MAX: u64 = 256 * midflight_files::MIB;

#[derive(Debug)]
pub(crate) struct Store {
    directory: PathBuf,
    /// The folder of traces.
    traces: Option<PathBuf>,
    /// By sources and trace file.
    versions: Mutex<HashMap<(&'static str, PathBuf), String>>,
    /// Other sources with the same results as the current ones.
    equals: Equals,
}

impl Store {
    /// Creates a missing directory.
    pub(crate) fn open(directory: &Path, traces: Option<&Path>) -> Result<Self> {
        fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
        let equals = Equals::read(directory)?;
        let traces = traces.map(Path::to_owned);
        Ok(Self { directory: directory.to_owned(), traces, versions: Mutex::default(), equals })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn traces(&self) -> Option<&Path> {
        self.traces.as_deref()
    }

    pub(crate) fn path(&self, cell: &Experiment) -> Result<PathBuf> {
        Ok(self.directory.join(format!("{}.json", pack::key(cell)?)))
    }

    /// Reads each trace once.
    fn version(&self, cell: &Experiment) -> Option<String> {
        let Some(file) = cell.trace() else { return version(cell, None).ok() };
        let key = (cell.version(), file.to_owned());
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(version) = versions.get(&key) {
            return Some(version.clone());
        }
        let version = version(cell, self.traces.as_deref()).ok()?;
        versions.insert(key, version.clone());
        Some(version)
    }

    /// Skips files that are damaged, or of other sources, another trace or another cell.
    pub(crate) fn load(&self, cell: &Experiment) -> Option<Kept> {
        let alone = || serde_json::from_slice(&midflight_files::read(&self.path(cell).ok()?, RESULT_MAX).ok()?).ok();
        let is_its = |kept: &Kept| kept.cell == *cell && self.is_valid(kept);
        alone().filter(is_its).or_else(|| pack::find(&self.directory, cell, &self.equals).filter(is_its))
    }

    /// Whether the current sources would compute `kept`, with the current trace.
    fn is_valid(&self, kept: &Kept) -> bool {
        kept.is_current(&self.equals) && self.version(&kept.cell).is_some_and(|version| kept.has_trace_of(&version))
    }

    /// All results of the current sources, for many lookups.
    pub(crate) fn results(&self) -> Result<Results> {
        Results::read(&self.directory, &self.equals)
    }

    /// Results of other sources that are not known to be equal.
    pub(crate) fn outdated(&self) -> Result<Vec<Kept>> {
        pack::outdated(&self.directory, &self.equals)
    }

    /// Declares these sources equal to the current ones.
    ///
    /// # Errors
    /// If that cannot be written.
    pub(crate) fn hold_equal(&mut self, equal: Equal) -> Result<()> {
        self.equals.add(&self.directory, equal)
    }

    /// The result of `cell` among them.
    pub(crate) fn find<'a>(&self, results: &'a Results, cell: &Experiment) -> Option<&'a Kept> {
        results.get(cell).filter(|kept| self.is_valid(kept))
    }

    /// Moves single results into the packs, and drops those of other sources.
    ///
    /// # Errors
    /// If a pack cannot be written; no result is lost then.
    pub(crate) fn pack(&self) -> Result<Results> {
        pack::pack(&self.directory, &self.equals)
    }

    /// # Errors
    /// If it cannot be written; nothing is left of it then.
    pub(crate) fn keep(&self, kept: &Kept) -> Result<()> {
        write_whole(&self.path(&kept.cell)?, &serde_json::to_vec(kept)?)
    }
}

pub(super) fn write_whole(path: &Path, text: &[u8]) -> Result<()> {
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let written: io::Result<()> = fs::write(&part, text).and_then(|()| fs::rename(&part, path));
    written.inspect_err(|_| drop(fs::remove_file(&part))).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use midflight_papers::cell::{Cell, Cluster, Load, Replace, Scheme, Work};

    /// A cell that takes no time.
    pub(crate) fn cell(seed: u64) -> Experiment {
        tasks(seed).into()
    }

    fn tasks(seed: u64) -> Cell {
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
        Store::open(&directory, None).unwrap()
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

    /// A cell only names its trace.
    #[test]
    fn a_result_of_another_content_of_the_trace_is_none() {
        let traces = store("traces").directory().to_owned();
        let file = traces.join("a.tr");
        let line = |n: usize, ms: u32| format!("{n} 2 0.0{ms} 0.0{ms} 0.0{ms}\n");
        let write = |ms| std::fs::write(&file, (0..50).map(|n| line(n, ms)).collect::<String>()).unwrap();
        let load = |file: &Path| Load::Sample {
            file: file.to_owned(),
            median_ms: 5.0,
            load: 0.5,
            priorities: false,
            clients: 2,
            work: Work::Sleep,
            replace: Replace::Nothing,
        };
        // By its name in the folder, and by its path.
        for (name, file) in [("named", Path::new("a.tr")), ("path", &file)] {
            write(1);
            let directory = store(name).directory().to_owned();
            let opened = || Store::open(&directory, Some(&traces)).unwrap();
            let cell = Cell { load: load(file), ..tasks(1) }.into();
            let kept = super::super::run(&cell, Some(&opened()), Some(&traces)).unwrap();
            assert_eq!(opened().load(&cell), Some(kept));
            write(2);
            assert_eq!(opened().load(&cell), None, "{name}: as long as before, with other numbers");
            std::fs::remove_file(traces.join("a.tr")).unwrap();
            assert_eq!(opened().load(&cell), None, "{name}: gone");
            fs::remove_dir_all(directory).unwrap();
        }
        fs::remove_dir_all(traces).unwrap();
    }

    #[test]
    fn what_is_kept_comes_back_to_the_bit() {
        let kept = super::super::run(&cell(3), None, None).unwrap();
        let back: Kept = serde_json::from_slice(&serde_json::to_vec(&kept).unwrap()).unwrap();
        assert_eq!(back, kept);
    }
}
