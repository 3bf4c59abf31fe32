//! RSNode ids and labels: prepared, serving, retired, removed, in quarantine.

use super::planted::Planted;
use super::state::{Broken, Controller, GROUPS, IDS, LABEL, LABELLER, Message, Operator, RsNode, Rule, Term, Use, key};
use super::world::World;

impl World<'_> {
    /// Prepares the plan's RSNode again if it was retiring or never a label; all operators may know it already.
    pub(super) fn take_back(&mut self, c: usize) {
        let unchecked = self.scope.has(Planted::TakenBackUnchecked);
        let controller = &mut self.state.controllers[c];
        let Some(target) = controller.target else { return };
        if controller.id_of(target, |used| matches!(used, Use::Preparing | Use::Serving)).is_some() {
            return;
        }
        if let Some(id) = controller.id_of(target, |used| matches!(used, Use::Retiring(_))) {
            let used = if unchecked { Use::Serving } else { Use::Preparing };
            controller.ids[usize::from(id)] = Some(RsNode { operator: Some(target), used });
            self.give_replica_groups(c, target);
        }
    }

    pub(super) fn may_give(&self, c: usize, id: u8) -> bool {
        let controller = &self.state.controllers[c];
        let Some(target) = controller.target else { return false };
        let has_one = controller.id_of(target, |used| !matches!(used, Use::Removing | Use::Quarantined(_))).is_some();
        let rested = controller.before == 0 || self.scope.has(Planted::IdsAtOnceAfterTakeover);
        let heard = self.scope.has(Planted::UnheardIgnored)
            || self.operators().all(|operator| {
                let channel = &controller.channels[usize::from(operator)];
                channel.is_open || channel.is_lost
            });
        let is_free = match controller.ids[usize::from(id)] {
            None => true,
            Some(node) => matches!(node.used, Use::Removing) && self.scope.has(Planted::ReuseAtOnce),
        };
        let is_live = controller.channels[usize::from(target)].is_live();
        !has_one && rested && heard && is_free && is_live
    }

    pub(super) fn give(&mut self, c: usize, id: u8) {
        self.check_id(c, id);
        self.saw_again(id);
        self.state.used |= 1 << id;
        let Some(target) = self.state.controllers[c].target else { return };
        self.state.controllers[c].ids[usize::from(id)] = Some(RsNode { operator: Some(target), used: Use::Preparing });
        self.give_replica_groups(c, target);
        self.state.controllers[c].channels.iter_mut().for_each(|channel| channel.need(key(id)));
        self.act(c);
    }

    /// Invariant 4: no operator has a rule of this id, or will have through an order in flight, and no request with it
    /// is under way. Does not count operators that follow a later controller.
    fn check_id(&mut self, c: usize, id: u8) {
        let Controller { term, target, .. } = self.state.controllers[c];
        let obeys = |operator: &Operator| operator.term <= term;
        let is_obeyed = target.is_some_and(|target| obeys(&self.state.operators[usize::from(target)]));
        if !is_obeyed || self.state.is_excused {
            return;
        }
        let has = |operator: &Operator| operator.rule(id) != Rule::Unknown || operator.label == Some(id);
        let is_there = self.state.operators.iter().any(|operator| obeys(operator) && has(operator));
        if is_there || self.may_be_ordered(id, term) || self.is_under_way(id) {
            self.breaks(Broken::Id);
        }
    }

    fn may_be_ordered(&self, id: u8, by: Term) -> bool {
        self.state.messages.iter().any(|message| match *message {
            Message::Set { operator, term, number, incarnation, orders } if term <= by => {
                let mut at = self.state.operators[usize::from(operator)];
                let sets = matches!(orders.ids[usize::from(id)], Some(Rule::Serve | Rule::At(_)));
                let labels = orders.label == Some(Some(id));
                (sets || labels) && at.set(term, number, incarnation, &orders, None).1
            }
            _ => false,
        })
    }

    /// An id may be a label once its selector has the replica groups and all answering operators know its operator.
    pub(super) fn finish_prepared(&mut self, c: usize) {
        let (at_once, without) =
            (self.scope.has(Planted::LabelBeforeAllKnow), self.scope.has(Planted::ServeBeforeGroups));
        let places = 0..self.state.operators.len();
        let controller = &mut self.state.controllers[c];
        for id in 0..IDS as u8 {
            let Some(RsNode { operator: Some(owner), used: Use::Preparing }) = controller.ids[usize::from(id)] else {
                continue;
            };
            let lacks = places.clone().any(|place| controller.channels[place].will_learn(key(id)));
            let of = &controller.channels[usize::from(owner)];
            let has_groups = of.is_grouped && !of.lacks(GROUPS);
            if of.is_live() && (!lacks || at_once) && (has_groups || without || at_once) {
                controller.ids[usize::from(id)] = Some(RsNode { operator: Some(owner), used: Use::Serving });
            }
        }
    }

    /// Changes the label once the last one is confirmed.
    pub(super) fn flip_label(&mut self, c: usize) {
        let places = 0..self.state.operators.len();
        let controller = &mut self.state.controllers[c];
        let channel = &controller.channels[usize::from(LABELLER)];
        if channel.is_live() && channel.lacks(LABEL) {
            return;
        }
        // An operator that has come back since the id was prepared may not know it yet.
        let unchecked = self.scope.has(Planted::CameBackUnchecked) || self.scope.has(Planted::LabelBeforeAllKnow);
        let unchecked = unchecked || self.scope.has(Planted::TakenBackUnchecked);
        let lacks = |id: u8| places.clone().any(|place| controller.channels[place].will_learn(key(id)));
        let is_known = |id: &u8| controller.ids[usize::from(*id)].is_some_and(RsNode::is_known);
        let next = controller.target.and_then(|target| {
            let serving = controller.id_of(target, |used| used == Use::Serving);
            serving.filter(|&id| unchecked || !lacks(id)).or(controller.wanted.filter(is_known))
        });
        if next == controller.wanted {
            return;
        }
        controller.wanted = next;
        controller.channels[usize::from(LABELLER)].need(LABEL);
        if let Some(id) = next {
            self.check_label(c, id);
        }
    }

    /// Invariant 2: all operators that answer and follow this controller know the id; its selector has the replica
    /// groups.
    fn check_label(&mut self, c: usize, id: u8) {
        let controller = &self.state.controllers[c];
        let owner = controller.ids[usize::from(id)].and_then(|node| node.operator);
        let lacks = self.operators().any(|operator| {
            let at = &self.state.operators[usize::from(operator)];
            let channel = &controller.channels[usize::from(operator)];
            let answers = channel.is_live() && channel.incarnation == Some(at.incarnation);
            let expected = if owner == Some(operator) { Rule::Serve } else { Rule::At(owner.unwrap_or(u8::MAX)) };
            answers && at.term == controller.term && at.rule(id) != expected
        });
        let owner = owner.map(|owner| &self.state.operators[usize::from(owner)]);
        let has_groups = owner.is_none_or(|owner| owner.term != controller.term || owner.grouped);
        if lacks {
            self.breaks(Broken::Label);
        }
        if !has_groups {
            self.breaks(Broken::Groups);
        }
    }

    pub(super) fn is_label(&self, controller: &Controller, id: u8) -> bool {
        let sent = controller.channels[usize::from(LABELLER)].sent;
        let is_sent = sent.is_some_and(|sent| sent.orders.label == Some(Some(id)));
        let counts = is_sent && !self.scope.has(Planted::UnconfirmedForgotten);
        let in_force = controller.in_force.is_none_or(|label| label == Some(id));
        let in_force = in_force && !self.scope.has(Planted::RemovalBeforeConfirmed);
        controller.wanted == Some(id) || in_force || (counts && !self.scope.has(Planted::RemovalBeforeConfirmed))
    }

    /// RSNodes without groups retire, then are removed everywhere, then their ids are quarantined.
    pub(super) fn retire_old(&mut self, c: usize) {
        let now = self.under_way();
        for id in 0..IDS as u8 {
            let controller = &self.state.controllers[c];
            let Some(node) = controller.ids[usize::from(id)] else { continue };
            let wanted = node.operator.is_some() && node.operator == controller.target;
            let is_label = self.is_label(controller, id);
            let used = match node.used {
                Use::Preparing | Use::Serving if !wanted && !is_label => Use::Retiring(now),
                Use::Retiring(_) if is_label => Use::Retiring(now),
                Use::Removing if !is_label && !self.may_be_known(controller, id) => Use::Quarantined(now),
                _ => continue,
            };
            self.state.controllers[c].ids[usize::from(id)] = Some(RsNode { used, ..node });
        }
    }

    /// Whether the controller must assume that an operator has a rule of this id.
    fn may_be_known(&self, controller: &Controller, id: u8) -> bool {
        self.operators().any(|operator| {
            let channel = &controller.channels[usize::from(operator)];
            if channel.is_open { channel.lacks(key(id)) } else { !channel.is_lost }
        })
    }

    /// Whether an answer's longest time may have passed for this id.
    pub(super) fn may_pass(&self, c: usize, id: u8) -> bool {
        let controller = &self.state.controllers[c];
        match controller.ids[usize::from(id)].map(|node| node.used) {
            Some(Use::Retiring(since)) => {
                !self.is_label(controller, id) && (since == 0 || self.scope.has(Planted::RemovalAtOnce))
            }
            Some(Use::Quarantined(since)) => since == 0 || self.scope.has(Planted::ReuseWithoutRest),
            _ => false,
        }
    }

    /// After that time, a retired RSNode is removed, and a quarantined id is free.
    pub(super) fn pass(&mut self, c: usize, id: u8) {
        let Some(node) = self.state.controllers[c].ids[usize::from(id)] else { return };
        if let Use::Quarantined(_) = node.used {
            self.state.controllers[c].ids[usize::from(id)] = None;
            return self.act(c);
        }
        self.check_removal(c, id);
        let controller = &mut self.state.controllers[c];
        controller.ids[usize::from(id)] = Some(RsNode { used: Use::Removing, ..node });
        controller.channels.iter_mut().for_each(|channel| channel.need(key(id)));
        self.act(c);
    }

    /// Invariant 3: the labeller, if it follows this controller, does not have the label and will not get it; no answer
    /// is in flight.
    fn check_removal(&mut self, c: usize, id: u8) {
        let labeller = &self.state.operators[usize::from(LABELLER)];
        let follows = labeller.term == self.state.controllers[c].term;
        let has = labeller.label == Some(id) || self.label_may_be_ordered(id);
        if !self.state.is_excused && follows && (has || self.is_under_way(id)) {
            self.breaks(Broken::Removal);
        }
    }

    fn label_may_be_ordered(&self, id: u8) -> bool {
        self.state.messages.iter().any(|message| match *message {
            Message::Set { operator: LABELLER, term, number, incarnation, orders } => {
                let mut at = self.state.operators[usize::from(LABELLER)];
                orders.label == Some(Some(id)) && at.set(term, number, incarnation, &orders, None).1
            }
            _ => false,
        })
    }
}
