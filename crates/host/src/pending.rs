//! An operation of the store's or the cache's client in flight.

use crate::driver::lock;
use crate::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// What a handle needs of its client.
pub(crate) trait Polls: Send + Sync {
    /// Polls the socket for a short time, until `done`, to save a wake-up. Then the network thread continues.
    fn poll_until(&self, deadline: Option<Instant>, done: &dyn Fn() -> bool);
}

pub(crate) struct Pending<T> {
    state: Mutex<State<T>>,
    ended: Condvar,
}

enum State<T> {
    Open(Option<Waker>),
    Ended(Result<T, Error>),
    Taken,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self { state: Mutex::new(State::Open(None)), ended: Condvar::new() }
    }
}

impl<T> Pending<T> {
    pub(crate) fn end(&self, outcome: Result<T, Error>) {
        let before = std::mem::replace(&mut *lock(&self.state), State::Ended(outcome));
        self.ended.notify_all();
        if let State::Open(Some(waker)) = before {
            waker.wake();
        }
    }

    fn has_ended(&self) -> bool {
        !matches!(*lock(&self.state), State::Open(_))
    }

    fn wait(&self, deadline: Option<Instant>) -> Option<Result<T, Error>> {
        let mut state = lock(&self.state);
        while matches!(*state, State::Open(_)) {
            let Some(deadline) = deadline else {
                state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            state = self.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.take()
    }
}

impl<T> State<T> {
    /// The outcome, once; `None` while it is open.
    fn take(&mut self) -> Option<Result<T, Error>> {
        match std::mem::replace(self, Self::Taken) {
            Self::Ended(outcome) => Some(outcome),
            Self::Taken => Some(Err(Error::Taken)),
            open => {
                *self = open;
                None
            }
        }
    }
}

/// An operation of a store or a cache in flight: wait for it, or `.await` it. Dropping it does not cancel the operation.
pub struct Handle<T> {
    pending: Arc<Pending<T>>,
    client: Arc<dyn Polls>,
}

impl<T> std::fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("ended", &self.has_ended()).finish_non_exhaustive()
    }
}

impl<T> Handle<T> {
    pub(crate) fn new(pending: Arc<Pending<T>>, client: Arc<dyn Polls>) -> Self {
        Self { pending, client }
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.pending.has_ended()
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// If the operation was not carried out.
    pub fn wait(self) -> Result<T, Error> {
        self.wait_until(None).unwrap_or(Err(Error::Closed)) // without a deadline there is always an outcome
    }

    /// Waits for its end, at most `timeout`; `None` if it has not ended, and goes on. The outcome is given once.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<Result<T, Error>> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    fn wait_until(&self, deadline: Option<Instant>) -> Option<Result<T, Error>> {
        if !self.has_ended() {
            self.client.poll_until(deadline, &|| self.has_ended());
        }
        self.pending.wait(deadline)
    }
}

impl<T> Future for Handle<T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = lock(&self.pending.state);
        if let State::Open(waker) = &mut *state {
            *waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        state.take().map_or(Poll::Pending, Poll::Ready)
    }
}
