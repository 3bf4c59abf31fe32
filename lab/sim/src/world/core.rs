//! The world without its actors: the state that an actor's turn may change.

use super::addresses::Addresses;
use super::links::Links;
use super::node::{Node, NodeId};
use crate::network::{Network, Next, PacketId, Place, Pool};
use crate::time::Heap;
use crate::{Action, Happening, Observer, Sink};
use midflight_endpoint::Nanos;
use std::net::SocketAddr;

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Hop {
        packet: PacketId,
        switch: u32,
    },
    Pass {
        packet: PacketId,
        switch: u32,
    },
    /// A datagram has passed its host's stack.
    Arrive(PacketId),
    /// Its node has decided about it.
    Decided {
        packet: PacketId,
        life: u32,
    },
    /// A node may need a wake-up.
    Wake(NodeId),
    /// A wake-up requested with `Context::after`.
    Token {
        node: NodeId,
        life: u32,
        token: u64,
    },
    /// A node's disk has completed its write.
    Synced {
        node: NodeId,
        life: u32,
    },
    /// The node learns that this batch is durable.
    Persisted {
        node: NodeId,
        life: u32,
        batch: u64,
    },
    /// An event at an end of a link, by its number.
    Link(u32),
    Act(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtSwitch {
    /// It is addressed to a program there.
    Arrives,
    /// It passes this program, which sees it.
    Passes(NodeId),
    /// It has left the switch, waits, or is lost.
    IsGone,
}

pub(super) struct WorldState {
    pub(super) seed: u64,
    pub(super) now: Nanos,
    pub(super) heap: Heap<Event>,
    pub(super) nodes: Vec<Node>,
    pub(super) addresses: Addresses,
    pub(super) network: Network,
    pub(super) packets: Pool,
    pub(super) links: Links,
    pub(super) actions: Vec<Option<Action>>,
    pub(super) sink: Option<Box<dyn Sink>>,
    pub(super) observer: Option<Box<dyn Observer>>,
    pub(super) trace: u64,
    pub(super) buffer: Vec<u8>,
}

impl WorldState {
    pub(super) fn schedule(&mut self, at: Nanos, event: Event) {
        self.heap.push(at.max(self.now), event);
    }

    pub(super) fn node_at(&self, address: SocketAddr) -> Option<NodeId> {
        self.addresses.at(address).filter(|node| node.index() < self.nodes.len())
    }

    pub(super) fn happened(&mut self, happening: Happening<'_>) {
        if let Some(observer) = &mut self.observer {
            observer.happened(self.now, &happening);
        }
        if let Some(sink) = &mut self.sink {
            sink.happened(self.now, &happening);
        }
    }

    pub(super) fn send(&mut self, from: NodeId, to: SocketAddr, datagram: &[u8]) {
        self.send_for(from, from, to, datagram);
    }

    /// Sends a datagram from the node `here` with the source of `from`.
    pub(super) fn send_for(&mut self, here: NodeId, from: NodeId, to: SocketAddr, datagram: &[u8]) {
        self.network.counters.sent += 1;
        let Some(to) = self.node_at(to) else {
            self.network.counters.unreachable += 1;
            return;
        };
        if self.network.partitions.separate(here, to) {
            self.network.counters.partitioned += 1;
            return;
        }
        let (target, source) = (&self.nodes[to.index()], self.addresses.of(from));
        if datagram.len() > target.datagram_max.min(self.nodes[here.index()].datagram_max) {
            self.network.counters.too_long += 1;
            return;
        }
        let target = target.place;
        let sender = &mut self.nodes[here.index()];
        let place = sender.place;
        let copies = self.network.draw(&mut sender.network, place, target);
        if copies[0].is_none()
            && let Some(fabric) = &mut self.network.fabric
        {
            fabric.leave(self.now, place, target, datagram.len(), (from, to)); // a lost datagram was sent, too
        }
        for extra in copies.into_iter().flatten() {
            let packet = self.packets.add(from, source, to, extra, datagram);
            let next = match &mut self.network.fabric {
                Some(fabric) => fabric.leave(self.now, place, target, datagram.len(), (from, to)),
                None => Next::There { at: self.now },
            };
            self.go_on(packet, next);
        }
    }

    fn go_on(&mut self, packet: PacketId, next: Next) {
        match next {
            Next::Switch { at, switch } => self.heap.push(at, Event::Hop { packet, switch }),
            Next::There { at } => self.heap.push(at + self.packets.get(packet).extra, Event::Arrive(packet)),
            Next::ReceiveBufferFull => {
                self.network.counters.receive_buffer_full += 1;
                self.packets.free(packet, None);
            }
            Next::SwitchQueueFull => {
                self.network.counters.switch_queue_full += 1;
                self.packets.free(packet, None);
            }
        }
    }

    pub(super) fn hop(&mut self, packet: PacketId, switch: u32) -> AtSwitch {
        let Some(fabric) = &mut self.network.fabric else { return AtSwitch::IsGone };
        match fabric.admit(self.now, switch) {
            Some(at) if at > self.now => self.heap.push(at, Event::Pass { packet, switch }),
            Some(_) => return self.pass(packet, switch),
            None => self.go_on(packet, Next::SwitchQueueFull),
        }
        AtSwitch::IsGone
    }

    #[inline]
    pub(super) fn pass(&mut self, packet: PacketId, switch: u32) -> AtSwitch {
        let Some(fabric) = &self.network.fabric else { return AtSwitch::IsGone };
        let passing = self.packets.get(packet);
        if let Some(program) = fabric.program(switch)
            && program != passing.to
        {
            return AtSwitch::Passes(program);
        }
        self.leave_switch(packet, switch)
    }

    #[inline]
    pub(super) fn leave_switch(&mut self, packet: PacketId, switch: u32) -> AtSwitch {
        let Some(fabric) = &mut self.network.fabric else { return AtSwitch::IsGone };
        let passing = self.packets.get(packet);
        let to = self.nodes[passing.to.index()].place;
        if to == Place::Switch(switch) && passing.extra == 0 {
            return AtSwitch::Arrives;
        }
        let next = fabric.pass(self.now, switch, to, passing.bytes.len(), (passing.from, passing.to));
        self.go_on(packet, next);
        AtSwitch::IsGone
    }

    /// Handles a change of a datagram's target or bytes by a program on the path. Returns whether it can still reach
    /// its target.
    pub(super) fn redirect(&mut self, packet: PacketId, program: NodeId, to: SocketAddr, bytes: usize) -> bool {
        let Some(to) = self.node_at(to) else {
            self.network.counters.unreachable += 1;
            return false;
        };
        if to != self.packets.get(packet).to && self.network.partitions.separate(program, to) {
            self.network.counters.partitioned += 1;
            return false;
        }
        if bytes > self.nodes[to.index()].datagram_max {
            self.network.counters.too_long += 1;
            return false;
        }
        self.packets.set_target(packet, to);
        true
    }

    pub(super) fn local(&self, node: NodeId) -> Nanos {
        self.nodes[node.index()].clock.at(self.now)
    }

    /// Schedules a check of a node no later than its requested wake-up.
    pub(super) fn schedule_wake(&mut self, id: NodeId) {
        let node = &mut self.nodes[id.index()];
        if node.wanted == super::node::NEVER {
            return;
        }
        let at = node.clock.world(node.wanted).max(self.now);
        if at < node.scheduled {
            node.scheduled = at;
            self.heap.push(at, Event::Wake(id));
        }
    }

    /// FNV-1a with words of eight bytes, for speed: it runs for every datagram.
    pub(super) fn note_in_trace(&mut self, from: NodeId, to: NodeId, datagram: &[u8]) {
        let mut trace = self.trace;
        let mut note = |word: u64| trace = (trace ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        note(self.now);
        note(u64::from(from.0) << 32 | u64::from(to.0));
        note(datagram.len() as u64);
        let (words, rest) = datagram.as_chunks::<8>();
        words.iter().for_each(|&word| note(u64::from_be_bytes(word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        note(u64::from_be_bytes(last));
        self.trace = trace;
    }
}
