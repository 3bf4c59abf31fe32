//! Tasks on their way to the switch. One that comes alone is sent by the thread that submits it. Those that come soon after others
//! are collected and sent as one job by a thread of this module, which never holds the GIL.

use crate::calls::{Holds, Shape};
use crate::client::lock;
use crate::completions::{Completions, End, Ended};
use midflight_host::{Client, Error, Job, JobHandle, TaskSpec};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// For how long tasks are collected.
const COLLECT: Duration = Duration::from_micros(100);
/// Tasks that may be collected; then whoever submits waits.
const COLLECTED_MAX: usize = 1 << 16;
/// Where so many tasks are open, short calls of the same function are sent together as one task.
const DEEP: usize = 64;
/// Bytes of the pickles of such a task.
const JOINED_BYTES: usize = 3 << 10;
/// Between two attempts to submit what has no room.
const ROOM_POLL: Duration = Duration::from_millis(5);

/// A client of the library, with what Python needs around it.
pub(crate) struct Submitter {
    /// `None` when it is closed.
    client: Mutex<Option<Arc<Client>>>,
    pub(crate) completions: Arc<Completions>,
    queue: Mutex<Queue>,
    /// The queue has changed.
    changed: Condvar,
    jobs: Mutex<BTreeMap<u64, Submitted>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Queue {
    collected: Batch,
    /// The token of the next task.
    next: u64,
    sent: Instant,
    thread_sleeps: bool,
    is_closed: bool,
}

/// What is submitted.
pub(crate) enum Item {
    /// A call that may be one task with others.
    Call { shape: Arc<Shape>, pickle: Vec<u8> },
    /// A task as it is.
    Task { task: TaskSpec, holds: Arc<Holds> },
}

/// Items with tokens that follow on one another.
#[derive(Default)]
pub(crate) struct Batch {
    first: u64,
    items: Vec<Item>,
}

/// The tasks of a batch.
#[derive(Default)]
struct Tasks {
    tasks: Vec<TaskSpec>,
    /// Where the calls of each task begin, and where the last ones end.
    starts: Vec<u32>,
    holds: Vec<Arc<Holds>>,
}

/// Tasks that were submitted together.
struct Submitted {
    handle: JobHandle,
    open: usize,
    starts: Arc<Vec<u32>>,
    /// Blobs that they need.
    _holds: Vec<Arc<Holds>>,
}

impl Submitter {
    pub(crate) fn start(client: Client) -> std::io::Result<Arc<Self>> {
        let queue = Queue {
            collected: Batch::default(),
            next: 0,
            sent: Instant::now(),
            thread_sleeps: false,
            is_closed: false,
        };
        let submitter = Arc::new(Self {
            client: Mutex::new(Some(Arc::new(client))),
            completions: Arc::default(),
            queue: Mutex::new(queue),
            changed: Condvar::new(),
            jobs: Mutex::default(),
            thread: Mutex::default(),
        });
        let of_thread = Arc::clone(&submitter);
        let thread = std::thread::Builder::new().name("mf-submit".into()).spawn(move || of_thread.run())?;
        *lock(&submitter.thread) = Some(thread);
        Ok(submitter)
    }

    /// `None` when it is closed.
    pub(crate) fn client(&self) -> Option<Arc<Client>> {
        lock(&self.client).clone()
    }

    /// Takes a call or a task; its token, and what the caller has to send now, without the GIL.
    pub(crate) fn add(&self, item: Item) -> Result<(u64, Option<Due>), Error> {
        let mut queue = lock(&self.queue);
        if queue.is_closed {
            return Err(Error::Closed);
        }
        let token = queue.next;
        queue.next += 1;
        let now = Instant::now();
        let is_alone = queue.collected.items.is_empty() && now.duration_since(queue.sent) > COLLECT;
        queue.collected.add(token, item);
        if is_alone {
            queue.sent = now;
            return Ok((token, Some(Due::Send(std::mem::take(&mut queue.collected)))));
        }
        if std::mem::take(&mut queue.thread_sleeps) {
            self.changed.notify_all();
        }
        Ok((token, (queue.collected.items.len() >= COLLECTED_MAX).then_some(Due::Wait)))
    }

    /// What [`Self::add`] has left to do, without the GIL.
    pub(crate) fn do_due(&self, due: Due) {
        match due {
            Due::Send(batch) => self.send(batch),
            Due::Wait => {
                let queue = lock(&self.queue);
                let full = |queue: &mut Queue| queue.collected.items.len() >= COLLECTED_MAX && !queue.is_closed;
                drop(self.changed.wait_while(queue, full).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    fn run(&self) {
        let mut queue = lock(&self.queue);
        loop {
            if !queue.collected.items.is_empty() {
                queue.sent = Instant::now();
                let batch = std::mem::take(&mut queue.collected);
                drop(queue);
                self.changed.notify_all();
                self.send(batch);
                std::thread::sleep(COLLECT);
                queue = lock(&self.queue);
            } else if queue.is_closed {
                return;
            } else {
                queue.thread_sleeps = true;
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Submits a batch. Where arguments have no room it waits for others to end.
    fn send(&self, batch: Batch) {
        let is_deep = self.client().is_some_and(|client| client.open() >= DEEP);
        let (first, calls) = (batch.first, batch.items.len() as u32);
        let Tasks { tasks, starts, holds } = batch.into_tasks(is_deep);
        let (job, starts) = (Job { jid: None, tasks }, Arc::new(starts));
        loop {
            let Some(client) = self.client() else {
                return self.refuse(first, calls, &Error::Closed);
            };
            let (completions, of_sink) = (Arc::clone(&self.completions), Arc::clone(&starts));
            let sink = move |place: usize, outcome| {
                let (start, end) = (of_sink[place], of_sink[place + 1]);
                let token = first + u64::from(start);
                completions.push(Ended { token, calls: end - start, end: End::Outcome(outcome) });
            };
            // Whoever takes an outcome finds its job.
            let mut jobs = lock(&self.jobs);
            match client.submit_to(job.clone(), sink) {
                Ok(handle) => {
                    jobs.insert(first, Submitted { handle, open: job.tasks.len(), starts, _holds: holds });
                    return;
                }
                Err(Error::BlobsFull { .. }) if client.open() > 0 => {
                    drop(jobs);
                    std::thread::sleep(ROOM_POLL);
                }
                Err(error) => {
                    drop(jobs);
                    return self.refuse(first, calls, &error);
                }
            }
        }
    }

    fn refuse(&self, first: u64, calls: u32, error: &Error) {
        for token in first..first + u64::from(calls) {
            self.completions.push(Ended { token, calls: 1, end: End::NotSubmitted(error.to_string()) });
        }
    }

    /// These tasks have ended.
    pub(crate) fn ended(&self, ended: &[Ended]) {
        let mut jobs = lock(&self.jobs);
        for Ended { token, .. } in ended {
            let Some((&first, job)) = jobs.range_mut(..=token).next_back() else { continue };
            if job.place(token - first).is_none() {
                continue; // it was not submitted
            }
            job.open -= 1;
            if job.open == 0 {
                jobs.remove(&first);
            }
        }
    }

    /// Cancels a call, wherever it is. One that is a task with others goes on: its result is dropped.
    pub(crate) fn cancel(&self, token: u64) {
        // What is collected is sent at once, and then cancelled: rare enough.
        let batch = std::mem::take(&mut lock(&self.queue).collected);
        if !batch.items.is_empty() {
            self.send(batch);
        }
        let jobs = lock(&self.jobs);
        if let Some((&first, job)) = jobs.range(..=token).next_back()
            && let Some(place) = job.place(token - first)
            && job.starts[place + 1] - job.starts[place] == 1
        {
            job.handle.cancel_task(place);
        }
    }

    /// Tasks that have not ended, those that are collected included.
    pub(crate) fn open(&self) -> usize {
        lock(&self.queue).collected.items.len() + self.client().map_or(0, |client| client.open())
    }

    /// Ends it: what is open is cancelled, or ends as closed.
    pub(crate) fn close(&self) {
        lock(&self.queue).is_closed = true;
        self.changed.notify_all();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            let _ = thread.join(); // it has nothing that panics
        }
        lock(&self.jobs).values().filter(|job| job.open > 0).for_each(|job| job.handle.cancel());
        let client = lock(&self.client).take();
        drop(client); // waits a little for executors to stop what was cancelled
        self.completions.close();
        lock(&self.jobs).clear();
    }
}

/// What is left to do for a task.
pub(crate) enum Due {
    /// Send it.
    Send(Batch),
    /// Wait for room.
    Wait,
}

impl Submitted {
    /// The task of this call.
    fn place(&self, call: u64) -> Option<usize> {
        let next = self.starts.partition_point(|&start| u64::from(start) <= call);
        (next < self.starts.len()).then(|| next - 1)
    }
}

impl Batch {
    fn add(&mut self, token: u64, item: Item) {
        if self.items.is_empty() {
            self.first = token;
        }
        self.items.push(item);
    }

    /// Where many are open, calls of the same kind that follow on one another are one task.
    fn into_tasks(self, is_deep: bool) -> Tasks {
        let mut all = Tasks::default();
        let mut items = self.items.into_iter().peekable();
        let mut calls = 0;
        while let Some(item) = items.next() {
            all.starts.push(calls);
            let (task, holds, count) = match item {
                Item::Task { task, holds } => (task, holds, 1),
                Item::Call { shape, pickle } => {
                    let most = if is_deep { shape.size.load(Ordering::Relaxed) } else { 1 };
                    let mut bytes = pickle.len();
                    let mut pickles = vec![pickle];
                    let mut joins = |item: &Item, count: usize| match item {
                        Item::Call { shape: other, pickle } if count < most && Arc::ptr_eq(&shape, other) => {
                            bytes += pickle.len();
                            bytes <= JOINED_BYTES
                        }
                        _ => false,
                    };
                    while let Some(Item::Call { pickle, .. }) = items.next_if(|item| joins(item, pickles.len())) {
                        pickles.push(pickle);
                    }
                    (shape.task(&pickles), Arc::clone(&shape.blobs), pickles.len() as u32)
                }
            };
            calls += count;
            all.tasks.push(task);
            if !all.holds.last().is_some_and(|last| Arc::ptr_eq(last, &holds)) {
                all.holds.push(holds);
            }
        }
        all.starts.push(calls);
        all
    }
}
