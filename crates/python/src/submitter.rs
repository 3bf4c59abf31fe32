//! Tasks on their way to the switch. One that comes alone is sent by the thread that submits it. Those that come soon after others
//! are collected and sent as one job by a thread of this module, which never holds the GIL.

use crate::calls::Holds;
use crate::client::lock;
use crate::completions::{Completions, End};
use midflight_host::{Client, Error, Job, JobHandle, TaskSpec};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// For how long tasks are collected.
const COLLECT: Duration = Duration::from_micros(100);
/// Tasks that may be collected; then whoever submits waits.
const COLLECTED_MAX: usize = 1 << 16;
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

/// Tasks with tokens that follow on one another.
#[derive(Default)]
pub(crate) struct Batch {
    first: u64,
    tasks: Vec<TaskSpec>,
    holds: Vec<Arc<Holds>>,
}

/// Tasks that were submitted together.
struct Submitted {
    handle: JobHandle,
    open: usize,
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

    /// Takes a task; its token, and what the caller has to send now, without the GIL.
    pub(crate) fn add(&self, task: TaskSpec, holds: &Arc<Holds>) -> Result<(u64, Option<Due>), Error> {
        let mut queue = lock(&self.queue);
        if queue.is_closed {
            return Err(Error::Closed);
        }
        let token = queue.next;
        queue.next += 1;
        let now = Instant::now();
        let is_alone = queue.collected.tasks.is_empty() && now.duration_since(queue.sent) > COLLECT;
        queue.collected.add(token, task, holds);
        if is_alone {
            queue.sent = now;
            return Ok((token, Some(Due::Send(std::mem::take(&mut queue.collected)))));
        }
        if std::mem::take(&mut queue.thread_sleeps) {
            self.changed.notify_all();
        }
        Ok((token, (queue.collected.tasks.len() >= COLLECTED_MAX).then_some(Due::Wait)))
    }

    /// What [`Self::add`] has left to do, without the GIL.
    pub(crate) fn do_due(&self, due: Due) {
        match due {
            Due::Send(batch) => self.send(batch),
            Due::Wait => {
                let queue = lock(&self.queue);
                let full = |queue: &mut Queue| queue.collected.tasks.len() >= COLLECTED_MAX && !queue.is_closed;
                drop(self.changed.wait_while(queue, full).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    fn run(&self) {
        let mut queue = lock(&self.queue);
        loop {
            if !queue.collected.tasks.is_empty() {
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
        let Batch { first, tasks, holds } = batch;
        let job = Job { jid: None, tasks };
        loop {
            let Some(client) = self.client() else {
                return self.refuse(first, job.tasks.len(), &Error::Closed);
            };
            let completions = Arc::clone(&self.completions);
            let sink = move |place: usize, outcome| completions.push(first + place as u64, End::Outcome(outcome));
            // Whoever takes an outcome finds its job.
            let mut jobs = lock(&self.jobs);
            match client.submit_to(job.clone(), sink) {
                Ok(handle) => {
                    jobs.insert(first, Submitted { handle, open: job.tasks.len(), _holds: holds });
                    return;
                }
                Err(Error::BlobsFull { .. }) if client.open() > 0 => {
                    drop(jobs);
                    std::thread::sleep(ROOM_POLL);
                }
                Err(error) => {
                    drop(jobs);
                    return self.refuse(first, job.tasks.len(), &error);
                }
            }
        }
    }

    fn refuse(&self, first: u64, tasks: usize, error: &Error) {
        for token in first..first + tasks as u64 {
            self.completions.push(token, End::NotSubmitted(error.to_string()));
        }
    }

    /// These tasks have ended.
    pub(crate) fn ended(&self, ended: &[(u64, End)]) {
        let mut jobs = lock(&self.jobs);
        for (token, _) in ended {
            let Some((&first, job)) = jobs.range_mut(..=token).next_back() else { continue };
            if *token >= first + job.handle.len() as u64 {
                continue; // it was not submitted
            }
            job.open -= 1;
            if job.open == 0 {
                jobs.remove(&first);
            }
        }
    }

    /// Cancels a task, wherever it is.
    pub(crate) fn cancel(&self, token: u64) {
        // What is collected is sent at once, and then cancelled: rare enough.
        let batch = std::mem::take(&mut lock(&self.queue).collected);
        if !batch.tasks.is_empty() {
            self.send(batch);
        }
        let jobs = lock(&self.jobs);
        if let Some((&first, job)) = jobs.range(..=token).next_back() {
            job.handle.cancel_task((token - first) as usize);
        }
    }

    /// Tasks that have not ended, those that are collected included.
    pub(crate) fn open(&self) -> usize {
        lock(&self.queue).collected.tasks.len() + self.client().map_or(0, |client| client.open())
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

impl Batch {
    fn add(&mut self, token: u64, task: TaskSpec, holds: &Arc<Holds>) {
        if self.tasks.is_empty() {
            self.first = token;
        }
        self.tasks.push(task);
        if !self.holds.last().is_some_and(|last| Arc::ptr_eq(last, holds)) {
            self.holds.push(Arc::clone(holds));
        }
    }
}
