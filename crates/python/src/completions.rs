//! Outcomes on their way to Python. The network thread puts them here; whoever waits takes all that are there. A thread that waits for
//! a result goes before the client's own thread, which would have to be woken and then wait for the GIL.

use crate::client::lock;
use midflight_host::TaskOutcome;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How a task has ended, without its result.
#[derive(Debug)]
pub(crate) enum End {
    /// By the protocol.
    Outcome(TaskOutcome),
    /// It could not be submitted.
    NotSubmitted(String),
}

/// A task that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Of its first call.
    pub(crate) token: u64,
    pub(crate) calls: u32,
    pub(crate) end: End,
}

#[derive(Default)]
pub(crate) struct Completions {
    state: Mutex<State>,
    /// For threads that wait for a result.
    first: Condvar,
    /// For the client's thread.
    second: Condvar,
    is_some: AtomicBool,
}

#[derive(Default)]
struct State {
    ended: Vec<Ended>,
    /// Threads that wait for a result.
    waiting: usize,
    /// Counts what Python has settled.
    settled: u64,
    is_closed: bool,
}

impl Completions {
    pub(crate) fn push(&self, ended: Ended) {
        let mut state = lock(&self.state);
        state.ended.push(ended);
        let (is_first, waits) = (state.ended.len() == 1, state.waiting > 0);
        drop(state);
        if is_first {
            self.is_some.store(true, Ordering::Release);
            if waits { &self.first } else { &self.second }.notify_one();
        }
    }

    pub(crate) fn is_some(&self) -> bool {
        self.is_some.load(Ordering::Acquire)
    }

    /// What Python has settled so far: to be read before a thread looks whether what it waits for is there.
    pub(crate) fn settled(&self) -> u64 {
        lock(&self.state).settled
    }

    /// Python has settled what it took: others look again.
    pub(crate) fn settle(&self) {
        let mut state = lock(&self.state);
        state.settled += 1;
        if state.waiting > 0 {
            self.first.notify_all();
        }
    }

    /// For a thread that waits for a result: all outcomes that are there; none after `timeout`, or if something was settled since
    /// `settled` was read. `poll` is called without a lock: it polls the socket for a while.
    pub(crate) fn take_first(&self, timeout: Duration, settled: u64, poll: impl FnOnce()) -> Vec<Ended> {
        let deadline = Instant::now() + timeout;
        lock(&self.state).waiting += 1;
        if !self.is_some() {
            poll();
        }
        let mut state = lock(&self.state);
        while state.ended.is_empty() && state.settled == settled && !state.is_closed {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.first.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.waiting -= 1;
        self.take(&mut state)
    }

    /// For the client's thread: waits for as long as it takes; `None` when the client is closed and all was taken.
    pub(crate) fn take_second(&self) -> Option<Vec<Ended>> {
        let mut state = lock(&self.state);
        while (state.ended.is_empty() || state.waiting > 0) && !state.is_closed {
            // A thread that waits for a result takes what is there before it goes.
            state = self.second.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        (!state.ended.is_empty() || !state.is_closed).then(|| self.take(&mut state))
    }

    fn take(&self, state: &mut State) -> Vec<Ended> {
        self.is_some.store(false, Ordering::Release);
        std::mem::take(&mut state.ended)
    }

    pub(crate) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.first.notify_all();
        self.second.notify_all();
    }
}
