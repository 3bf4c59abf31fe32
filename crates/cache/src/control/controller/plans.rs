//! Requests for plans, and decisions about them. Planning takes long, so it runs elsewhere; its result is untrusted input.

use super::Controller;
use super::config::Start;
use super::event::{Event, PlanRefused, PlanWanted};
use super::ids::Use;
use midflight_endpoint::Nanos;
use midflight_endpoint::mutants::planted;
use midflight_placement::failure::{Decision, decide};
use midflight_placement::{Instance, Plan, violations};
use std::collections::BTreeSet;

#[derive(Debug)]
pub(super) struct Asked {
    number: u64,
    at: Nanos,
    instance: Instance,
    barred: BTreeSet<usize>,
}

impl Asked {
    pub(super) fn may_use(&self, operator: usize) -> bool {
        !self.barred.contains(&operator)
    }
}

impl Controller {
    /// Operators that no plan may use, including those that need an id while none may be allocated.
    pub(super) fn barred(&self) -> BTreeSet<usize> {
        let are_ids_held_back = self.are_ids_held_back();
        let is_barred = |operator: &usize| {
            let has_id = self.ids.of(*operator, |used| !matches!(used, Use::Removing | Use::Quarantined(_))).is_some();
            self.channels[*operator].is_barred(self.now, self.config.barred_for) || (are_ids_held_back && !has_id)
        };
        (0..self.channels.len()).filter(is_barred).collect()
    }

    /// The input of a plan. `None`: the traffic of a live rack is unknown, or there is none.
    pub(super) fn instance(&self, barred: &BTreeSet<usize>) -> Option<Instance> {
        let groups = 0..self.labels.len();
        let is_missing = |group: usize| {
            let operator = &self.channels[self.network.labeller(group)];
            !self.traffic.is_known(group) && operator.is_live() && self.has_hosts(group)
        };
        if !self.has_traffic() || groups.clone().any(is_missing) {
            return None;
        }
        let traffic = self.network.traffic(|group| self.traffic.by_tier(group));
        let topology = self.network.topology().clone();
        let instance = Instance::with_share(topology, traffic, self.config.extra_hops, self.config.packets_per_request);
        Some(instance.bar(barred.iter().copied()))
    }

    fn has_traffic(&self) -> bool {
        (0..self.labels.len()).any(|group| self.traffic.rate(group) > 0.0)
    }

    /// Without traffic there is no plan, so a group whose operator failed returns to its initial one when that works again.
    pub(super) fn begin_again(&mut self) {
        if self.config.start != Start::OwnRack || self.target.iter().all(Option::is_some) || self.has_traffic() {
            return;
        }
        for group in 0..self.target.len() {
            let own = self.network.labeller(group);
            if self.target[group].is_none() && self.channels[own].is_able() {
                self.target[group] = Some(own);
            }
        }
    }

    fn has_hosts(&self, group: usize) -> bool {
        self.network.hosts().iter().any(|host| host.group.map(usize::from) == Some(group))
    }

    /// Discards the plan that was requested, which is out of date.
    pub(super) fn plan_anew(&mut self) {
        self.asked = None;
        self.next_plan = self.now;
    }

    pub(super) fn ask_for_plan(&mut self) {
        if let Some(asked) = &self.asked {
            if self.now.saturating_sub(asked.at) <= self.config.plan_timeout {
                return;
            }
            self.counters.plans_late += 1;
            self.asked = None;
        }
        // A controller that hears few operators is probably cut off itself.
        if self.now < self.next_plan || !self.has_heard_majority() {
            return;
        }
        let barred = self.barred();
        let Some(instance) = self.instance(&barred) else { return };
        self.plans += 1;
        self.counters.plans_wanted += 1;
        self.next_plan = self.now.saturating_add(self.config.plan_every);
        let (number, at) = (self.plans, self.now);
        self.asked = Some(Asked { number, at, instance: instance.clone(), barred });
        self.event(Event::PlanWanted(Box::new(PlanWanted { number, instance })));
    }

    /// Takes a requested plan if it is better than the one in force by more than the hysteresis.
    ///
    /// # Errors
    /// If it is not the one that is wanted now, or violates a constraint. Nothing has changed then.
    pub fn planned(&mut self, now: Nanos, number: u64, plan: &Plan) -> Result<Decision, PlanRefused> {
        self.now = self.now.max(now);
        let Some(asked) = self.asked.take_if(|asked| asked.number == number) else {
            self.counters.plans_refused += 1;
            return Err(PlanRefused::NotWanted(number));
        };
        if self.now.saturating_sub(asked.at) > self.config.plan_timeout {
            self.counters.plans_late += 1;
            return Err(PlanRefused::NotWanted(number));
        }
        if let Some(first) = violations(&asked.instance, plan).first().filter(|_| !planted(263)) {
            self.counters.plans_refused += 1;
            return Err(PlanRefused::Violates { number, first: first.to_string() });
        }
        let old = Plan { rsnodes: self.target.clone() };
        let decision = decide(&asked.instance, &old, plan, self.config.hysteresis);
        match decision {
            Decision::Keep => self.counters.plans_kept += 1,
            Decision::Take => {
                self.counters.plans_taken += 1;
                self.target.clone_from(&plan.rsnodes);
                self.is_deployed = false;
                self.step();
                self.send_all();
            }
        }
        self.event(Event::PlanDecided(decision));
        Ok(decision)
    }
}
