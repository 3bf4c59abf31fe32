//! Waiting for jobs, for single tasks (also as futures), or for completions as they come.

mod file;
mod stream;

pub use file::{ResultFile, ResultReader};
pub use stream::CompletionStream;

use crate::driver::lock;
use crate::error::Error;
use crate::pending::Polls;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use midflight_tasks::client::CancelledHow;
pub use midflight_tasks::client::TaskTiming;

/// What a task returned.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskResult {
    /// The function's value; empty if it is in [`Self::file`].
    pub value: Vec<u8>,
    /// The value if longer than [`ClientBuilder::value_max`](crate::ClientBuilder::value_max); needs
    /// [`ClientBuilder::files`](crate::ClientBuilder::files).
    pub file: Option<ResultFile>,
    /// Number of the attempt, from 1, at most 255.
    pub attempt: u8,
    /// Where its time went.
    pub timing: TaskTiming,
}

/// Why a task has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The function returned an error or panicked.
    #[error("{message}")]
    Failed {
        /// Its message.
        message: String,
        /// Number of the attempt, from 1.
        attempt: u8,
        /// Where its time went.
        timing: TaskTiming,
    },
    /// The executor does not have the function.
    #[error("the executor knows no such function; register it there under the same name")]
    Unknown,
    /// No attempt ended in time.
    #[error("timed out")]
    TimedOut,
    /// No attempt could fetch the argument or deliver the result.
    #[error("lost: {0}")]
    Lost(&'static str),
    /// Its switch no longer has the task, which may have ended while no process of the [`DurableClient`](crate::DurableClient) ran.
    #[error("lost: its end came while nobody listened, or its switch is gone; it may have run")]
    Forgotten,
    /// It succeeded, but its value exceeds the client's limit.
    #[error("a result of {length} bytes exceeds {max}: raise ClientBuilder::value_max, or set ClientBuilder::files")]
    TooLarge {
        /// Bytes of the value.
        length: u32,
        /// The client's limit.
        max: u32,
    },
    /// It succeeded, but its value has no room in the client's files ([`BlobOptions::max_file_bytes`](crate::BlobOptions::max_file_bytes)).
    #[error("its result could not be kept: {why}")]
    NotKept {
        /// What found no room, and where.
        why: String,
    },
    /// Cancelled before it ran, or stopped by its executor; see [`CancelReport`].
    #[error("cancelled")]
    Cancelled,
}

/// How a task ended.
pub type TaskOutcome = Result<TaskResult, Error>;

/// Callbacks for outcomes and for parts given back, with the task's place in its job.
pub(crate) struct Sink {
    pub(crate) ended: Box<dyn Fn(usize, TaskOutcome) + Send + Sync>,
    pub(crate) part: Option<TakesPart>,
}

type TakesPart = Box<dyn Fn(usize, &[u8]) + Send + Sync>;

pub(crate) struct JobState {
    inner: Mutex<Inner>,
    changed: Condvar,
    sink: Option<Sink>,
}

struct Inner {
    tasks: Vec<Slot>,
    /// Ended and not yet taken by `Completions` or the sink, in order of completion.
    ended: VecDeque<u32>,
    open: usize,
    /// Threads waiting for the next outcome.
    waiting_next: usize,
    /// Threads waiting for the last outcome.
    waiting_all: usize,
    fired: Vec<Waker>,
    /// A stream waiting for the next outcome.
    next: Option<Waker>,
    cancelled: CancelReport,
}

/// The tasks of a cancelled job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CancelReport {
    /// Cancelled before they ran.
    pub taken_out: usize,
    /// Stopped by their executors.
    pub stopped: usize,
    /// Lost with their switch or executor; they may have run.
    pub vanished: usize,
    /// Ended with a result or an error before the cancellation.
    pub ended: usize,
    /// Not ended yet.
    pub open: usize,
}

enum Slot {
    Open(Option<Waker>),
    Ended(TaskOutcome),
    Taken,
}

impl Slot {
    fn take(&mut self) -> Option<TaskOutcome> {
        match std::mem::replace(self, Self::Taken) {
            Self::Ended(outcome) => Some(outcome),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Like `take`, but an error if already taken, where the caller would wait for ever.
    fn take_once(&mut self) -> Option<TaskOutcome> {
        if matches!(self, Self::Taken) { Some(Err(Error::Taken)) } else { self.take() }
    }
}

impl JobState {
    pub(crate) fn new(tasks: usize, sink: Option<Sink>) -> Arc<Self> {
        let inner = Inner {
            tasks: std::iter::repeat_with(|| Slot::Open(None)).take(tasks).collect(),
            ended: VecDeque::new(),
            open: tasks,
            waiting_next: 0,
            waiting_all: 0,
            fired: Vec::new(),
            next: None,
            cancelled: CancelReport::default(),
        };
        Arc::new(Self { inner: Mutex::new(inner), changed: Condvar::new(), sink })
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.inner).tasks.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.inner).tasks.is_empty()
    }

    /// Wakes no thread before `announce`. Returns whether it was the last task.
    pub(crate) fn end(&self, index: usize, outcome: TaskOutcome) -> bool {
        let mut inner = lock(&self.inner);
        let Slot::Open(waker) = std::mem::replace(&mut inner.tasks[index], Slot::Ended(outcome)) else {
            debug_assert!(false, "task {index} ended twice");
            return false;
        };
        let next = inner.next.take();
        inner.fired.extend(waker.into_iter().chain(next));
        inner.ended.push_back(index as u32);
        inner.open -= 1;
        inner.open == 0
    }

    /// Call without a lock.
    pub(crate) fn gave_back(&self, index: usize, part: &[u8]) {
        if let Some(take) = self.sink.as_ref().and_then(|sink| sink.part.as_ref()) {
            take(index, part);
        }
    }

    pub(crate) fn note_cancelled(&self, how: CancelledHow) {
        let cancelled = &mut lock(&self.inner).cancelled;
        *match how {
            CancelledHow::TakenOut => &mut cancelled.taken_out,
            CancelledHow::Stopped => &mut cancelled.stopped,
            CancelledHow::Vanished => &mut cancelled.vanished,
        } += 1;
    }

    fn cancel_report(&self) -> CancelReport {
        let inner = lock(&self.inner);
        let CancelReport { taken_out, stopped, vanished, .. } = inner.cancelled;
        let ended = inner.tasks.len() - inner.open - taken_out - stopped - vanished;
        CancelReport { ended, open: inner.open, ..inner.cancelled }
    }

    pub(crate) fn end_all(&self, error: &Error) {
        let open: Vec<usize> = {
            let inner = lock(&self.inner);
            let open = inner.tasks.iter().enumerate().filter(|(_, slot)| matches!(slot, Slot::Open(_)));
            open.map(|(index, _)| index).collect()
        };
        for index in open {
            self.end(index, Err(error.clone()));
        }
        self.announce();
    }

    /// Wakes waiting threads. No lock is held.
    pub(crate) fn announce(&self) {
        let mut inner = lock(&self.inner);
        let fired = std::mem::take(&mut inner.fired);
        let wake = inner.waiting_next > 0 || (inner.waiting_all > 0 && inner.open == 0);
        let outcomes = if self.sink.is_some() { inner.take_ended() } else { Vec::new() };
        drop(inner);
        if wake {
            self.changed.notify_all();
        }
        for waker in fired {
            waker.wake();
        }
        if let Some(sink) = &self.sink {
            for (index, outcome) in outcomes {
                (sink.ended)(index, outcome);
            }
        }
    }

    fn wait_next<T>(&self, deadline: Option<Instant>, mut ready: impl FnMut(&mut Inner) -> Option<T>) -> Option<T> {
        let mut inner = lock(&self.inner);
        loop {
            if let Some(result) = ready(&mut inner) {
                return Some(result);
            }
            inner.waiting_next += 1;
            let woken;
            (inner, woken) = self.sleep(inner, deadline);
            inner.waiting_next -= 1;
            if !woken {
                return None;
            }
        }
    }

    fn wait_all(&self, deadline: Option<Instant>) -> bool {
        let mut inner = lock(&self.inner);
        while inner.open > 0 {
            inner.waiting_all += 1;
            let woken;
            (inner, woken) = self.sleep(inner, deadline);
            inner.waiting_all -= 1;
            if !woken {
                return inner.open == 0;
            }
        }
        true
    }

    /// Returns `false` if no time was left.
    fn sleep<'a>(&self, inner: MutexGuard<'a, Inner>, deadline: Option<Instant>) -> (MutexGuard<'a, Inner>, bool) {
        let Some(deadline) = deadline else {
            return (self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner), true);
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return (inner, false);
        }
        (self.changed.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0, true)
    }
}

impl Inner {
    fn take_next(&mut self) -> Option<(usize, TaskOutcome)> {
        let index = self.ended.pop_front()? as usize;
        self.tasks[index].take().map(|outcome| (index, outcome))
    }

    fn take_ended(&mut self) -> Vec<(usize, TaskOutcome)> {
        let Self { ended, tasks, .. } = self;
        ended.drain(..).filter_map(|i| tasks[i as usize].take().map(|outcome| (i as usize, outcome))).collect()
    }
}

/// `None`, for ever, beyond the clock's range.
fn deadline(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

pub(crate) trait JobClient: Polls {
    /// `stop`: running tasks too.
    fn cancel(&self, keys: &[u64], stop: bool);
    /// A caller waits without polling.
    fn watch(&self);
}

/// A submitted job. Dropping it does not cancel it.
pub struct JobHandle {
    pub(crate) state: Arc<JobState>,
    pub(crate) client: Arc<dyn JobClient>,
    pub(crate) first: u64,
    pub(crate) length: usize,
    pub(crate) jid: u32,
}

impl std::fmt::Debug for JobHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobHandle").field("jid", &self.jid).field("tasks", &self.length).finish_non_exhaustive()
    }
}

impl JobHandle {
    /// Number of the job.
    #[must_use]
    pub fn jid(&self) -> u32 {
        self.jid
    }

    /// Number of tasks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no tasks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Tasks not yet ended.
    #[must_use]
    pub fn open(&self) -> usize {
        lock(&self.state.inner).open
    }

    /// Waits for all tasks; outcomes in order of submission. Empty with a sink.
    #[must_use]
    pub fn wait(self) -> Vec<TaskOutcome> {
        self.wait_until(None);
        lock(&self.state.inner).tasks.iter_mut().filter_map(Slot::take).collect()
    }

    /// Waits for all tasks, at most `timeout`; returns whether all have ended.
    #[must_use]
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.wait_until(deadline(timeout))
    }

    fn wait_until(&self, deadline: Option<Instant>) -> bool {
        self.client.poll_until(deadline, &|| self.open() == 0);
        self.state.wait_all(deadline)
    }

    /// Iterates over outcomes in order of completion, waiting for each. Empty with a sink.
    #[must_use]
    pub fn completions(self) -> Completions {
        let left = if self.state.sink.is_some() { 0 } else { self.length };
        Completions { left, job: self }
    }

    /// Like [`Self::completions`], as a stream for async code of any runtime.
    #[must_use]
    pub fn stream(self) -> CompletionStream {
        CompletionStream::new(self.completions())
    }

    /// A handle per task, each to be waited for or awaited.
    #[must_use]
    pub fn into_tasks(self) -> Vec<TaskHandle> {
        let handle = |index| TaskHandle {
            state: Arc::clone(&self.state),
            client: Arc::clone(&self.client),
            key: self.first + index as u64,
            index,
        };
        (0..self.length).map(handle).collect()
    }

    /// Cancels all tasks. Executors kill running commands and signal functions by [`crate::TaskContext::cancelled`]. A function that
    /// ignores this ends with its result; all other tasks end as [`TaskError::Cancelled`]. Does not wait; see [`Self::cancel_report`].
    pub fn cancel(&self) {
        self.client.cancel(&self.keys(), true);
    }

    /// Cancels the tasks that do not run yet; they end as [`TaskError::Cancelled`].
    pub fn cancel_queued(&self) {
        self.client.cancel(&self.keys(), false);
    }

    /// Like [`Self::cancel`], for one task by its place in the job.
    pub fn cancel_task(&self, index: usize) {
        if index < self.length {
            self.client.cancel(&[self.first + index as u64], true);
        }
    }

    /// Waits for all tasks, at most `timeout`, and reports what became of them.
    #[must_use]
    pub fn cancel_report(&self, timeout: Duration) -> CancelReport {
        self.wait_until(deadline(timeout));
        self.state.cancel_report()
    }

    fn keys(&self) -> Vec<u64> {
        (self.first..self.first + self.length as u64).collect()
    }
}

/// Outcomes in order of completion; see [`JobHandle::completions`].
#[derive(Debug)]
pub struct Completions {
    job: JobHandle,
    left: usize,
}

impl Completions {
    /// The next outcome; `None` after `timeout` or the last one.
    pub fn next_timeout(&mut self, timeout: Duration) -> Option<(usize, TaskOutcome)> {
        self.next_until(deadline(timeout))
    }

    /// Outcomes still to come.
    #[must_use]
    pub fn left(&self) -> usize {
        self.left
    }

    /// The job.
    #[must_use]
    pub fn job(&self) -> &JobHandle {
        &self.job
    }

    fn next_until(&mut self, deadline: Option<Instant>) -> Option<(usize, TaskOutcome)> {
        if self.left == 0 {
            return None;
        }
        self.job.client.poll_until(deadline, &|| !lock(&self.job.state.inner).ended.is_empty());
        let next = self.job.state.wait_next(deadline, Inner::take_next)?;
        self.left -= 1;
        Some(next)
    }
}

impl Iterator for Completions {
    type Item = (usize, TaskOutcome);

    fn next(&mut self) -> Option<Self::Item> {
        self.next_until(None)
    }
}

/// A submitted task: wait for it, or `.await` it. Dropping it does not cancel it.
pub struct TaskHandle {
    state: Arc<JobState>,
    client: Arc<dyn JobClient>,
    key: u64,
    index: usize,
}

impl std::fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskHandle").field("index", &self.index).finish_non_exhaustive()
    }
}

impl TaskHandle {
    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// If the task ended without a value.
    pub fn wait(self) -> TaskOutcome {
        let outcome = self.wait_until(None);
        outcome.unwrap_or(Err(Error::Closed)) // without a deadline there is always an outcome
    }

    /// Waits for its end, at most `timeout`; `None` if it has not ended. The outcome is given once.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<TaskOutcome> {
        self.wait_until(deadline(timeout))
    }

    fn wait_until(&self, deadline: Option<Instant>) -> Option<TaskOutcome> {
        self.client.poll_until(deadline, &|| !matches!(lock(&self.state.inner).tasks[self.index], Slot::Open(_)));
        self.state.wait_next(deadline, |inner| inner.tasks[self.index].take_once())
    }

    /// See [`JobHandle::cancel`].
    pub fn cancel(&self) {
        self.client.cancel(&[self.key], true);
    }
}

impl Future for TaskHandle {
    type Output = TaskOutcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<TaskOutcome> {
        let mut inner = lock(&self.state.inner);
        let slot = &mut inner.tasks[self.index];
        if let Slot::Open(waker) = slot {
            *waker = Some(context.waker().clone());
            drop(inner);
            self.client.watch();
            return Poll::Pending;
        }
        Poll::Ready(slot.take_once().unwrap_or(Err(Error::Taken)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_beyond_the_clock_waits_for_ever() {
        assert_eq!(deadline(Duration::MAX), None);
        assert!(deadline(Duration::from_secs(1)).is_some());
    }
}
