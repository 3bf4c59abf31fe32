//! A scheduler's records of jobs and reservations.

use midflight_wire::tasks::TaskInfo;
use std::collections::BTreeSet;
use std::net::SocketAddr;

#[derive(Debug)]
pub(super) struct Job {
    pub(super) client: u64,
    pub(super) address: SocketAddr,
    pub(super) job: u32,
    /// `None` until it arrives.
    pub(super) tasks: Vec<Option<TaskInfo>>,
    pub(super) missing: usize,
    pub(super) next: usize,
    pub(super) done: Vec<bool>,
    pub(super) open: usize,
    pub(super) reservations: Vec<u64>,
}

impl Job {
    pub(super) fn unassigned(&self) -> usize {
        self.tasks.len() - self.next
    }
}

#[derive(Debug)]
pub(super) struct Reservation {
    pub(super) job: u64,
    pub(super) worker: u32,
    /// The request that places it, until acknowledged.
    pub(super) placing: Option<u64>,
    /// Once it has asked: the number of that request, and the task given.
    pub(super) asked: Option<(u64, Option<u64>)>,
}

/// A client's ended jobs, so that a late SUBMIT does not run them again.
#[derive(Debug, Default)]
pub(super) struct EndedJobs {
    floor: u32,
    above: BTreeSet<u32>,
}

impl EndedJobs {
    pub(super) fn insert(&mut self, job: u32) {
        self.above.insert(job);
        while self.above.remove(&self.floor) {
            self.floor += 1;
        }
    }

    pub(super) fn contains(&self, job: u32) -> bool {
        job < self.floor || self.above.contains(&job)
    }
}
