//! Who waits for a get: a handle or a callback.

use super::client::Value;
use crate::error::Error;
use crate::pending::Pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The outcome of a get; `None` if the cache does not have the key.
pub type GetOutcome = Result<Option<Value>, Error>;

pub(super) enum Waits {
    Handle(Arc<Pending<Option<Value>>>),
    Sink(Box<dyn FnOnce(GetOutcome) + Send>),
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
            Waits::Sink(sink) => sink(outcome),
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.tell(Err(Error::Closed));
    }
}
