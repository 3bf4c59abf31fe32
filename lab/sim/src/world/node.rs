//! Nodes: where a process is, whether it runs, and when to wake it.

use super::core::Event;
use super::disk::Disk;
use crate::network::Place;
use crate::time::Clock;
use midflight_endpoint::Nanos;
use rand_pcg::Pcg64;

pub(super) const NEVER: Nanos = Nanos::MAX;

/// A node of a [`crate::World`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// Nodes are numbered from 0 in the order in which they were added.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) disk: Disk,
    /// Its name for its peers, while a process with links runs.
    pub(super) name: Option<u64>,
    /// The peers that it wants links to, with its own names for them.
    pub(super) peers: Vec<(u64, NodeId)>,
    /// Counts its lives: an earlier life's events are void.
    pub(super) life: u32,
    pub(super) clock: Clock,
    /// Its requested wake-up, by its own clock.
    pub(super) wanted: Nanos,
    /// The next check for a wake-up, by the world's clock.
    pub(super) scheduled: Nanos,
    /// Events held while it is paused, in order.
    pub(super) held: Option<Vec<Event>>,
    /// When its first thread will have handled what it has taken.
    pub(super) thread: Nanos,
    /// The same of its other threads.
    pub(super) threads: Box<[Nanos]>,
    /// What a thread that sleeps takes longer.
    pub(super) wake_up: Nanos,
    /// Of one CPU, if not all of it.
    pub(super) share: Option<CpuShare>,
    pub(super) undecided: u32,
    /// Larger datagrams are lost on the path to it and from it.
    pub(super) datagram_max: usize,
    /// Draws the faults of the datagrams that it sends.
    pub(super) network: Pcg64,
    pub(super) random: Pcg64,
}

/// What Linux's control groups give a process of one thread (`cpu.max`): when its quota is used up, it waits for the next period.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuShare {
    pub(super) quota: Nanos,
    pub(super) period: Nanos,
    /// When the first period begins.
    pub(super) phase: Nanos,
    /// End of the current period, and what is used of its quota.
    pub(super) until: Nanos,
    pub(super) used: Nanos,
}

impl CpuShare {
    /// When work is done that begins then.
    fn end(&mut self, begin: Nanos, cost: Nanos) -> Nanos {
        if begin >= self.until {
            let periods = begin.saturating_sub(self.phase) / self.period + 1;
            (self.until, self.used) = (self.phase + periods * self.period, 0);
        }
        let now = cost.min(self.quota - self.used);
        self.used += now;
        // With its quota used up, a process does not handle what costs nothing either.
        if now == cost && (cost > 0 || self.used < self.quota) {
            return begin + now;
        }
        let left = cost - now;
        let whole = left.saturating_sub(1) / self.quota;
        (self.used, self.until) = (left - whole * self.quota, self.until + (whole + 1) * self.period);
        self.until - self.period + self.used
    }
}

impl Node {
    /// The next free thread works for `cost`; returns when it is done.
    pub(super) fn work(&mut self, now: Nanos, cost: Nanos) -> Nanos {
        let free =
            self.threads.iter_mut().fold(&mut self.thread, |free, other| if *other < *free { other } else { free });
        let begin = now.max(*free);
        let cost = if cost > 0 && now > *free { self.wake_up + cost } else { cost };
        *free = self.share.as_mut().map_or(begin + cost, |share| share.end(begin, cost));
        *free
    }

    pub(super) fn next_life(&mut self) -> Vec<Event> {
        self.life += 1;
        (self.wanted, self.scheduled, self.thread, self.undecided) = (NEVER, NEVER, 0, 0);
        self.threads.fill(0);
        self.held.take().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_beyond_the_quota_waits_for_the_next_period() {
        let mut share = CpuShare { quota: 10, period: 100, phase: 0, until: 0, used: 0 };
        assert_eq!(share.end(95, 4), 99);
        assert_eq!(share.end(120, 6), 126, "a new period");
        assert_eq!(share.end(126, 4), 130);
        assert_eq!(share.end(130, 1), 201, "all is used");
        assert_eq!(share.end(201, 25), 406, "9, 10 and 6 of three periods");
        let mut later = CpuShare { quota: 10, period: 100, phase: 30, until: 0, used: 0 };
        assert_eq!((later.end(120, 10), later.end(125, 1)), (130, 131), "130 begins the second period");
        assert_eq!((later.end(140, 9), later.end(150, 0), later.end(230, 1)), (149, 230, 231));
        assert_eq!(
            share.end(500, 1_000_000_000),
            500 + 99_999_999 * 100 + 10,
            "whole periods are not counted one by one"
        );
    }
}
