//! Threads for functions that exceed microseconds: started on demand, reused, at most one per slot.

use crate::driver::lock;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) type Work = Box<dyn FnOnce() + Send>;

/// The number of slots bounds the queue.
pub(crate) struct Workers {
    max: usize,
    /// `None` once closed.
    sender: Mutex<Option<Sender<Work>>>,
    receiver: Receiver<Work>,
    /// Work not yet ended.
    open: Arc<AtomicUsize>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Workers {
    pub(crate) fn new(max: usize) -> Self {
        let (sender, receiver) = unbounded();
        Self { max, sender: Mutex::new(Some(sender)), receiver, open: Arc::default(), threads: Mutex::default() }
    }

    pub(crate) fn threads(&self) -> usize {
        lock(&self.threads).len()
    }

    /// Returns `false` and drops the work if the pool is closed or has no thread at all.
    #[must_use]
    pub(crate) fn run(&self, work: Work) -> bool {
        let sender = lock(&self.sender);
        let Some(sender) = sender.as_ref() else { return false };
        let open = self.open.fetch_add(1, Ordering::AcqRel) + 1;
        let mut threads = lock(&self.threads);
        if open > threads.len() && threads.len() < self.max {
            match self.start_thread() {
                Ok(thread) => threads.push(thread),
                Err(error) => tracing::warn!("cannot start worker thread {}: {error}", threads.len() + 1),
            }
        }
        let accepted = !threads.is_empty() && sender.send(work).is_ok();
        if !accepted {
            self.open.fetch_sub(1, Ordering::AcqRel);
        }
        accepted
    }

    fn start_thread(&self) -> std::io::Result<JoinHandle<()>> {
        let (receiver, open) = (self.receiver.clone(), Arc::clone(&self.open));
        std::thread::Builder::new().name("mf-worker".into()).spawn(move || {
            for work in receiver {
                work();
                open.fetch_sub(1, Ordering::AcqRel);
            }
        })
    }

    /// Waits up to `patience` for the threads. Returns how many still run; they end with the process.
    pub(crate) fn close(&self, patience: Duration) -> usize {
        lock(&self.sender).take();
        let deadline = Instant::now() + patience;
        let threads: Vec<_> = lock(&self.threads).drain(..).collect();
        let mut left = 0;
        for thread in threads {
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
            if thread.is_finished() {
                let _ = thread.join(); // panics of functions are already caught
            } else {
                left += 1;
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_started_when_needed_reused_and_bounded() {
        let workers = Workers::new(2);
        let (sender, receiver) = unbounded();
        for round in 0..20 {
            let sender = sender.clone();
            assert!(workers.run(Box::new(move || sender.send(round).unwrap())));
            receiver.recv_timeout(Duration::from_secs(5)).unwrap();
        }
        assert!((1..=2).contains(&workers.threads()));
        assert_eq!(workers.close(Duration::from_secs(5)), 0);
        assert!(!workers.run(Box::new(|| {})));
    }
}
