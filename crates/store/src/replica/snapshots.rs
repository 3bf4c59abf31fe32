//! When snapshots are taken, and how they replace the log.

use super::Replica;
use super::config::ReplicaConfig;
use super::founding::{FIRST, Founders};
use super::image::{Cursor, Image, SnapshotError, Thawing};
use super::state::State;
use crate::log::{Log, Stored};
use bytes::Bytes;
use midflight_endpoint::Nanos;
use midflight_wire::store::REPLICAS_MAX;
use raft::prelude::{HardState, Snapshot};

/// Parts of a snapshot in flight to the disk; bounds how long entries wait behind them.
const PARTS_UNSAFE: u64 = 4;
/// While a snapshot is being sent, the leader's log may grow this many times longer before the next one. Otherwise the peer might restart
/// forever.
const PATIENCE: usize = 4;

pub(super) struct Snapshotting {
    snapshot: Snapshot,
    image: Image,
    cursor: Cursor,
}

impl Replica {
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

    /// Staggered by slot. Otherwise all replicas would load their disks at the same time, and no majority would have a fast one.
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

    /// A leader keeps the entries that followers it hears need, except those that the last snapshot already covers.
    fn needed(&self, now: Nanos) -> u64 {
        let members = self.state.members.iter().map(|member| member.id).filter(|&id| self.is_heard(now, id));
        let kept = self.node.log().snapshot_index() + 1;
        if self.node.is_leader() { self.node.needed(members).max(kept) } else { u64::MAX }
    }

    pub(super) fn may_write_part(&self) -> bool {
        let has_room = self.node.log().snapshot_parts().is_none_or(|(all, safe)| all < safe + PARTS_UNSAFE);
        // The entries that it replaces must be durable first; applying does not wait for that.
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

pub(super) fn thaw(config: &ReplicaConfig, parts: &[Bytes]) -> Result<State, SnapshotError> {
    let mut thawing = Thawing::new(config);
    parts.iter().try_for_each(|part| thawing.take(config, part))?;
    thawing.finish()
}

/// Writes the founding state to the log as a snapshot, without installing it: no data, only the first members and their disks, the same
/// at each. So a later member learns the founders from snapshots.
pub(super) fn founding(config: &ReplicaConfig, founders: Founders, log: &mut Log) -> (Snapshot, State) {
    let (snapshot, state, _) = write_founding(config, founders, log);
    (snapshot, state)
}

/// Writes the founding state and installs it, for a process that creates the data of all first members.
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
