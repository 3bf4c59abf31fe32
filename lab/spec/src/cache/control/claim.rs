//! Takeover: a standby takes over with a higher term, and learns from operators what is in force.

use super::planted::Planted;
use super::state::{Channel, Controller, LABELLER, Message, Number, Role, RsNode, Rule, Term, Use};
use super::world::World;

impl World<'_> {
    pub(super) fn majority(&self) -> u32 {
        self.state.operators.len() as u32 / 2 + 1
    }

    pub(super) fn claim(&mut self, c: usize, heard: u8) {
        let terms = self.operators().filter(|&operator| heard >> operator & 1 == 1);
        let terms = terms.map(|operator| self.state.operators[usize::from(operator)].term);
        let before = self.under_way();
        let controller = &mut self.state.controllers[c];
        let highest = terms.fold(controller.highest, Term::max);
        let term = Term { number: highest.number + 1, controller: controller.me };
        let me = controller.me;
        *controller = Controller { me, role: Role::Claiming, term, highest: term, before, ..Controller::default() };
        for operator in self.operators() {
            self.channel(c, operator).loading = 1;
            self.send(Message::Ask { operator, term, loading: 1 });
        }
        if self.scope.has(Planted::ClaimWithoutInventory) {
            let incarnations: Vec<u8> = self.state.operators.iter().map(|operator| operator.incarnation).collect();
            let controller = &mut self.state.controllers[c];
            for (channel, incarnation) in controller.channels.iter_mut().zip(incarnations) {
                *channel = Channel { is_open: true, incarnation: Some(incarnation), ..Channel::default() };
                channel.last.loading = 1;
                channel.loading = 1;
            }
            controller.in_force = Some(None);
            self.settle(c);
        }
    }

    pub(super) fn step_down(&mut self, c: usize, term: Term) {
        let Controller { me, highest, .. } = self.state.controllers[c];
        self.state.controllers[c] = Controller { me, highest: highest.max(term), ..Controller::default() };
    }

    pub(super) fn inventory(&mut self, c: usize, message: Message) {
        let Message::Inventory { operator, asked, incarnation, last, ids, label, .. } = message else { return };
        let fences = !self.scope.has(Planted::InventoryWithoutFence);
        let channel = self.channel(c, operator);
        let is_wanted = last == Number { loading: asked, sequence: 0 } || !fences;
        if channel.is_open || channel.loading != asked || !is_wanted {
            return;
        }
        let known = channel.incarnation;
        self.is_alive(c, operator);
        let is_active = self.state.controllers[c].role == Role::Active;
        if is_active && known.is_some_and(|known| known != incarnation) {
            // For another loading, so it is asked again.
            return self.operator_restarted(c, operator, incarnation);
        }
        let channel = self.channel(c, operator);
        (channel.incarnation, channel.last) = (Some(incarnation), last);
        for (id, rule) in (0..).zip(ids) {
            match rule {
                Rule::Unknown => {}
                Rule::Serve => self.learn_id(c, id, operator, true),
                Rule::At(owner) => self.learn_id(c, id, owner, false),
            }
        }
        if operator == LABELLER {
            self.learn_label(c, label);
        }
        if is_active {
            self.wait_again(c);
            self.open(c, operator);
            self.act(c);
        } else {
            self.channel(c, operator).is_open = true;
            if self.opened(c) == self.state.operators.len() as u32 {
                self.settle(c);
            }
        }
    }

    /// Makes fresh ids wait from now: until an operator followed this controller, another controller may have removed
    /// ids there.
    fn wait_again(&mut self, c: usize) {
        if !self.scope.has(Planted::WaitFromTakeover) {
            self.state.controllers[c].before |= self.under_way();
        }
    }

    pub(super) fn opened(&self, c: usize) -> u32 {
        self.state.controllers[c].channels.iter().filter(|channel| channel.is_open).count() as u32
    }

    fn learn_id(&mut self, c: usize, id: u8, operator: u8, serves: bool) {
        let controller = &mut self.state.controllers[c];
        let claiming = controller.role == Role::Claiming;
        let node = &mut controller.ids[usize::from(id)];
        let removing = RsNode { operator: None, used: Use::Removing };
        let claimed = |used| RsNode { operator: Some(operator), used };
        match *node {
            None if claiming => *node = Some(claimed(if serves { Use::Serving } else { Use::Preparing })),
            Some(RsNode { used: Use::Serving, operator: other }) if claiming && serves && other != Some(operator) => {
                *node = Some(removing);
            }
            Some(RsNode { used: Use::Preparing, .. }) if claiming && serves => *node = Some(claimed(Use::Serving)),
            None => *node = Some(removing),
            Some(_) => {}
        }
    }

    /// The labeller has this label. If it was unreachable until now and no plan says otherwise, the label stays in
    /// force.
    fn learn_label(&mut self, c: usize, label: Option<u8>) {
        let forgets = self.scope.has(Planted::LabelNotLearned);
        let controller = &mut self.state.controllers[c];
        let was_known = controller.in_force.replace(label).is_some();
        // An id that was removed everywhere but is still a label is not free.
        if let Some(id) = label.filter(|_| !forgets) {
            controller.ids[usize::from(id)].get_or_insert(RsNode { operator: None, used: Use::Removing });
        }
        let node = label.and_then(|id| controller.ids[usize::from(id)]).filter(|node| node.used == Use::Serving);
        if let (Role::Active, false, None, Some(node)) = (controller.role, was_known, controller.target, node) {
            (controller.wanted, controller.target) = (label, node.operator);
        }
    }

    pub(super) fn settle(&mut self, c: usize) {
        self.wait_again(c);
        let controller = &mut self.state.controllers[c];
        controller.role = Role::Active;
        for node in controller.ids.iter_mut().flatten() {
            let owner = node.operator.map(|owner| &controller.channels[usize::from(owner)]);
            if node.used != Use::Serving || !owner.is_some_and(|channel| channel.is_open) {
                node.used = Use::Removing;
            }
        }
        let id = controller.in_force.flatten();
        let node = id.and_then(|id| controller.ids[usize::from(id)]).filter(|node| node.used == Use::Serving);
        controller.target = node.and_then(|node| node.operator);
        controller.wanted = id.filter(|_| node.is_some());
        for operator in self.operators() {
            if self.channel(c, operator).is_open {
                self.open(c, operator);
            }
        }
        self.saw_takeover();
        self.act(c);
    }
}
