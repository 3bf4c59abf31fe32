//! Open tasks: with the switch, or about to be sent.

use crate::calls::Holds;
use crate::client::lock;
use crate::queue::Task;
use crate::waiters::Waiters;
use midflight_host::{JobHandle, TaskSpec};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

/// All open jobs of a client, by the token of their first call.
#[derive(Default)]
pub(crate) struct Jobs(Mutex<BTreeMap<u64, Arc<OpenJob>>>);

pub(crate) struct OpenJob {
    tokens: Vec<u64>,
    waiters: Mutex<Open>,
    holds: Vec<Arc<Holds>>,
    /// Set when the tasks are submitted.
    handle: OnceLock<JobHandle>,
}

/// The waiters of tasks that have not ended, by place in the job.
struct Open {
    waiters: Vec<Option<Arc<Waiters>>>,
    count: usize,
}

impl Jobs {
    pub(crate) fn insert(&self, tasks: Vec<Task>) -> (Arc<OpenJob>, Vec<TaskSpec>) {
        let count = tasks.len();
        let (mut tokens, mut waiters) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (mut holds, mut specs) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for task in tasks {
            tokens.push(task.token);
            waiters.push(Some(task.waiters));
            holds.push(task.holds);
            specs.push(task.spec);
        }
        let waiters = Mutex::new(Open { waiters, count });
        let job = Arc::new(OpenJob { tokens, waiters, holds, handle: OnceLock::new() });
        if let Some(&first) = job.tokens.first() {
            lock(&self.0).insert(first, Arc::clone(&job));
        }
        (job, specs)
    }

    pub(crate) fn remove(&self, job: &OpenJob) {
        let removed = job.tokens.first().and_then(|first| lock(&self.0).remove(first));
        drop(removed); // without the lock
    }

    /// Cancels a call. A call in a task with others runs on, and its result is dropped.
    pub(crate) fn cancel(&self, token: u64) {
        let found = lock(&self.0).range(..=token).next_back().map(|(_, job)| Arc::clone(job));
        let Some(job) = found else { return };
        let Ok(place) = job.tokens.binary_search(&token) else { return };
        let is_alone = lock(&job.waiters)
            .waiters
            .get(place)
            .is_some_and(|waiters| waiters.as_ref().is_some_and(|it| it.len() == 1));
        if let (true, Some(handle)) = (is_alone, job.handle.get()) {
            handle.cancel_task(place); // without a lock: the end may come on this thread
        }
    }

    pub(crate) fn cancel_all(&self) {
        let jobs: Vec<_> = lock(&self.0).values().cloned().collect();
        jobs.iter().filter_map(|job| job.handle.get()).for_each(JobHandle::cancel);
    }

    pub(crate) fn clear(&self) -> Vec<Arc<Waiters>> {
        let jobs = std::mem::take(&mut *lock(&self.0));
        jobs.into_values().flat_map(|job| job.take_all()).collect()
    }
}

impl OpenJob {
    pub(crate) fn submitted(&self, handle: JobHandle) {
        let _ = self.handle.set(handle); // a job is submitted once
    }

    /// Returns the tasks, which could not be submitted.
    pub(crate) fn take_back(&self, specs: Vec<TaskSpec>) -> Vec<Task> {
        let waiters = self.take_all();
        let parts = self.tokens.iter().zip(waiters).zip(&self.holds).zip(specs);
        parts
            .map(|(((&token, waiters), holds), spec)| Task { token, waiters, spec, holds: Arc::clone(holds) })
            .collect()
    }

    /// Removes the waiters of the task at this place, which has ended; also whether they were the last. `None` if it has none.
    pub(crate) fn take(&self, place: usize) -> Option<(Arc<Waiters>, bool)> {
        let mut open = lock(&self.waiters);
        let waiters = open.waiters.get_mut(place)?.take()?;
        open.count -= 1;
        Some((waiters, open.count == 0))
    }

    pub(crate) fn waiters(&self, place: usize) -> Option<Arc<Waiters>> {
        lock(&self.waiters).waiters.get(place)?.clone()
    }

    fn take_all(&self) -> Vec<Arc<Waiters>> {
        let mut open = lock(&self.waiters);
        open.count = 0;
        std::mem::take(&mut open.waiters).into_iter().flatten().collect()
    }
}
