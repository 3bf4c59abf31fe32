//! A scheduler's records of jobs and reservations.

use midflight_wire::TaskInfo;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// A job that has not ended.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) client: u64,
    pub(super) address: SocketAddr,
    pub(super) job: u32,
    /// As they arrive.
    pub(super) tasks: Vec<Option<TaskInfo>>,
    pub(super) missing: usize,
    /// The first that is not given.
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

/// A reservation that has not ended.
#[derive(Debug)]
pub(super) struct Reservation {
    pub(super) job: u64,
    pub(super) worker: u32,
    /// The request that places it, while it is not acknowledged.
    pub(super) placing: Option<u64>,
    /// Once it has asked: the number of that request, and the task that it got.
    pub(super) asked: Option<(u64, Option<u64>)>,
}

/// Jobs of a client that have ended, so that a late SUBMIT does not run them again.
#[derive(Debug, Default)]
pub(super) struct EndedJobs {
    /// All jobs below this number have ended.
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
