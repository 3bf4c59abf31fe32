//! Limits the log lines of one kind.

use midflight_endpoint::{Nanos, SECOND};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Minimum interval between log lines of one kind, so that a peer cannot fill the log.
const LOG_EVERY: Nanos = 60 * SECOND;

#[derive(Debug, Default)]
pub(super) struct LogLimit(AtomicU64);

impl LogLimit {
    pub(super) fn may_log(&self, now: Nanos) -> bool {
        let next = |next: Nanos| (now >= next).then(|| now.saturating_add(LOG_EVERY));
        self.0.fetch_update(Relaxed, Relaxed, next).is_ok()
    }
}
