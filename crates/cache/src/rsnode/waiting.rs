//! Requests held by rate control, in one queue per replica group (C3's backlog queues, section 3.2): a request for a slow server must not
//! block those that another server could take.

use midflight_endpoint::Nanos;
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug)]
struct Held {
    datagram: Vec<u8>,
    until: Nanos,
}

#[derive(Debug, Default)]
struct Queue {
    held: VecDeque<Held>,
    again: Nanos,
}

#[derive(Debug)]
pub(super) struct Waiting {
    queues: BTreeMap<u32, Queue>,
    count: usize,
    most: usize,
    longest: Nanos,
}

impl Waiting {
    /// At most `most` requests, each for at most `longest`.
    pub(super) fn new(most: usize, longest: Nanos) -> Self {
        Self { queues: BTreeMap::new(), count: 0, most, longest }
    }

    /// When the first request of a backlogged group is retried.
    pub(super) fn again(&self, group: u32) -> Option<Nanos> {
        self.queues.get(&group).map(|queue| queue.again)
    }

    pub(super) fn push(&mut self, now: Nanos, group: u32, datagram: &[u8], again: Nanos) -> bool {
        if self.count >= self.most {
            return false;
        }
        let queue = self.queues.entry(group).or_default();
        queue.held.push_back(Held { datagram: datagram.to_vec(), until: now.saturating_add(self.longest) });
        queue.again = again;
        self.count += 1;
        true
    }

    /// A group whose first request is due for a retry, or has waited too long.
    pub(super) fn due(&self, now: Nanos) -> Option<u32> {
        let is_due = |queue: &Queue| queue.again <= now || queue.held.front().is_some_and(|held| held.until <= now);
        self.queues.iter().find(|(_, queue)| is_due(queue)).map(|(&group, _)| group)
    }

    pub(super) fn is_too_old(&self, group: u32, now: Nanos) -> bool {
        self.queues.get(&group).and_then(|queue| queue.held.front()).is_some_and(|held| held.until <= now)
    }

    pub(super) fn put_off(&mut self, group: u32, again: Nanos) {
        if let Some(queue) = self.queues.get_mut(&group) {
            queue.again = again;
        }
    }

    pub(super) fn pop(&mut self, group: u32) -> Option<Vec<u8>> {
        let queue = self.queues.get_mut(&group)?;
        let first = queue.held.pop_front();
        if queue.held.is_empty() {
            self.queues.remove(&group);
        }
        self.count -= usize::from(first.is_some());
        first.map(|held| held.datagram)
    }

    pub(super) fn next(&self) -> Option<Nanos> {
        let due = |queue: &Queue| queue.held.front().map(|held| held.until.min(queue.again));
        self.queues.values().filter_map(due).min()
    }
}
