//! Requests that wait, and those that are being served.

use super::ServeKey;
use midflight_endpoint::Nanos;
use midflight_wire::replicas::{Ends, Kind, NetrsRequest};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// A request, and all that its answer repeats.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) from: SocketAddr,
    /// Of its answer.
    pub(super) kind: Kind,
    pub(super) request: NetrsRequest,
    pub(super) ends: Ends,
    pub(super) asked: Vec<u8>,
    /// When it came; once it is served, when that began.
    pub(super) since: Nanos,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    waiting: VecDeque<Job>,
    /// By key: the oldest first.
    served: BTreeMap<u64, Job>,
    last_key: u64,
}

impl Jobs {
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn served(&self) -> usize {
        self.served.len()
    }

    pub(super) fn wait(&mut self, job: Job) {
        self.waiting.push_back(job);
    }

    /// The first that waits.
    pub(super) fn next(&mut self) -> Option<Job> {
        self.waiting.pop_front()
    }

    /// The first that waits, if it came at this time or before.
    pub(super) fn next_since(&mut self, until: Nanos) -> Option<Job> {
        self.waiting.pop_front_if(|job| job.since <= until)
    }

    /// It is served from now on, under a key that no other request of this process had.
    pub(super) fn serve(&mut self, now: Nanos, job: Job) -> ServeKey {
        self.last_key += 1;
        self.served.insert(self.last_key, Job { since: now, ..job });
        ServeKey(self.last_key)
    }

    /// It is served no more.
    pub(super) fn end(&mut self, key: ServeKey) -> Option<Job> {
        self.served.remove(&key.0)
    }

    /// The one that is served for the longest time, if it began at this time or before: it is served no more.
    pub(super) fn end_since(&mut self, until: Nanos) -> Option<(ServeKey, Job)> {
        let first = self.served.first_entry().filter(|first| first.get().since <= until)?;
        let (key, job) = first.remove_entry();
        Some((ServeKey(key), job))
    }

    /// When the first that waits came, and when the service of the oldest began.
    pub(super) fn oldest(&self) -> [Option<Nanos>; 2] {
        [self.waiting.front().map(|job| job.since), self.served.first_key_value().map(|(_, job)| job.since)]
    }
}
