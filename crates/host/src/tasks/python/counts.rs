//! Counts of an executor's Python workers.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

midflight_endpoint::counters! {
    /// Counts of an executor's Python workers.
    pub struct PythonCounts {
        /// Workers started.
        pub started,
        /// Failed starts.
        pub starts_failed,
        /// Workers that died, or sent an invalid answer, during a task.
        pub died,
        /// Workers killed because they did not stop their task.
        pub killed,
        /// Tasks told to stop at their timeout.
        pub timed_out,
        /// Workers found dead while idle.
        pub died_idle,
        /// Workers replaced because imported modules had changed.
        pub stale,
        /// Bytes of output dropped because a worker wrote too much.
        pub output_dropped,
        /// Functions and shared arguments fetched.
        pub blobs_fetched,
        /// Functions and shared arguments that could not be fetched.
        pub blobs_not_fetched,
        /// Functions and shared arguments evicted.
        pub blobs_dropped,
        /// Workers' copies of them evicted.
        pub copies_dropped,
    } counted by Counters
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}
