//! An unfinished plan: keeps loads and extra hops current, so that each step is checked at once.

use crate::instance::Instance;
use crate::plan::Plan;

#[derive(Clone, Debug)]
pub(crate) struct Draft<'a> {
    pub instance: &'a Instance,
    pub plan: Plan,
    free: Vec<u64>,
    hops_left: u64,
    groups_at: Vec<usize>,
}

impl<'a> Draft<'a> {
    pub(crate) fn empty(instance: &'a Instance) -> Self {
        Self {
            instance,
            plan: Plan::degraded(instance.groups().len()),
            free: instance.topology().accelerators().iter().map(|accelerator| accelerator.limit()).collect(),
            hops_left: instance.limits().extra_hops,
            groups_at: vec![0; instance.topology().operators().len()],
        }
    }

    /// The plan in force, even if it violates constraints; exceeded capacity counts as 0. Only for adding groups.
    pub(crate) fn in_force(instance: &'a Instance, plan: &Plan) -> Self {
        let mut draft = Self::empty(instance);
        let topology = instance.topology();
        for (group, rsnode) in plan.rsnodes.iter().enumerate() {
            let Some(operator) = *rsnode else { continue };
            let free = &mut draft.free[topology.operators()[operator].accelerator];
            *free = free.saturating_sub(instance.load(group));
            let hops = instance.extra_hops(group, topology.tier(operator));
            draft.hops_left = draft.hops_left.saturating_sub(hops);
            draft.groups_at[operator] += 1;
            draft.plan.rsnodes[group] = Some(operator);
        }
        draft
    }

    pub(crate) fn in_use(&self, operator: usize) -> bool {
        self.groups_at[operator] > 0
    }

    pub(crate) fn operators_in_use(&self) -> Vec<usize> {
        (0..self.groups_at.len()).filter(|&operator| self.in_use(operator)).collect()
    }

    pub(crate) fn free(&self, operator: usize) -> u64 {
        self.free[self.instance.topology().operators()[operator].accelerator]
    }

    /// Whether the limits allow it; the operator must be on the group's path.
    pub(crate) fn may_place(&self, group: usize, operator: usize) -> bool {
        let tier = self.instance.topology().tier(operator);
        self.instance.load(group) <= self.free(operator) && self.instance.extra_hops(group, tier) <= self.hops_left
    }

    pub(crate) fn place(&mut self, group: usize, operator: usize) -> bool {
        if !self.may_place(group, operator) {
            return false;
        }
        let topology = self.instance.topology();
        self.free[topology.operators()[operator].accelerator] -= self.instance.load(group);
        self.hops_left -= self.instance.extra_hops(group, topology.tier(operator));
        self.groups_at[operator] += 1;
        self.plan.rsnodes[group] = Some(operator);
        true
    }

    pub(crate) fn remove(&mut self, group: usize) {
        let Some(operator) = self.plan.rsnodes[group].take() else { return };
        let topology = self.instance.topology();
        self.free[topology.operators()[operator].accelerator] += self.instance.load(group);
        self.hops_left += self.instance.extra_hops(group, topology.tier(operator));
        self.groups_at[operator] -= 1;
    }

    /// Best fit: operators in use first, those with the least room first.
    pub(crate) fn place_anywhere(&mut self, group: usize, only_in_use: bool) -> bool {
        let candidates = self.instance.on_path(group).filter(|&operator| self.may_place(group, operator));
        let candidates = candidates.filter(|&operator| !only_in_use || self.in_use(operator));
        let best = candidates.min_by_key(|&operator| {
            // Among operators not in use, the one that costs the fewest extra hops.
            let hops = self.instance.extra_hops(group, self.instance.topology().tier(operator));
            let unused = !self.in_use(operator);
            (unused, if unused { hops } else { 0 }, self.free(operator), operator)
        });
        best.is_some_and(|operator| self.place(group, operator))
    }

    /// Empties RSNodes, the least loaded first, if all groups of one fit at others in use.
    pub(crate) fn close(&mut self) {
        loop {
            let mut closed = false;
            let mut operators = self.operators_in_use();
            operators.sort_by_key(|&operator| (std::cmp::Reverse(self.free(operator)), operator));
            for operator in operators {
                closed |= self.close_one(operator);
            }
            if !closed {
                return;
            }
        }
    }

    fn close_one(&mut self, operator: usize) -> bool {
        let rsnodes = self.plan.rsnodes.iter().enumerate();
        let mut groups: Vec<usize> = rsnodes.filter(|(_, at)| **at == Some(operator)).map(|(group, _)| group).collect();
        groups.sort_by_key(|&group| (std::cmp::Reverse(self.instance.load(group)), group));
        groups.iter().for_each(|&group| self.remove(group));
        for (done, &group) in groups.iter().enumerate() {
            if !self.place_anywhere(group, true) {
                groups[..done].iter().for_each(|&group| self.remove(group));
                groups.iter().for_each(|&group| {
                    self.place(group, operator);
                });
                return false;
            }
        }
        true
    }
}
