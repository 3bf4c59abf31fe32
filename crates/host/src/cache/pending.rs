//! Waiting for gets: a handle for one, or a queue for many.

use super::client::{Shared, Value};
use super::error::CacheError;
use crate::pending::Pending;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The outcome of a get; `None` if the cache does not have the key.
pub type GetOutcome = Result<Option<Value>, CacheError>;

pub(super) enum Waits {
    Handle(Arc<Pending<GetOutcome>>),
    Queue { queue: Sender<Completed>, tag: u64 },
}

/// Completes a get exactly once. Dropping it ends the get as closed.
pub(super) struct Ending {
    waits: Option<Waits>,
    open: Arc<AtomicUsize>,
}

impl Ending {
    /// `open` already counts this get.
    pub(super) fn new(waits: Waits, open: Arc<AtomicUsize>) -> Self {
        Self { waits: Some(waits), open }
    }

    pub(super) fn end(mut self, outcome: GetOutcome) {
        self.tell(outcome);
    }

    fn tell(&mut self, outcome: GetOutcome) {
        let Some(waits) = self.waits.take() else { return };
        self.open.fetch_sub(1, Ordering::AcqRel);
        match waits {
            Waits::Handle(pending) => pending.end(outcome),
            // Fails if the queue was dropped.
            Waits::Queue { queue, tag } => drop(queue.send(Completed { tag, outcome, at: Instant::now() })),
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.tell(Err(CacheError::Closed));
    }
}

/// A get in flight. Dropping it does not cancel the get.
pub struct GetHandle {
    pub(super) pending: Arc<Pending<GetOutcome>>,
    pub(super) client: Arc<Shared>,
}

impl std::fmt::Debug for GetHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GetHandle").field("ended", &self.has_ended()).finish()
    }
}

impl GetHandle {
    /// Whether the outcome is known.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.pending.has_ended()
    }

    /// Waits for the value; `None` if the cache does not have the key.
    ///
    /// # Errors
    ///
    /// If there is no answer: see [`CacheError`].
    pub fn wait(&self) -> GetOutcome {
        // Without a deadline there is always an outcome.
        self.wait_until(None).unwrap_or(Err(CacheError::Closed))
    }

    /// Like [`wait`](Self::wait), but returns `None` after `timeout`. The get continues.
    #[must_use]
    pub fn wait_timeout(&self, timeout: Duration) -> Option<GetOutcome> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    fn wait_until(&self, deadline: Option<Instant>) -> Option<GetOutcome> {
        if !self.has_ended() {
            self.client.poll_until(deadline, &|| self.has_ended());
        }
        self.pending.wait(deadline)
    }
}

/// A queue of outcomes of many gets, of one or several clients, in order of completion.
#[derive(Debug)]
pub struct Completions {
    pub(super) sender: Sender<Completed>,
    receiver: Receiver<Completed>,
}

/// A get that has ended.
#[derive(Debug)]
pub struct Completed {
    /// The caller's name for it.
    pub tag: u64,
    /// Its outcome.
    pub outcome: GetOutcome,
    /// When it ended.
    pub at: Instant,
}

impl Default for Completions {
    fn default() -> Self {
        Self::new()
    }
}

impl Completions {
    /// An empty queue. Grows with the outcomes not yet taken.
    #[must_use]
    pub fn new() -> Self {
        let (sender, receiver) = unbounded();
        Self { sender, receiver }
    }

    /// The next outcome; `None` after `timeout`.
    #[must_use]
    pub fn next_timeout(&self, timeout: Duration) -> Option<Completed> {
        self.receiver.recv_timeout(timeout).ok()
    }
}
