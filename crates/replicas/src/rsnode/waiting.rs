//! Requests that rate control holds, a queue for each replica group: who waits for a slow server must not stand before those that another
//! one could serve at once (C3's backlog queues, section 3.2).

use midflight_endpoint::Nanos;
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug)]
struct Held {
    datagram: Vec<u8>,
    until: Nanos,
}

#[derive(Debug, Default)]
struct Queue {
    /// The oldest first.
    held: VecDeque<Held>,
    /// When to try the first again.
    again: Nanos,
}

/// All of them, by replica group.
#[derive(Debug)]
pub(super) struct Waiting {
    queues: BTreeMap<u32, Queue>,
    count: usize,
    most: usize,
    longest: Nanos,
}

impl Waiting {
    /// For so many requests, each for so long at most.
    pub(super) fn new(most: usize, longest: Nanos) -> Self {
        Self { queues: BTreeMap::new(), count: 0, most, longest }
    }

    /// When the first of a group that has some waiting is tried again.
    pub(super) fn again(&self, group: u32) -> Option<Nanos> {
        self.queues.get(&group).map(|queue| queue.again)
    }

    /// Holds a request, which is the last of its group. Returns whether there was room.
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

    /// A group whose first request is due to be tried again, or has waited for too long.
    pub(super) fn due(&self, now: Nanos) -> Option<u32> {
        let is_due = |queue: &Queue| queue.again <= now || queue.held.front().is_some_and(|held| held.until <= now);
        self.queues.iter().find(|(_, queue)| is_due(queue)).map(|(&group, _)| group)
    }

    /// Whether the first request of a group has waited for too long.
    pub(super) fn is_too_old(&self, group: u32, now: Nanos) -> bool {
        self.queues.get(&group).and_then(|queue| queue.held.front()).is_some_and(|held| held.until <= now)
    }

    /// The group's first request is tried later.
    pub(super) fn put_off(&mut self, group: u32, again: Nanos) {
        if let Some(queue) = self.queues.get_mut(&group) {
            queue.again = again;
        }
    }

    /// The group's first request.
    pub(super) fn pop(&mut self, group: u32) -> Option<Vec<u8>> {
        let queue = self.queues.get_mut(&group)?;
        let first = queue.held.pop_front();
        if queue.held.is_empty() {
            self.queues.remove(&group);
        }
        self.count -= usize::from(first.is_some());
        first.map(|held| held.datagram)
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Nanos> {
        let due = |queue: &Queue| queue.held.front().map(|held| held.until.min(queue.again));
        self.queues.values().filter_map(due).min()
    }
}
