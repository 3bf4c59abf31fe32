//! The log of a Raft node: entries, Raft's state and the newest snapshot, in memory and, as batches of changes to files, on disk.
//! `docs/internals/reads-log.md` explains the files and how they are recovered.
//!
//! | file | subject |
//! |---|---|
//! | `mod` | the log in memory |
//! | `storage` | the same as raft-rs reads it |
//! | `disk` | what is written, in which batches, and when files may be removed |
//! | `format` | preamble, records and their checksums |
//! | `recover`, `parts`, `replay` | from files to a log: what each file says, where the log ends, what it was |
//! | `codec` | entries, snapshots and messages as bytes |

mod codec;
mod disk;
mod error;
mod format;
mod parts;
mod recover;
mod replay;
mod storage;
#[cfg(test)]
mod tests;

pub use codec::{BadMessage, ENTRIES_MAX, decode_message, encode_message};
pub use error::LogError;
#[doc(hidden)]
pub use format::sealed;

use bytes::Bytes;
use disk::Disk;
use format::Point;
use midflight_endpoint::{File, Persist};
use protobuf::Message as _;
use raft::StorageError;
use raft::prelude::{ConfState, Entry, HardState, Snapshot, SnapshotMetadata};
use replay::Replayed;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Whose log this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Drawn when the cluster was made.
    pub cluster: u64,
    /// The node's number; one that lost its disk comes back under another.
    pub node: u64,
    /// The replica set.
    pub set: u16,
}

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// A part of the log that is longer gets no more batches; 16 MiB unless told.
    pub part_bytes: u64,
    /// Entries before a snapshot that are kept for followers that lag; 1,024 unless told.
    pub keep_entries: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { part_bytes: 16 << 20, keep_entries: 1024 }
    }
}

/// A log as it was left.
#[derive(Debug)]
pub struct Recovered {
    /// The log. Raft's `applied` begins at the index of the snapshot, or at 0.
    pub log: Log,
    /// The newest snapshot.
    pub snapshot: Option<Stored>,
    /// What a crash left unfinished, and is cut off.
    pub cut: Option<Cut>,
}

/// A snapshot as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Index and term of the last entry in it, and the members. Its data is not here.
    pub snapshot: Snapshot,
    /// Its data.
    pub parts: Vec<Bytes>,
}

/// The end of a log that a crash left unfinished. It was never safe, unless the disk changed the very last batch (see
/// `docs/internals/reads-log.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The part in which the log ends now.
    pub file: File,
    /// Where it ends.
    pub offset: u64,
    /// How much followed, in this file and later ones.
    pub bytes: u64,
}

/// The log of a Raft node.
#[derive(Debug)]
pub struct Log {
    hard_state: HardState,
    conf_state: ConfState,
    /// The entry before the first one.
    before: Point,
    entries: VecDeque<Entry>,
    /// The newest snapshot, without its data.
    snapshot: Option<Snapshot>,
    /// Entries below this one may go.
    floor: u64,
    keep_entries: u64,
    /// The number of the directory.
    number: Option<u64>,
    disk: Disk,
}

impl Log {
    /// From the files of a node's directory; without any, that of a new node, whose directory gets the number `drawn`.
    ///
    /// # Errors
    /// If the files are another node's, a newer release's, damaged, or not all there.
    pub fn recover(identity: Identity, files: Vec<(File, Vec<u8>)>, drawn: u64) -> Result<Recovered, LogError> {
        recover::recover(identity, files.into_iter().collect(), drawn)
    }

    fn new(disk: Disk, number: Option<u64>, replayed: Replayed, snapshot: Option<Snapshot>) -> Self {
        let Replayed { state: hard_state, before, entries, .. } = replayed;
        let conf_state = snapshot.as_ref().map(|newest| newest.get_metadata().get_conf_state().clone());
        let conf_state = conf_state.unwrap_or_default();
        Self { hard_state, conf_state, before, entries, snapshot, floor: 0, keep_entries: 0, number, disk }
            .with(Options::default())
    }

    fn with(mut self, options: Options) -> Self {
        self.set_options(options);
        self
    }

    /// From now on this much is kept.
    pub fn set_options(&mut self, options: Options) {
        let Options { part_bytes, keep_entries } = options;
        self.keep_entries = keep_entries;
        self.disk.part_bytes = part_bytes;
    }

    /// Appends entries, which replace those that have their indexes and all that follow.
    ///
    /// # Panics
    /// If there is a hole before them, or if the first is no more in the log: Raft never does that.
    pub fn append(&mut self, entries: &[Entry]) {
        let Some(first) = entries.first() else { return };
        assert!(self.before.index < first.index && first.index <= self.last_index() + 1, "no place for {first:?}");
        self.entries.truncate((first.index - self.before.index - 1) as usize);
        self.entries.extend(entries.iter().cloned());
        self.disk.append(entries);
    }

    /// Raft's term, vote and commit index.
    pub fn set_hard_state(&mut self, state: &HardState) {
        if self.hard_state != *state {
            self.hard_state = state.clone();
            self.disk.state_changed();
        }
    }

    /// A commit index that is worth no batch: it goes with the next one.
    pub fn set_commit(&mut self, commit: u64) {
        self.hard_state.commit = commit;
    }

    /// Raft's term, vote and commit index.
    #[must_use]
    pub fn hard_state(&self) -> &HardState {
        &self.hard_state
    }

    /// The members by what is applied. They are on disk with the next snapshot only: after a restart, the entries that follow the
    /// snapshot are applied again, and those that change members with them.
    pub fn set_conf_state(&mut self, state: ConfState) {
        self.conf_state = state;
    }

    /// The members by what is applied.
    #[must_use]
    pub fn conf_state(&self) -> &ConfState {
        &self.conf_state
    }

    /// Begins to write a snapshot, whose data follows in parts. One that was being written is given up.
    pub fn begin_snapshot(&mut self, metadata: &SnapshotMetadata) {
        self.disk.begin_snapshot(metadata);
    }

    /// Writes a part of the snapshot that is being written.
    pub fn write_snapshot(&mut self, part: &[u8]) {
        self.disk.write_snapshot(part);
    }

    /// Parts of the snapshot that is being written, if there is one: how many there are, and how many of them are safe.
    #[must_use]
    pub fn snapshot_parts(&self) -> Option<(u64, u64)> {
        self.disk.draft()
    }

    /// Gives up the snapshot that is being written.
    pub fn drop_snapshot(&mut self) {
        self.disk.drop_draft();
    }

    /// The snapshot that was written is the leader's, and replaces all entries.
    ///
    /// # Panics
    /// If another one was written: it would replace the log by something else.
    pub fn install(&mut self, snapshot: Snapshot) {
        let metadata = snapshot.get_metadata();
        let last = Point { index: metadata.index, term: metadata.term };
        let is_written = self.disk.end_snapshot(last, last.index.saturating_add(1), true);
        assert!(is_written, "the snapshot of {last:?} was not written");
        self.conf_state = metadata.get_conf_state().clone();
        self.before = last;
        self.floor = 0;
        self.entries.clear();
        self.snapshot = Some(snapshot);
    }

    /// The snapshot that was written is this node's own, of what is applied: most entries up to its index may go, but none from
    /// `needed` on. One that is not newer than the last one is ignored.
    pub fn compact(&mut self, snapshot: Snapshot, needed: u64) {
        let metadata = snapshot.get_metadata();
        let last = Point { index: metadata.index, term: metadata.term };
        if last.index <= self.snapshot_index() || last.index > self.last_index() {
            return self.disk.drop_draft();
        }
        let kept = (last.index + 1).saturating_sub(self.keep_entries).min(needed);
        let floor = kept.max(self.floor).max(self.first_index());
        if self.disk.end_snapshot(last, floor, false) {
            self.floor = floor;
            self.snapshot = Some(snapshot);
        }
    }

    /// Removes at most `most` of the entries that may go. Returns whether others are left that may.
    pub fn trim(&mut self, most: usize) -> bool {
        let go = self.floor.saturating_sub(self.first_index()) as usize;
        for entry in self.entries.drain(..go.min(most)) {
            self.before = Point::of(&entry);
        }
        go > most
    }

    /// The newest snapshot's index; 0: there is none.
    #[must_use]
    pub fn snapshot_index(&self) -> u64 {
        self.snapshot.as_ref().map_or(0, |snapshot| snapshot.get_metadata().index)
    }

    /// Whether it says nothing: no entry, no snapshot, no term and no vote.
    #[must_use]
    pub fn is_void(&self) -> bool {
        self.last_index() == 0 && self.snapshot.is_none() && self.hard_state == HardState::default()
    }

    /// The number that was drawn when the directory was made: one that was emptied has another. `None`: a former version made it.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        self.number
    }

    /// Whether all changes so far are safe on disk.
    #[must_use]
    pub fn is_safe(&self) -> bool {
        self.disk.is_safe()
    }

    /// Where all is safe, the next batch says where the log ends: if it is shorter when it is recovered, the disk has lost something. Only
    /// an end that is meant can say so: it costs two syncs.
    pub fn seal(&mut self) {
        self.disk.seal();
    }

    /// All changes since the last call, as one batch.
    pub fn poll_persist(&mut self) -> Option<Persist> {
        self.disk.poll(&self.hard_state)
    }

    /// Bytes of batches that are not safe yet.
    #[must_use]
    pub fn unsafe_bytes(&self) -> usize {
        self.disk.unsafe_bytes()
    }

    /// This batch and all before it are safe.
    pub fn persisted(&mut self, id: u64) {
        self.disk.persisted(id);
    }

    /// Index of the first entry; one more than the last if there is none.
    #[must_use]
    pub fn first_index(&self) -> u64 {
        self.before.index + 1
    }

    /// Index of the last entry, or of the snapshot if there is none.
    #[must_use]
    pub fn last_index(&self) -> u64 {
        self.before.index + self.entries.len() as u64
    }

    /// The term of an entry, or of the one before the first.
    ///
    /// # Errors
    /// If it is no more there, or not yet.
    pub fn term(&self, index: u64) -> Result<u64, StorageError> {
        if index == self.before.index {
            return Ok(self.before.term);
        }
        let place = index.checked_sub(self.first_index()).ok_or(StorageError::Compacted)?;
        self.entries.get(place as usize).map(|entry| entry.term).ok_or(StorageError::Unavailable)
    }

    /// The entries from `low` up to, without, `high`, as far as they take `max_bytes`, but at least one.
    ///
    /// # Errors
    /// If one is no more there, or not yet.
    pub fn entries(&self, low: u64, high: u64, max_bytes: Option<u64>) -> Result<Vec<Entry>, StorageError> {
        let place = |index: u64| index.checked_sub(self.first_index()).ok_or(StorageError::Compacted);
        let (low, high) = (place(low)? as usize, place(high)? as usize);
        if low > high || high > self.entries.len() {
            return Err(StorageError::Unavailable);
        }
        // Not all are copied first: a follower that lags may want hundreds of thousands.
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for entry in self.entries.range(low..high) {
            bytes += u64::from(entry.compute_size());
            if !entries.is_empty() && max_bytes.is_some_and(|most| bytes > most) {
                break;
            }
            entries.push(entry.clone());
        }
        Ok(entries)
    }
}
