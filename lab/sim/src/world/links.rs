//! Links between nodes: ordered messages in both directions until the link breaks.

use super::World;
use super::core::{Event, WorldState};
use super::node::NodeId;
use crate::{LinkEvent, Purpose, stream};
use midflight_endpoint::{Lane, Link, MESSAGE_MAX, MS, Nanos};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::collections::BTreeMap;

/// Bytes that a link accepts before its other end has them; then a sender waits.
const ROOM: usize = 1 << 20;
/// Latency of a stream on top of a datagram's delay: two stacks and a wake-up.
const LATENCY: Nanos = 30_000;
/// Longest retransmission time-out of a stream.
const RETRANSMISSION: Nanos = 20 * MS;
/// Longest time until an end notices a broken link.
const UNNOTICED: Nanos = 400 * MS;
/// Longest delay before a driver makes a link.
const CONNECT: Nanos = 30 * MS;
/// Throughput of long messages in bytes per microsecond: 10 Gbit/s.
const BYTES_PER_US: u64 = 1_250;

/// Two nodes and a lane; the node with the lower number first.
type Ends = (NodeId, NodeId, Lane);

#[derive(Debug, Default)]
pub(super) struct Links {
    pairs: BTreeMap<Ends, Pair>,
    events: Vec<Option<Delivery>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Pair {
    generation: u64,
    is_whole: bool,
    is_attempted: bool,
    ends: [End; 2],
    random: Pcg64,
}

/// One end, and what travels towards it.
#[derive(Debug, Default)]
struct End {
    is_wanted: bool,
    /// Name of the other end, told when the link was made.
    peer: Option<u64>,
    /// The link is up, as far as this end knows.
    is_open: bool,
    /// This end knows that the link has broken: if it was not up yet, it will not be.
    is_broken: bool,
    sent: u64,
    /// Messages after these are lost.
    arriving: u64,
    bytes: usize,
    last: Nanos,
    /// When its messages so far will have been worked on.
    worked: Nanos,
    is_awaited: bool,
}

#[derive(Debug)]
struct Delivery {
    ends: Ends,
    end: usize,
    generation: u64,
    life: u32,
    what: What,
}

#[derive(Debug)]
enum What {
    Attempt,
    Up,
    Broken,
    Message {
        number: u64,
        bytes: Vec<u8>,
    },
    /// A message that the node has worked on.
    Worked {
        number: u64,
        bytes: Vec<u8>,
    },
    Room,
}

impl Links {
    fn keep(&mut self, delivery: Delivery) -> Event {
        let number = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() as u32 - 1
        });
        self.events[number as usize] = Some(delivery);
        Event::Link(number)
    }

    pub(super) fn take(&mut self, number: u32) {
        if self.events[number as usize].take().is_some() {
            self.free.push(number);
        }
    }
}

fn node_of(ends: Ends, end: usize) -> NodeId {
    if end == 0 { ends.0 } else { ends.1 }
}

fn ends_of(a: NodeId, b: NodeId, lane: Lane) -> (Ends, usize) {
    if a < b { ((a, b, lane), 0) } else { ((b, a, lane), 1) }
}

impl WorldState {
    /// Sets the peers that a node wants links to: drops other links, and makes missing ones.
    pub(super) fn want_links(&mut self, node: NodeId, name: u64, peers: &[(u64, NodeId)]) {
        let is_new = self.nodes[node.index()].name.replace(name).is_none();
        if is_new {
            let of_node = |ends: &&Ends| ends.0 == node || ends.1 == node;
            let known: Vec<_> = self.links.pairs.keys().filter(of_node).copied().collect();
            known.into_iter().for_each(|ends| self.attempt(ends));
        }
        if self.nodes[node.index()].peers == peers {
            return;
        }
        let former = std::mem::replace(&mut self.nodes[node.index()].peers, peers.to_vec());
        for (_, other) in former {
            self.each_lane(node, other, |state, ends, end| {
                if !state.nodes[node.index()].peers.iter().any(|(_, peer)| *peer == other) {
                    state.break_link(ends);
                    state.pair(ends).ends[end].is_wanted = false;
                }
            });
        }
        for &(_, other) in peers.iter().filter(|(_, other)| *other != node) {
            self.each_lane(node, other, |state, ends, end| {
                state.pair(ends).ends[end].is_wanted = true;
                state.attempt(ends);
            });
        }
    }

    fn each_lane(&mut self, node: NodeId, other: NodeId, mut act: impl FnMut(&mut Self, Ends, usize)) {
        for lane in [Lane::Prompt, Lane::Bulk] {
            let (ends, end) = ends_of(node, other, lane);
            act(self, ends, end);
        }
    }

    fn pair(&mut self, ends: Ends) -> &mut Pair {
        let (a, b, lane) = ends;
        let index = u64::from(a.0) << 32 | u64::from(b.0) << 1 | u64::from(lane == Lane::Bulk);
        let seed = self.seed;
        self.links.pairs.entry(ends).or_insert_with(|| Pair {
            generation: 0,
            is_whole: false,
            is_attempted: false,
            ends: Default::default(),
            random: stream(seed, Purpose::Links, index),
        })
    }

    fn attempt(&mut self, ends: Ends) {
        let now = self.now;
        let pair = self.pair(ends);
        if pair.is_whole || std::mem::replace(&mut pair.is_attempted, true) {
            return;
        }
        let at = now + pair.random.random_range(0..=CONNECT);
        self.travel(at, ends, 0, What::Attempt);
    }

    pub(super) fn attempt_links(&mut self) {
        let all: Vec<_> = self.links.pairs.keys().copied().collect();
        all.into_iter().for_each(|ends| self.attempt(ends));
    }

    fn travel(&mut self, at: Nanos, ends: Ends, end: usize, what: What) {
        let generation = self.pair(ends).generation;
        let life = self.nodes[node_of(ends, end).index()].life;
        let event = self.links.keep(Delivery { ends, end, generation, life, what });
        self.schedule(at, event);
    }

    fn link_delay(&mut self, ends: Ends) -> Nanos {
        let faults = self.network.faults;
        let random = &mut self.pair(ends).random;
        let longest = faults.delay_max.max(faults.delay_min);
        let mut delay = LATENCY + random.random_range(faults.delay_min..=longest);
        if faults.loss > 0.0 && random.random_bool(faults.loss) {
            delay += random.random_range(0..=RETRANSMISSION);
        }
        delay
    }

    /// Makes a link if one of the nodes wants it, and both run and reach each other.
    fn make_link(&mut self, ends: Ends) {
        let (a, b, _) = ends;
        let separate = self.network.partitions.separate(a, b) || self.network.partitions.separate(b, a);
        let names = [b, a].map(|node| self.nodes[node.index()].name);
        let pair = self.pair(ends);
        pair.is_attempted = false;
        let is_wanted = pair.ends.iter().any(|end| end.is_wanted) && pair.ends.iter().all(|end| !end.is_open);
        if pair.is_whole || separate || !is_wanted || names.contains(&None) {
            return;
        }
        pair.ends.iter_mut().zip(names).for_each(|(end, name)| end.peer = name);
        pair.is_whole = true;
        pair.generation += 1;
        for end in 0..2 {
            let at = self.now + self.link_delay(ends);
            let state = &mut self.pair(ends).ends[end];
            let (is_wanted, peer) = (state.is_wanted, state.peer);
            *state = End { is_wanted, peer, arriving: u64::MAX, last: at, ..End::default() };
            self.travel(at, ends, end, What::Up);
        }
    }

    /// Breaks a link: each end notices it after some time, and part of what is in flight is lost.
    pub(super) fn break_link(&mut self, ends: Ends) {
        let now = self.now;
        let pair = self.pair(ends);
        if !std::mem::replace(&mut pair.is_whole, false) {
            return;
        }
        for end in 0..2 {
            let pair = self.pair(ends);
            let sent = pair.ends[end].sent;
            pair.ends[end].arriving = pair.random.random_range(0..=sent);
            let at = now + pair.random.random_range(0..=UNNOTICED);
            self.travel(at, ends, end, What::Broken);
        }
    }

    pub(super) fn break_links_of(&mut self, node: NodeId) {
        self.nodes[node.index()].peers.clear();
        self.nodes[node.index()].name = None;
        let of_node = |ends: &&Ends| ends.0 == node || ends.1 == node;
        let broken: Vec<_> = self.links.pairs.keys().filter(of_node).copied().collect();
        for ends in broken {
            self.break_link(ends);
            let end = usize::from(ends.1 == node);
            let state = &mut self.pair(ends).ends[end];
            (state.is_wanted, state.is_open) = (false, false);
        }
    }

    pub(super) fn break_separated(&mut self) {
        let partitions = &self.network.partitions;
        let is_separate = |(a, b, _): &&Ends| partitions.separate(*a, *b) || partitions.separate(*b, *a);
        let broken: Vec<_> = self.links.pairs.keys().filter(is_separate).copied().collect();
        broken.into_iter().for_each(|ends| self.break_link(ends));
    }

    pub(super) fn links_of(&self, node: NodeId) -> Vec<Link> {
        let of_node = self.links.pairs.iter().filter(|((a, b, _), _)| *a == node || *b == node);
        of_node.filter_map(|(&ends, pair)| pair.link(ends, usize::from(ends.1 == node))).collect()
    }

    /// Whether a link of this node has room; if not, the node gets a turn when it has.
    pub(super) fn has_room(&mut self, node: NodeId, link: Link) -> bool {
        let Some((ends, end)) = self.find(node, link) else { return false };
        let towards = &mut self.pair(ends).ends[1 - end];
        let has_room = towards.bytes < ROOM;
        towards.is_awaited |= !has_room;
        has_room
    }

    fn find(&self, node: NodeId, link: Link) -> Option<(Ends, usize)> {
        let of_node = self.links.pairs.iter().filter(|((a, b, _), _)| *a == node || *b == node);
        of_node
            .map(|(&ends, pair)| (ends, usize::from(ends.1 == node), pair))
            .find_map(|(ends, end, pair)| (pair.link(ends, end) == Some(link)).then_some((ends, end)))
    }

    /// Sends a message. A broken link loses it.
    ///
    /// # Panics
    /// If it is longer than any link carries.
    pub(super) fn send_on_link(&mut self, node: NodeId, link: Link, message: &[u8]) {
        assert!(message.len() <= MESSAGE_MAX, "a message of {} bytes", message.len());
        let Some((ends, end)) = self.find(node, link) else { return };
        let at = self.now + self.link_delay(ends);
        let pair = self.pair(ends);
        let towards = &mut pair.ends[1 - end];
        towards.sent += 1;
        towards.bytes += message.len();
        // Messages are serialised at the link's throughput.
        towards.last = towards.last.max(at) + message.len() as Nanos * 1_000 / BYTES_PER_US;
        let (at, number) = (towards.last, towards.sent);
        if pair.is_whole {
            self.travel(at, ends, 1 - end, What::Message { number, bytes: message.to_vec() });
        }
    }
}

impl Pair {
    fn link(&self, ends: Ends, end: usize) -> Option<Link> {
        let peer = self.ends[end].peer.filter(|_| self.ends[end].is_open)?;
        Some(Link { peer, lane: ends.2, generation: self.generation })
    }
}

impl World {
    pub(super) fn link_event(&mut self, number: u32) {
        let Some(delivery) = &self.core.links.events[number as usize] else { return };
        let (ends, end, generation, life) = (delivery.ends, delivery.end, delivery.generation, delivery.life);
        let is_attempt = matches!(delivery.what, What::Attempt);
        let id = node_of(ends, end);
        let node = &mut self.core.nodes[id.index()];
        if let Some(held) = node.held.as_mut().filter(|_| !is_attempt && node.life == life) {
            return held.push(Event::Link(number));
        }
        let is_present = node.life == life && self.core.pair(ends).generation == generation;
        let Some(delivery) = self.core.links.events[number as usize].take() else { return };
        self.core.links.free.push(number);
        match delivery.what {
            What::Attempt => self.core.make_link(ends),
            What::Up if is_present => self.link_up(ends, end),
            What::Broken if is_present => self.link_broken(ends, end),
            What::Message { number, bytes } if is_present => self.link_work(ends, end, number, bytes),
            What::Worked { number, bytes } if is_present => self.link_message(ends, end, number, &bytes),
            What::Room if is_present => self.tell(ends, end, LinkEvent::Room),
            What::Up | What::Broken | What::Message { .. } | What::Worked { .. } | What::Room => {}
        }
    }

    fn link_up(&mut self, ends: Ends, end: usize) {
        let state = &mut self.core.pair(ends).ends[end];
        if state.is_broken {
            return;
        }
        state.is_open = true;
        self.tell(ends, end, LinkEvent::Up);
    }

    fn link_broken(&mut self, ends: Ends, end: usize) {
        let link = self.core.pair(ends).link(ends, end);
        let state = &mut self.core.pair(ends).ends[end];
        (state.is_open, state.is_broken) = (false, true);
        self.tell_of(ends, end, link, LinkEvent::Broken);
        self.core.attempt(ends);
    }

    /// A thread of the node works on a message. A link's messages keep their order.
    fn link_work(&mut self, ends: Ends, end: usize, number: u64, bytes: Vec<u8>) {
        let node = node_of(ends, end).index();
        let cost = self.actors[node].as_ref().map_or(0, |actor| actor.message_cost(&bytes));
        if cost == 0 {
            return self.link_message(ends, end, number, &bytes);
        }
        let worked = self.core.nodes[node].work(self.core.now, cost);
        let state = &mut self.core.pair(ends).ends[end];
        state.worked = state.worked.max(worked);
        let at = state.worked;
        self.core.travel(at, ends, end, What::Worked { number, bytes });
    }

    fn link_message(&mut self, ends: Ends, end: usize, number: u64, bytes: &[u8]) {
        let state = &mut self.core.pair(ends).ends[end];
        state.bytes -= bytes.len();
        if number > state.arriving || !state.is_open {
            return;
        }
        if std::mem::take(&mut state.is_awaited) {
            self.core.travel(self.core.now, ends, 1 - end, What::Room);
        }
        self.core.note_in_trace(node_of(ends, 1 - end), node_of(ends, end), bytes);
        self.tell(ends, end, LinkEvent::Message(bytes));
    }

    fn tell(&mut self, ends: Ends, end: usize, event: LinkEvent<'_>) {
        let link = self.core.pair(ends).link(ends, end);
        self.tell_of(ends, end, link, event);
    }

    fn tell_of(&mut self, ends: Ends, end: usize, link: Option<Link>, event: LinkEvent<'_>) {
        let (Some(link), node) = (link, node_of(ends, end)) else { return };
        self.turn(node, |actor, context| actor.link(context, link, event));
        self.show_to_observer(node, None);
    }
}
