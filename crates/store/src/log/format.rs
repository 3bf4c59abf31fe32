//! File format: a preamble, then records. See `docs/internals/store-log.md`.

use super::codec::{self, Blob, ConfMirror, EntryMirror};
use super::recover::NUMBER_MAX;
use super::{Identity, LogError};
use midflight_endpoint::File;
use raft::prelude::{Entry, HardState};
use serde::{Deserialize, Serialize};

/// Increased when the format changes, so that an older release refuses the files.
pub(super) const VERSION: u32 = 1;
const MAGIC: [u8; 8] = *b"MFREADS\n";
/// Magic, version, and a checksum of both. The same in all versions.
pub(super) const PREAMBLE_BYTES: usize = 16;
const FRAME_BYTES: usize = 8;
/// Upper bound of an encoded [`Record::Batch`]: its kind and four numbers of up to ten bytes.
const BATCH_BYTES_MAX: usize = 41;

/// A byte of the log, ordered by part, then offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Position {
    pub(super) part: u64,
    pub(super) offset: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Point {
    pub(super) index: u64,
    pub(super) term: u64,
}

impl Point {
    pub(super) fn of(entry: &Entry) -> Self {
        Self { index: entry.index, term: entry.term }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Birth {
    pub(super) identity: Identity,
    /// Random number of the directory.
    pub(super) disk: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SafeHeader {
    pub(super) identity: Identity,
    /// As in a batch. Stored here because the newest part, which holds the rest, cannot report its own loss.
    pub(super) known: Batch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartHeader {
    pub(super) identity: Identity,
    /// Number of recoveries before this part.
    pub(super) run: u64,
    pub(super) before: u64,
    pub(super) start: Start,
    /// Bytes of the first batch. The file was created with them in one step, so they are complete or damaged.
    pub(super) first_bytes: u64,
}

impl PartHeader {
    pub(super) fn is_sane(&self) -> bool {
        let (Start::After(last) | Start::Snapshot { last, .. }) = self.start;
        self.run <= NUMBER_MAX && last.index <= NUMBER_MAX
    }
}

/// What precedes a part of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Start {
    /// The part continues after this entry.
    After(Point),
    /// The leader's snapshot has replaced the log up to `last`; entries in earlier parts are void.
    Snapshot { number: u64, last: Point },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SnapshotHeader {
    pub(super) identity: Identity,
    /// Number of recoveries, and the first part since the last one. Parts of earlier runs from there on are void.
    pub(super) run: u64,
    pub(super) run_part: u64,
    pub(super) safe: Position,
}

/// A record of a snapshot after the header: the place, parts, the end. A snapshot without its end is void.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Piece<'a> {
    Place(SnapshotPlace),
    #[serde(borrow)]
    Part(Blob<'a>),
    End {
        parts: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SnapshotPlace {
    pub(super) last: Point,
    pub(super) members: ConfMirror,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Record<'a> {
    Batch(Batch),
    State(State),
    /// An entry. It replaces those from its index on.
    #[serde(borrow)]
    Entry(EntryMirror<'a>),
    /// The recovery of this number cut the log here. Later parts of earlier recoveries are void.
    Cut(u64),
}

impl Record<'_> {
    pub(super) fn batch(&self) -> Option<Batch> {
        match self {
            Self::Batch(batch) => Some(*batch),
            _ => None,
        }
    }
}

/// What was known when a batch was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Batch {
    /// All before this is durable.
    pub(super) safe: Position,
    /// Parts below this one are no longer needed.
    pub(super) first: u64,
    /// The newest durable snapshot, or 0; earlier ones are no longer needed.
    pub(super) snapshot: u64,
}

impl Batch {
    /// Whether a file can contain this if `part` was the newest one at that time. The durable part is always needed.
    pub(super) fn is_sane(&self, part: u64) -> bool {
        self.first <= self.safe.part.max(1) && self.safe.part <= part && self.snapshot <= NUMBER_MAX
    }

    /// Merges what another batch knows.
    pub(super) fn learn(&mut self, other: Self) {
        self.safe = self.safe.max(other.safe);
        self.first = self.first.max(other.first);
        self.snapshot = self.snapshot.max(other.snapshot);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    term: u64,
    vote: u64,
    commit: u64,
}

impl State {
    pub(super) fn of(state: &HardState) -> Self {
        Self { term: state.term, vote: state.vote, commit: state.commit }
    }

    pub(super) fn into_hard_state(self) -> HardState {
        HardState { term: self.term, vote: self.vote, commit: self.commit, ..HardState::default() }
    }
}

#[derive(Debug)]
pub(super) struct Writer {
    file: File,
    offset: u64,
    bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn create(file: File) -> Self {
        let mut bytes = Vec::with_capacity(PREAMBLE_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        Self { file, offset: 0, bytes }
    }

    pub(super) fn append(file: File, offset: u64) -> Self {
        Self { file, offset, bytes: Vec::new() }
    }

    /// Writes a record whose payload `fill` appends.
    pub(super) fn record(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        let begin = self.bytes.len();
        self.bytes.extend([0; FRAME_BYTES]);
        fill(&mut self.bytes);
        let length = u32::try_from(self.bytes.len() - begin - FRAME_BYTES).expect("an entry or snapshot below 4 GiB");
        let (frame, payload) = self.bytes[begin..].split_at_mut(FRAME_BYTES);
        let checksum = checksum(self.file, self.offset + begin as u64, length, payload);
        frame[..4].copy_from_slice(&length.to_le_bytes());
        frame[4..].copy_from_slice(&checksum.to_le_bytes());
    }

    pub(super) fn value(&mut self, value: &impl Serialize) {
        self.record(|buffer| codec::write(value, buffer));
    }

    pub(super) fn length_of(payloads: &[Vec<u8>]) -> u64 {
        payloads.iter().map(|payload| (FRAME_BYTES + payload.len()) as u64).sum()
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Checksum of a record. It covers the record's position, so that a copy elsewhere does not match.
fn checksum(file: File, offset: u64, length: u32, payload: &[u8]) -> u32 {
    let (kind, number) = match file {
        File::Identity => (0, 0),
        File::Log(number) => (1, number),
        File::Snapshot(number) => (2, number),
        File::Safe => (3, 0),
    };
    let mut place = [0; 21];
    place[0] = kind;
    place[1..9].copy_from_slice(&number.to_le_bytes());
    place[9..17].copy_from_slice(&offset.to_le_bytes());
    place[17..].copy_from_slice(&length.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&place), payload)
}

/// For fuzzers, which cannot guess checksums: a file with a valid preamble and checksums, from a list of payloads. Each payload is one
/// byte of length, then its bytes.
#[must_use]
pub fn sealed(file: File, mut payloads: &[u8]) -> Vec<u8> {
    let mut writer = Writer::create(file);
    while let [length, rest @ ..] = payloads {
        let (payload, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        writer.record(|buffer| buffer.extend_from_slice(payload));
        payloads = rest;
    }
    writer.finish()
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    pub(super) file: File,
    bytes: &'a [u8],
    pub(super) offset: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn open(file: File, bytes: &'a [u8]) -> Result<Self, LogError> {
        let reader = Self { file, bytes, offset: PREAMBLE_BYTES };
        let Some((preamble, _)) = bytes.split_first_chunk::<PREAMBLE_BYTES>() else {
            return Err(LogError::Damaged {
                file,
                offset: bytes.len() as u64,
                why: "it ends before its records begin",
            });
        };
        let (tagged, checksum) = preamble.split_at(12);
        if !tagged.starts_with(&MAGIC) || crc32c::crc32c(tagged).to_le_bytes() != checksum {
            return Err(LogError::Damaged { file, offset: 0, why: "it does not begin as such a file does" });
        }
        match u32::from_le_bytes([tagged[8], tagged[9], tagged[10], tagged[11]]) {
            VERSION => Ok(reader),
            version if version > VERSION => Err(LogError::NewerVersion { file, version, ours: VERSION }),
            _ => Err(LogError::Damaged { file, offset: 8, why: "no release wrote such a version" }),
        }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.offset == self.bytes.len()
    }

    pub(super) fn value<T: Deserialize<'a>>(&mut self) -> Result<T, &'static str> {
        let payload = self.payload()?;
        let value = codec::read(payload).ok_or("a record has the right checksum, but makes no sense")?;
        self.offset += FRAME_BYTES + payload.len();
        Ok(value)
    }

    fn payload(&self) -> Result<&'a [u8], &'static str> {
        const SHORT: &str = "a record is longer than what is left of the file";
        let rest = &self.bytes[self.offset..];
        let (length, rest) = rest.split_first_chunk::<4>().ok_or(SHORT)?;
        let (expected, rest) = rest.split_first_chunk::<4>().ok_or(SHORT)?;
        let length = u32::from_le_bytes(*length);
        let payload = rest.get(..length as usize).ok_or(SHORT)?;
        let found = checksum(self.file, self.offset as u64, length, payload);
        if found == u32::from_le_bytes(*expected) { Ok(payload) } else { Err("a record's checksum is wrong") }
    }

    /// Batches that begin at any later offset, whatever is between them.
    pub(super) fn batches_beyond(mut self) -> impl Iterator<Item = Batch> {
        std::iter::from_fn(move || {
            while self.offset < self.bytes.len() {
                let found = self.batch_here();
                self.offset += 1;
                if found.is_some() {
                    return found;
                }
            }
            None
        })
    }

    fn batch_here(&self) -> Option<Batch> {
        let (length, _) = self.bytes[self.offset..].split_first_chunk::<4>()?;
        if u32::from_le_bytes(*length) as usize > BATCH_BYTES_MAX {
            return None;
        }
        codec::read::<Record<'_>>(self.payload().ok()?)?.batch()
    }
}
