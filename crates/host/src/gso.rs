//! How many datagrams may leave by one system call (generic segmentation offload, GSO).
//!
//! Where a device does not support GSO, the kernel refuses with an error that has other causes too: a route that was removed, an
//! address that has changed, port 0. So GSO is given up only if the same datagrams can be sent one by one. It is tried again
//! later, because routes may lead to another device by then.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Calls after which GSO is tried again: one failed call among so many costs little.
const RETRY_AFTER: u32 = 1_000;

#[derive(Debug)]
pub(crate) struct Gso {
    /// Datagrams that the kernel takes in one call.
    most: usize,
    /// Calls that still send one datagram each, before GSO is tried again.
    pause: AtomicU32,
}

impl Gso {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, pause: AtomicU32::new(0) }
    }

    /// Datagrams that a call may send now.
    pub(crate) fn most(&self) -> usize {
        if self.pause.load(Relaxed) == 0 { self.most } else { 1 }
    }

    /// A call with several datagrams was refused, but they could be sent one by one.
    pub(crate) fn refused(&self) {
        self.pause.store(RETRY_AFTER, Relaxed);
    }

    /// A call has sent one datagram.
    pub(crate) fn sent_one(&self) {
        let left = self.pause.load(Relaxed);
        if left > 0 {
            // Two threads at once may count as one call: the pause is only a little longer then.
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
