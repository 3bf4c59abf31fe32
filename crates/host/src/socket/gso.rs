//! Number of datagrams per system call (generic segmentation offload, GSO).
//!
//! The kernel's error for a device without GSO may also mean a removed route, a changed address or port 0. So GSO is disabled only if the
//! same datagrams can be sent one by one, and retried later, when routes may lead elsewhere.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Calls until GSO is tried again.
const RETRY_AFTER: u32 = 1_000;

#[derive(Debug)]
pub(crate) struct Gso {
    /// Datagrams that the kernel accepts per call.
    most: usize,
    /// Calls left that send one datagram each.
    pause: AtomicU32,
}

impl Gso {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, pause: AtomicU32::new(0) }
    }

    /// Datagrams per call now.
    pub(crate) fn most(&self) -> usize {
        if self.pause.load(Relaxed) == 0 { self.most } else { 1 }
    }

    /// The kernel refused several datagrams in a call, but took them one by one.
    pub(crate) fn refused(&self) {
        self.pause.store(RETRY_AFTER, Relaxed);
    }

    /// Counts a call with one datagram.
    pub(crate) fn sent_one(&self) {
        let left = self.pause.load(Relaxed);
        if left > 0 {
            // Two concurrent calls may count as one, which only prolongs the pause.
            self.pause.store(left - 1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t16_gso_is_tried_again_after_a_while() {
        let gso = Gso::new(64);
        gso.sent_one();
        assert_eq!(gso.most(), 64);
        gso.refused();
        for _ in 0..RETRY_AFTER {
            assert_eq!(gso.most(), 1);
            gso.sent_one();
        }
        assert_eq!(gso.most(), 64);
    }
}
