//! An actor's interface to the world during its turn.

use super::core::{Event, WorldState};
use super::node::{NEVER, NodeId};
use crate::Happening;
use midflight_endpoint::{Durable, Endpoint, Linked, Nanos, Persist};
use rand_pcg::Pcg64;
use std::any::Any;
use std::net::SocketAddr;

/// The world as one of its actors sees it.
pub struct Context<'a> {
    pub(super) core: &'a mut WorldState,
    pub(super) node: NodeId,
    /// By the node's clock.
    pub(super) now: Nanos,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("node", &self.node).field("now", &self.now).finish_non_exhaustive()
    }
}

impl Context<'_> {
    /// Time of the node's own monotonic clock, in nanoseconds.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// The current node.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The current node's address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.core.addresses.of(self.node)
    }

    /// Datagrams that have arrived and are not handled yet: its threads work on them, or they wait ([`crate::Actor::cost`]).
    #[must_use]
    pub fn undecided(&self) -> u32 {
        self.core.nodes[self.node.index()].undecided
    }

    /// The node at an address, if it is in this world.
    #[must_use]
    pub fn node_at(&self, address: SocketAddr) -> Option<NodeId> {
        self.core.node_at(address)
    }

    /// The node's own random numbers.
    pub fn random(&mut self) -> &mut Pcg64 {
        &mut self.core.nodes[self.node.index()].random
    }

    /// Sends a datagram now.
    pub fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        self.core.send(self.node, to, datagram);
    }

    /// Sends a datagram now with another node's source address, as a forging attacker does.
    pub fn send_as(&mut self, from: NodeId, to: SocketAddr, datagram: &[u8]) {
        self.core.send(from, to, datagram);
    }

    /// Forwards another node's datagram with its source: a new datagram that leaves this node now.
    pub fn forward(&mut self, from: NodeId, to: SocketAddr, datagram: &[u8]) {
        self.core.send_for(self.node, from, to, datagram);
    }

    /// The address of another node.
    #[must_use]
    pub fn address_of(&self, node: NodeId) -> SocketAddr {
        self.core.addresses.of(node)
    }

    /// Calls [`crate::Actor::wake`] with [`crate::Wake::Time`] when the node's clock shows `at`. Replaces the earlier
    /// request.
    pub fn wake_at(&mut self, at: Nanos) {
        self.core.nodes[self.node.index()].wanted = at.max(self.now);
        self.core.schedule_wake(self.node);
    }

    /// Cancels the request of [`Context::wake_at`].
    pub fn sleep(&mut self) {
        self.core.nodes[self.node.index()].wanted = NEVER;
    }

    /// Calls [`crate::Actor::wake`] with `token` after `delay` of the node's clock, at its current rate, unless the
    /// node dies first.
    pub fn after(&mut self, delay: Nanos, token: u64) {
        let node = &self.core.nodes[self.node.index()];
        let at = node.clock.world(self.now.saturating_add(delay));
        let event = Event::Token { node: self.node, life: node.life, token };
        self.core.schedule(at, event);
    }

    /// Records an event of the node's program, for the world's sink and observer.
    pub fn record(&mut self, what: &dyn Any) {
        self.core.happened(Happening::Program(what));
    }

    /// Whether the world has an observer.
    #[must_use]
    pub fn is_observed(&self) -> bool {
        self.core.observer.is_some()
    }

    /// Gives a batch to the node's disk, which calls [`crate::Actor::persisted`] when it is durable.
    pub fn persist(&mut self, batch: Persist) {
        self.core.persist(self.node, batch);
    }

    /// [`Context::drive`] for an endpoint with a disk and links: also writes its batches, makes the links that it
    /// wants, and sends its messages as far as there is room.
    pub fn drive_replica<E: Durable + Linked>(&mut self, endpoint: &mut E) {
        let peers: Vec<_> =
            endpoint.peers().into_iter().filter_map(|(peer, at)| Some((peer, self.node_at(at)?))).collect();
        self.core.want_links(self.node, endpoint.name(), &peers);
        while let Some(batch) = endpoint.poll_persist() {
            self.core.persist(self.node, batch);
        }
        let mut message = Vec::new();
        for link in self.core.links_of(self.node) {
            while self.core.has_room(self.node, link) {
                message.clear();
                if !endpoint.poll_message(self.now, link, &mut message) {
                    break;
                }
                self.core.send_on_link(self.node, link, &message);
            }
        }
        self.drive(endpoint);
    }

    /// The end of a driver's turn: sends the endpoint's datagrams, and requests a wake-up at its time-out.
    pub fn drive<E: Endpoint>(&mut self, endpoint: &mut E) {
        let mut buffer = std::mem::take(&mut self.core.buffer);
        while let Some(to) = endpoint.poll_transmit(self.now, &mut buffer) {
            self.core.send(self.node, to, &buffer);
        }
        self.core.buffer = buffer;
        match endpoint.poll_timeout() {
            Some(due) => self.wake_at(due),
            None => self.sleep(),
        }
    }
}
