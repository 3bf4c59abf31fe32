use super::ServeKey;
use midflight_endpoint::Nanos;
use midflight_wire::cache::{Ends, Kind, NetrsRequest};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// A request, with everything that its answer repeats.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) from: SocketAddr,
    /// Kind of the answer.
    pub(super) kind: Kind,
    pub(super) request: NetrsRequest,
    pub(super) ends: Ends,
    pub(super) asked: Vec<u8>,
    /// Arrival; while it is being served, the start of service.
    pub(super) since: Nanos,
}

#[derive(Debug, Default)]
pub(super) struct Jobs {
    waiting: VecDeque<Job>,
    /// By key, so the oldest first.
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

    pub(super) fn next(&mut self) -> Option<Job> {
        self.waiting.pop_front()
    }

    pub(super) fn next_since(&mut self, until: Nanos) -> Option<Job> {
        self.waiting.pop_front_if(|job| job.since <= until)
    }

    /// Starts serving it, under a key that is unique in this process.
    pub(super) fn serve(&mut self, now: Nanos, job: Job) -> ServeKey {
        self.last_key += 1;
        self.served.insert(self.last_key, Job { since: now, ..job });
        ServeKey(self.last_key)
    }

    pub(super) fn end(&mut self, key: ServeKey) -> Option<Job> {
        self.served.remove(&key.0)
    }

    /// Ends the one that has been served longest, if its service began at this time or before.
    pub(super) fn end_since(&mut self, until: Nanos) -> Option<(ServeKey, Job)> {
        let first = self.served.first_entry().filter(|first| first.get().since <= until)?;
        let (key, job) = first.remove_entry();
        Some((ServeKey(key), job))
    }

    /// Arrival of the first queued one, and start of the oldest service.
    pub(super) fn oldest(&self) -> [Option<Nanos>; 2] {
        [self.waiting.front().map(|job| job.since), self.served.first_key_value().map(|(_, job)| job.since)]
    }
}
