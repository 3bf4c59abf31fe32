//! A node's disk: what is durable, what is being written, and what a crash leaves of that.

use super::World;
use super::core::{Event, WorldState};
use super::node::NodeId;
use crate::{Action, Purpose, stream};
use midflight_endpoint::{Change, File, MS, Nanos, Persist};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::collections::{BTreeMap, BTreeSet};

/// Disk latencies, drawn uniformly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskTimes {
    /// Shortest and longest time to write a batch.
    pub write: (Nanos, Nanos),
    /// Shortest and longest time of a sync.
    pub sync: (Nanos, Nanos),
}

impl Default for DiskTimes {
    /// Roughly those of an SSD.
    fn default() -> Self {
        Self { write: (5_000, 30_000), sync: (100_000, 2 * MS) }
    }
}

/// Condition of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskCondition {
    /// Normal latencies.
    Healthy,
    /// Factor on all latencies.
    Slow(u32),
    /// Full or broken: the next batches fail, and the process that wrote them ends.
    Failing,
}

#[derive(Debug)]
pub(super) struct Disk {
    safe: BTreeMap<File, Vec<u8>>,
    /// In order; the first `writing` ones are being written.
    batches: Vec<Persist>,
    writing: usize,
    times: DiskTimes,
    condition: DiskCondition,
    /// Keeps nothing, and takes no time.
    is_volatile: bool,
    random: Pcg64,
}

impl Disk {
    pub(super) fn new(seed: u64, node: NodeId) -> Self {
        Self {
            safe: BTreeMap::new(),
            batches: Vec::new(),
            writing: 0,
            times: DiskTimes::default(),
            condition: DiskCondition::Healthy,
            is_volatile: false,
            random: stream(seed, Purpose::Disk, u64::from(node.0)),
        }
    }

    pub(super) fn files(&self) -> Vec<(File, Vec<u8>)> {
        self.safe.iter().map(|(file, bytes)| (*file, bytes.clone())).collect()
    }

    /// Begins to write all waiting batches, unless it is writing. Returns the duration.
    fn begin(&mut self) -> Option<Nanos> {
        if self.writing > 0 || self.batches.is_empty() {
            return None;
        }
        self.writing = self.batches.len();
        let mut draw = |(shortest, longest): (Nanos, Nanos)| self.random.random_range(shortest..=longest.max(shortest));
        let writes: Nanos = (0..self.writing).map(|_| draw(self.times.write)).sum();
        let factor = if let DiskCondition::Slow(times) = self.condition { Nanos::from(times) } else { 1 };
        Some((writes + draw(self.times.sync)) * factor)
    }

    fn end(&mut self) -> Option<u64> {
        let written: Vec<_> = self.batches.drain(..std::mem::take(&mut self.writing)).collect();
        written.iter().flat_map(|batch| &batch.changes).for_each(|change| apply(&mut self.safe, change));
        written.last().map(|batch| batch.id)
    }

    /// What is not durable survives in part: up to some point, or anywhere, as the order of writes to different files
    /// is not kept.
    pub(super) fn crash(&mut self) {
        self.writing = 0;
        let changes: Vec<_> = self.batches.drain(..).flat_map(|batch| batch.changes).collect();
        if changes.is_empty() {
            return;
        }
        let in_order = self.random.random_bool(0.5);
        let whole = self.random.random_range(0..=changes.len());
        let mut ended = BTreeSet::new();
        for (number, change) in changes.iter().enumerate() {
            let is_kept = if in_order { number < whole } else { self.random.random_bool(0.5) };
            let is_torn = !in_order || number == whole;
            let file = file_of(change);
            if ended.contains(&file) {
                continue;
            }
            if is_kept {
                apply(&mut self.safe, change);
                continue;
            }
            ended.insert(file);
            if let (true, Change::Append { bytes, .. }) = (is_torn, change) {
                self.tear(file, bytes);
            }
        }
    }

    /// Part of an append survives: some of its first bytes, and perhaps allocated space that was never written.
    fn tear(&mut self, file: File, bytes: &[u8]) {
        let kept = self.random.random_range(0..=bytes.len());
        let empty = if self.random.random_bool(0.3) { self.random.random_range(0..=bytes.len() - kept) } else { 0 };
        let stored = self.safe.entry(file).or_default();
        stored.extend_from_slice(&bytes[..kept]);
        stored.resize(stored.len() + empty, 0);
    }
}

fn file_of(change: &Change) -> File {
    match change {
        Change::Append { file, .. } | Change::Replace { file, .. } | Change::Remove { file } => *file,
    }
}

fn apply(files: &mut BTreeMap<File, Vec<u8>>, change: &Change) {
    match change {
        Change::Append { file, bytes } => files.entry(*file).or_default().extend_from_slice(bytes),
        Change::Replace { file, bytes } => drop(files.insert(*file, bytes.clone())),
        Change::Remove { file } => drop(files.remove(file)),
    }
}

impl WorldState {
    pub(super) fn persist(&mut self, node: NodeId, batch: Persist) {
        let at = &self.nodes[node.index()];
        if at.disk.is_volatile {
            let event = Event::Persisted { node, life: at.life, batch: batch.id };
            return self.schedule(self.now, event);
        }
        self.nodes[node.index()].disk.batches.push(batch);
        self.write_to_disk(node);
    }

    fn write_to_disk(&mut self, id: NodeId) {
        let node = &mut self.nodes[id.index()];
        if let Some(takes) = node.disk.begin() {
            let event = Event::Synced { node: id, life: node.life };
            self.schedule(self.now.saturating_add(takes), event);
        }
    }
}

impl World {
    /// Sets a node's disk latencies.
    pub fn set_disk(&mut self, node: NodeId, times: DiskTimes) {
        self.core.nodes[node.index()].disk.times = times;
    }

    /// Makes a node's disk memory: writes take no time, and a restarted process finds no files.
    pub fn set_volatile(&mut self, node: NodeId) {
        self.core.nodes[node.index()].disk.is_volatile = true;
    }

    /// The durable files of a node.
    #[must_use]
    pub fn files(&self, node: NodeId) -> Vec<(File, Vec<u8>)> {
        self.core.nodes[node.index()].disk.files()
    }

    pub(super) fn set_disk_condition(&mut self, node: NodeId, condition: DiskCondition) {
        self.core.nodes[node.index()].disk.condition = condition;
    }

    /// A process whose files are gone dies.
    pub(super) fn wipe(&mut self, node: NodeId) {
        if self.actors[node.index()].is_some() {
            self.act(Action::Crash(node));
        }
        self.core.nodes[node.index()].disk.safe.clear();
    }

    /// The disk has completed its write, or has failed. It continues while its process is paused.
    pub(super) fn synced(&mut self, id: NodeId, life: u32) {
        let node = &mut self.core.nodes[id.index()];
        if node.life != life {
            return;
        }
        if node.disk.condition == DiskCondition::Failing {
            return self.act(Action::Crash(id));
        }
        if let Some(last) = node.disk.end() {
            let event = Event::Persisted { node: id, life, batch: last };
            self.core.schedule(self.core.now, event);
        }
        self.core.write_to_disk(id);
    }

    pub(super) fn persisted(&mut self, id: NodeId, life: u32, batch: u64) {
        let node = &mut self.core.nodes[id.index()];
        if node.life != life {
            return;
        }
        if let Some(held) = &mut node.held {
            return held.push(Event::Persisted { node: id, life, batch });
        }
        self.turn(id, |actor, context| actor.persisted(context, batch));
        self.show_to_observer(id, None);
    }
}
