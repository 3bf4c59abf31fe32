//! What happened to the workers of an executor, by name.

use std::sync::atomic::{AtomicU64, Ordering};

/// Of the Python workers of an executor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PythonCounts {
    /// Workers that were started.
    pub started: u64,
    /// Starts that failed.
    pub starts_failed: u64,
    /// Workers that died, or sent an invalid answer, in a task.
    pub died: u64,
    /// Workers that did not stop their task when they were told, and were killed.
    pub killed: u64,
    /// Tasks that were told to stop because their timeout was over.
    pub timed_out: u64,
    /// Workers that were found dead while they had no task.
    pub died_idle: u64,
    /// Workers that were replaced because files of modules that they had imported have changed.
    pub stale: u64,
    /// Bytes of their outputs that were not printed, because they wrote too much.
    pub output_dropped: u64,
    /// Functions and shared arguments that were fetched.
    pub blobs_fetched: u64,
    /// Those that could not be.
    pub blobs_not_fetched: u64,
    /// Those that made room for others.
    pub blobs_dropped: u64,
    /// What workers had of them, and have forgotten to make room.
    pub copies_dropped: u64,
}

impl PythonCounts {
    /// All of them, by name.
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

/// The same, while threads count.
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

/// One more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
