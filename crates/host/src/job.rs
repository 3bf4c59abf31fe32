//! What a user submits.

use crate::clock;
use midflight_tasks::client::{Argument, Task};
use midflight_tasks::functions::function_id;
use midflight_tasks::place::Preference;
use std::sync::Arc;
use std::time::Duration;

/// One task of a job. [`TaskSpec::new`] has the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    /// The function's number: `midflight_tasks::functions::function_id`.
    pub function: u32,
    /// Up to 64 MiB. Up to 16 bytes travel with the task, more by reference; tasks may share one allocation.
    pub argument: Arc<Vec<u8>>,
    /// 1 (the highest) to 8. Default 4.
    pub priority: u8,
    /// The executor must have at least these resources, one bit each. Default none.
    pub resources: u8,
    /// How long an attempt may take from when it is submitted, the time in the queue included. Default for ever.
    pub timeout: Option<Duration>,
    /// Attempts that may be made when attempts are abandoned, time out or (with `retry_failed`) fail. Default 3.
    pub attempts: u32,
    /// Whether a failure of the function is tried again. Default no.
    pub retry_failed: bool,
    /// Where it prefers to run. Default: anywhere.
    pub prefer: Option<Preference>,
}

impl TaskSpec {
    /// A call of `function` with the defaults.
    #[must_use]
    pub fn new(function: &str, argument: impl Into<Vec<u8>>) -> Self {
        Self {
            function: function_id(function),
            argument: Arc::new(argument.into()),
            priority: 4,
            resources: 0,
            timeout: None,
            attempts: 3,
            retry_failed: false,
            prefer: None,
        }
    }

    /// As the endpoint gets it; `argument` is this call's, or where it is.
    pub(crate) fn task(&self, argument: Argument) -> Task {
        Task {
            function: self.function,
            argument,
            priority: self.priority,
            resources: self.resources,
            timeout: self.timeout.map(clock::nanos),
            attempts: self.attempts,
            retry_failed: self.retry_failed,
            prefer: self.prefer,
        }
    }
}

/// Independent tasks that are submitted together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// The job's number, the second part of a task's name <uid, jid, tid>; `None`: the client counts.
    pub jid: Option<u32>,
    /// The tasks; a task's place is its tid.
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

/// Builds a [`Job`]. Properties hold for the tasks that are added after them.
#[derive(Clone, Debug)]
pub struct JobBuilder {
    job: Job,
    template: TaskSpec,
}

impl JobBuilder {
    /// The job's number.
    #[must_use]
    pub fn jid(mut self, jid: u32) -> Self {
        self.job.jid = Some(jid);
        self
    }

    /// 1 (the highest) to 8.
    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        self.template.priority = priority;
        self
    }

    /// Resources that the executor must have, one bit each.
    #[must_use]
    pub fn resources(mut self, mask: u8) -> Self {
        self.template.resources = mask;
        self
    }

    /// How long an attempt may take from when it is submitted, the time in the queue included.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.template.timeout = Some(timeout);
        self
    }

    /// Attempts that may be made.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.template.attempts = attempts;
        self
    }

    /// Tries failures of the function again, too.
    #[must_use]
    pub fn retry_failed(mut self, retry: bool) -> Self {
        self.template.retry_failed = retry;
        self
    }

    /// Where the tasks prefer to run: a place that executors name, such as a machine or a rack. If none of its slots is free,
    /// they wait for one for as long as `patience` (50 ms, say; at most 32.768 s), and then go anywhere.
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

    /// Adds a call for each of these arguments.
    #[must_use]
    pub fn tasks<A: Into<Vec<u8>>>(self, arguments: impl IntoIterator<Item = A>) -> Self {
        arguments.into_iter().fold(self, Self::task)
    }

    /// Adds `count` calls with the same argument, which is kept once.
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
