//! Jobs and tasks.

use crate::clock;
use midflight_tasks::client::{Argument, Task};
use midflight_tasks::functions::function_id;
use midflight_tasks::place::Preference;
use std::sync::Arc;
use std::time::Duration;

/// Default attempts of a task whose attempts time out or are lost.
const ATTEMPTS: u32 = 3;

/// A task of a job: make it by [`TaskSpec::new`], then set fields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskSpec {
    /// Id of the function: `midflight_tasks::functions::function_id`.
    pub function: u32,
    /// Up to 64 MiB: up to 480 bytes in the packet, more by reference. Tasks may share one allocation.
    pub argument: Arc<Vec<u8>>,
    /// Whether an argument of more than 16 bytes is always by reference. Then
    /// [`BlobCounters::served`](crate::BlobCounters::served) tells how many tasks executors have taken. Default: no.
    pub by_reference: bool,
    /// 1 (highest) to 8. Default 4.
    pub priority: u8,
    /// Required resources of the executor, one bit each. Default: none.
    pub resources: u8,
    /// Time limit of an attempt from its submission, queueing included. Default: none.
    pub timeout: Option<Duration>,
    /// How often a task that failed, timed out or was lost runs again. Default, `None`: twice if it timed out or was lost, not if it
    /// failed.
    pub retries: Option<u32>,
    /// Placement preference. Default: none.
    pub prefer: Option<Preference>,
}

impl TaskSpec {
    /// A call of `function` with the defaults.
    #[must_use]
    pub fn new(function: &str, argument: impl Into<Vec<u8>>) -> Self {
        Self {
            function: function_id(function),
            argument: Arc::new(argument.into()),
            by_reference: false,
            priority: 4,
            resources: 0,
            timeout: None,
            retries: None,
            prefer: None,
        }
    }

    /// Converts for the endpoint. `argument` holds or references this task's argument.
    pub(crate) fn task(&self, argument: Argument) -> Task {
        Task {
            function: self.function,
            argument,
            priority: self.priority,
            resources: self.resources,
            timeout: self.timeout.map(clock::nanos),
            attempts: self.retries.map_or(ATTEMPTS, |retries| retries.saturating_add(1)),
            retry_failed: self.retries.is_some(),
            prefer: self.prefer,
        }
    }
}

/// Independent tasks that are submitted together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Number of the job, the second part of a task's name <uid, jid, tid>; `None`: assigned.
    pub jid: Option<u32>,
    /// The tasks; the index is the tid.
    pub tasks: Vec<TaskSpec>,
}

impl Job {
    /// A job of calls of one function.
    ///
    /// ```
    /// use midflight_host::Job;
    /// let job = Job::builder("thumbnail").priority(2).task("a.png").task("b.png").build();
    /// assert_eq!(job.tasks.len(), 2);
    /// ```
    #[must_use]
    pub fn builder(function: &str) -> JobBuilder {
        JobBuilder { job: Self::default(), template: TaskSpec::new(function, Vec::new()) }
    }
}

impl From<TaskSpec> for Job {
    fn from(task: TaskSpec) -> Self {
        Self { jid: None, tasks: vec![task] }
    }
}

impl FromIterator<TaskSpec> for Job {
    fn from_iter<I: IntoIterator<Item = TaskSpec>>(tasks: I) -> Self {
        Self { jid: None, tasks: tasks.into_iter().collect() }
    }
}

/// Builds a [`Job`]. A property applies to the tasks added after it.
#[derive(Clone, Debug)]
pub struct JobBuilder {
    job: Job,
    template: TaskSpec,
}

impl JobBuilder {
    /// Number of the job.
    #[must_use]
    pub fn jid(mut self, jid: u32) -> Self {
        self.job.jid = Some(jid);
        self
    }

    /// 1 (highest) to 8.
    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        self.template.priority = priority;
        self
    }

    /// Required resources, one bit each.
    #[must_use]
    pub fn resources(mut self, mask: u8) -> Self {
        self.template.resources = mask;
        self
    }

    /// Time limit of an attempt from its submission, queueing included.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.template.timeout = Some(timeout);
        self
    }

    /// How often a task that failed, timed out or was lost runs again. Default: twice if it timed out or was lost, not if it failed.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.template.retries = Some(retries);
        self
    }

    /// Preferred place, such as a machine or a rack that executors name. If it has no free slot, a task waits for `patience` (say 50 ms; at
    /// most 32.768 s), then may go anywhere.
    ///
    /// ```
    /// use midflight_host::Job;
    /// use std::time::Duration;
    /// let job = Job::builder("scan").prefer("rack7", Duration::from_millis(50)).task("part-1").build();
    /// assert_eq!(job.tasks[0].prefer.unwrap().patience_ms, 50);
    /// ```
    #[must_use]
    pub fn prefer(mut self, place: &str, patience: Duration) -> Self {
        self.template.prefer = Some(Preference::new(place, patience));
        self
    }

    /// Adds a call with this argument.
    #[must_use]
    pub fn task(mut self, argument: impl Into<Vec<u8>>) -> Self {
        let argument = Arc::new(argument.into());
        self.job.tasks.push(TaskSpec { argument, ..self.template.clone() });
        self
    }

    /// Adds a call for each argument.
    #[must_use]
    pub fn tasks<A: Into<Vec<u8>>>(self, arguments: impl IntoIterator<Item = A>) -> Self {
        arguments.into_iter().fold(self, Self::task)
    }

    /// Adds `count` calls that share one argument.
    #[must_use]
    pub fn repeat(mut self, count: usize, argument: impl Into<Vec<u8>>) -> Self {
        let task = TaskSpec { argument: Arc::new(argument.into()), ..self.template.clone() };
        self.job.tasks.extend(std::iter::repeat_n(task, count));
        self
    }

    /// The job.
    #[must_use]
    pub fn build(self) -> Job {
        self.job
    }
}
