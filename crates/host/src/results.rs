//! Waiting for what was submitted: whole jobs, single tasks (also as futures), or completions as they come.

mod file;
mod stream;

pub use file::{ResultFile, ResultReader};
pub use stream::CompletionStream;

use crate::driver::lock;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use midflight_tasks::client::CancelledHow;
pub use midflight_tasks::client::Timing as TaskTiming;

/// What a task returned.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskResult {
    /// The function's value; empty where [`Self::file`] has it.
    pub value: Vec<u8>,
    /// A value that is larger than [`ClientOptions::value_max`](crate::ClientOptions::value_max), if the client has
    /// [`ClientOptions::files`](crate::ClientOptions::files).
    pub file: Option<ResultFile>,
    /// Which attempt this was, from 1; stays at 255.
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
        /// What it said.
        message: String,
        /// Which attempt this was, from 1.
        attempt: u8,
        /// Where its time went.
        timing: TaskTiming,
    },
    /// The executor that got the task has no such function.
    #[error("the executor knows no such function; register it there under the same name")]
    Unknown,
    /// No attempt ended in time.
    #[error("timed out")]
    TimedOut,
    /// The argument or the result could not be fetched, in any attempt.
    #[error("lost: {0}")]
    Lost(&'static str),
    /// Of a [`DurableClient`](crate::DurableClient): its switch no longer has it, and its end may have come while no process of the
    /// client ran.
    #[error("lost: its end came while nobody listened, or its switch is gone; it may have run")]
    Forgotten,
    /// It ended well, but this client does not take such large values.
    #[error("a result of {length} bytes exceeds {max}: raise ClientOptions::value_max, or set ClientOptions::files")]
    TooLarge {
        /// Bytes of the value.
        length: u32,
        /// The client's bound.
        max: u32,
    },
    /// It ended well, but its value has no room in the client's files: see
    /// [`BlobOptions::max_file_bytes`](crate::BlobOptions::max_file_bytes).
    #[error("its result could not be kept: {why}")]
    NotKept {
        /// What there was no room for, and where.
        why: String,
    },
    /// It was cancelled: it did not run, or its executor has stopped it. [`CancelReport`] says of how many tasks which.
    #[error("cancelled")]
    Cancelled,
    /// The outcome was given before.
    #[error("the outcome was taken before; keep it from the first wait")]
    Taken,
    /// The client was closed first.
    #[error("the client was closed before the result arrived")]
    Closed,
}

/// How a task ended.
pub type TaskOutcome = Result<TaskResult, TaskError>;

/// Takes outcomes as they come, with the task's place in its job; and what tasks give back of themselves while they run on.
pub(crate) struct Sink {
    pub(crate) ended: Box<dyn Fn(usize, TaskOutcome) + Send + Sync>,
    pub(crate) part: Option<TakesPart>,
}

/// Takes the bytes that a task, by its place in its job, gives back of itself.
type TakesPart = Box<dyn Fn(usize, &[u8]) + Send + Sync>;

/// Where the outcomes of one job are put.
pub(crate) struct JobState {
    inner: Mutex<Inner>,
    changed: Condvar,
    sink: Option<Sink>,
}

struct Inner {
    tasks: Vec<Slot>,
    /// Ended and not yet taken by `Completions` or the sink, in the order in which they ended.
    ended: VecDeque<u32>,
    open: usize,
    /// Threads that wait for the next outcome.
    waiting_next: usize,
    /// Threads that wait for the last outcome.
    waiting_all: usize,
    fired: Vec<Waker>,
    /// A stream waits for the next outcome.
    next: Option<Waker>,
    cancelled: CancelReport,
}

/// What became of the tasks of a job that was cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CancelReport {
    /// Taken out before they ran.
    pub taken_out: usize,
    /// Stopped by their executors while they ran.
    pub stopped: usize,
    /// Lost with their switch or executor: they may have run.
    pub vanished: usize,
    /// Ended with a result or an error, before they could be cancelled.
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

    /// As `take`, but a caller that asks again after the outcome was given gets an error instead of waiting for ever.
    fn take_once(&mut self) -> Option<TaskOutcome> {
        if matches!(self, Self::Taken) { Some(Err(TaskError::Taken)) } else { self.take() }
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

    /// Whether the job has no tasks.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.inner).tasks.is_empty()
    }

    /// Task `index` ended. Nobody is woken until `announce`. Returns whether it was the last one.
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

    /// Task `index` runs on, and gives back a part of itself. No lock is held.
    pub(crate) fn gave_back(&self, index: usize, part: &[u8]) {
        if let Some(take) = self.sink.as_ref().and_then(|sink| sink.part.as_ref()) {
            take(index, part);
        }
    }

    /// A task is about to end, cancelled like this.
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

    /// All that are still open end like this.
    pub(crate) fn end_all(&self, error: &TaskError) {
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

    /// Waits until `ready` gives something, checking at each change; `None` when the deadline passes first.
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

    /// Waits for the end of all; `false` when the deadline passes first.
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

    /// `false` when there was no time left.
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
    /// The next outcome in the order in which they came.
    fn take_next(&mut self) -> Option<(usize, TaskOutcome)> {
        let index = self.ended.pop_front()? as usize;
        self.tasks[index].take().map(|outcome| (index, outcome))
    }

    fn take_ended(&mut self) -> Vec<(usize, TaskOutcome)> {
        let Self { ended, tasks, .. } = self;
        ended.drain(..).filter_map(|i| tasks[i as usize].take().map(|outcome| (i as usize, outcome))).collect()
    }
}

/// `None`, for ever, where the clock does not reach that far.
fn deadline(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

/// What a job needs from its client.
pub(crate) trait JobClient: Send + Sync {
    /// `stop`: those that run, too.
    fn cancel(&self, keys: &[u64], stop: bool);
    /// Polls the socket for a short while, until `done`: an outcome that comes soon needs no wake-up.
    fn poll_until(&self, deadline: Option<Instant>, done: &dyn Fn() -> bool);
    /// A caller waits, and no thread polls for it.
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
    /// Its number.
    #[must_use]
    pub fn jid(&self) -> u32 {
        self.jid
    }

    /// Its tasks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Tasks that have not ended.
    #[must_use]
    pub fn open(&self) -> usize {
        lock(&self.state.inner).open
    }

    /// Waits for all tasks; outcomes are in the order of submission. Of a job whose outcomes go to a sink there are none.
    #[must_use]
    pub fn wait(self) -> Vec<TaskOutcome> {
        self.wait_until(None);
        lock(&self.state.inner).tasks.iter_mut().filter_map(Slot::take).collect()
    }

    /// Waits for all tasks, at most this long; whether all have ended.
    #[must_use]
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.wait_until(deadline(timeout))
    }

    fn wait_until(&self, deadline: Option<Instant>) -> bool {
        self.client.poll_until(deadline, &|| self.open() == 0);
        self.state.wait_all(deadline)
    }

    /// The outcomes in the order in which they come. The iterator waits for each and ends after the last. Of a job
    /// whose outcomes go to a sink there are none.
    #[must_use]
    pub fn completions(self) -> Completions {
        let left = if self.state.sink.is_some() { 0 } else { self.length };
        Completions { left, job: self }
    }

    /// The same as a stream, for async code of any runtime.
    #[must_use]
    pub fn stream(self) -> CompletionStream {
        CompletionStream::new(self.completions())
    }

    /// One handle a task, each of which can be waited for or awaited.
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

    /// Cancels the tasks: takes out what does not run, and has executors stop what runs. They kill commands, and tell
    /// functions by [`crate::TaskContext::cancelled`]; a function that goes on nevertheless ends with its result. All other
    /// tasks that have not ended yet end as [`TaskError::Cancelled`]. Does not wait; [`Self::cancel_report`] says what
    /// became of them.
    pub fn cancel(&self) {
        self.client.cancel(&self.keys(), true);
    }

    /// Takes out the tasks that do not run. Each of them ends as [`TaskError::Cancelled`]; the others go on.
    pub fn cancel_queued(&self) {
        self.client.cancel(&self.keys(), false);
    }

    /// As [`Self::cancel`], for the task at this place of the job.
    pub fn cancel_task(&self, index: usize) {
        if index < self.length {
            self.client.cancel(&[self.first + index as u64], true);
        }
    }

    /// Waits for all tasks, at most this long, and says how many were taken out, were stopped, or had ended.
    #[must_use]
    pub fn cancel_report(&self, timeout: Duration) -> CancelReport {
        self.wait_until(deadline(timeout));
        self.state.cancel_report()
    }

    fn keys(&self) -> Vec<u64> {
        (self.first..self.first + self.length as u64).collect()
    }
}

/// Outcomes in the order in which they come; see [`JobHandle::completions`].
#[derive(Debug)]
pub struct Completions {
    job: JobHandle,
    left: usize,
}

impl Completions {
    /// The next one, if it comes in time; `None` also after the last.
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

/// One submitted task: wait for it, or `.await` it. Dropping it does not cancel it.
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
    /// Where the task ended without a value.
    pub fn wait(self) -> TaskOutcome {
        let outcome = self.wait_until(None);
        outcome.unwrap_or(Err(TaskError::Closed)) // without a deadline there is always an outcome
    }

    /// Waits for its end, at most this long; `None` when it has not ended. The outcome is given once.
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
        Poll::Ready(slot.take_once().unwrap_or(Err(TaskError::Taken)))
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
