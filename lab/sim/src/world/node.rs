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
    pub(super) undecided: u32,
    /// Larger datagrams are lost on the path to it and from it.
    pub(super) datagram_max: usize,
    /// Draws the faults of the datagrams that it sends.
    pub(super) network: Pcg64,
    pub(super) random: Pcg64,
}

impl Node {
    /// The next free thread works for `cost`; returns when it is done.
    pub(super) fn work(&mut self, now: Nanos, cost: Nanos) -> Nanos {
        let free =
            self.threads.iter_mut().fold(&mut self.thread, |free, other| if *other < *free { other } else { free });
        *free = now.max(*free) + cost;
        *free
    }

    pub(super) fn next_life(&mut self) -> Vec<Event> {
        self.life += 1;
        (self.wanted, self.scheduled, self.thread, self.undecided) = (NEVER, NEVER, 0, 0);
        self.threads.fill(0);
        self.held.take().unwrap_or_default()
    }
}
