//! How many datagrams leave by one system call (GSO).
//!
//! Where a device cannot do it, the kernel refuses with errors that it has for other reasons as well: a route that was taken away,
//! an address that has moved, port 0. So it counts as the device's refusal only if the same datagrams leave one by one; and since
//! routes lead to other devices at other times, it is tried again later.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Calls after which it is tried again: a vain try costs little among so many.
const AGAIN_AFTER: u32 = 1_000;

#[derive(Debug)]
pub(crate) struct Together {
    most: usize,
    /// Calls that are still to send one datagram each.
    alone: AtomicU32,
}

impl Together {
    /// `most` is what the kernel takes.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, alone: AtomicU32::new(0) }
    }

    /// Datagrams that a call may send now.
    pub(crate) fn most(&self) -> usize {
        if self.alone.load(Relaxed) == 0 { self.most } else { 1 }
    }

    /// A call with several was refused, and they left one by one.
    pub(crate) fn refused(&self) {
        self.alone.store(AGAIN_AFTER, Relaxed);
    }

    /// A call with one.
    pub(crate) fn sent_one(&self) {
        let left = self.alone.load(Relaxed);
        if left > 0 {
            // Threads that do this at once count one call for two.
            self.alone.store(left - 1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t16_who_was_refused_tries_again_after_a_while() {
        let together = Together::new(64);
        together.sent_one();
        assert_eq!(together.most(), 64);
        together.refused();
        for _ in 0..AGAIN_AFTER {
            assert_eq!(together.most(), 1);
            together.sent_one();
        }
        assert_eq!(together.most(), 64);
    }
}
