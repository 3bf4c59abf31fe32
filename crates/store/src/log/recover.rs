use super::disk::{self, Disk, Part};
use super::format::{
    Batch, Birth, PREAMBLE_BYTES, Piece, Position, Reader, Record, SafeHeader, SnapshotHeader, SnapshotPlace, Start,
    Writer,
};
use super::parts::Parts;
use super::replay::{self, Replayed};
use super::{Identity, Log, LogError, Recovered, Stored};
use bytes::Bytes;
use midflight_endpoint::{Change, File};
use raft::prelude::Snapshot;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bound on numbers and indexes, so that adding a small number never overflows.
pub(super) const NUMBER_MAX: u64 = u64::MAX >> 1;

pub(super) type Files = BTreeMap<File, Vec<u8>>;

#[derive(Debug)]
pub(super) struct Left {
    pub(super) run: u64,
    pub(super) repairs: Vec<Change>,
    /// Files to remove once the next batch is durable.
    pub(super) retired: Vec<File>,
    pub(super) parts: Vec<Part>,
    pub(super) end: Position,
    pub(super) known: Batch,
    /// The newest part that `File::Safe` names.
    pub(super) named: u64,
    pub(super) start: Start,
    /// Number of the snapshot; 0 if there is none.
    pub(super) snapshot: u64,
    pub(super) last_snapshot: u64,
}

/// The newest snapshot and its header; all zero if there is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Newest {
    pub(super) number: u64,
    pub(super) index: u64,
    pub(super) run: u64,
    pub(super) run_part: u64,
    pub(super) safe: Position,
}

pub(super) fn recover(identity: Identity, mut files: Files, new_number: u64) -> Result<Recovered, LogError> {
    if files.is_empty() {
        let log = Log::new(Disk::new(identity, new_number), new_number, Replayed::default(), None);
        return Ok(Recovered { log, snapshot: None, cut: None });
    }
    let Snapshots { newest, whole, damaged, last: last_snapshot } = read_snapshots(identity, &files)?;
    let parts = Parts::read(identity, &files, newest)?;
    if parts.known.snapshot > newest.number {
        let missing = LogError::Missing { file: File::Snapshot(parts.known.snapshot) };
        return Err(damaged.unwrap_or(missing));
    }
    let (snapshot, ranges) = whole.unzip();
    let (number, birth) = directory_number(identity, &files, &parts, new_number)?;
    let is_born = birth.is_none();
    let run = parts.run.saturating_add(1).min(NUMBER_MAX);
    let (end, marked) = mark_cut(&parts, run);
    let behind = files.keys().filter(|file| matches!(file, File::Log(number) if *number > end.part));
    let removals = behind.map(|&file| Change::Remove { file });
    let repairs = birth.into_iter().chain(marked).chain(removals).collect();
    let retired = retired(&parts, &files, newest);
    // Without the identity nothing is durable: if the next crash loses it again, its absence must not look like damage.
    let safe = if is_born { parts.end() } else { Position::default() };
    let Parts { kept, cut, known, named, .. } = parts;
    let known = Batch { safe, ..known };
    let numbers: Vec<_> = kept.iter().map(|part| part.number).collect();
    let replayed = replay::replay(kept, snapshot.as_ref())?;
    let last = replayed.last();
    let start = if replayed.is_blank { Start::Snapshot { number: newest.number, last } } else { Start::After(last) };
    let parts = numbers.into_iter().zip(&replayed.highest).map(|(number, &highest)| Part { number, highest }).collect();
    let left = Left { run, repairs, retired, parts, end, known, named, start, snapshot: newest.number, last_snapshot };
    let log = Log::new(Disk::after(identity, left), number, replayed, snapshot.clone());
    let bytes = Bytes::from(files.remove(&File::Snapshot(newest.number)).unwrap_or_default());
    let parts = ranges.unwrap_or_default().into_iter().map(|range| bytes.slice(range)).collect();
    let snapshot = snapshot.map(|snapshot| Stored { snapshot, parts });
    Ok(Recovered { log, snapshot, cut })
}

/// The random number of the directory (file `identity`). If a crash during the first batch lost that file: `new_number`, and the change
/// that writes it.
fn directory_number(
    identity: Identity,
    files: &Files,
    parts: &Parts<'_>,
    new_number: u64,
) -> Result<(u64, Option<Change>), LogError> {
    let file = File::Identity;
    let Some(bytes) = files.get(&file) else {
        let is_new = parts.known.safe == Position::default() && parts.known.snapshot == 0;
        let repaired = (new_number, Some(disk::birth(identity, new_number)));
        return if is_new { Ok(repaired) } else { Err(LogError::Missing { file }) };
    };
    let mut reader = Reader::open(file, bytes)?;
    let birth: Birth = value(&mut reader)?;
    check_identity(file, birth.identity, identity)?;
    check_end(&reader)?;
    Ok((birth.disk, None))
}

/// Reads `File::Safe`. If it is missing nothing is lost, and its loss looks like a crash before it was created.
pub(super) fn read_safe(identity: Identity, files: &Files) -> Result<Batch, LogError> {
    let file = File::Safe;
    let Some(bytes) = files.get(&file) else { return Ok(Batch::default()) };
    let mut reader = Reader::open(file, bytes)?;
    let header: SafeHeader = value(&mut reader)?;
    check_identity(file, header.identity, identity)?;
    check_end(&reader)?;
    if header.known.is_sane(NUMBER_MAX) { Ok(header.known) } else { Err(impossible(file)) }
}

struct Snapshots {
    newest: Newest,
    /// The newest complete one, and the ranges of its parts in its file.
    whole: Option<(Snapshot, Vec<Range<usize>>)>,
    /// Damage in the oldest of those after `whole`. A crash can leave such a file; nothing depends on it yet.
    damaged: Option<LogError>,
    last: u64,
}

fn read_snapshots(identity: Identity, files: &Files) -> Result<Snapshots, LogError> {
    let mut found = Snapshots { newest: Newest::default(), whole: None, damaged: None, last: 0 };
    for (&file, bytes) in files.iter().rev() {
        let File::Snapshot(number) = file else { continue };
        found.last = found.last.max(number.min(NUMBER_MAX));
        match read_snapshot(identity, file, number, bytes) {
            Ok((newest, snapshot, ranges)) => {
                (found.newest, found.whole) = (newest, Some((snapshot, ranges)));
                break;
            }
            Err(damaged @ LogError::Damaged { .. }) => found.damaged = Some(damaged),
            Err(refused) => return Err(refused),
        }
    }
    Ok(found)
}

fn read_snapshot(
    identity: Identity,
    file: File,
    number: u64,
    bytes: &[u8],
) -> Result<(Newest, Snapshot, Vec<Range<usize>>), LogError> {
    let mut reader = Reader::open(file, bytes)?;
    let header: SnapshotHeader = value(&mut reader)?;
    check_identity(file, header.identity, identity)?;
    let damaged = |reader: &Reader<'_>, why| LogError::Damaged { file, offset: reader.offset as u64, why };
    let Piece::Place(SnapshotPlace { last, members }) = value(&mut reader)? else {
        return Err(damaged(&reader, "it does not begin as a snapshot does"));
    };
    let mut ranges = Vec::new();
    loop {
        match value(&mut reader)? {
            // A record ends where its part ends.
            Piece::Part(part) => ranges.push(reader.offset - part.0.len()..reader.offset),
            Piece::End { parts } if parts == ranges.len() as u64 => break,
            Piece::End { .. } | Piece::Place(_) => return Err(damaged(&reader, "its parts are not all there")),
        }
    }
    check_end(&reader)?;
    if number == 0 || number.max(last.index) > NUMBER_MAX || last.index == 0 {
        return Err(impossible(file));
    }
    let SnapshotHeader { run, run_part, safe, .. } = header;
    let mut snapshot = Snapshot::default();
    let metadata = snapshot.mut_metadata();
    (metadata.index, metadata.term) = (last.index, last.term);
    metadata.set_conf_state(members.into_state());
    Ok((Newest { number, index: last.index, run, run_part, safe }, snapshot, ranges))
}

pub(super) fn value<'a, T: serde::Deserialize<'a>>(reader: &mut Reader<'a>) -> Result<T, LogError> {
    reader.value().map_err(|why| LogError::Damaged { file: reader.file, offset: reader.offset as u64, why })
}

/// The error for a file with valid checksums that no replica can have written.
pub(super) fn impossible(file: File) -> LogError {
    LogError::Damaged { file, offset: PREAMBLE_BYTES as u64, why: "its numbers cannot be right" }
}

pub(super) fn check_identity(file: File, found: Identity, ours: Identity) -> Result<(), LogError> {
    if found == ours { Ok(()) } else { Err(LogError::OtherIdentity { file, found, ours }) }
}

fn check_end(reader: &Reader<'_>) -> Result<(), LogError> {
    let (file, offset) = (reader.file, reader.offset as u64);
    let damaged = LogError::Damaged { file, offset, why: "something follows its last record" };
    if reader.is_at_end() { Ok(()) } else { Err(damaged) }
}

/// Cuts off what follows the log's end, and returns the new end. If the next crash loses this recovery's own part, these bytes must not
/// reappear: others may already know the end of this log.
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

/// Files to remove after the log has repeated that they are unneeded; the record that said so may be cut off.
fn retired(parts: &Parts<'_>, files: &Files, newest: Newest) -> Vec<File> {
    let is_needless = |file: &&File| match file {
        File::Identity | File::Safe => false,
        File::Log(number) => *number < parts.known.first,
        File::Snapshot(number) => *number != newest.number,
    };
    files.keys().filter(is_needless).copied().collect()
}
