//! A controller's orders and its handling of answers. As in `crates/cache`, it stores no next step: each call does
//! what is possible from what is in force.

use super::planted::Planted;
use super::state::{
    Channel, GROUPS, IDS, LABEL, LABELLER, Message, Number, Orders, Role, RsNode, Rule, Sent, Use, key,
};
use super::world::World;

impl World<'_> {
    pub(super) fn operators(&self) -> impl Iterator<Item = u8> + use<> {
        0..self.state.operators.len() as u8
    }

    pub(super) fn channel(&mut self, c: usize, operator: u8) -> &mut Channel {
        &mut self.state.controllers[c].channels[usize::from(operator)]
    }

    /// Does what is possible now, and sends what operators lack.
    pub(super) fn act(&mut self, c: usize) {
        if self.state.controllers[c].role != Role::Active {
            return;
        }
        self.take_back(c);
        self.finish_prepared(c);
        self.flip_label(c);
        self.retire_old(c);
        for operator in self.operators() {
            self.send_next(c, operator);
        }
    }

    fn send_next(&mut self, c: usize, operator: u8) {
        let one_by_one = self.scope.one_by_one;
        let controller = &mut self.state.controllers[c];
        let channel = &mut controller.channels[usize::from(operator)];
        let waits = channel.dirty | channel.urgent != 0 || channel.is_loading;
        let (true, None, true, Some(incarnation)) = (channel.is_live(), channel.sent, waits, channel.incarnation)
        else {
            return;
        };
        let from = if channel.urgent == 0 { &mut channel.dirty } else { &mut channel.urgent };
        let keys = if one_by_one { *from & from.wrapping_neg() } else { *from };
        *from &= !keys;
        let complete = channel.is_loading && channel.dirty | channel.urgent == 0;
        channel.last.sequence += 1;
        let number = channel.last;
        let orders = self.orders(c, operator, keys, complete);
        let controller = &mut self.state.controllers[c];
        let term = controller.term;
        controller.channels[usize::from(operator)].sent = Some(Sent { number, keys, orders });
        self.send(Message::Set { operator, term, number, incarnation, orders });
    }

    fn orders(&self, c: usize, operator: u8, keys: u8, complete: bool) -> Orders {
        let controller = &self.state.controllers[c];
        let rule = |id: usize| match controller.ids[id].filter(|node| node.is_known()).and_then(|node| node.operator) {
            Some(owner) if owner == operator => Rule::Serve,
            Some(owner) => Rule::At(owner),
            None => Rule::Unknown,
        };
        let is_known = |id: &u8| controller.ids[usize::from(*id)].is_some_and(RsNode::is_known);
        Orders {
            grouped: keys & GROUPS != 0,
            ids: std::array::from_fn(|id| (keys & key(id as u8) != 0).then(|| rule(id))),
            label: (keys & LABEL != 0).then(|| controller.wanted.filter(is_known)),
            complete,
        }
    }

    pub(super) fn done(&mut self, c: usize, operator: u8, number: Number, incarnation: u8) {
        let channel = self.channel(c, operator);
        let is_its = channel.sent.is_some_and(|sent| sent.number == number);
        let (true, Some(sent), true) = (is_its, channel.sent, channel.incarnation == Some(incarnation)) else {
            return;
        };
        channel.sent = None;
        channel.is_loading &= !sent.orders.complete;
        if let (LABELLER, Some(label)) = (operator, sent.orders.label) {
            self.state.controllers[c].in_force = Some(label);
        }
        self.act(c);
    }

    /// Sends an operator no more orders until its inventory has come.
    pub(super) fn close(&mut self, c: usize, operator: u8) {
        let forgets = self.scope.has(Planted::UnconfirmedForgotten);
        let controller = &mut self.state.controllers[c];
        let channel = &mut controller.channels[usize::from(operator)];
        let waits = channel.sent.take().is_some_and(|sent| sent.orders.label.is_some());
        channel.is_open = false;
        channel.loading += 1;
        (channel.dirty, channel.urgent) = (0, 0);
        (channel.is_loading, channel.is_grouped) = (false, false);
        if operator == LABELLER && waits && !forgets {
            controller.in_force = None;
        }
        let ask = Message::Ask { operator, term: controller.term, loading: channel.loading };
        self.send(ask);
    }

    pub(super) fn open(&mut self, c: usize, operator: u8) {
        let controller = &mut self.state.controllers[c];
        let serves = controller.id_of(operator, |used| matches!(used, Use::Serving | Use::Retiring(_))).is_some();
        let known = (0..IDS as u8).filter(|&id| controller.ids[usize::from(id)].is_some()).map(key).sum::<u8>();
        let channel = &mut controller.channels[usize::from(operator)];
        (channel.is_open, channel.is_loading) = (true, true);
        channel.dirty = known | if operator == LABELLER { LABEL } else { 0 };
        if serves {
            self.give_replica_groups(c, operator);
        }
    }

    /// To the operator's selector, unless it has them.
    pub(super) fn give_replica_groups(&mut self, c: usize, operator: u8) {
        let channel = self.channel(c, operator);
        if channel.is_open && !channel.is_grouped {
            channel.is_grouped = true;
            channel.need(GROUPS);
        }
    }

    pub(super) fn operator_restarted(&mut self, c: usize, operator: u8, incarnation: u8) {
        self.close(c, operator);
        self.channel(c, operator).incarnation = Some(incarnation);
        if operator == LABELLER {
            let has_none = self.scope.has(Planted::RestartedCountsEmpty);
            self.state.controllers[c].in_force = has_none.then_some(None);
        }
        self.fail(c, operator);
    }

    /// An operator no longer selects: removes its ids at once.
    pub(super) fn fail(&mut self, c: usize, operator: u8) {
        for id in 0..IDS as u8 {
            let controller = &mut self.state.controllers[c];
            let Some(node) = &mut controller.ids[usize::from(id)] else { continue };
            if node.operator == Some(operator) && node.is_known() {
                node.used = Use::Removing;
                controller.channels.iter_mut().for_each(|channel| channel.need_at_once(key(id)));
            }
        }
        let target = &mut self.state.controllers[c].target;
        *target = target.filter(|&target| target != operator);
        self.act(c);
    }

    pub(super) fn is_alive(&mut self, c: usize, operator: u8) {
        let channel = self.channel(c, operator);
        (channel.is_dead, channel.is_lost) = (false, false);
    }
}
