//! Failures of operators (N6): the racks' operators first stop sending to the dead RSNode, then its groups move, by Algorithm 1.

use super::super::order::Key;
use super::channel::{Barred, State};
use super::event::{Event, Failure};
use super::ids::Use;
use super::questions::Question;
use super::{Controller, Role};
use midflight_endpoint::Nanos;
use midflight_endpoint::mutants::planted;
use midflight_placement::Plan;
use midflight_placement::failure::rearrange;
use std::collections::BTreeSet;

/// Orders may be lost this often before an operator that only answers questions is stuck.
const OWES_REPEATS: u64 = 5;

impl Controller {
    pub(super) fn is_alive(&mut self, operator: usize, question: Question) {
        self.questions.hear();
        let channel = &mut self.channels[operator];
        let is_first = channel.answered == 0;
        channel.answered = channel.answered.max(question.number);
        // An answer to an old question: the operator would be dead again at the next check.
        let is_late = self.questions.listened().saturating_sub(question.listened) > self.config.dead_after;
        if channel.is_dead && is_late {
            return;
        }
        channel.heard = channel.heard.max(question.at);
        channel.heard_listened = channel.heard_listened.max(question.listened);
        if channel.is_dead {
            channel.is_dead = false;
            // An operator that was never heard has not failed: it was started later than this controller.
            channel.barred = if is_first { Barred::No } else { Barred::Back(self.now) };
            self.event(Event::OperatorBack(operator));
            self.step();
        }
    }

    /// Fails operators, each for one reason.
    pub(super) fn find_the_dead(&mut self) {
        let now = self.questions.listened();
        for operator in 0..self.channels.len() {
            if let Some(why) = self.find_failure(operator) {
                let channel = &mut self.channels[operator];
                match why {
                    Failure::Silent => channel.is_dead = true,
                    Failure::Stuck => channel.stuck_since = Some(now),
                    _ => {}
                }
                channel.barred = Barred::Failed;
                self.fail(operator, why);
            }
        }
    }

    fn find_failure(&mut self, operator: usize) -> Option<Failure> {
        let now = self.questions.listened();
        let for_longer = |since: Nanos, than: Nanos| now.saturating_sub(since) > than;
        let config = &self.config;
        let channel = &mut self.channels[operator];
        if channel.is_dead {
            // Its debts count from its return on.
            channel.owes_since = channel.owes_since.map(|_| now);
            return None;
        }
        if for_longer(channel.heard_listened, config.dead_after) && !planted(266) {
            return Some(Failure::Silent);
        }
        if channel.state == State::Unknown {
            channel.owes_since.get_or_insert(now);
        }
        let obeys_within = config.dead_after.saturating_add(OWES_REPEATS * config.repeat_after);
        if !channel.is_stuck() && channel.owes_since.is_some_and(|since| for_longer(since, obeys_within)) {
            return Some(Failure::Stuck);
        }
        let is_gone = channel.selector_gone.is_some_and(|since| for_longer(since, config.dead_after));
        (is_gone && channel.barred != Barred::Failed).then_some(Failure::NoSelector)
    }

    /// A restarted operator has no rules.
    pub(super) fn restarted(&mut self, operator: usize, incarnation: u64) {
        let channel = &mut self.channels[operator];
        if !planted(265) {
            channel.close();
        }
        channel.former = channel.incarnation.replace(incarnation);
        channel.is_fresh = true;
        (channel.stuck_since, channel.selector_gone) = (None, None);
        channel.forget_refusals();
        channel.selector = None;
        channel.barred = Barred::Back(self.now);
        for group in 0..self.labels.len() {
            if self.network.labeller(group) == operator && !planted(265) {
                // It had none, but another controller may have set some since.
                self.labels[group].in_force = None;
            }
        }
        self.traffic.forget(operator);
        self.fail(operator, Failure::Restarted);
    }

    pub(super) fn selector_is(&mut self, operator: usize, selector: Option<u64>) {
        let (now, listened) = (self.now, self.questions.listened());
        let channel = &mut self.channels[operator];
        if !channel.can_select {
            return;
        }
        match selector {
            None => drop(channel.selector_gone.get_or_insert(listened)),
            Some(_) => {
                let was_gone = channel.selector_gone.take().is_some();
                if was_gone && !channel.is_stuck() && !channel.is_refusing && channel.barred == Barred::Failed {
                    channel.barred = Barred::Back(now);
                }
            }
        }
        channel.selector = selector;
        let is_rsnode = |used: Use| matches!(used, Use::Preparing | Use::Serving | Use::Retiring(_));
        if self.ids.of(operator, is_rsnode).is_some() {
            self.give_replica_groups(operator);
        }
    }

    pub(super) fn give_replica_groups(&mut self, operator: usize) {
        let channel = &mut self.channels[operator];
        if channel.state != State::Open || channel.selector.is_none() || channel.grouped == channel.selector {
            return;
        }
        channel.grouped = channel.selector;
        for group in self.network.replica_groups() {
            channel.need(Key::ReplicaGroup(group.id));
        }
        channel.need(Key::Selectors);
    }

    pub(super) fn fail(&mut self, operator: usize, why: Failure) {
        self.counters.failures += 1;
        self.traffic.forget_load(operator);
        let ids: Vec<u16> = self
            .ids
            .iter()
            .filter(|(_, node)| node.operator == Some(operator) && node.is_known())
            .map(|(id, _)| id)
            .collect();
        for id in ids {
            self.ids.set_use(id, Use::Removing);
            self.channels.iter_mut().for_each(|channel| channel.need_at_once(Key::RsNode(id)));
        }
        let groups = self.target.iter().filter(|&&target| target == Some(operator)).count();
        self.event(Event::OperatorFailed { operator, why, groups });
        if groups > 0 {
            let barred = self.barred();
            match self.instance(&barred) {
                Some(instance) => {
                    let plan = Plan { rsnodes: self.target.clone() };
                    let failed = BTreeSet::from([operator]);
                    self.target = rearrange(&instance, &plan, &failed).rsnodes;
                }
                // Without statistics, no other operator is known to have room.
                None => self.target.iter_mut().filter(|target| **target == Some(operator)).for_each(|at| *at = None),
            }
        }
        // The requested plan stays wanted: otherwise an operator that fails repeatedly would prevent all plans.
        let may_be_planned = self.asked.as_ref().is_some_and(|asked| asked.may_use(operator));
        if groups > 0 || may_be_planned {
            self.plan_anew();
        }
        self.step();
    }

    pub(super) fn forget_the_unreachable(&mut self) {
        let Role::Active(_) = self.role else { return };
        for operator in 0..self.channels.len() {
            if !self.is_out_of_reach(operator) {
                continue;
            }
            for group in 0..self.labels.len() {
                if self.network.labeller(group) == operator && self.labels[group].in_force != Some(None) {
                    self.labels[group].in_force = Some(None);
                }
            }
            // An operator that answers but does not obey has waiting orders instead.
            if self.channels[operator].is_dead && self.channels[operator].state == State::Open {
                self.channels[operator].close();
            }
        }
    }

    /// Whether it was out of reach, or did not obey, for so long that it is assumed to have no rules.
    pub(super) fn is_out_of_reach(&self, operator: usize) -> bool {
        let channel = &self.channels[operator];
        let since = if channel.is_dead { Some(channel.heard_listened) } else { channel.stuck_since };
        since.is_some_and(|since| self.questions.listened().saturating_sub(since) > self.config.forget_after)
    }
}
