//! Completions on their way to Python. The network thread adds them; a waiting thread settles them one after another. A thread that waits
//! for a result precedes the client's own thread, which would have to wake up and wait for the GIL.

use crate::client::lock;
use crate::waiters::Waiters;
use midflight_host::TaskOutcome;
use pyo3::{Py, PyAny};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(crate) enum End {
    /// By the protocol, or because it was cancelled or the client closed before it was sent.
    Outcome(TaskOutcome),
    NotSubmitted(String),
    /// It could not be submitted for lack of room.
    NoRoom(String),
    /// It has not ended: it returns calls that it has not begun. The bytes tell Python which.
    Part(Vec<u8>),
    Known(u8, Py<PyAny>),
}

pub(crate) struct Completion {
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) end: End,
}

#[derive(Default)]
pub(crate) struct Completions {
    state: Mutex<State>,
    waiters: Condvar,
    own_thread: Condvar,
    /// Whether there are completions.
    is_some: AtomicBool,
}

#[derive(Default)]
struct State {
    ended: VecDeque<Completion>,
    /// Threads that wait for a result.
    waiting: usize,
    /// Threads that settle completions.
    settling: usize,
    /// Number of times that threads have settled completions.
    settled: u64,
    is_closed: bool,
}

pub(crate) enum Found {
    /// Number of completions to settle; call [`Completions::settled`] afterwards.
    Some(usize),
    Nothing,
    /// The client is closed, and all is settled.
    Closed,
}

impl Completions {
    pub(crate) fn push(&self, completion: Completion) {
        let mut state = lock(&self.state);
        state.ended.push_back(completion);
        if state.ended.len() == 1 {
            self.is_some.store(true, Ordering::Release);
            self.notify(&state);
        }
    }

    /// Wakes a thread that waits for a result, or else the client's thread.
    fn notify(&self, state: &State) {
        if state.waiting > 0 { &self.waiters } else { &self.own_thread }.notify_one();
    }

    pub(crate) fn is_some(&self) -> bool {
        self.is_some.load(Ordering::Acquire)
    }

    /// Number of times that threads have settled completions. Read it before checking for a result.
    pub(crate) fn count(&self) -> u64 {
        lock(&self.state).settled
    }

    /// For a thread that waits for a result: returns when there are completions, after `timeout`, or when others have settled some since
    /// `count` was read. Calls `poll`, which polls the socket for a while, without a lock.
    pub(crate) fn wait(&self, timeout: Duration, count: u64, poll: impl FnOnce()) -> Found {
        let deadline = Instant::now() + timeout;
        lock(&self.state).waiting += 1;
        if !self.is_some() {
            poll();
        }
        let mut state = lock(&self.state);
        while state.ended.is_empty() && state.settled == count && !state.is_exhausted() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.waiters.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.waiting -= 1;
        state.found()
    }

    /// For the client's own thread: waits without a timeout.
    pub(crate) fn wait_always(&self) -> Found {
        let mut state = lock(&self.state);
        // A thread that waits for a result settles the completions before it leaves.
        while (state.ended.is_empty() || state.waiting > 0) && !state.is_exhausted() {
            state = self.own_thread.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.found()
    }

    pub(crate) fn begin(&self) -> Found {
        lock(&self.state).found()
    }

    pub(crate) fn next(&self) -> Option<Completion> {
        let mut state = lock(&self.state);
        let next = state.ended.pop_front();
        self.is_some.store(!state.ended.is_empty(), Ordering::Release);
        next
    }

    pub(crate) fn put_back(&self, completion: Completion) {
        let mut state = lock(&self.state);
        state.ended.push_front(completion);
        self.is_some.store(true, Ordering::Release);
    }

    /// Ends a thread's settling and wakes the others.
    pub(crate) fn settled(&self) {
        let mut state = lock(&self.state);
        state.settling -= 1;
        state.settled += 1;
        if state.waiting > 0 {
            self.waiters.notify_all();
        }
        if (!state.ended.is_empty() && state.waiting == 0) || state.is_exhausted() {
            self.own_thread.notify_one();
        }
    }

    /// No more completions will come.
    pub(crate) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.waiters.notify_all();
        self.own_thread.notify_all();
    }
}

impl State {
    fn is_exhausted(&self) -> bool {
        self.is_closed && self.ended.is_empty() && self.settling == 0
    }

    fn found(&mut self) -> Found {
        if !self.ended.is_empty() {
            self.settling += 1;
            return Found::Some(self.ended.len());
        }
        if self.is_exhausted() { Found::Closed } else { Found::Nothing }
    }
}
