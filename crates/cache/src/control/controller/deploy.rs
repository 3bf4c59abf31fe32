//! Moves from the rules in force to the plan, one step at a time (N7). Each call derives the next step from what is in force, so a failure,
//! another plan or another controller may come between any two.

use super::super::order::Key;
use super::channel::{Barred, State};
use super::event::{Event, Failure};
use super::ids::{RsNode, Use};
use super::{Controller, Role};
use midflight_endpoint::mutants::planted;
use std::collections::{BTreeMap, BTreeSet};

/// Whether groups are labelled with it, or will be.
fn is_in_use(node: &RsNode) -> bool {
    matches!(node.used, Use::Preparing | Use::Serving)
}

impl Controller {
    pub(super) fn step(&mut self) {
        let Role::Active(_) = self.role else { return };
        self.fail_refused();
        self.prepare_new();
        self.finish_prepared();
        self.flip_labels();
        self.retire_old();
        self.tell_number();
        let is_deployed = (0..self.labels.len()).all(|group| self.is_as_planned(group));
        if is_deployed && !self.is_deployed {
            self.event(Event::Deployed);
        }
        self.is_deployed = is_deployed;
    }

    fn is_as_planned(&self, group: usize) -> bool {
        let node = self.labels[group].in_force.flatten().and_then(|id| self.ids.get(id));
        self.labels[group].in_force.is_some() && node.and_then(|node| node.operator) == self.target[group]
    }

    /// Answers in flight may carry an id that another controller has just removed.
    fn may_allocate(&self) -> bool {
        let has_rested = self.now >= self.learned_at.saturating_add(self.config.longest_response);
        has_rested && !self.are_ids_held_back()
    }

    /// Whether an operator without an inventory may know ids that no other operator knows.
    pub(super) fn are_ids_held_back(&self) -> bool {
        self.were_ids_used && self.is_one_unheard()
    }

    /// Allocates ids for new operators of the plan; one that is just retiring keeps its id.
    fn prepare_new(&mut self) {
        let may_allocate = self.may_allocate();
        let wanted: BTreeSet<usize> = self.target.iter().flatten().copied().collect();
        for operator in wanted {
            if self.ids.of(operator, |used| matches!(used, Use::Preparing | Use::Serving)).is_some() {
                continue;
            }
            if let Some(id) = self.ids.of(operator, |used| matches!(used, Use::Retiring(_))) {
                // Operators that have returned since may not know it yet.
                self.ids.set_use(id, Use::Preparing);
                continue;
            }
            let channel = &self.channels[operator];
            if !channel.is_live() || channel.selector.is_none() || !may_allocate {
                continue;
            }
            let Some(id) = self.ids.allocate(operator) else {
                if !std::mem::replace(&mut self.is_out_of_ids, true) {
                    self.counters.no_free_id += 1;
                    self.event(Event::NoFreeId);
                }
                continue;
            };
            self.is_out_of_ids = false;
            self.give_replica_groups(operator);
            self.channels.iter_mut().for_each(|channel| channel.need(Key::RsNode(id)));
        }
    }

    /// Fails an RSNode that an operator refuses to know: labels would wait for that operator for ever. An operator that refuses several has
    /// failed itself.
    fn fail_refused(&mut self) {
        let mut refused = None;
        for operator in 0..self.channels.len() {
            let owners = self.refused_owners(operator);
            let channel = &mut self.channels[operator];
            channel.refused_owners.extend(owners.iter().filter(|&&owner| owner != operator));
            if channel.refused_owners.len() > 1 && !channel.is_refusing {
                (channel.is_refusing, channel.barred) = (true, Barred::Failed);
                return self.fail(operator, Failure::RefusesOthers);
            }
            refused = refused.or(owners.first().copied());
        }
        if let Some(owner) = refused {
            self.channels[owner].barred = Barred::Back(self.now);
            self.fail(owner, Failure::Refuses);
        }
    }

    fn refused_owners(&self, operator: usize) -> BTreeSet<usize> {
        let channel = &self.channels[operator];
        if channel.refused.is_empty() {
            return BTreeSet::new();
        }
        let refused = self.ids.iter().filter(|(id, node)| is_in_use(node) && channel.refuses(Key::RsNode(*id)));
        refused.filter_map(|(_, node)| node.operator).collect()
    }

    /// If the operator knows all RSNodes, clears its refusals.
    pub(super) fn forgive(&mut self, operator: usize) {
        let channel = &self.channels[operator];
        let mut ids = self.ids.iter().filter(|(_, node)| is_in_use(node)).map(|(id, _)| id).peekable();
        if channel.refused_owners.is_empty() || ids.peek().is_none() || ids.any(|id| channel.may_lack(Key::RsNode(id)))
        {
            return;
        }
        let channel = &mut self.channels[operator];
        if channel.is_refusing {
            channel.barred = Barred::Back(self.now);
            self.events.push_back(Event::OperatorBack(operator));
        }
        channel.forget_refusals();
    }

    /// Makes an id ready as a label once its selector has the replica groups and all operators know it.
    fn finish_prepared(&mut self) {
        let prepared: Vec<_> = self.ids.iter().filter(|(_, node)| node.used == Use::Preparing).collect();
        for (id, node) in prepared {
            let Some(owner) = node.operator else { continue };
            let is_expected = self.will_be_learned(id);
            let owner = &self.channels[owner];
            if owner.is_live()
                && !owner.may_lack(Key::RsNode(id))
                && !is_expected
                && !owner.lacks_replica_groups()
                && owner.selector.is_some()
                && owner.grouped == owner.selector
            {
                self.ids.set_use(id, Use::Serving);
            }
        }
    }

    /// Whether an operator does not know an RSNode yet, and will soon.
    fn will_be_learned(&self, id: u16) -> bool {
        !planted(262) && self.channels.iter().any(|channel| channel.will_learn(Key::RsNode(id)))
    }

    /// The label that a group should have now: its current one, until the plan's RSNode serves.
    fn label_for(&self, group: usize) -> Option<u16> {
        let wanted = self.labels[group].wanted;
        let operator = self.target[group]?;
        let new = self.ids.of(operator, |used| used == Use::Serving);
        new.or_else(|| wanted.filter(|&id| self.ids.get(id).is_some_and(|node| node.is_known())))
    }

    /// One at a time: waits for the answer before the next one.
    fn flip_labels(&mut self) {
        if let Some(group) = self.flipping {
            let channel = &self.channels[self.network.labeller(group)];
            if channel.is_live() && channel.lacks(Key::Group(group as u16)) {
                return;
            }
            self.flipping = None;
        }
        let changed: Vec<usize> =
            (0..self.labels.len()).filter(|&group| self.label_for(group) != self.labels[group].wanted).collect();
        // Labels of operators that do not obey are changed at once: they are sent when the operator returns.
        let (live, unreachable): (Vec<usize>, Vec<usize>) =
            changed.into_iter().partition(|&group| self.channels[self.network.labeller(group)].is_live());
        unreachable.into_iter().for_each(|group| self.flip(group));
        let mut known = BTreeMap::new();
        let mut may_flip = |group: usize| {
            let is_known = |id| *known.entry(id).or_insert_with(|| !self.will_be_learned(id));
            self.label_for(group).is_none_or(is_known)
        };
        let fitting = live.iter().copied().find(|&group| self.has_room(group) && may_flip(group));
        let first = fitting.or_else(|| live.iter().copied().find(|&group| may_flip(group)));
        if let Some(group) = first {
            self.flip(group);
            self.flipping = Some(group);
        }
    }

    fn flip(&mut self, group: usize) {
        self.labels[group].wanted = self.label_for(group);
        self.channels[self.network.labeller(group)].need(Key::Group(group as u16));
    }

    /// Whether the group fits at its new RSNode now. Such groups move first, so that an exchange of groups overloads no accelerator on the
    /// way, if possible.
    fn has_room(&self, group: usize) -> bool {
        let topology = self.network.topology();
        let accelerator = |operator: usize| topology.operators()[operator].accelerator;
        let Some(to) = self.target[group].map(accelerator) else { return true };
        let at = |group: usize| {
            let id = self.labels[group].wanted?;
            Some(accelerator(self.ids.get(id)?.operator?))
        };
        let there = (0..self.labels.len()).filter(|&other| other != group && at(other) == Some(to));
        let load: f64 = there.chain([group]).map(|group| self.traffic.rate(group)).sum();
        load * self.config.packets_per_request as f64 * 1000.0 <= topology.accelerators()[to].limit() as f64
    }

    /// Ids that are or may be labels. `None`: any, because an operator has not been heard.
    fn labels_in_use(&self) -> Option<BTreeSet<u16>> {
        let mut labels = BTreeSet::new();
        for label in &self.labels {
            labels.extend(label.wanted);
            labels.extend(label.in_force?);
        }
        // And those that an operator may have set without our knowledge.
        for (operator, channel) in self.channels.iter().enumerate() {
            let sent = channel.sent.as_ref().filter(|_| !self.is_out_of_reach(operator));
            labels.extend(sent.into_iter().flat_map(|sent| sent.labels.iter().copied()));
        }
        Some(labels)
    }

    /// An RSNode without groups keeps serving until its last request is answered. Then it is removed from all operators and its id is
    /// quarantined.
    fn retire_old(&mut self) {
        let labels = self.labels_in_use();
        let is_label = |id: u16| labels.as_ref().is_none_or(|labels| labels.contains(&id));
        let targets: BTreeSet<usize> = self.target.iter().flatten().copied().collect();
        let nodes: Vec<_> = self.ids.iter().collect();
        for (id, node) in nodes {
            let is_wanted = node.operator.is_some_and(|operator| targets.contains(&operator));
            let passed = |since: u64| self.now >= since.saturating_add(self.config.longest_response);
            match node.used {
                Use::Preparing | Use::Serving if !is_wanted && !is_label(id) => {
                    self.ids.set_use(id, Use::Retiring(self.now));
                }
                Use::Retiring(_) if labels.as_ref().is_some_and(|labels| labels.contains(&id)) => {
                    self.ids.set_use(id, Use::Retiring(self.now));
                }
                Use::Retiring(since) if (passed(since) && !is_label(id)) || planted(264) => {
                    self.ids.set_use(id, Use::Removing);
                    self.channels.iter_mut().for_each(|channel| channel.need(Key::RsNode(id)));
                }
                Use::Removing if !is_label(id) && !self.may_be_known(id) => {
                    self.ids.set_use(id, Use::Quarantined(self.now));
                }
                Use::Quarantined(since) if passed(since) || planted(261) => self.ids.free(id),
                _ => {}
            }
        }
    }

    /// Whether there is an operator whose rules are unknown and that may have some.
    fn is_one_unheard(&self) -> bool {
        let mut channels = self.channels.iter().enumerate();
        channels.any(|(operator, channel)| {
            let is_unheard = channel.state == State::Unknown && !channel.is_fresh;
            is_unheard && !self.is_out_of_reach(operator)
        })
    }

    fn may_be_known(&self, id: u16) -> bool {
        self.channels.iter().enumerate().any(|(operator, channel)| {
            let may = channel.state == State::Unknown || channel.may_have(Key::RsNode(id));
            may && !self.is_out_of_reach(operator)
        })
    }

    /// Tells selectors their number, by which they weigh their own requests.
    fn tell_number(&mut self) {
        let rsnodes: BTreeSet<usize> = self.target.iter().flatten().copied().collect();
        if self.selectors == rsnodes.len() {
            return;
        }
        self.selectors = rsnodes.len();
        for (operator, channel) in self.channels.iter_mut().enumerate() {
            if rsnodes.contains(&operator) && channel.grouped.is_some() {
                channel.need(Key::Selectors);
            }
        }
    }
}
