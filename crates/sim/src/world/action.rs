//! What may be made to happen at a time.

use super::World;
use super::core::Event;
use super::node::NodeId;
use crate::network::Faults;
use crate::{Happening, Purpose, stream};
use midflight_endpoint::Nanos;
use std::any::Any;
use std::net::SocketAddr;

/// What may be made to happen at a time.
#[derive(Debug)]
pub enum Action {
    /// The process dies at once; what is on the way to it is lost.
    Crash(NodeId),
    /// A new process starts at the same address, with nothing of the old one's memory.
    Restart(NodeId),
    /// The process stands still: its datagrams wait in its receive buffer, its timers and tasks fire when it goes on.
    Pause(NodeId),
    /// It goes on.
    Resume(NodeId),
    /// What the ones send does not reach the others.
    Partition {
        /// The ones.
        from: Vec<NodeId>,
        /// The others.
        to: Vec<NodeId>,
        /// Nor the other way.
        both: bool,
    },
    /// No partition holds any more.
    Heal,
    /// A clock jumps ahead and runs at another rate.
    Drift {
        /// Whose.
        node: NodeId,
        /// Millionths by which it is too fast (below 0: too slow), at most a twentieth.
        ppm: i32,
        /// By how much it jumps.
        offset: Nanos,
    },
    /// A node is reached elsewhere, and no longer where it was. Who is there has to be moved first.
    Move {
        /// Who.
        node: NodeId,
        /// Where to.
        to: SocketAddr,
    },
    /// The way to and from a node takes datagrams of so many bytes, no larger ones.
    DatagramMax {
        /// Whose.
        node: NodeId,
        /// Bytes of a datagram, without headers.
        bytes: usize,
    },
    /// The network becomes better or worse.
    Faults(Faults),
    /// The link of a node's host becomes better or worse: for what comes to it and what it sends, on top of what befalls all.
    Link {
        /// Whose. A node that is on no host has no link.
        node: NodeId,
        /// What befalls datagrams on it.
        faults: Faults,
    },
    /// The user of a node asks something of it ([`crate::Actor::command`]).
    Command {
        /// Of whom.
        node: NodeId,
        /// What: of a type of the program's own.
        command: Box<dyn Any>,
    },
}

impl Action {
    /// The user of `node` asks for `command`, of a type that its actor knows.
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
                self.core.happened(Happening::Partitioned);
            }
            Action::Heal => {
                self.core.network.partitions.heal();
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
            Action::Command { node, command } => self.command(node, command),
        }
    }

    /// What is on the way to it, or waits, is lost.
    fn end(&mut self, id: NodeId) {
        self.actors[id.index()] = None;
        for event in self.core.nodes[id.index()].next_life() {
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
        let mut birth =
            super::Birth { node: id, address: self.core.addresses.of(id), now: node.clock.at(self.core.now), random };
        self.actors[id.index()] = Some((self.factories[id.index()])(&mut birth));
        self.turn(id, |actor, context| actor.start(context));
    }

    /// What was held happens now, in its order.
    fn resume(&mut self, id: NodeId) {
        self.core.happened(Happening::Resumed { node: id });
        for event in self.core.nodes[id.index()].held.take().unwrap_or_default() {
            self.core.schedule(self.core.now, event);
        }
        self.core.schedule_wake(id);
    }

    /// A user's wish waits as everything else does while a process is paused.
    fn command(&mut self, id: NodeId, command: Box<dyn Any>) {
        if self.core.nodes[id.index()].held.is_some() {
            let event = self.keep(Action::Command { node: id, command });
            self.core.nodes[id.index()].held.get_or_insert_default().push(event);
            return;
        }
        self.turn(id, |actor, context| actor.command(context, command));
    }
}
