//! Packs of results, for version control and other machines: a file per scheme with a line of JSON per cell, sorted by key.

use super::equal::Equals;
use super::store::{Kept, fnv, write_whole};
use anyhow::{Context, Result};
use midflight_papers::experiment::Experiment;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const PACK: &str = "jsonl";
/// Bytes of the largest pack.
const PACK_MAX: u64 = 1024 * midflight_files::MIB;
const ALONE: &str = "json";

/// Results of the current sources by key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Results(BTreeMap<String, Kept>);

/// Lookups also compare the cell itself.
pub(super) fn key(cell: &Experiment) -> Result<String> {
    Ok(format!("{:016x}", fnv(&serde_json::to_vec(cell)?)))
}

fn name(cell: &Experiment) -> Result<String> {
    let cell = serde_json::to_value(cell)?;
    let text = |path| cell.pointer(path).and_then(|name| name.as_str());
    // A scheduler's name; for the cache, the placement of its selectors; for a store, the system.
    let placement = || text("/placement").map(|placement| format!("netrs-{placement}"));
    let system = || text("/system").map(|system| format!("flair-{system}"));
    let name = text("/scheme/name").map(str::to_owned).or_else(placement).or_else(system);
    Ok(format!("{}.{PACK}", name.context("a cell without a scheme")?))
}

pub(super) fn find(directory: &Path, cell: &Experiment, equals: &Equals) -> Option<Kept> {
    let pack = midflight_files::read(&directory.join(name(cell).ok()?), PACK_MAX).ok()?;
    lines(&pack).find(|kept| kept.is_current(equals) && kept.cell == *cell)
}

/// Results of other sources, in the order of packs and lines.
pub(super) fn outdated(directory: &Path, equals: &Equals) -> Result<Vec<Kept>> {
    let mut packs = files(directory, PACK)?;
    packs.sort();
    let texts: Vec<Vec<u8>> = packs.iter().map(|pack| read(pack)).collect::<Result<_>>()?;
    Ok(texts.iter().flat_map(|text| lines(text)).filter(|kept| !kept.is_current(equals)).collect())
}

/// Skips damaged lines: their cells run again.
fn lines(pack: &[u8]) -> impl Iterator<Item = Kept> {
    pack.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

impl Results {
    pub(super) fn read(directory: &Path, equals: &Equals) -> Result<Self> {
        let mut all = Self::default();
        for pack in files(directory, PACK)? {
            lines(&read(&pack)?).try_for_each(|kept| all.add(kept, equals))?;
        }
        for alone in files(directory, ALONE)? {
            serde_json::from_slice(&read(&alone)?).ok().map_or(Ok(()), |kept| all.add(kept, equals))?;
        }
        Ok(all)
    }

    fn add(&mut self, kept: Kept, equals: &Equals) -> Result<()> {
        if kept.is_current(equals) {
            self.0.insert(key(&kept.cell)?, kept);
        }
        Ok(())
    }

    pub(crate) fn get(&self, cell: &Experiment) -> Option<&Kept> {
        self.0.get(&key(cell).ok()?).filter(|kept| kept.cell == *cell)
    }
}

/// Concurrent calls of several processes are safe.
pub(super) fn pack(directory: &Path, equals: &Equals) -> Result<Results> {
    let lock = directory.join("lock");
    let locked = File::create(&lock).and_then(|file| file.lock().map(|()| file));
    let _locked = locked.with_context(|| format!("cannot lock {}", lock.display()))?;
    let alone = files(directory, ALONE)?;
    let results = Results::read(directory, equals)?;
    let mut packs: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for kept in results.0.values() {
        let pack = packs.entry(name(&kept.cell)?).or_default();
        serde_json::to_writer(&mut *pack, kept)?;
        pack.push(b'\n');
    }
    for (name, pack) in &packs {
        let path = directory.join(name);
        if fs::read(&path).ok().as_ref() != Some(pack) {
            write_whole(&path, pack)?;
        }
    }
    let written: BTreeSet<PathBuf> = packs.keys().map(|name| directory.join(name)).collect();
    let old = files(directory, PACK)?.into_iter().filter(|path| !written.contains(path));
    // Their results are packed or outdated; leftover files are harmless.
    alone.into_iter().chain(old).for_each(|path| drop(fs::remove_file(path)));
    Ok(results)
}

fn files(directory: &Path, end: &str) -> Result<Vec<PathBuf>> {
    let what = || format!("cannot read {}", directory.display());
    let entries = fs::read_dir(directory).with_context(what)?;
    let paths = entries.map(|entry| Ok(entry.with_context(what)?.path()));
    paths.filter(|path| path.as_ref().map_or(true, |path| path.extension().is_some_and(|its| its == end))).collect()
}

/// A missing file was packed by another process.
fn read(path: &Path) -> Result<Vec<u8>> {
    match midflight_files::read(path, PACK_MAX) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read.with_context(|| format!("cannot read {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::tests::{cell, store};
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn results_of_single_cells_move_into_the_pack_of_their_scheme_and_are_found_there() {
        let store = store("pack");
        let kept: Vec<Kept> = [1, 2].map(|seed| super::super::run(&cell(seed), Some(&store), None).unwrap()).into();
        let results = store.pack().unwrap();
        assert_eq!(names(store.directory()), ["lock", "spark.jsonl"]);
        for kept in &kept {
            assert_eq!(results.get(&kept.cell), Some(kept));
            assert_eq!(store.load(&kept.cell).as_ref(), Some(kept));
        }
        assert_eq!(store.results().unwrap().get(&cell(3)), None);
        // It is added to them.
        let third = super::super::run(&cell(3), Some(&store), None).unwrap();
        let results = store.pack().unwrap();
        assert_eq!((results.get(&cell(3)), results.get(&cell(1))), (Some(&third), Some(&kept[0])));
        fs::remove_dir_all(store.directory()).unwrap();
    }

    #[test]
    fn a_damaged_line_costs_its_own_result_only() {
        let store = store("pack-damaged");
        for seed in [1, 2] {
            super::super::run(&cell(seed), Some(&store), None).unwrap();
        }
        store.pack().unwrap();
        let path = store.directory().join("spark.jsonl");
        let text = fs::read(&path).unwrap();
        fs::write(&path, &text[..text.len() - 10]).unwrap();
        let results = store.results().unwrap();
        assert_eq!([1, 2].map(|seed| results.get(&cell(seed)).is_some()).iter().filter(|&&is| is).count(), 1);
        fs::remove_dir_all(store.directory()).unwrap();
    }

    #[test]
    fn a_pack_of_other_sources_goes_when_the_next_one_is_written() {
        let store = store("pack-old");
        super::super::run(&cell(1), Some(&store), None).unwrap();
        store.pack().unwrap();
        let path = store.directory().join("spark.jsonl");
        let text = String::from_utf8(fs::read(&path).unwrap()).unwrap();
        fs::write(&path, text.replace(cell(1).version(), "another")).unwrap();
        assert!(store.load(&cell(1)).is_none());
        store.pack().unwrap();
        assert_eq!(names(store.directory()), ["lock"]);
        fs::remove_dir_all(store.directory()).unwrap();
    }
}
