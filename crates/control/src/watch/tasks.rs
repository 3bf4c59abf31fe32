//! What the task queue adds to a view.

use super::Listed;
use super::executors::{ExecutorState, ExecutorView, Executors};
use super::jobs::{self, ClientView, JobView};
use crate::tasks::{TasksStatus, TasksTable};
use midflight_dataplane::Survey;
use midflight_endpoint::{MS, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Owners of slots and tasks, and times of tasks in the last period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TasksDetail {
    /// Silence in milliseconds after which an executor's tasks are queued again.
    pub lease_ms: u64,
    /// Tasks, queued and running, that the queue has room for.
    pub capacity: u32,
    /// First those that need attention.
    pub executors: Listed<ExecutorView>,
    /// Number of executors in each state.
    pub states: BTreeMap<ExecutorState, u64>,
    /// Those with the most tasks first.
    pub clients: Listed<ClientView>,
    /// Those with the most tasks first.
    pub jobs: Listed<JobView>,
    /// Whether `jobs` is incomplete, because the queue is longer than the survey.
    pub jobs_are_partial: bool,
    /// First assignments since the previous view, in the buckets of `status.wait_us`; empty in the first view.
    pub wait_us: Vec<u64>,
    /// The same for tasks that are done, in the buckets of `status.run_us`.
    pub run_us: Vec<u64>,
}

/// State between views.
#[derive(Debug)]
pub struct TasksWatch {
    lease: Nanos,
    capacity: u32,
    executors: Executors,
    before: Option<(Vec<u64>, Vec<u64>)>,
}

impl TasksWatch {
    /// For a queue with these bounds and names.
    #[must_use]
    pub fn new(table: &TasksTable) -> Self {
        let lease = table.bounds.lease_ns;
        let executors = Executors::new(lease, table.resources.clone());
        Self { lease, capacity: table.bounds.queue, executors, before: None }
    }

    /// The detail of this survey and these counters. `now` is the survey's time.
    pub fn detail(&mut self, now: Nanos, survey: &Survey, status: &TasksStatus) -> TasksDetail {
        let (executors, states) = self.executors.see(now, &survey.slots);
        let (wait_us, run_us) = match &self.before {
            Some((waits, runs)) => (more(waits, &status.wait_us), more(runs, &status.run_us)),
            None => Default::default(),
        };
        self.before = Some((status.wait_us.clone(), status.run_us.clone()));
        TasksDetail {
            lease_ms: self.lease / MS,
            capacity: self.capacity,
            executors,
            states,
            clients: jobs::clients(now, &survey.clients),
            jobs: jobs::jobs(now, &survey.clients, &survey.tasks),
            jobs_are_partial: survey.is_partial,
            wait_us,
            run_us,
        }
    }
}

fn more(before: &[u64], now: &[u64]) -> Vec<u64> {
    now.iter().zip(before).map(|(now, before)| now.saturating_sub(*before)).collect()
}
