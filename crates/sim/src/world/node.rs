//! Nodes: where a process is, whether it runs, and when it wants to be woken.

use super::core::Event;
use crate::network::Place;
use crate::time::Clock;
use midflight_endpoint::Nanos;
use rand_pcg::Pcg64;

/// No wake is asked for, or scheduled.
pub(super) const NEVER: Nanos = Nanos::MAX;

/// Names a node of a [`crate::World`].
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
    /// Counts its lives: what was scheduled for an earlier one is void.
    pub(super) life: u32,
    pub(super) clock: Clock,
    /// When it wants to be woken, by its own clock.
    pub(super) wanted: Nanos,
    /// The next time at which an event looks whether it is to be woken, by the world's clock.
    pub(super) scheduled: Nanos,
    /// While it is paused: what happened to it, in order.
    pub(super) held: Option<Vec<Event>>,
    /// When its lane has decided about all that came.
    pub(super) decided: Nanos,
    /// Datagrams that its lane has not decided about.
    pub(super) undecided: u32,
    /// Larger datagrams do not get to it, or from it.
    pub(super) datagram_max: usize,
    /// What befalls what it sends.
    pub(super) network: Pcg64,
    /// What it draws itself.
    pub(super) random: Pcg64,
}

impl Node {
    /// It begins anew, or ends.
    pub(super) fn next_life(&mut self) -> Vec<Event> {
        self.life += 1;
        (self.wanted, self.scheduled, self.decided, self.undecided) = (NEVER, NEVER, 0, 0);
        self.held.take().unwrap_or_default()
    }
}
