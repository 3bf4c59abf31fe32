//! An outcome set by one thread, for which others wait.

use crate::driver::lock;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

#[derive(Debug)]
pub(crate) struct Pending<T> {
    outcome: Mutex<Option<T>>,
    ended: Condvar,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self { outcome: Mutex::new(None), ended: Condvar::new() }
    }
}

impl<T: Clone> Pending<T> {
    pub(crate) fn end(&self, outcome: T) {
        *lock(&self.outcome) = Some(outcome);
        self.ended.notify_all();
    }

    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.outcome).is_some()
    }

    pub(crate) fn wait(&self, deadline: Option<Instant>) -> Option<T> {
        let mut outcome = lock(&self.outcome);
        while outcome.is_none() {
            let Some(deadline) = deadline else {
                outcome = self.ended.wait(outcome).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            outcome = self.ended.wait_timeout(outcome, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        outcome.clone()
    }
}
