//! Counts of an executor's Python workers.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of an executor's Python workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PythonCounts {
    /// Workers started.
    pub started: u64,
    /// Failed starts.
    pub starts_failed: u64,
    /// Workers that died, or sent an invalid answer, during a task.
    pub died: u64,
    /// Workers killed because they did not stop their task.
    pub killed: u64,
    /// Tasks told to stop at their timeout.
    pub timed_out: u64,
    /// Workers found dead while idle.
    pub died_idle: u64,
    /// Workers replaced because imported modules had changed.
    pub stale: u64,
    /// Bytes of output dropped because a worker wrote too much.
    pub output_dropped: u64,
    /// Functions and shared arguments fetched.
    pub blobs_fetched: u64,
    /// Functions and shared arguments that could not be fetched.
    pub blobs_not_fetched: u64,
    /// Functions and shared arguments evicted.
    pub blobs_dropped: u64,
    /// Workers' copies of them evicted.
    pub copies_dropped: u64,
}

impl PythonCounts {
    /// Every counter with its name.
    #[must_use]
    pub fn by_name(&self) -> [(&'static str, u64); 12] {
        [
            ("python_started", self.started),
            ("python_starts_failed", self.starts_failed),
            ("python_died", self.died),
            ("python_killed", self.killed),
            ("python_timed_out", self.timed_out),
            ("python_died_idle", self.died_idle),
            ("python_stale", self.stale),
            ("python_output_dropped", self.output_dropped),
            ("python_blobs_fetched", self.blobs_fetched),
            ("python_blobs_not_fetched", self.blobs_not_fetched),
            ("python_blobs_dropped", self.blobs_dropped),
            ("python_copies_dropped", self.copies_dropped),
        ]
    }
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) started: AtomicU64,
    pub(super) starts_failed: AtomicU64,
    pub(super) died: AtomicU64,
    pub(super) killed: AtomicU64,
    pub(super) timed_out: AtomicU64,
    pub(super) died_idle: AtomicU64,
    pub(super) stale: AtomicU64,
    pub(super) output_dropped: AtomicU64,
    pub(super) blobs_fetched: AtomicU64,
    pub(super) blobs_not_fetched: AtomicU64,
    pub(super) blobs_dropped: AtomicU64,
    pub(super) copies_dropped: AtomicU64,
}

impl Counters {
    pub(super) fn read(&self) -> PythonCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PythonCounts {
            started: of(&self.started),
            starts_failed: of(&self.starts_failed),
            died: of(&self.died),
            killed: of(&self.killed),
            timed_out: of(&self.timed_out),
            died_idle: of(&self.died_idle),
            stale: of(&self.stale),
            output_dropped: of(&self.output_dropped),
            blobs_fetched: of(&self.blobs_fetched),
            blobs_not_fetched: of(&self.blobs_not_fetched),
            blobs_dropped: of(&self.blobs_dropped),
            copies_dropped: of(&self.copies_dropped),
        }
    }
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
