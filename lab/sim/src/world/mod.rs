//! The simulated world: nodes with actors, a network, and time. All events follow from the seed; [`World::trace_hash`]
//! tells whether two runs were equal.

mod action;
mod addresses;
mod context;
mod core;
mod disk;
mod links;
mod node;

pub use action::Action;
pub use context::Context;
pub use disk::{DiskCondition, DiskTimes};
pub use node::NodeId;

use crate::actor::{Actor, Birth, Factory, Passage, Passing, Wake};
use crate::network::{Fabric, Faults, Hardware, HostConfig, HostId, Network, NetworkCounters, PacketId, Place, Pool};
use crate::time::{Clock, Heap};
use crate::{Observer, Purpose, Sink, stream};
use addresses::Addresses;
use core::{AtSwitch, Event, WorldState};
use disk::Disk;
use links::Links;
use midflight_endpoint::Nanos;
use node::{CpuShare, NEVER, Node};
use std::any::Any;
use std::net::SocketAddr;

/// Maximum datagrams that wait at a paused or busy node; further ones are dropped.
const RECEIVE_BUFFER: u32 = 4096;

/// Nodes, a network between them, and time.
pub struct World {
    core: WorldState,
    /// By node; `None` while it is down.
    actors: Vec<Option<Box<dyn Actor>>>,
    factories: Vec<Factory>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let WorldState { now, seed, .. } = &self.core;
        f.debug_struct("World").field("now", now).field("seed", seed).finish_non_exhaustive()
    }
}

impl World {
    /// An empty world. All randomness comes from `seed`.
    #[must_use]
    pub fn new(seed: u64, faults: Faults) -> Self {
        let core = WorldState {
            seed,
            now: 0,
            heap: Heap::default(),
            nodes: Vec::new(),
            addresses: Addresses::default(),
            network: Network::new(faults),
            packets: Pool::default(),
            links: Links::default(),
            actions: Vec::new(),
            sink: None,
            observer: None,
            trace: 0xcbf2_9ce4_8422_2325,
            buffer: Vec::new(),
        };
        Self { core, actors: Vec::new(), factories: Vec::new() }
    }

    /// An empty world whose hosts, links and switches take time, in addition to `faults` ([`Faults::INSTANT`] has no
    /// delay).
    #[must_use]
    pub fn with_hardware(seed: u64, faults: Faults, hardware: &Hardware) -> Self {
        let mut world = Self::new(seed, faults);
        world.core.network.fabric = Some(Fabric::new(hardware));
        world
    }

    /// Adds a host, on which nodes can be placed.
    ///
    /// # Panics
    /// If the world has no hardware, or no such rack.
    pub fn add_host(&mut self, config: HostConfig) -> HostId {
        let fabric = self.core.network.fabric.as_mut().expect("made by World::with_hardware");
        fabric.add_host(config).expect("the host's rack is one of the hardware's")
    }

    /// Shows all events to `observer`, which replaces the last one.
    pub fn set_observer(&mut self, observer: Box<dyn Observer>) {
        self.core.observer = Some(observer);
    }

    /// The observer, if it is of this type.
    #[must_use]
    pub fn observer<T: Observer>(&self) -> Option<&T> {
        self.core.observer.as_deref().and_then(|observer| (observer as &dyn Any).downcast_ref())
    }

    /// Records events in `sink`, which replaces the last one.
    pub fn set_sink(&mut self, sink: Box<dyn Sink>) {
        self.core.sink = Some(sink);
    }

    /// The sink, if it is of this type.
    #[must_use]
    pub fn sink<T: Sink>(&self) -> Option<&T> {
        self.core.sink.as_deref().and_then(|sink| (sink as &dyn Any).downcast_ref())
    }

    /// The same, to change it.
    pub fn sink_mut<T: Sink>(&mut self) -> Option<&mut T> {
        self.core.sink.as_deref_mut().and_then(|sink| (sink as &mut dyn Any).downcast_mut())
    }

    /// Adds a node whose processes `factory` creates. The first starts now.
    ///
    /// # Panics
    /// If the world has 2^24 nodes, or no such place.
    pub fn add_actor(&mut self, place: Place, factory: Factory) -> NodeId {
        assert!(self.actors.len() < NodeId::MOST, "a world has at most {} nodes", NodeId::MOST);
        let fabric = self.core.network.fabric.as_ref();
        assert!(fabric.map_or(place == Place::Apart, |fabric| fabric.has(place)), "no such place: {place:?}");
        let id = NodeId(self.actors.len() as u32);
        let stream = |purpose| stream(self.core.seed, purpose, u64::from(id.0));
        self.core.nodes.push(Node {
            place,
            disk: Disk::new(self.core.seed, id),
            name: None,
            peers: Vec::new(),
            life: 0,
            clock: Clock::default(),
            wanted: NEVER,
            scheduled: NEVER,
            held: None,
            thread: 0,
            threads: Box::default(),
            wake_up: 0,
            share: None,
            undecided: 0,
            datagram_max: usize::MAX,
            network: stream(Purpose::Network),
            random: stream(Purpose::Actor),
        });
        self.factories.push(factory);
        self.actors.push(None);
        self.begin(id);
        id
    }

    /// Sets how many datagrams and messages the node's processes work on at a time, if these have costs; 1 by default.
    ///
    /// # Panics
    /// If that is none.
    pub fn set_threads(&mut self, node: NodeId, threads: usize) {
        assert!(threads > 0, "a process has a thread");
        self.core.nodes[node.index()].threads = vec![0; threads - 1].into();
    }

    /// What sleeping threads of this node take longer for what comes first, if it takes any time. Default 0.
    pub fn set_wake_up(&mut self, node: NodeId, takes: Nanos) {
        self.core.nodes[node.index()].wake_up = takes;
    }

    /// Gives a node of one thread only `quota` of each `period` of a CPU; the first begins at `phase`.
    ///
    /// # Panics
    /// If it has several threads, or no quota.
    pub fn set_share(&mut self, node: NodeId, quota: Nanos, period: Nanos, phase: Nanos) {
        let node = &mut self.core.nodes[node.index()];
        assert!(node.threads.is_empty() && quota > 0 && quota <= period, "one thread has a part of each period");
        node.share = Some(CpuShare { quota, period, phase, until: 0, used: 0 });
    }

    /// Shows the datagrams that pass this node's switch to the node ([`Actor::passing`]).
    ///
    /// # Panics
    /// If the node is in no switch, or another node sees that switch's datagrams.
    pub fn attach(&mut self, node: NodeId) {
        let (place, fabric) = (self.core.nodes[node.index()].place, self.core.network.fabric.as_mut());
        let (Place::Switch(switch), Some(fabric)) = (place, fabric) else { panic!("{place:?} is no switch") };
        assert!(fabric.attach(switch, node), "switch {switch} has a program on the way");
    }

    /// The switches between two nodes, unless a program changes a datagram's target.
    #[must_use]
    pub fn route(&self, from: NodeId, to: NodeId) -> Vec<u32> {
        let place = |node: NodeId| self.core.nodes[node.index()].place;
        let fabric = self.core.network.fabric.as_ref();
        fabric.map_or_else(Vec::new, |fabric| fabric.route(place(from), place(to), (from, to)))
    }

    /// Schedules an action at a time (now, if that has passed).
    pub fn at(&mut self, at: Nanos, action: Action) {
        let event = self.keep(action);
        self.core.schedule(at, event);
    }

    fn keep(&mut self, action: Action) -> Event {
        self.core.actions.push(Some(action));
        Event::Act(self.core.actions.len() as u32 - 1)
    }

    /// Runs until no event is left, `done` returns true after an event, or `deadline`. Returns whether `done` did.
    pub fn run(&mut self, deadline: Nanos, mut done: impl FnMut(&Self) -> bool) -> bool {
        while !done(self) {
            let Some((at, event)) = self.core.heap.pop_until(deadline) else {
                if !self.core.heap.is_empty() {
                    self.core.now = self.core.now.max(deadline);
                }
                return false;
            };
            self.core.now = at;
            self.step(event);
        }
        true
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Hop { packet, switch } => {
                let becomes = self.core.hop(packet, switch);
                self.at_switch(packet, switch, becomes);
            }
            Event::Pass { packet, switch } => {
                let becomes = self.core.pass(packet, switch);
                self.at_switch(packet, switch, becomes);
            }
            Event::Arrive(packet) => self.arrive(packet),
            Event::Decided { packet, life } => self.decided(packet, life),
            Event::Wake(node) => self.wake(node),
            Event::Token { node, life, token } => self.token(node, life, token),
            Event::Synced { node, life } => self.synced(node, life),
            Event::Persisted { node, life, batch } => self.persisted(node, life, batch),
            Event::Link(number) => self.link_event(number),
            Event::Act(number) => {
                if let Some(action) = self.core.actions[number as usize].take() {
                    self.act(action);
                }
            }
        }
    }

    #[inline]
    fn at_switch(&mut self, packet: PacketId, switch: u32, becomes: AtSwitch) {
        match becomes {
            AtSwitch::Arrives => self.arrive(packet),
            AtSwitch::Passes(program) => self.pass_program(packet, switch, program),
            AtSwitch::IsGone => {}
        }
    }

    /// Shows a datagram to a program on the path. A program that is down changes nothing; for a paused one the datagram
    /// waits.
    fn pass_program(&mut self, packet: PacketId, switch: u32, program: NodeId) {
        if let Some(held) = &mut self.core.nodes[program.index()].held {
            if held.len() < RECEIVE_BUFFER as usize {
                return held.push(Event::Pass { packet, switch });
            }
            self.core.network.counters.receive_buffer_full += 1;
            return self.core.packets.free(packet, None);
        }
        if self.actors[program.index()].is_some() && !self.show_passing(packet, program) {
            return;
        }
        let becomes = self.core.leave_switch(packet, switch);
        self.at_switch(packet, switch, becomes);
    }

    fn show_passing(&mut self, id: PacketId, program: NodeId) -> bool {
        let packet = self.core.packets.get(id);
        let (from, source, target) = (packet.from, packet.source, packet.to);
        let mut bytes = self.core.packets.take_bytes(id);
        self.core.note_in_trace(from, target, &bytes);
        let to = self.core.addresses.of(target);
        let mut passing = Passing { from, source, to, datagram: &mut bytes };
        let mut passage = Passage::GoesOn;
        self.turn(program, |actor, context| passage = actor.passing(context, &mut passing));
        let to = passing.to;
        self.show_to_observer(program, Some(&bytes));
        if passage == Passage::Ends || !self.core.redirect(id, program, to, bytes.len()) {
            self.core.packets.free(id, Some(bytes));
            return false;
        }
        self.core.packets.set_bytes(id, bytes);
        true
    }

    fn arrive(&mut self, packet: PacketId) {
        let to = self.core.packets.get(packet).to;
        let Some(actor) = &self.actors[to.index()] else {
            self.core.network.counters.unreachable += 1;
            return self.core.packets.free(packet, None);
        };
        let (node, arrived) = (&mut self.core.nodes[to.index()], self.core.packets.get(packet));
        if let Some(held) = &mut node.held {
            if held.len() < RECEIVE_BUFFER as usize {
                return held.push(Event::Arrive(packet));
            }
            self.core.network.counters.receive_buffer_full += 1;
            return self.core.packets.free(packet, None);
        }
        let cost = actor.cost(arrived.source, &arrived.bytes);
        if cost == 0 {
            return self.handle(packet);
        }
        if node.undecided >= RECEIVE_BUFFER {
            self.core.network.counters.receive_buffer_full += 1;
            return self.core.packets.free(packet, None);
        }
        node.undecided += 1;
        let (at, life) = (node.work(self.core.now, cost), node.life);
        self.core.schedule(at, Event::Decided { packet, life });
    }

    fn decided(&mut self, packet: PacketId, life: u32) {
        let node = &mut self.core.nodes[self.core.packets.get(packet).to.index()];
        if node.life != life {
            self.core.network.counters.unreachable += 1;
            return self.core.packets.free(packet, None);
        }
        if let Some(held) = &mut node.held {
            return held.push(Event::Decided { packet, life });
        }
        node.undecided -= 1;
        self.handle(packet);
    }

    fn handle(&mut self, id: PacketId) {
        let packet = self.core.packets.get(id);
        let (from, to, source) = (packet.from, packet.to, packet.source);
        let bytes = self.core.packets.take_bytes(id);
        self.core.note_in_trace(from, to, &bytes);
        if let Some(observer) = &mut self.core.observer {
            observer.arrived(self.core.now, from, to, &bytes);
        }
        self.turn(to, |actor, context| actor.datagram(context, source, &bytes));
        self.show_to_observer(to, Some(&bytes));
        self.core.packets.free(id, Some(bytes));
    }

    fn wake(&mut self, id: NodeId) {
        let node = &mut self.core.nodes[id.index()];
        if node.scheduled != self.core.now {
            return; // superseded by an earlier one, or void after a restart
        }
        node.scheduled = NEVER;
        if node.wanted == NEVER || node.held.is_some() {
            return;
        }
        if node.clock.at(self.core.now) < node.wanted {
            return self.core.schedule_wake(id);
        }
        node.wanted = NEVER;
        self.turn(id, |actor, context| actor.wake(context, Wake::Time));
        self.show_to_observer(id, None);
    }

    fn token(&mut self, id: NodeId, life: u32, token: u64) {
        let node = &mut self.core.nodes[id.index()];
        if node.life != life {
            return;
        }
        if let Some(held) = &mut node.held {
            return held.push(Event::Token { node: id, life, token });
        }
        self.turn(id, |actor, context| actor.wake(context, Wake::Token(token)));
        self.show_to_observer(id, None);
    }

    fn turn(&mut self, id: NodeId, turn: impl FnOnce(&mut dyn Actor, &mut Context<'_>)) {
        if let Some(actor) = &mut self.actors[id.index()] {
            let now = self.core.local(id);
            turn(&mut **actor, &mut Context { core: &mut self.core, node: id, now });
        }
    }

    fn show_to_observer(&mut self, node: NodeId, datagram: Option<&[u8]>) {
        if let (Some(observer), Some(actor)) = (&mut self.core.observer, &self.actors[node.index()]) {
            observer.handled(self.core.now, node, &**actor, datagram);
        }
    }

    /// Virtual nanoseconds since the world began.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.core.now
    }

    /// The first address of the node with this number, which may not have been added yet.
    #[must_use]
    pub fn home(number: u32) -> SocketAddr {
        NodeId(number).home()
    }

    /// A node's address.
    #[must_use]
    pub fn address(&self, node: NodeId) -> SocketAddr {
        self.core.addresses.of(node)
    }

    /// The node at an address.
    #[must_use]
    pub fn node_at(&self, address: SocketAddr) -> Option<NodeId> {
        self.core.node_at(address)
    }

    /// The actor of a node that is up, if it is of this type.
    #[must_use]
    pub fn actor<T: Actor>(&self, node: NodeId) -> Option<&T> {
        let actor = self.actors[node.index()].as_deref()?;
        (actor as &dyn Any).downcast_ref()
    }

    /// Counts of datagrams by outcome.
    #[must_use]
    pub fn network_counters(&self) -> &NetworkCounters {
        &self.core.network.counters
    }

    /// Events so far, including scheduled ones.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.core.heap.pushed()
    }

    /// Hash of every handled datagram with its time, source and target.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.core.trace
    }
}
