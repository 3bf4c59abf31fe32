//! Detects a leader's disk that is slower than its followers'. The leader sees when a majority has an entry, and when its own disk has
//! it.

use super::{Batch, Node};
use midflight_endpoint::Nanos;

/// A disk is slow if it takes this many times as long as a majority of the others, network included.
const FACTOR: Nanos = 4;
/// Promises for which the disk must be slow before the leader hands over.
const PATIENCE_PROMISES: u64 = 8;

/// Start of the first and of the last of the consecutive slow batches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SlowDisk(Option<(Nanos, Nanos)>);

impl SlowDisk {
    fn note(&mut self, is_slow: bool, since: Nanos, now: Nanos, patience: Nanos) {
        // Two slow writes far apart prove nothing about the time between them.
        let first = self.0.filter(|(_, last)| since < last + patience).map_or(since, |(first, _)| first);
        self.0 = is_slow.then_some((first, now));
    }
}

impl Node {
    fn patience(&self) -> Nanos {
        PATIENCE_PROMISES * self.timing.promise
    }

    pub(super) fn note_elsewhere(&mut self, now: Nanos) {
        let committed = self.committed();
        for batch in &mut self.unsafe_batches {
            match batch.last {
                Some(last) if last > committed => break,
                Some(_) => drop(batch.elsewhere.get_or_insert(now)),
                None => {}
            }
        }
    }

    pub(super) fn note_persisted(&mut self, now: Nanos, batch: &Batch) {
        let (is_slow, patience) = (self.is_slow(now, batch), self.patience());
        if let Some(leadership) = self.leadership.as_mut().filter(|_| batch.last.is_some()) {
            leadership.slow_disk.note(is_slow, batch.since, now, patience);
        }
    }

    fn is_slow(&self, now: Nanos, batch: &Batch) -> bool {
        // Entries wait for parts of a snapshot, which other replicas write at other times.
        let is_busy = self.log().snapshot_parts().is_some();
        let least = if is_busy { self.patience() } else { self.timing.heartbeat };
        let own = now.saturating_sub(batch.since);
        own >= least && batch.elsewhere.is_some_and(|at| own >= FACTOR * at.saturating_sub(batch.since))
    }

    pub(in crate::replica) fn has_slow_disk(&mut self, now: Nanos) -> bool {
        let patience = self.patience();
        // A batch in flight may never end.
        let under_way = self.unsafe_batches.iter().find(|batch| batch.last.is_some());
        let slow = under_way.filter(|batch| self.is_slow(now, batch)).map(|batch| batch.since);
        let Some(leadership) = &mut self.leadership else { return false };
        if let Some(since) = slow {
            leadership.slow_disk.note(true, since, now, patience);
        }
        leadership.slow_disk.0.is_some_and(|(first, last)| last >= first + patience)
    }
}
