//! A bounded queue of datagrams between threads of this process. Buffers are reused, so that nothing is allocated in the steady state.

use crate::waker::Waker;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Debug)]
pub(crate) struct RingSender {
    full: Sender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    waker: Arc<Waker>,
    dropped: Arc<AtomicU64>,
    /// Something was queued since the receiver was last woken.
    has_news: bool,
}

#[derive(Debug)]
pub(crate) struct RingReceiver {
    full: Receiver<Vec<u8>>,
    empty: Sender<Vec<u8>>,
    dropped: Arc<AtomicU64>,
}

pub(crate) fn ring(most: usize, waker: Arc<Waker>) -> (RingSender, RingReceiver) {
    let ((full_sender, full), (empty, empty_receiver)) = (bounded(most), bounded(most));
    let dropped = Arc::new(AtomicU64::new(0));
    let sender =
        RingSender { full: full_sender, empty: empty_receiver, waker, dropped: Arc::clone(&dropped), has_news: false };
    (sender, RingReceiver { full, empty, dropped })
}

impl RingSender {
    /// Queues a copy of a datagram. If the ring is full, it is dropped and counted.
    pub(crate) fn push(&mut self, datagram: &[u8]) {
        let mut buffer = self.empty.try_recv().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(datagram);
        match self.full.try_send(buffer) {
            Ok(()) => self.has_news = true,
            Err(_) => _ = self.dropped.fetch_add(1, Relaxed),
        }
    }

    pub(crate) fn flush(&mut self) {
        if std::mem::take(&mut self.has_news) {
            self.waker.wake();
        }
    }
}

impl RingReceiver {
    pub(crate) fn take(&self, most: usize, mut with: impl FnMut(&[u8])) -> usize {
        let mut taken = 0;
        while taken < most
            && let Ok(datagram) = self.full.try_recv()
        {
            with(&datagram);
            // Always has room: the ring has no more buffers than this.
            let _ = self.empty.try_send(datagram);
            taken += 1;
        }
        taken
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_come_in_order_and_what_does_not_fit_is_counted() {
        let (mut sender, receiver) = ring(3, Arc::new(Waker::new().unwrap()));
        for round in 0..5_u8 {
            (0..4).for_each(|n| sender.push(&[round, n]));
            sender.flush();
            assert_eq!(receiver.dropped(), u64::from(round) + 1);
            let mut taken = Vec::new();
            assert_eq!(receiver.take(2, |datagram| taken.push(datagram.to_vec())), 2);
            assert_eq!(receiver.take(9, |datagram| taken.push(datagram.to_vec())), 1);
            assert_eq!(taken, [[round, 0], [round, 1], [round, 2]]);
        }
    }
}
