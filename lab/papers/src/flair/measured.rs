//! What is measured in a cell's world.

use super::cell::{BUCKET_MS, Cell, CellResult, Shares};
use super::users::Record;
use crate::cell::percentiles::Recorder;
use midflight_endpoint::{MS, Nanos};
use midflight_sim::{Happening, Sink};

/// What is measured.
pub(super) struct Measured {
    /// Machines that have written their keys.
    pub(super) loaded: usize,
    start: Nanos,
    /// End of the warm-up.
    from: Nanos,
    reads: Recorder,
    writes: Recorder,
    failed: u64,
    until: Nanos,
    /// If something fails: to the end, also without operations.
    buckets: Vec<u64>,
}

impl Default for Measured {
    fn default() -> Self {
        let (reads, writes) = (Recorder::new(), Recorder::new());
        Self { loaded: 0, start: 0, from: 0, until: 0, reads, writes, failed: 0, buckets: Vec::new() }
    }
}

impl Measured {
    /// From now on; what came before is forgotten.
    pub(super) fn begin(&mut self, start: Nanos, cell: &Cell) {
        let (from, until) = (start + cell.warmup_ms * MS, start + cell.duration_ms * MS);
        let buckets = if cell.fault.is_some() { cell.duration_ms.div_ceil(BUCKET_MS) } else { 0 };
        *self = Self { start, from, until, buckets: vec![0; buckets as usize], ..Self::default() };
    }

    pub(super) fn result(&self, cell: &Cell, shares: Shares, events: u64) -> CellResult {
        let seconds = (cell.duration_ms - cell.warmup_ms) as f64 / 1e3;
        let (reads, writes) = (self.reads.percentiles(), self.writes.percentiles());
        let bucket_s = BUCKET_MS as f64 / 1e3;
        CellResult {
            per_second: (reads.count + writes.count) as f64 / seconds,
            reads,
            writes,
            shares,
            over_time: self.buckets.iter().map(|&count| count as f64 / bucket_s).collect(),
            failed: self.failed,
            events,
            wall_ms: 0.0,
        }
    }
}

impl Sink for Measured {
    fn happened(&mut self, at: Nanos, happening: &Happening<'_>) {
        match happening.of() {
            Some(Record::Loaded) => self.loaded += 1,
            Some(&Record::Ended { is_read, took, failed }) if at < self.until => {
                if failed {
                    self.failed += 1;
                    return;
                }
                if let Some(bucket) = self.buckets.get_mut(((at - self.start) / (BUCKET_MS * MS)) as usize) {
                    *bucket += 1;
                }
                if at >= self.from {
                    let recorder = if is_read { &mut self.reads } else { &mut self.writes };
                    recorder.record(took);
                }
            }
            Some(Record::Ended { .. }) | None => {}
        }
    }
}
