//! The files' format: a preamble, then records. `docs/internals/reads-log.md` explains it.

use super::codec::{self, Blob, ConfMirror, EntryMirror};
use super::recover::NUMBER_MAX;
use super::{Identity, LogError};
use midflight_endpoint::File;
use raft::prelude::{Entry, HardState};
use serde::{Deserialize, Serialize};

/// Counts up when the files change, so that an older program refuses them.
pub(super) const VERSION: u32 = 1;
const MAGIC: [u8; 8] = *b"MFREADS\n";
/// Magic, version, and the checksum of both: the same in all versions.
pub(super) const PREAMBLE_BYTES: usize = 16;
/// Length and checksum of a record.
const FRAME_BYTES: usize = 8;
/// Bytes of a [`Record::Batch`] at most: its kind and four numbers of up to ten bytes.
const BATCH_BYTES_MAX: usize = 41;

/// A byte of the log: which part, which offset. Later bytes compare greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Position {
    pub(super) part: u64,
    pub(super) offset: u64,
}

/// The place of an entry in Raft's log.
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

/// The first record of `File::Identity`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Birth {
    pub(super) identity: Identity,
    /// Drawn when the directory was made. Stores of former versions have none.
    pub(super) disk: Option<u64>,
}

/// The first record of `File::Safe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SafeHeader {
    pub(super) identity: Identity,
    /// As in a batch. The newest part holds what else is known, and cannot say so if it is gone.
    pub(super) known: Batch,
}

/// The first record of a part of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartHeader {
    pub(super) identity: Identity,
    /// How often the log had been recovered.
    pub(super) run: u64,
    /// Where the part before ends.
    pub(super) before: u64,
    pub(super) start: Start,
    /// Bytes of the first batch. The file was made with them, at once, so that they are all there or damaged.
    pub(super) first_bytes: u64,
}

impl PartHeader {
    /// Whether its numbers can be a log's.
    pub(super) fn is_sane(&self) -> bool {
        let (Start::After(last) | Start::Snapshot { last, .. }) = self.start;
        self.run <= NUMBER_MAX && last.index <= NUMBER_MAX
    }
}

/// What a part of the log begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Start {
    /// It goes on after this entry.
    After(Point),
    /// Entries in parts before it are void: a snapshot from the leader has replaced all up to this entry.
    Snapshot { number: u64, last: Point },
}

/// The first record of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SnapshotHeader {
    pub(super) identity: Identity,
    /// How often the log had been recovered, and the first part since: those of earlier runs from there on do not count.
    pub(super) run: u64,
    pub(super) run_part: u64,
    /// All of the log before this was safe.
    pub(super) safe: Position,
}

/// A record of a snapshot, behind its first one: the place, then parts, then the end. Without its end a snapshot does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Piece<'a> {
    Place(SnapshotPlace),
    #[serde(borrow)]
    Part(Blob<'a>),
    End {
        parts: u64,
    },
}

/// The last entry that is in a snapshot, and the members then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SnapshotPlace {
    pub(super) last: Point,
    pub(super) members: ConfMirror,
}

/// A record of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Record<'a> {
    /// A batch begins.
    Batch(Batch),
    /// Raft's state, from now on.
    State(State),
    /// An entry; those from its index on are void.
    #[serde(borrow)]
    Entry(EntryMirror<'a>),
    /// What followed here was cut off by the recovery of this number, and parts of earlier ones behind this part do not count.
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
    /// All before this is safe.
    pub(super) safe: Position,
    /// Parts below this one are not needed.
    pub(super) first: u64,
    /// This snapshot is safe, and earlier ones are not needed; 0: there is none.
    pub(super) snapshot: u64,
}

impl Batch {
    /// Whether a file can know this that was written when `part` was the newest one. The part that is safe is always needed.
    pub(super) fn is_sane(&self, part: u64) -> bool {
        self.first <= self.safe.part.max(1) && self.safe.part <= part && self.snapshot <= NUMBER_MAX
    }

    /// It is known, too, what another batch says.
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

/// Writes the bytes of one file.
#[derive(Debug)]
pub(super) struct Writer {
    file: File,
    /// Where in the file `bytes` begins.
    offset: u64,
    bytes: Vec<u8>,
}

impl Writer {
    /// Of a whole file.
    pub(super) fn create(file: File) -> Self {
        let mut bytes = Vec::with_capacity(PREAMBLE_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        Self { file, offset: 0, bytes }
    }

    /// Of what follows `offset` in a file.
    pub(super) fn append(file: File, offset: u64) -> Self {
        Self { file, offset, bytes: Vec::new() }
    }

    /// Writes the record that `fill` writes the payload of.
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

    /// Bytes of the records with these payloads.
    pub(super) fn length_of(payloads: &[Vec<u8>]) -> u64 {
        payloads.iter().map(|payload| (FRAME_BYTES + payload.len()) as u64).sum()
    }

    /// Where the next record begins.
    pub(super) fn offset(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// The checksum of a record. It covers where the record stands, so that a copy of it elsewhere is none.
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

/// A file with a right preamble and right checksums, from a list of payloads: the length of each as one byte, then its bytes. For
/// fuzzers, which guess no checksum.
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

/// Reads one file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    pub(super) file: File,
    bytes: &'a [u8],
    pub(super) offset: usize,
}

impl<'a> Reader<'a> {
    /// Past the preamble.
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

    /// The next record.
    pub(super) fn value<T: Deserialize<'a>>(&mut self) -> Result<T, &'static str> {
        let payload = self.payload()?;
        let value = codec::read(payload).ok_or("a record has the right checksum, but makes no sense")?;
        self.offset += FRAME_BYTES + payload.len();
        Ok(value)
    }

    /// The payload of the next record.
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

    /// What batches say that begin anywhere from here on, whatever stands between them.
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
