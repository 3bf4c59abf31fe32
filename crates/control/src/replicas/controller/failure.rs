//! Who is dead, and what follows (N6): first the operators of the racks are told to send nothing to the dead RSNode any more, then its
//! groups move, by Algorithm 1.

use super::super::order::Key;
use super::channel::{Barred, State};
use super::event::{Event, Failure};
use super::ids::Use;
use super::{Controller, Role};
use midflight_endpoint::Nanos;
use midflight_endpoint::mutants::planted;
use midflight_placement::Plan;
use midflight_placement::failure::rearrange;
use std::collections::BTreeSet;

impl Controller {
    /// An operator has answered a question of this number and time.
    pub(super) fn is_alive(&mut self, operator: usize, at: Nanos, number: u64) {
        let channel = &mut self.channels[operator];
        channel.heard = channel.heard.max(at);
        channel.answered = channel.answered.max(number);
        if channel.is_dead {
            channel.is_dead = false;
            channel.barred = Barred::Back(self.now);
            self.event(Event::OperatorBack(operator));
            self.plan_anew();
            self.step();
        }
    }

    /// Operators that have not answered for too long, and those whose selector has been gone for too long.
    pub(super) fn find_the_dead(&mut self) {
        for operator in 0..self.channels.len() {
            let channel = &mut self.channels[operator];
            let is_long = |since: Nanos| self.now.saturating_sub(since) > self.config.dead_after;
            if is_long(channel.heard) && !channel.is_dead && !planted(266) {
                channel.is_dead = true;
                channel.barred = Barred::Gone;
                self.fail(operator, Failure::Silent);
            } else if channel.selector_gone.is_some_and(is_long) && channel.barred != Barred::Gone {
                channel.barred = Barred::Gone;
                self.fail(operator, Failure::NoSelector);
            }
        }
    }

    /// An operator was started again: it has no rules.
    pub(super) fn restarted(&mut self, operator: usize, incarnation: u64) {
        let channel = &mut self.channels[operator];
        if !planted(265) {
            channel.close();
        }
        channel.incarnation = Some(incarnation);
        channel.selector = None;
        channel.barred = Barred::Back(self.now);
        for group in 0..self.labels.len() {
            if self.network.labeller(group) == operator && !planted(265) {
                self.labels[group].in_force = Some(None);
            }
        }
        self.traffic.forget(operator);
        self.fail(operator, Failure::Restarted);
    }

    /// An operator says which selector is beside it.
    pub(super) fn selector_is(&mut self, operator: usize, selector: Option<u64>) {
        let now = self.now;
        let channel = &mut self.channels[operator];
        if !channel.can_select {
            return;
        }
        match selector {
            None => drop(channel.selector_gone.get_or_insert(now)),
            Some(_) => {
                let was_gone = channel.selector_gone.take().is_some();
                if was_gone && channel.barred == Barred::Gone {
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

    /// To the selector beside an operator, unless it has them.
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

    /// An operator does not select any more.
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
                    self.target = rearrange(&instance, &plan, &failed).plan.rsnodes;
                }
                // Without statistics nobody knows what another operator has room for.
                None => self.target.iter_mut().filter(|target| **target == Some(operator)).for_each(|at| *at = None),
            }
        }
        self.plan_anew();
        self.step();
    }

    /// What an operator has that cannot be reached for very long does not count any more.
    pub(super) fn forget_the_lost(&mut self) {
        let Role::Active(_) = self.role else { return };
        for operator in 0..self.channels.len() {
            if !self.is_lost(operator) {
                continue;
            }
            for group in 0..self.labels.len() {
                if self.network.labeller(group) == operator && self.labels[group].in_force != Some(None) {
                    self.labels[group].in_force = Some(None);
                }
            }
            if self.channels[operator].state == State::Open {
                self.channels[operator].close();
            }
        }
    }

    /// Whether an operator cannot be reached for so long that it is taken to have no rules.
    pub(super) fn is_lost(&self, operator: usize) -> bool {
        let channel = &self.channels[operator];
        channel.is_dead && self.now.saturating_sub(channel.heard) > self.config.forget_after
    }
}
