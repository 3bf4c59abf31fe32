//! The log of a Raft node: entries, Raft's state and the newest snapshot, in memory and on disk. `docs/internals/store-log.md` explains
//! the files and their recovery.
//!
//! | file | subject |
//! |---|---|
//! | `mod` | the log in memory |
//! | `storage` | raft-rs's view of it |
//! | `disk` | what is written in which batch, and when files may be removed |
//! | `format` | preamble, records, checksums |
//! | `recover`, `parts`, `replay` | recovery: what each file says, where the log ends, what it contains |
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

/// The owner of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Random number of the cluster.
    pub cluster: u64,
    /// The node's number. A node that lost its disk gets another one.
    pub node: u64,
    /// The replica set.
    pub set: u16,
}

/// Bounds of what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// A longer part of the log gets no more batches. Default 16 MiB.
    pub part_bytes: u64,
    /// Entries before a snapshot to keep for followers that lag. Default 1,024.
    pub keep_entries: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { part_bytes: 16 << 20, keep_entries: 1024 }
    }
}

/// A recovered log.
#[derive(Debug)]
pub struct Recovered {
    /// The log. Raft's `applied` starts at the snapshot's index, or at 0.
    pub log: Log,
    /// The newest snapshot.
    pub snapshot: Option<Stored>,
    /// The incomplete end that was cut off, if any.
    pub cut: Option<Cut>,
}

/// A snapshot as read from disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Index and term of its last entry, and the members; without data.
    pub snapshot: Snapshot,
    /// The data.
    pub parts: Vec<Bytes>,
}

/// An incomplete end of a log after a crash. It was never durable, unless the disk changed the very last batch (see
/// `docs/internals/store-log.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The part in which the log now ends.
    pub file: File,
    /// Offset of the end.
    pub offset: u64,
    /// Bytes cut off, in this file and later ones.
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
    snapshot: Option<Snapshot>,
    /// Entries below this index may be removed.
    floor: u64,
    keep_entries: u64,
    number: u64,
    disk: Disk,
}

impl Log {
    /// Recovers a log from a node's files. Without files, creates an empty log whose directory gets the number `new_number`.
    ///
    /// # Errors
    /// If the files belong to another node or a newer release, are damaged, or are incomplete.
    pub fn recover(identity: Identity, files: Vec<(File, Vec<u8>)>, new_number: u64) -> Result<Recovered, LogError> {
        recover::recover(identity, files.into_iter().collect(), new_number)
    }

    fn new(disk: Disk, number: u64, replayed: Replayed, snapshot: Option<Snapshot>) -> Self {
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

    /// Changes what is kept.
    pub fn set_options(&mut self, options: Options) {
        let Options { part_bytes, keep_entries } = options;
        self.keep_entries = keep_entries;
        self.disk.part_bytes = part_bytes;
    }

    /// Appends entries, which replace those with the same or a higher index.
    ///
    /// # Panics
    /// If they leave a gap, or begin in the compacted part.
    pub fn append(&mut self, entries: &[Entry]) {
        let Some(first) = entries.first() else { return };
        assert!(self.before.index < first.index && first.index <= self.last_index() + 1, "no place for {first:?}");
        self.entries.truncate((first.index - self.before.index - 1) as usize);
        self.entries.extend(entries.iter().cloned());
        self.disk.append(entries);
    }

    /// Sets Raft's term, vote and commit index.
    pub fn set_hard_state(&mut self, state: &HardState) {
        if self.hard_state != *state {
            self.hard_state = state.clone();
            self.disk.state_changed();
        }
    }

    /// Sets a commit index that the next batch writes; it causes no batch itself.
    pub fn set_commit(&mut self, commit: u64) {
        self.hard_state.commit = commit;
    }

    /// Raft's term, vote and commit index.
    #[must_use]
    pub fn hard_state(&self) -> &HardState {
        &self.hard_state
    }

    /// Sets the members as of the last applied entry. Only the next snapshot stores them; after a restart, later entries are applied
    /// again.
    pub fn set_conf_state(&mut self, state: ConfState) {
        self.conf_state = state;
    }

    /// The members as of the last applied entry.
    #[must_use]
    pub fn conf_state(&self) -> &ConfState {
        &self.conf_state
    }

    /// Begins a snapshot, whose data follows in parts. Drops an unfinished one.
    pub fn begin_snapshot(&mut self, metadata: &SnapshotMetadata) {
        self.disk.begin_snapshot(metadata);
    }

    /// Writes a part of the unfinished snapshot.
    pub fn write_snapshot(&mut self, part: &[u8]) {
        self.disk.write_snapshot(part);
    }

    /// Parts of the unfinished snapshot, if any: written, and durable.
    #[must_use]
    pub fn snapshot_parts(&self) -> Option<(u64, u64)> {
        self.disk.draft()
    }

    /// Drops the unfinished snapshot.
    pub fn drop_snapshot(&mut self) {
        self.disk.drop_draft();
    }

    /// Completes the leader's snapshot, which replaces all entries.
    ///
    /// # Panics
    /// If the unfinished snapshot is another one.
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

    /// Completes this node's own snapshot of the applied state. Then most entries up to its index may be removed, but none from `needed`
    /// on. Ignored if not newer than the last one.
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

    /// Removes at most `most` of the entries that may be removed. Returns whether more remain.
    pub fn trim(&mut self, most: usize) -> bool {
        let go = self.floor.saturating_sub(self.first_index()) as usize;
        for entry in self.entries.drain(..go.min(most)) {
            self.before = Point::of(&entry);
        }
        go > most
    }

    /// Index of the newest snapshot; 0 if there is none.
    #[must_use]
    pub fn snapshot_index(&self) -> u64 {
        self.snapshot.as_ref().map_or(0, |snapshot| snapshot.get_metadata().index)
    }

    /// Whether it has no entry, snapshot, term or vote.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.last_index() == 0 && self.snapshot.is_none() && self.hard_state == HardState::default()
    }

    /// The directory's random number, which changes if the directory is emptied.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether all changes are durable.
    #[must_use]
    pub fn is_safe(&self) -> bool {
        self.disk.is_safe()
    }

    /// If all is durable, lets the next batch record the end of the log, so that recovery detects a loss. Costs two syncs, so only for a
    /// planned stop.
    pub fn seal(&mut self) {
        self.disk.seal();
    }

    /// All changes since the last call, as one batch.
    pub fn poll_persist(&mut self) -> Option<Persist> {
        self.disk.poll(&self.hard_state)
    }

    /// Bytes in batches that are not durable yet.
    #[must_use]
    pub fn unsafe_bytes(&self) -> usize {
        self.disk.unsafe_bytes()
    }

    /// Marks this batch and all earlier ones as durable.
    pub fn persisted(&mut self, id: u64) {
        self.disk.persisted(id);
    }

    /// Index of the first entry; last index + 1 if there is none.
    #[must_use]
    pub fn first_index(&self) -> u64 {
        self.before.index + 1
    }

    /// Index of the last entry; the snapshot's if there is none.
    #[must_use]
    pub fn last_index(&self) -> u64 {
        self.before.index + self.entries.len() as u64
    }

    /// Term of an entry, or of the one before the first.
    ///
    /// # Errors
    /// If the entry is compacted or not yet there.
    pub fn term(&self, index: u64) -> Result<u64, StorageError> {
        if index == self.before.index {
            return Ok(self.before.term);
        }
        let place = index.checked_sub(self.first_index()).ok_or(StorageError::Compacted)?;
        self.entries.get(place as usize).map(|entry| entry.term).ok_or(StorageError::Unavailable)
    }

    /// Entries in `low..high` up to `max_bytes`, but at least one.
    ///
    /// # Errors
    /// If one is compacted or not yet there.
    pub fn entries(&self, low: u64, high: u64, max_bytes: Option<u64>) -> Result<Vec<Entry>, StorageError> {
        let place = |index: u64| index.checked_sub(self.first_index()).ok_or(StorageError::Compacted);
        let (low, high) = (place(low)? as usize, place(high)? as usize);
        if low > high || high > self.entries.len() {
            return Err(StorageError::Unavailable);
        }
        // Stop at the bound instead of copying all: a follower that lags may need hundreds of thousands.
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
