//! Orders to operators. An order's content is computed when it is sent, so a waiting order is never out of date.

use super::super::order::{Key, order, rule};
use super::channel::{Barred, Sent, State};
use super::event::Event;
use super::{Controller, Role};
use midflight_dataplane::cache::{Outcome, Rule};
use midflight_wire::cache::control::{ControlMessage, Done, Order, Refusal, Refused, Set};
use std::collections::BTreeMap;

/// `None`: an unknown number.
fn outcome_of(number: u8) -> Option<Outcome> {
    [Outcome::Done, Outcome::NoRoom, Outcome::Bad].into_iter().find(|outcome| *outcome as u8 == number)
}

fn label_of(order: &Order) -> Option<u16> {
    let Order::Rule(record) = order else { return None };
    let Some(Rule::Group { rsnode, .. }) = rule(record) else { return None };
    rsnode
}

impl Controller {
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

    pub(super) fn send_all(&mut self) {
        let Role::Active(term) = self.role else { return };
        for operator in 0..self.channels.len() {
            let channel = &mut self.channels[operator];
            if channel.is_dead || channel.state != State::Open {
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
            let Some(sequence) = channel.number.sequence.checked_add(1) else {
                self.reload(operator);
                continue;
            };
            channel.number.sequence = sequence;
            channel.owes_since = Some(self.questions.listened());
            let number = channel.number;
            let (keys, complete) = channel.next(self.config.batch);
            let (keys, orders) = keys.into_iter().filter_map(|key| Some((key, self.order_for(operator, key)?))).unzip();
            let set = Set { term, number, incarnation, orders, complete };
            self.counters.sets += 1;
            self.out.push_back((operator, ControlMessage::Set(set.clone())));
            let labels = set.orders.iter().filter_map(label_of).collect();
            self.channels[operator].sent = Some(Sent { set, keys, labels, at: self.now });
        }
    }

    /// The reason may be temporary, such as a lack of room.
    pub(super) fn retry_refused(&mut self) {
        for channel in &mut self.channels {
            let is_loaded = channel.is_live() && !channel.is_loading;
            if is_loaded && !channel.refused.is_empty() && self.now >= channel.retry_at {
                channel.retry_at = self.now.saturating_add(self.config.plan_every);
                channel.retry_refused();
            }
        }
    }

    pub(super) fn done(&mut self, operator: usize, done: &Done) {
        let channel = &mut self.channels[operator];
        let is_its = |sent: &mut Sent| {
            (sent.set.term, sent.set.number, sent.set.incarnation) == (done.term, done.number, done.incarnation)
        };
        let Some(sent) = channel.sent.take_if(is_its) else {
            self.counters.stale += 1;
            return;
        };
        channel.owes_since = None;
        // Deployment does not wait for hosts, racks and the like, of which there are most.
        let changes_plan =
            |key: &Key| (Key::ReplicaGroup(0)..Key::Host(std::net::Ipv4Addr::UNSPECIFIED.into())).contains(key);
        let may_go_on = channel.is_stuck() || sent.set.complete || sent.keys.iter().any(changes_plan);
        let was_forgotten = self.is_out_of_reach(operator);
        let channel = &mut self.channels[operator];
        if channel.stuck_since.take().is_some() {
            channel.barred = Barred::Back(self.now);
            self.events.push_back(Event::OperatorBack(operator));
        }
        if was_forgotten {
            return self.reload(operator);
        }
        self.take_outcomes(operator, &sent, &done.refused);
        self.forgive(operator);
        let channel = &mut self.channels[operator];
        if channel.is_loading && sent.set.complete {
            (channel.is_loading, channel.is_fresh) = (false, false);
            // Rules of the previous term, which took room, are removed now.
            channel.retry_at = self.now.saturating_add(self.config.plan_every);
            channel.retry_refused();
        }
        self.selector_is(operator, done.selector);
        if may_go_on {
            self.step();
        }
    }

    /// Records refused orders; the other labels among them are in force.
    fn take_outcomes(&mut self, operator: usize, sent: &Sent, refused: &[(u16, u8)]) {
        let refused: BTreeMap<usize, u8> = refused.iter().map(|&(place, why)| (place.into(), why)).collect();
        self.counters.foreign += refused.range(sent.keys.len()..).count() as u64;
        for (place, (&key, order)) in sent.keys.iter().zip(&sent.set.orders).enumerate() {
            if let Some(&number) = refused.get(&place) {
                let outcome = outcome_of(number);
                if self.channels[operator].note_refusal(key, outcome) {
                    self.counters.orders_refused += 1;
                    self.event(Event::OrderRefused { operator, order: Box::new(order.clone()), outcome });
                }
                continue;
            }
            self.channels[operator].note_done(key);
            if let (Key::Group(group), Order::Rule(record)) = (key, order)
                && let Some(Rule::Group { rsnode, .. }) = rule(record)
            {
                self.labels[usize::from(group)].in_force = Some(rsnode);
            }
        }
    }

    pub(super) fn refused(&mut self, operator: usize, refused: &Refused) {
        if self.channels[operator].incarnation != Some(refused.incarnation) {
            if self.channels[operator].former == Some(refused.incarnation) {
                self.counters.stale += 1;
                return;
            }
            if refused.why == Refusal::OtherIncarnation && self.channels[operator].state == State::Open {
                // The inventory has the current one.
                self.reload(operator);
            }
            return;
        }
        let channel = &mut self.channels[operator];
        let is_gap = channel.sent.as_ref().is_some_and(|sent| {
            let (sent, last) = (sent.set.number, refused.last);
            sent.loading == last.loading && sent.sequence > last.sequence.saturating_add(1)
        });
        // Otherwise it refuses a copy of earlier orders.
        if refused.why == Refusal::OutOfSequence && is_gap {
            self.reload(operator);
        }
    }

    /// Asks for an inventory, then sends all rules.
    fn reload(&mut self, operator: usize) {
        self.channels[operator].close();
        for group in 0..self.labels.len() {
            if self.network.labeller(group) == operator {
                self.labels[group].in_force = None;
            }
        }
    }
}
