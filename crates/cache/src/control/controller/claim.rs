//! Which controller is active. A standby learns from reports whether operators hear of an active controller. If most do not, it takes a
//! higher term and learns the rules in force from the operators: a controller keeps nothing on disk.

use super::channel::{Barred, State};
use super::config::Start;
use super::event::Event;
use super::ids::{RsNode, Use};
use super::questions::Question;
use super::{Controller, Label, Role};
use midflight_endpoint::Nanos;
use midflight_wire::cache::control::{Inventory, Report, TERM_MAX, Term};
use std::collections::BTreeSet;

impl Controller {
    /// A majority, so that the halves of a partitioned network do not each have a controller.
    fn is_most(&self, operators: usize) -> bool {
        2 * operators > self.channels.len()
    }

    pub(super) fn has_heard_majority(&self) -> bool {
        let alive = |heard: Nanos| self.now.saturating_sub(heard) <= self.config.dead_after;
        self.is_most(self.channels.iter().filter(|channel| channel.answered > 0 && alive(channel.heard)).count())
    }

    pub(super) fn consider_takeover(&mut self) {
        let recent = |at: u64, within: u64| self.now.saturating_sub(at) <= within;
        let quiet = self.channels.iter().filter(|channel| {
            let answers = channel.answered > 0 && recent(channel.heard, self.config.dead_after);
            // At the time of its answer: this controller may have been paused since.
            let is_led = |heard: Nanos| channel.heard.saturating_sub(heard) <= self.config.takeover_after;
            answers && !channel.controller_heard.is_some_and(is_led)
        });
        if !self.is_most(quiet.count()) {
            self.quiet_since = None;
            return;
        }
        let since = *self.quiet_since.get_or_insert(self.now);
        let turn = self.config.takeover_after.saturating_mul(self.config.place.into());
        if self.now >= since.saturating_add(turn) {
            self.claim();
        }
    }

    fn claim(&mut self) {
        let term = Term { number: self.highest.number.saturating_add(1).min(TERM_MAX), controller: self.me };
        self.role = Role::Claiming(term);
        self.highest = term;
        self.quiet_since = None;
        // The current questions were asked as a standby: the next ones carry the claim.
        (self.claimed, self.claimed_after) = (self.now, self.questions.newest());
        self.ids.clear();
        self.is_out_of_ids = false;
        self.were_ids_used = false;
        self.labels.fill(Label::default());
        self.target.fill(None);
        (self.flipping, self.is_deployed, self.selectors) = (None, true, 0);
        self.asked = None;
        for channel in &mut self.channels {
            channel.close();
            // Even without a restart, another controller may have given it rules.
            (channel.incarnation, channel.former, channel.selector) = (None, None, None);
            (channel.is_fresh, channel.is_learned) = (false, false);
        }
        self.counters.takeovers += 1;
        self.event(Event::TakesOver(term));
        self.next_tick = self.now;
    }

    pub(super) fn step_down(&mut self, term: Term) {
        self.role = Role::Standby;
        self.quiet_since = None;
        self.asked = None;
        self.counters.steps_down += 1;
        let now = self.now;
        for channel in &mut self.channels {
            channel.close();
            // A standby does not see the end of a failure; once active again, it finds those that last.
            (channel.stuck_since, channel.selector_gone) = (None, None);
            channel.forget_refusals();
            if !channel.is_dead && channel.barred == Barred::Failed {
                channel.barred = Barred::Back(now);
            }
            channel.controller_heard = Some(now);
        }
        self.event(Event::SteppedDown(term));
    }

    /// A question that an operator has not answered yet, nor a later one.
    fn unanswered(&self, operator: usize, number: u64) -> Option<Question> {
        self.questions.get(number).filter(|_| number > self.channels[operator].answered)
    }

    pub(super) fn report(&mut self, operator: usize, report: &Report) {
        let is_former = self.channels[operator].former == Some(report.incarnation);
        let Some(question) = self.unanswered(operator, report.number).filter(|_| !is_former) else {
            self.counters.stale += 1;
            return;
        };
        self.counters.reports += 1;
        self.is_alive(operator, question);
        let channel = &mut self.channels[operator];
        channel.controller_heard = report.heard_ns.map(|ago| question.at.saturating_sub(ago));
        match self.role {
            Role::Standby => {
                if channel.incarnation.replace(report.incarnation) != Some(report.incarnation) {
                    self.traffic.forget(operator);
                }
                self.count(operator, report);
            }
            Role::Claiming(_) => {}
            Role::Active(_) => {
                if channel.incarnation.is_some_and(|known| known != report.incarnation) {
                    self.restarted(operator, report.incarnation);
                }
                self.selector_is(operator, report.selector);
                self.count(operator, report);
            }
        }
    }

    /// From this answer on the operator obeys no older term, so the inventory stays true.
    pub(super) fn inventory(&mut self, operator: usize, inventory: &Inventory) {
        let is_of_term = self.role.term() == Some(inventory.term) && inventory.number > self.claimed_after.number;
        let channel = &self.channels[operator];
        let is_former = channel.former == Some(inventory.incarnation);
        let is_wanted = channel.state == State::Unknown && inventory.last == channel.number && !is_former;
        let (true, Some(question)) = (is_of_term && is_wanted, self.unanswered(operator, inventory.number)) else {
            self.counters.stale += 1;
            return;
        };
        self.is_alive(operator, question);
        if let Role::Active(_) = self.role
            && self.channels[operator].incarnation.is_some_and(|known| known != inventory.incarnation)
        {
            // The operator has restarted. It gets all rules again after a new inventory, so this one is dropped.
            return self.restarted(operator, inventory.incarnation);
        }
        let has_ids = inventory.last_rsnode != 0 || !inventory.rsnodes.is_empty() || !inventory.labels.is_empty();
        // Rules from another controller: all of them the first time, new ones after a restart.
        let channel = &self.channels[operator];
        if !channel.is_learned || (channel.is_fresh && has_ids) {
            self.learned_at = self.now;
            self.were_ids_used |= has_ids;
        }
        self.channels[operator].incarnation = Some(inventory.incarnation);
        self.ids.note_used(inventory.last_rsnode);
        for &(id, at) in &inventory.rsnodes {
            let claims = match at {
                None => Some(operator),
                Some(address) => self.network.operator_at(address),
            };
            self.learn_id(id, claims, at.is_none());
        }
        let groups = (0..self.labels.len()).filter(|&group| self.network.labeller(group) == operator);
        for group in groups.collect::<Vec<_>>() {
            let label = inventory.labels.iter().find(|&&(of, _)| usize::from(of) == group).map(|&(_, id)| id);
            self.learn_label(group, label, !self.channels[operator].is_learned);
        }
        self.channels[operator].is_learned = true;
        match self.role {
            Role::Active(_) => self.begin_loading(operator),
            _ => {
                self.channels[operator].state = State::Open;
                self.try_to_settle();
            }
        }
    }

    fn learn_id(&mut self, id: u16, operator: Option<usize>, serves: bool) {
        let claiming = matches!(self.role, Role::Claiming(_));
        match self.ids.get(id) {
            // During a claim: known as Preparing until its operator reports that it serves.
            None if claiming && serves => self.ids.set(id, RsNode { operator, used: Use::Serving }),
            None if claiming => self.ids.set(id, RsNode { operator, used: Use::Preparing }),
            Some(RsNode { used: Use::Serving, operator: other }) if claiming && serves && other != operator => {
                self.ids.set(id, RsNode { operator: None, used: Use::Removing });
            }
            Some(RsNode { used: Use::Preparing, .. }) if claiming && serves => {
                self.ids.set(id, RsNode { operator, used: Use::Serving });
            }
            // From an old plan, at an operator that was out of reach.
            None => self.ids.set(id, RsNode { operator: None, used: Use::Removing }),
            Some(RsNode { used: Use::Quarantined(_), .. }) => self.ids.set_use(id, Use::Removing),
            Some(_) => {}
        }
        self.ids.note_used(id);
    }

    /// Keeps the label in force if this is the first report in this term and no plan differs.
    fn learn_label(&mut self, group: usize, label: Option<u16>, is_first: bool) {
        self.labels[group].in_force = Some(label);
        // An unused id is not allocated while it is a label.
        if let Some(id) = label.filter(|&id| self.ids.get(id).is_none()) {
            self.learn_id(id, None, false);
        }
        let node = label.and_then(|id| self.ids.get(id)).filter(|node| node.used == Use::Serving);
        if let (Role::Active(_), true, None, Some(node)) = (self.role, is_first, self.target[group], node) {
            (self.labels[group].wanted, self.target[group]) = (label, node.operator);
        }
    }

    /// Becomes active when all operators have sent inventories, or a majority has and the others are silent.
    pub(super) fn try_to_settle(&mut self) {
        let Role::Claiming(term) = self.role else { return };
        let known = self.channels.iter().filter(|channel| channel.state == State::Open).count();
        // By the clock of silence: this controller may not have read some answers yet.
        let waited = self.questions.listened().saturating_sub(self.claimed_after.listened) >= self.config.dead_after;
        if known < self.channels.len() && !(waited && self.is_most(known)) {
            return;
        }
        self.role = Role::Active(term);
        for channel in &mut self.channels {
            if channel.state == State::Unknown {
                channel.heard = channel.heard.max(self.claimed);
                channel.heard_listened = channel.heard_listened.max(self.claimed_after.listened);
            }
        }
        self.settle_ids();
        self.settle_labels();
        for operator in 0..self.channels.len() {
            if self.channels[operator].state == State::Open {
                self.begin_loading(operator);
            }
        }
        self.next_plan = self.now;
        self.event(Event::IsActive(term));
        self.step();
    }

    /// Keeps ids whose operator is known and serves; all others are removed at every operator.
    fn settle_ids(&mut self) {
        let nodes: Vec<_> = self.ids.iter().collect();
        for (id, node) in nodes {
            let has_operator = node.operator.is_some_and(|operator| self.channels[operator].state == State::Open);
            if node.used != Use::Serving || !has_operator {
                self.ids.set_use(id, Use::Removing);
            }
        }
    }

    /// Takes the labels as the plan in force. An interrupted deployment ends here, with what it has changed so far.
    fn settle_labels(&mut self) {
        let mut labelled = BTreeSet::new();
        for (group, label) in self.labels.iter_mut().enumerate() {
            let id = label.in_force.flatten();
            let node = id.and_then(|id| self.ids.get(id)).filter(|node| node.used == Use::Serving);
            self.target[group] = node.and_then(|node| node.operator);
            label.wanted = id.filter(|_| node.is_some());
            labelled.extend(label.in_force.flatten());
        }
        if labelled.is_empty() && self.config.start == Start::OwnRack {
            for group in 0..self.target.len() {
                let own = self.network.labeller(group);
                self.target[group] = Some(own).filter(|&own| self.channels[own].can_select);
            }
        }
    }

    pub(super) fn begin_loading(&mut self, operator: usize) {
        let keys = self.all_keys(operator);
        self.channels[operator].begin_loading(keys.into_iter());
        if self.ids.of(operator, |used| matches!(used, Use::Serving | Use::Retiring(_))).is_some() {
            self.give_replica_groups(operator);
        }
    }
}
