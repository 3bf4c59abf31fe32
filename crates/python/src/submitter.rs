//! Sends tasks to the switch and receives their ends. A single task is sent by the thread that submits it. Tasks that follow closely are
//! collected, and a thread of this module, which never holds the GIL, sends them as one job.
//!
//! No lock is held while the library's client submits or cancels, or while a Python object may be dropped.

use crate::client::lock;
use crate::completions::{Completion, Completions, End};
use crate::jobs::{Jobs, OpenJob};
use crate::queue::{Item, Queue, Task, joined};
use crate::waiters::Waiters;
use midflight_host::{Client, Error, Job, TaskError, TaskOutcome};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time for which tasks are collected.
const COLLECT: Duration = Duration::from_micros(100);
/// Number of open calls from which short calls of the same function are joined to one task.
const DEEP: usize = 64;
/// Longest interval between attempts to submit tasks that have no room.
const ROOM_POLL: Duration = Duration::from_millis(5);

#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// Calls that were submitted one by one, and tasks of several.
    pub(crate) open: usize,
    /// Bytes of arguments, functions and shared arguments.
    pub(crate) memory: usize,
}

pub(crate) struct Submitter {
    client: Mutex<Option<Arc<Client>>>,
    bounds: Bounds,
    pub(crate) flow: Arc<Flow>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Calls between their submission and their end.
pub(crate) struct Flow {
    queue: Mutex<Queue>,
    /// The queue has changed: for the thread that sends.
    changed: Condvar,
    jobs: Jobs,
    pub(crate) completions: Completions,
    /// Calls that were sent and whose waiters have no end yet.
    open: AtomicUsize,
    room: Condvar,
    waiting_for_room: AtomicUsize,
}

impl Flow {
    fn new() -> Self {
        Self {
            queue: Mutex::new(Queue::new()),
            changed: Condvar::new(),
            jobs: Jobs::default(),
            completions: Completions::default(),
            open: AtomicUsize::new(0),
            room: Condvar::new(),
            waiting_for_room: AtomicUsize::new(0),
        }
    }

    pub(crate) fn open(&self) -> usize {
        self.open.load(SeqCst)
    }

    fn end(&self, waiters: Arc<Waiters>, end: End) {
        self.open.fetch_sub(waiters.len(), SeqCst);
        self.completions.push(Completion { waiters, end });
        self.announce_room();
    }

    fn ended(&self, job: &OpenJob, place: usize, outcome: TaskOutcome) {
        let Some((waiters, is_last)) = job.take(place) else { return };
        if is_last {
            self.jobs.remove(job);
        }
        self.end(waiters, End::Outcome(outcome));
    }

    /// The task runs on, and has returned calls.
    fn gave_back(&self, job: &OpenJob, place: usize, part: &[u8]) {
        if let Some(waiters) = job.waiters(place) {
            self.completions.push(Completion { waiters, end: End::Part(part.to_vec()) });
        }
    }

    fn announce_room(&self) {
        if self.waiting_for_room.load(SeqCst) > 0 {
            drop(lock(&self.queue)); // so that this does not fall between a waiter's check and its sleep
            self.room.notify_all();
        }
    }

    /// Waits until a task has ended or was sent, or the client is closed, at most for `timeout`.
    pub(crate) fn wait_for_room(&self, timeout: Duration, has_room: impl Fn(&Queue) -> bool) {
        self.waiting_for_room.fetch_add(1, SeqCst);
        let queue = lock(&self.queue);
        if !queue.is_closed && !has_room(&queue) {
            drop(self.room.wait_timeout(queue, timeout).unwrap_or_else(PoisonError::into_inner));
        }
        self.waiting_for_room.fetch_sub(1, SeqCst);
    }

    /// Cancels a call in any state. A call in a task with others runs on, and its result is dropped.
    pub(crate) fn cancel(&self, token: u64) {
        let mut queue = lock(&self.queue);
        if let Some(waiters) = queue.take_out(token) {
            drop(queue);
            return self.end(waiters, End::Outcome(Err(TaskError::Cancelled.into())));
        }
        if queue.is_sending {
            queue.cancelled.push(token); // it may be being sent: cancelled when that is known
            return;
        }
        drop(queue);
        self.jobs.cancel(token);
    }

    /// Takes calls to send, as many as probably have room but at least one; [`Self::sent`] must follow.
    fn take(&self, tasks_max: usize, bytes_max: usize) -> Vec<Item> {
        let mut queue = lock(&self.queue);
        queue.is_sending = true;
        queue.sent = Instant::now();
        queue.take(tasks_max, bytes_max)
    }

    /// Marks the entries taken from the queue as open, except for `unsent`.
    fn sent(&self, unsent: Vec<Task>) {
        let mut queue = lock(&self.queue);
        queue.put_back(unsent);
        queue.is_sending = false;
        let cancelled = std::mem::take(&mut queue.cancelled);
        let is_awaited = !queue.is_empty() || queue.is_closed;
        drop(queue);
        if is_awaited {
            self.changed.notify_all();
        }
        self.announce_room();
        cancelled.into_iter().for_each(|token| self.cancel(token));
    }
}

impl Submitter {
    pub(crate) fn start(client: Client, bounds: Bounds) -> std::io::Result<Arc<Self>> {
        let submitter = Arc::new(Self {
            client: Mutex::new(Some(Arc::new(client))),
            bounds,
            flow: Arc::new(Flow::new()),
            thread: Mutex::default(),
        });
        let of_thread = Arc::clone(&submitter);
        let thread = std::thread::Builder::new().name("mf-submit".into()).spawn(move || of_thread.run())?;
        *lock(&submitter.thread) = Some(thread);
        Ok(submitter)
    }

    pub(crate) fn client(&self) -> Option<Arc<Client>> {
        lock(&self.client).clone()
    }

    /// Waits at most for `timeout`; returns whether there is room for another call, or the client is closed.
    pub(crate) fn wait_for_room(&self, timeout: Duration) -> bool {
        let has_room = |queue: &Queue| queue.has_room() && self.flow.open() < self.bounds.open;
        let looks = || {
            let queue = lock(&self.flow.queue);
            queue.is_closed || has_room(&queue)
        };
        if looks() {
            return true;
        }
        if !timeout.is_zero() {
            self.flow.wait_for_room(timeout, has_room);
        }
        looks()
    }

    /// Adds a call or a task, which gets its token. `Some`: the caller has to send it now, by [`Self::send_alone`].
    pub(crate) fn add(&self, item: impl FnOnce(u64) -> Item) -> Result<(u64, Option<Item>), Error> {
        let mut queue = lock(&self.flow.queue);
        if queue.is_closed {
            return Err(Error::Closed);
        }
        let token = queue.token();
        let item = item(token);
        self.flow.open.fetch_add(1, SeqCst);
        if queue.is_empty() && !queue.is_sending && queue.sent.elapsed() > COLLECT {
            queue.sent = Instant::now();
            queue.is_sending = true;
            return Ok((token, Some(item)));
        }
        let wakes = queue.is_empty() && !queue.is_sending;
        queue.push(item);
        drop(queue);
        if wakes {
            self.flow.changed.notify_all();
        }
        Ok((token, None))
    }

    /// Sends what [`Self::add`] returned, without the GIL.
    pub(crate) fn send_alone(&self, item: Item) {
        let unsent = self.send(vec![item]);
        self.flow.sent(unsent);
    }

    fn run(&self) {
        while self.wait_for_calls() {
            let Some(client) = self.client() else { return };
            let tasks = self.bounds.open.saturating_sub(client.open());
            let bytes = self.bounds.memory.saturating_sub(client.counts().blobs.kept_bytes as usize);
            drop(client);
            let unsent = self.send(self.flow.take(tasks, bytes));
            let is_full = !unsent.is_empty();
            self.flow.sent(unsent);
            if is_full {
                self.flow.wait_for_room(ROOM_POLL, |_| false);
            } else {
                std::thread::sleep(COLLECT);
            }
        }
    }

    /// `false` when the client is closed.
    fn wait_for_calls(&self) -> bool {
        let queue = lock(&self.flow.queue);
        let waits = |queue: &mut Queue| !queue.is_closed && (queue.is_empty() || queue.is_sending);
        !self.flow.changed.wait_while(queue, waits).unwrap_or_else(PoisonError::into_inner).is_closed
    }

    /// Submits entries; returns the tasks that have no room. A task that has no room although none is open is refused.
    fn send(&self, items: Vec<Item>) -> Vec<Task> {
        let mut tasks = joined(items, self.flow.open() >= DEEP);
        if tasks.is_empty() {
            return tasks; // they were cancelled
        }
        let mut later = Vec::new();
        let mut has_waited = false;
        loop {
            let Some(client) = self.client() else {
                tasks.append(&mut later);
                self.refuse(tasks, || End::Outcome(Err(Error::Closed)));
                return Vec::new();
            };
            let (error, back) = match self.submit(&client, tasks) {
                Ok(()) => return later,
                Err(refused) => refused,
            };
            tasks = back;
            if !needs_room(&error) {
                self.refuse(tasks, || End::NotSubmitted(error.to_string()));
                return later;
            }
            if tasks.len() > 1 {
                later = tasks.split_off(1);
            } else if client.open() > 0 {
                tasks.append(&mut later);
                return tasks;
            } else if !has_waited {
                has_waited = true; // a task that has just ended may still have its bytes
                std::thread::sleep(ROOM_POLL);
            } else {
                self.refuse(tasks, || End::NoRoom(error.to_string()));
                return later;
            }
        }
    }

    fn submit(&self, client: &Client, tasks: Vec<Task>) -> Result<(), (Error, Vec<Task>)> {
        let (flow, flow_of_part) = (Arc::clone(&self.flow), Arc::clone(&self.flow));
        let (job, specs) = flow.jobs.insert(tasks);
        let (of_sink, of_part) = (Arc::downgrade(&job), Arc::downgrade(&job));
        let sink = move |place: usize, outcome| {
            if let Some(job) = of_sink.upgrade() {
                flow.ended(&job, place, outcome);
            }
        };
        let part = move |place: usize, part: &[u8]| {
            if let Some(job) = of_part.upgrade() {
                flow_of_part.gave_back(&job, place, part);
            }
        };
        match client.submit_in_parts(specs.iter().cloned().collect::<Job>(), sink, part) {
            Ok(handle) => {
                job.submitted(handle);
                Ok(())
            }
            Err(error) => {
                self.flow.jobs.remove(&job);
                Err((error, job.take_back(specs)))
            }
        }
    }

    fn refuse(&self, tasks: Vec<Task>, end: impl Fn() -> End) {
        tasks.into_iter().for_each(|task| self.flow.end(task.waiters, end()));
    }

    /// Closes the client: open calls are cancelled, or end as closed. Afterwards nothing waits for an end.
    pub(crate) fn close(&self) {
        let flow = &self.flow;
        lock(&flow.queue).is_closed = true;
        flow.changed.notify_all();
        flow.room.notify_all();
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join(); // it cannot panic
        }
        let queue = lock(&flow.queue);
        let sends = |queue: &mut Queue| queue.is_sending;
        let mut queue = flow.changed.wait_while(queue, sends).unwrap_or_else(PoisonError::into_inner);
        let mut left = queue.clear();
        drop(queue);
        flow.jobs.cancel_all();
        let client = lock(&self.client).take();
        drop(client); // waits briefly for executors to stop cancelled tasks
        left.extend(flow.jobs.clear());
        for waiters in left {
            flow.end(waiters, End::Outcome(Err(Error::Closed)));
        }
        flow.completions.close();
    }
}

/// Whether the reason for refusing a submission is temporary.
fn needs_room(error: &Error) -> bool {
    matches!(error, Error::BlobsFull { .. } | Error::TooManyOpen { .. })
}
