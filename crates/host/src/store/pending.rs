//! An operation in flight, and waiting for it.

use super::client::Shared;
use crate::pending::Pending;
use midflight_store::client::{Answer, Failure, SubmitError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Why an operation has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It was not begun.
    #[error(transparent)]
    NotBegun(#[from] SubmitError),
    /// The store refused it or did not answer. [`Failure::is_unknown`] says whether a write may have taken place.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The client was closed. A write may have taken place, or may yet.
    #[error("the client was closed before the answer came; connect a new one")]
    Closed,
}

impl StoreError {
    /// Whether the failed write may have taken place, or may yet.
    #[must_use]
    pub fn is_unknown(self) -> bool {
        match self {
            Self::NotBegun(_) => false,
            Self::Failed(failure) => failure.is_unknown(),
            Self::Closed => true,
        }
    }
}

pub(super) type Outcome = Result<Answer, StoreError>;

/// An operation in flight. Dropping it does not cancel the operation.
pub struct StoreHandle {
    pub(super) pending: Arc<Pending<Outcome>>,
    pub(super) client: Arc<Shared>,
}

impl std::fmt::Debug for StoreHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreHandle").field("ended", &self.has_ended()).finish()
    }
}

impl StoreHandle {
    /// Whether the outcome is known.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.pending.has_ended()
    }

    /// Waits for the answer.
    ///
    /// # Errors
    ///
    /// If there is none: see [`StoreError`].
    pub fn wait(&self) -> Result<Answer, StoreError> {
        // Without a deadline there is always an outcome.
        self.wait_until(None).unwrap_or(Err(StoreError::Closed))
    }

    /// Like [`wait`](Self::wait), but returns `None` after `timeout`. The operation continues.
    #[must_use]
    pub fn wait_timeout(&self, timeout: Duration) -> Option<Result<Answer, StoreError>> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    fn wait_until(&self, deadline: Option<Instant>) -> Option<Outcome> {
        if !self.has_ended() {
            self.client.poll_until(deadline, &|| self.has_ended());
        }
        self.pending.wait(deadline)
    }
}
