//! Recovers a log from the files that are left.

use super::codec::SnapshotMirror;
use super::disk::{self, Disk, Part};
use super::format::{Batch, Birth, PREAMBLE_BYTES, Position, Reader, Record, SnapshotHeader, Start, Writer};
use super::parts::Parts;
use super::replay::{self, Replayed};
use super::{Identity, Log, LogError, Recovered};
use midflight_endpoint::{Change, File};
use raft::prelude::{ConfState, Snapshot};
use std::collections::BTreeMap;

/// No log has larger numbers and indexes; so a sum with a small number never overflows.
pub(super) const NUMBER_MAX: u64 = u64::MAX >> 1;

pub(super) type Files = BTreeMap<File, Vec<u8>>;

/// What is left on disk, and what must be changed there first.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) run: u64,
    pub(super) repairs: Vec<Change>,
    /// Files that nothing needs once the next batch is safe.
    pub(super) retired: Vec<File>,
    pub(super) parts: Vec<Part>,
    /// Where the last part ends.
    pub(super) end: Position,
    pub(super) known: Batch,
    /// What the next part begins with.
    pub(super) start: Start,
    /// The number of the snapshot; 0: there is none.
    pub(super) snapshot: u64,
}

/// The newest snapshot, and what its header says; all zero: there is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Newest {
    pub(super) number: u64,
    pub(super) index: u64,
    pub(super) run: u64,
    pub(super) run_part: u64,
    pub(super) safe: Position,
}

pub(super) fn recover(identity: Identity, files: Files, initial_voters: &[u64]) -> Result<Recovered, LogError> {
    if files.is_empty() {
        let disk = Disk::new(identity, initial_voters);
        let log = Log::new(disk, Replayed::default(), members(initial_voters.to_vec()), None);
        return Ok(Recovered { log, snapshot: None, cut: None });
    }
    let (newest, snapshot) = read_snapshot(identity, &files)?.unzip();
    let newest = newest.unwrap_or_default();
    let parts = Parts::read(identity, &files, newest)?;
    let (voters, birth) = voters(identity, &files, &parts, initial_voters)?;
    let is_born = birth.is_none();
    let run = parts.run.saturating_add(1).min(NUMBER_MAX);
    let (end, marked) = mark_cut(&parts, run);
    let behind = files.keys().filter(|file| matches!(file, File::Log(number) if *number > end.part));
    let removals = behind.map(|&file| Change::Remove { file });
    let repairs = birth.into_iter().chain(marked).chain(removals).collect();
    let retired = retired(&parts, &files, newest);
    // Without the identity nothing is safe: should the next crash take it again, its absence must not look like damage.
    let safe = if is_born { parts.end() } else { Position::default() };
    let Parts { kept, cut, known, .. } = parts;
    let known = Batch { safe, ..known };
    let numbers: Vec<_> = kept.iter().map(|part| part.number).collect();
    let replayed = replay::replay(kept, snapshot.as_ref())?;
    let last = replayed.last();
    let start = if replayed.is_void { Start::Snapshot { number: newest.number, last } } else { Start::After(last) };
    let parts = numbers.into_iter().zip(&replayed.highest).map(|(number, &highest)| Part { number, highest }).collect();
    let left = Left { run, repairs, retired, parts, end, known, start, snapshot: newest.number };
    let log = Log::new(Disk::after(identity, left), replayed, members(voters), snapshot.clone());
    Ok(Recovered { log, snapshot, cut })
}

fn members(voters: Vec<u64>) -> ConfState {
    ConfState { voters, ..ConfState::default() }
}

/// The set's first voters, and the change that writes them down if a crash in the very first batch has kept only other files.
fn voters(
    identity: Identity,
    files: &Files,
    parts: &Parts<'_>,
    initial: &[u64],
) -> Result<(Vec<u64>, Option<Change>), LogError> {
    let file = File::Identity;
    let Some(bytes) = files.get(&file) else {
        let is_new = parts.known.safe == Position::default() && parts.known.snapshot == 0;
        let repaired = (initial.to_vec(), Some(disk::birth(identity, initial)));
        return if is_new { Ok(repaired) } else { Err(LogError::Missing { file }) };
    };
    let mut reader = Reader::open(file, bytes)?;
    let birth: Birth = value(&mut reader)?;
    check_identity(file, birth.identity, identity)?;
    check_end(&reader)?;
    Ok((birth.voters, None))
}

/// The newest snapshot. It was made at once, so it is whole, or damaged.
fn read_snapshot(identity: Identity, files: &Files) -> Result<Option<(Newest, Snapshot)>, LogError> {
    let newest = files.iter().rev().find_map(|(file, bytes)| match file {
        File::Snapshot(number) => Some((*file, *number, bytes)),
        _ => None,
    });
    let Some((file, number, bytes)) = newest else { return Ok(None) };
    let mut reader = Reader::open(file, bytes)?;
    let header: SnapshotHeader = value(&mut reader)?;
    check_identity(file, header.identity, identity)?;
    let snapshot: SnapshotMirror<'_> = value(&mut reader)?;
    check_end(&reader)?;
    if number == 0 || number.max(snapshot.index) > NUMBER_MAX || snapshot.index == 0 {
        return Err(LogError::Damaged { file, offset: PREAMBLE_BYTES as u64, why: "its numbers are no snapshot's" });
    }
    let SnapshotHeader { run, run_part, safe, .. } = header;
    let newest = Newest { number, index: snapshot.index, run, run_part, safe };
    Ok(Some((newest, snapshot.into_snapshot())))
}

/// The next record of a file that is whole.
pub(super) fn value<'a, T: serde::Deserialize<'a>>(reader: &mut Reader<'a>) -> Result<T, LogError> {
    reader.value().map_err(|why| LogError::Damaged { file: reader.file, offset: reader.offset as u64, why })
}

pub(super) fn check_identity(file: File, found: Identity, ours: Identity) -> Result<(), LogError> {
    if found == ours { Ok(()) } else { Err(LogError::OtherIdentity { file, found, ours }) }
}

fn check_end(reader: &Reader<'_>) -> Result<(), LogError> {
    let (file, offset) = (reader.file, reader.offset as u64);
    let damaged = LogError::Damaged { file, offset, why: "something follows its last record" };
    if reader.is_at_end() { Ok(()) } else { Err(damaged) }
}

/// Cuts the last part, if anything is cut off; and where that ends then. What follows it on disk must not come back, should the next
/// crash take this recovery's own part: by then we may have told others how our log ends.
fn mark_cut(parts: &Parts<'_>, run: u64) -> (Position, Option<Change>) {
    let end = parts.end();
    let Some(last) = parts.kept.last().filter(|_| parts.cut.is_some()) else { return (end, None) };
    let file = File::Log(last.number);
    let mut mark = Writer::append(file, end.offset);
    mark.value(&Record::Cut(run));
    let end = Position { offset: mark.offset(), ..end };
    let bytes = [&last.bytes[..last.good_bytes], &mark.finish()].concat();
    (end, Some(Change::Replace { file, bytes }))
}

/// Files that are not needed, once the log says so again: what said so may be cut off.
fn retired(parts: &Parts<'_>, files: &Files, newest: Newest) -> Vec<File> {
    let is_needless = |file: &&File| match file {
        File::Identity => false,
        File::Log(number) => *number < parts.known.first,
        File::Snapshot(number) => *number != newest.number,
    };
    files.keys().filter(is_needless).copied().collect()
}
