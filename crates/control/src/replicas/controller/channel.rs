//! One operator, as its controller sees it. What it should have is worked out when it is sent, so an order that waits is never an old
//! one; here is only which of it the operator lacks.

use super::super::order::{Key, order};
use super::event::Event;
use super::{Controller, Role};
use midflight_dataplane::replicas::{Outcome, Rule};
use midflight_endpoint::Nanos;
use midflight_wire::replicas::control::{ControlMessage, Done, Order, Refusal, Refused, Set};
use std::collections::BTreeSet;

/// Whether orders may be sent to an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not before its inventory has come.
    Unknown,
    /// They may.
    Open,
}

/// Whether an operator may be in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Barred {
    /// It may.
    No,
    /// Not while it is gone.
    Gone,
    /// Not until it has been back for a while, since then.
    Back(Nanos),
}

/// Orders without an answer.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) set: Set,
    keys: Vec<Key>,
    at: Nanos,
}

#[derive(Debug)]
pub(super) struct Channel {
    /// The last time at which it was alive.
    pub(super) heard: Nanos,
    pub(super) is_dead: bool,
    pub(super) barred: Barred,
    /// It may have a selector.
    pub(super) can_select: bool,
    /// The last question whose answer was taken.
    pub(super) answered: u64,
    /// When it has heard of an active controller, as far as a standby knows.
    pub(super) controller_heard: Option<Nanos>,
    pub(super) incarnation: Option<u64>,
    pub(super) selector: Option<u64>,
    /// Since when it has no selector.
    pub(super) selector_gone: Option<Nanos>,
    /// The selector that has the replica groups, or is getting them.
    pub(super) grouped: Option<u64>,
    pub(super) state: State,
    pub(super) sequence: u64,
    dirty: BTreeSet<Key>,
    urgent: BTreeSet<Key>,
    pub(super) sent: Option<Sent>,
    /// It is getting all rules: with the last one it removes those that it should not have.
    is_loading: bool,
    /// Of its rules, those that its core refused.
    pub(super) refused: BTreeSet<Key>,
}

impl Channel {
    pub(super) fn new(now: Nanos, can_select: bool) -> Self {
        Self {
            heard: now,
            is_dead: false,
            barred: Barred::No,
            can_select,
            answered: 0,
            controller_heard: None,
            incarnation: None,
            selector: None,
            selector_gone: None,
            grouped: None,
            state: State::Unknown,
            sequence: 0,
            dirty: BTreeSet::new(),
            urgent: BTreeSet::new(),
            sent: None,
            is_loading: false,
            refused: BTreeSet::new(),
        }
    }

    /// Orders may be sent, and it answers.
    pub(super) fn is_live(&self) -> bool {
        !self.is_dead && self.state == State::Open
    }

    pub(super) fn is_barred(&self, now: Nanos, barred_for: Nanos) -> bool {
        let has_failed = match self.barred {
            Barred::No => false,
            Barred::Gone => true,
            Barred::Back(since) => now < since.saturating_add(barred_for),
        };
        has_failed || self.is_dead || !self.can_select || self.selector_gone.is_some()
    }

    /// It lacks this, or may lack it.
    pub(super) fn lacks(&self, key: Key) -> bool {
        self.dirty.contains(&key)
            || self.urgent.contains(&key)
            || self.sent.as_ref().is_some_and(|sent| sent.keys.contains(&key))
    }

    pub(super) fn lacks_replica_groups(&self) -> bool {
        let is_one = |key: &Key| matches!(key, Key::ReplicaGroup(_) | Key::Selectors);
        self.dirty.range(Key::ReplicaGroup(0)..=Key::Selectors).next().is_some()
            || self.sent.as_ref().is_some_and(|sent| sent.keys.iter().any(is_one))
    }

    pub(super) fn is_up_to_date(&self) -> bool {
        self.state == State::Open && self.sent.is_none() && self.dirty.is_empty() && self.urgent.is_empty()
    }

    /// It lacks this from now on.
    pub(super) fn need(&mut self, key: Key) {
        self.refused.remove(&key);
        if self.state == State::Open && !self.urgent.contains(&key) {
            self.dirty.insert(key);
        }
    }

    /// The same, and it goes before all others.
    pub(super) fn need_at_once(&mut self, key: Key) {
        self.refused.remove(&key);
        if self.state == State::Open {
            self.dirty.remove(&key);
            self.urgent.insert(key);
        }
    }

    /// What it has is not known any more.
    pub(super) fn close(&mut self) {
        self.state = State::Unknown;
        self.sent = None;
        self.dirty.clear();
        self.urgent.clear();
        self.refused.clear();
        self.grouped = None;
        self.is_loading = false;
    }

    /// It gets all its rules, after the orders of this sequence.
    pub(super) fn open(&mut self, sequence: u64, keys: impl Iterator<Item = Key>) {
        self.close();
        self.state = State::Open;
        self.sequence = sequence;
        self.is_loading = true;
        self.dirty.extend(keys);
    }

    /// The next keys to send, and whether these are the last of all rules.
    fn next(&mut self, batch: usize) -> (Vec<Key>, bool) {
        let from = if self.urgent.is_empty() { &mut self.dirty } else { &mut self.urgent };
        let keys: Vec<Key> = std::iter::from_fn(|| from.pop_first()).take(batch.max(1)).collect();
        let complete = self.is_loading && self.dirty.is_empty() && self.urgent.is_empty();
        (keys, complete)
    }
}

impl Controller {
    /// What an operator should have under a key.
    fn order_for(&self, operator: usize, key: Key) -> Option<Order> {
        let network = &self.network;
        Some(match key {
            Key::Own => order(Rule::Own { rack: network.rack_of(operator), selector: network.selector(operator) }),
            Key::Operator(address) => order(Rule::Operator(address)),
            Key::Rack(number) => {
                let rack = network.racks().get(usize::from(number))?;
                let at = Some(network.address(rack.operator));
                order(Rule::Rack { rack: number, operator: at, marker: rack.marker })
            }
            Key::Server(address) => {
                let rack = network.rack_of_server(address)?;
                order(Rule::Server { address, rack })
            }
            Key::Host(ip) => {
                let host = network.host(ip)?;
                order(Rule::Host { ip, rack: host.rack, group: host.group })
            }
            Key::ReplicaGroup(id) => {
                Order::ReplicaGroup { group: id, servers: network.replica_group(id)?.servers.clone() }
            }
            Key::Selectors => Order::Selectors(self.selectors as u32),
            Key::RsNode(id) => {
                order(match self.ids.get(id).filter(|node| node.is_known()).and_then(|node| node.operator) {
                    Some(owner) if owner == operator => Rule::Serve(id),
                    owner => Rule::RsNode { id, operator: owner.map(|owner| network.address(owner)) },
                })
            }
            Key::Group(group) => {
                let wanted = self.labels.get(usize::from(group))?.wanted;
                let rsnode = wanted.filter(|&id| self.ids.get(id).is_some_and(|node| node.is_known()));
                order(Rule::Group { group, rsnode })
            }
        })
    }

    /// All keys of an operator; replica groups only if it is an RSNode.
    pub(super) fn all_keys(&self, operator: usize) -> Vec<Key> {
        let network = &self.network;
        let mut keys = vec![Key::Own];
        let others = (0..network.operators()).filter(|&other| other != operator);
        keys.extend(others.map(|other| Key::Operator(network.address(other))));
        keys.extend((0..network.racks().len()).map(|rack| Key::Rack(rack as u16)));
        keys.extend(network.servers().iter().map(|&(address, _)| Key::Server(address)));
        keys.extend(self.ids.iter().map(|(id, _)| Key::RsNode(id)));
        let groups = (0..network.groups().len()).filter(|&group| network.labeller(group) == operator);
        keys.extend(groups.map(|group| Key::Group(group as u16)));
        keys.extend(network.hosts().iter().map(|host| Key::Host(host.ip)));
        keys
    }

    /// Sends to each operator what it lacks, and repeats what has had no answer.
    pub(super) fn send_all(&mut self) {
        let Role::Active(term) = self.role else { return };
        for operator in 0..self.channels.len() {
            let channel = &mut self.channels[operator];
            if !channel.is_live() {
                continue;
            }
            if let Some(sent) = &mut channel.sent {
                if self.now >= sent.at.saturating_add(self.config.repeat_after) {
                    sent.at = self.now;
                    self.counters.repeats += 1;
                    self.out.push_back((operator, ControlMessage::Set(sent.set.clone())));
                }
                continue;
            }
            if channel.is_up_to_date() {
                continue;
            }
            let Some(incarnation) = channel.incarnation else { continue };
            let (keys, complete) = channel.next(self.config.batch);
            channel.sequence = channel.sequence.saturating_add(1);
            let sequence = channel.sequence;
            let (keys, orders) = keys.into_iter().filter_map(|key| Some((key, self.order_for(operator, key)?))).unzip();
            let set = Set { term, sequence, incarnation, orders, complete };
            self.counters.sets += 1;
            self.out.push_back((operator, ControlMessage::Set(set.clone())));
            self.channels[operator].sent = Some(Sent { set, keys, at: self.now });
        }
    }

    /// Orders were carried out.
    pub(super) fn done(&mut self, operator: usize, done: &Done) {
        let channel = &mut self.channels[operator];
        let is_its = |sent: &Sent| {
            (sent.set.term, sent.set.sequence, sent.set.incarnation) == (done.term, done.sequence, done.incarnation)
        };
        if !channel.sent.as_ref().is_some_and(is_its) {
            self.counters.stale += 1;
            return;
        }
        let Some(sent) = channel.sent.take() else { return };
        channel.is_loading &= !sent.set.complete;
        let mut events = Vec::new();
        for &(place, outcome) in &done.refused {
            let Some((&key, order)) = sent.keys.get(usize::from(place)).zip(sent.set.orders.get(usize::from(place)))
            else {
                self.counters.foreign += 1;
                continue;
            };
            channel.refused.insert(key);
            let outcome = match outcome {
                0 => Some(Outcome::Done),
                1 => Some(Outcome::NoRoom),
                2 => Some(Outcome::Bad),
                _ => None,
            };
            events.push(Event::OrderRefused { operator, order: Box::new(order.clone()), outcome });
        }
        for (key, order) in sent.keys.iter().zip(&sent.set.orders) {
            if let (Key::Group(group), Order::Rule(record)) = (key, order)
                && let Some(Rule::Group { rsnode, .. }) = super::super::order::rule(record)
                && !self.channels[operator].refused.contains(key)
            {
                self.labels[usize::from(*group)].in_force = Some(rsnode);
            }
        }
        self.events.extend(events);
        self.selector_is(operator, done.selector);
        self.step();
    }

    /// Orders were not carried out.
    pub(super) fn refused(&mut self, operator: usize, refused: &Refused) {
        if self.channels[operator].incarnation != Some(refused.incarnation) {
            if refused.why == Refusal::OtherIncarnation && self.channels[operator].state == State::Open {
                self.restarted(operator, refused.incarnation);
            }
            return;
        }
        let channel = &mut self.channels[operator];
        let is_gap = channel.sent.as_ref().is_some_and(|sent| sent.set.sequence > refused.sequence.saturating_add(1));
        // Else it refuses a copy of earlier orders.
        if refused.why == Refusal::OutOfSequence && is_gap {
            channel.close();
        }
    }
}
