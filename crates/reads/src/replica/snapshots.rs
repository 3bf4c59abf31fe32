//! The snapshots that a replica makes: when, at what pace, and which entries they make needless.

use super::Replica;
use super::config::ReplicaConfig;
use super::founding::{FIRST, Founders};
use super::image::{Cursor, Image, SnapshotError, Thawing};
use super::state::State;
use crate::log::{Log, Stored};
use bytes::Bytes;
use midflight_endpoint::Nanos;
use midflight_wire::reads::REPLICAS_MAX;
use raft::prelude::{HardState, Snapshot};

/// Parts of a snapshot that may wait for the disk: entries never wait behind more.
const PARTS_UNSAFE: u64 = 4;
/// While a snapshot is on its way to a peer, the leader lets its log become so many times as long before it makes the next one: else a
/// peer would have to begin again and again.
const PATIENCE: usize = 4;

/// A snapshot that is being written.
pub(super) struct Snapshotting {
    snapshot: Snapshot,
    image: Image,
    cursor: Cursor,
}

impl Replica {
    /// Writes a part of a snapshot, or begins one when the log has become long.
    pub(super) fn step_snapshot(&mut self, now: Nanos) {
        let patience = if self.transfers.is_sending() { PATIENCE } else { 1 };
        let is_due = self.log_bytes > self.snapshot_after().saturating_mul(patience) || self.wants_snapshot;
        let is_due = if self.is_full() { self.fits_reserve() } else { is_due };
        if self.snapshot.is_none() && is_due && self.applied > 0 && !self.transfers.is_receiving() {
            self.begin_snapshot();
        }
        if !self.may_write_part() {
            return;
        }
        let Some(mut writing) = self.snapshot.take() else { return };
        match writing.image.part(&mut writing.cursor) {
            Some(part) => {
                self.node.log_mut().write_snapshot(&part);
                self.snapshot = Some(writing);
            }
            None => self.end_snapshot(now, writing),
        }
    }

    /// Other lengths at other places of the set: else all would fill their disks at once, and no majority would have a fast one.
    fn snapshot_after(&self) -> usize {
        let (after, slot) = (self.config.snapshot_after, usize::from(self.slot()).min(REPLICAS_MAX));
        after + after / REPLICAS_MAX * slot
    }

    fn begin_snapshot(&mut self) {
        self.wants_snapshot = false;
        self.log_bytes = 0;
        let Some(snapshot) = self.node.begin_snapshot(self.applied) else { return };
        let image = Image::of(&self.state, self.config.agreed(), self.applied);
        self.snapshot = Some(Snapshotting { snapshot, image, cursor: Cursor::default() });
    }

    fn end_snapshot(&mut self, now: Nanos, writing: Snapshotting) {
        let Snapshotting { snapshot, image, .. } = writing;
        let needed = self.needed(now);
        self.counters.snapshots += 1;
        self.node.log_mut().compact(snapshot, needed);
        if self.node.log().snapshot_index() == image.index {
            self.set_image(image);
        } else {
            image.discard(&mut self.state.store);
        }
    }

    /// A leader keeps the entries that followers need which it hears, but none that the last snapshot has made needless too.
    fn needed(&self, now: Nanos) -> u64 {
        let members = self.state.members.iter().map(|member| member.id).filter(|&id| self.is_heard(now, id));
        let kept = self.node.log().snapshot_index() + 1;
        if self.node.is_leader() { self.node.needed(members).max(kept) } else { u64::MAX }
    }

    /// Whether a part of a snapshot of its own can go to the disk now.
    pub(super) fn may_write_part(&self) -> bool {
        let has_room = self.node.log().snapshot_parts().is_none_or(|(all, safe)| all < safe + PARTS_UNSAFE);
        // What it replaces must be on this disk first: an apply does not wait for that.
        let is_on_disk = |writing: &Snapshotting| writing.image.index <= self.node.persisted_index();
        self.snapshot.as_ref().is_some_and(is_on_disk) && has_room
    }

    pub(super) fn drop_own_snapshot(&mut self) {
        if let Some(writing) = self.snapshot.take() {
            self.node.log_mut().drop_snapshot();
            writing.image.discard(&mut self.state.store);
        }
    }

    pub(super) fn set_image(&mut self, image: Image) {
        if let Some(former) = self.image.replace(image) {
            former.discard(&mut self.state.store);
        }
    }
}

/// The state of a snapshot's parts.
pub(super) fn thaw(config: &ReplicaConfig, parts: &[Bytes]) -> Result<State, SnapshotError> {
    let mut thawing = Thawing::new(config);
    parts.iter().try_for_each(|part| thawing.take(config, part))?;
    thawing.finish()
}

/// The founding state, as a snapshot that is written to the log and not taken yet: no data, who the first members are, and which disks
/// they have. It is the same at each of them. So a member that joins later learns from snapshots alone who was there before.
pub(super) fn founding(config: &ReplicaConfig, founders: Founders, log: &mut Log) -> (Snapshot, State) {
    let (snapshot, state, _) = write_founding(config, founders, log);
    (snapshot, state)
}

/// The same, taken at once: whoever wants it gives all first members theirs.
pub(super) fn found(config: &ReplicaConfig, log: &mut Log) -> Stored {
    let (snapshot, _, parts) = write_founding(config, config.founders.clone(), log);
    log.install(snapshot.clone());
    log.set_hard_state(&HardState { term: FIRST, commit: FIRST, ..HardState::default() });
    Stored { snapshot, parts }
}

fn write_founding(config: &ReplicaConfig, founders: Founders, log: &mut Log) -> (Snapshot, State, Vec<Bytes>) {
    let mut snapshot = Snapshot::default();
    let metadata = snapshot.mut_metadata();
    (metadata.index, metadata.term) = (FIRST, FIRST);
    metadata.mut_conf_state().voters = config.initial.iter().map(|member| member.id).collect();
    log.begin_snapshot(metadata);
    let state = State { founders, ..State::new(config) };
    let (image, mut cursor, mut parts) = (Image::of(&state, config.agreed(), FIRST), Cursor::default(), Vec::new());
    while let Some(part) = image.part(&mut cursor) {
        log.write_snapshot(&part);
        parts.push(part.into());
    }
    (snapshot, state, parts)
}
