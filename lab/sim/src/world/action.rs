//! Scheduled actions: faults of nodes and of the network, and their ends.

use super::World;
use super::core::Event;
use super::disk::DiskCondition;
use super::node::NodeId;
use crate::network::Faults;
use crate::{Happening, Purpose, stream};
use midflight_endpoint::Nanos;
use std::any::Any;
use std::net::SocketAddr;

/// A scheduled action.
#[derive(Debug)]
pub enum Action {
    /// The process dies; datagrams in flight to it are lost, and so is a random part of what is not durable on its
    /// disk.
    Crash(NodeId),
    /// A new process starts at the same address, without the old one's memory.
    Restart(NodeId),
    /// The process is paused: its datagrams wait in its receive buffer, its timers and tasks fire when it resumes.
    Pause(NodeId),
    /// The process resumes.
    Resume(NodeId),
    /// Datagrams from one set of nodes do not reach another set.
    Partition {
        /// The senders.
        from: Vec<NodeId>,
        /// The receivers.
        to: Vec<NodeId>,
        /// The other direction is lost too.
        both: bool,
    },
    /// All partitions end.
    Heal,
    /// A clock jumps ahead and runs at another rate.
    Drift {
        /// The node.
        node: NodeId,
        /// Parts per million by which it is too fast (below 0: too slow), at most a twentieth.
        ppm: i32,
        /// How far it jumps ahead.
        offset: Nanos,
    },
    /// A node gets another address instead of its old one. If another node has the new address, move that first.
    Move {
        /// The node.
        node: NodeId,
        /// The new address.
        to: SocketAddr,
    },
    /// The path to and from a node carries only datagrams of up to `bytes`.
    DatagramMax {
        /// The node.
        node: NodeId,
        /// Maximum size of a datagram, without headers.
        bytes: usize,
    },
    /// Changes the faults of all datagrams.
    Faults(Faults),
    /// Changes the faults of a host's link, for both directions. They add to the faults of all datagrams.
    Link {
        /// The node; must be on a host to have a link.
        node: NodeId,
        /// The link's faults.
        faults: Faults,
    },
    /// All these nodes die at once.
    PowerCut(Vec<NodeId>),
    /// A node's disk loses all files. A running process dies.
    Wipe(NodeId),
    /// Changes the condition of a node's disk.
    Disk {
        /// The node.
        node: NodeId,
        /// The new condition.
        condition: DiskCondition,
    },
    /// The user of a node sends it a request ([`crate::Actor::command`]).
    Command {
        /// The node.
        node: NodeId,
        /// The request, of a type of the program's own.
        command: Box<dyn Any>,
    },
}

impl Action {
    /// The user of `node` requests `command`, of a type that its actor knows.
    pub fn command(node: NodeId, command: impl Any) -> Self {
        Self::Command { node, command: Box::new(command) }
    }
}

impl World {
    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::Crash(node) => {
                self.end(node);
                self.core.happened(Happening::Crashed { node });
            }
            Action::Restart(node) => {
                self.begin(node);
                self.core.happened(Happening::Restarted { node });
            }
            Action::Pause(node) => {
                self.core.nodes[node.index()].held.get_or_insert_default();
                self.core.happened(Happening::Paused { node });
            }
            Action::Resume(node) => self.resume(node),
            Action::Partition { from, to, both } => {
                self.core.network.partitions.add(from, to, both);
                self.core.break_separated();
                self.core.happened(Happening::Partitioned);
            }
            Action::Heal => {
                self.core.network.partitions.heal();
                self.core.attempt_links();
                self.core.happened(Happening::Healed);
            }
            Action::Drift { node: id, ppm, offset } => {
                let node = &mut self.core.nodes[id.index()];
                node.clock.drift(self.core.now, ppm, offset);
                if node.held.is_none() {
                    self.core.schedule_wake(id);
                }
            }
            Action::Move { node, to } => {
                self.core.addresses.move_to(node, to);
                self.core.happened(Happening::Moved { node, to });
            }
            Action::DatagramMax { node, bytes } => self.core.nodes[node.index()].datagram_max = bytes,
            Action::Faults(faults) => self.core.network.faults = faults,
            Action::Link { node, faults } => self.core.network.set_link(self.core.nodes[node.index()].place, faults),
            Action::PowerCut(nodes) => nodes.into_iter().for_each(|node| self.act(Action::Crash(node))),
            Action::Wipe(node) => self.wipe(node),
            Action::Disk { node, condition } => self.set_disk_condition(node, condition),
            Action::Command { node, command } => self.command(node, command),
        }
    }

    /// Datagrams that are in flight to it or wait are lost.
    fn end(&mut self, id: NodeId) {
        self.actors[id.index()] = None;
        self.core.break_links_of(id);
        self.core.nodes[id.index()].disk.crash();
        for event in self.core.nodes[id.index()].next_life() {
            if let Event::Link(number) = event {
                self.core.links.take(number);
            }
            if let Event::Arrive(packet) | Event::Decided { packet, .. } | Event::Pass { packet, .. } = event {
                self.core.packets.free(packet, None);
                self.core.network.counters.unreachable += 1;
            }
        }
    }

    pub(super) fn begin(&mut self, id: NodeId) {
        self.end(id);
        let node = &self.core.nodes[id.index()];
        let random = stream(self.core.seed, Purpose::Birth, u64::from(node.life) << 32 | u64::from(id.0));
        let (address, now, files) = (self.core.addresses.of(id), node.clock.at(self.core.now), node.disk.files());
        let mut birth = super::Birth { node: id, address, now, random, files };
        self.actors[id.index()] = Some((self.factories[id.index()])(&mut birth));
        self.turn(id, |actor, context| actor.start(context));
    }

    /// Held events happen now, in order.
    fn resume(&mut self, id: NodeId) {
        self.core.happened(Happening::Resumed { node: id });
        for event in self.core.nodes[id.index()].held.take().unwrap_or_default() {
            self.core.schedule(self.core.now, event);
        }
        self.core.schedule_wake(id);
    }

    /// While a process is paused, a user's request waits like all other events.
    fn command(&mut self, id: NodeId, command: Box<dyn Any>) {
        if self.core.nodes[id.index()].held.is_some() {
            let event = self.keep(Action::Command { node: id, command });
            self.core.nodes[id.index()].held.get_or_insert_default().push(event);
            return;
        }
        self.turn(id, |actor, context| actor.command(context, command));
    }
}
