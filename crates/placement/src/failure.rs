//! Changes between two plans (N6): failed operators (the paper's Algorithm 1), and the decision about a new plan.

use crate::check::violations;
use crate::draft::Draft;
use crate::instance::Instance;
use crate::plan::Plan;
use std::collections::BTreeSet;

/// Algorithm 1: finds other operators for the groups of failed ones, the heaviest group first: in the same tier, then in the tiers above,
/// the nearest first, then in those below. In each tier operators in use come first, of them the one with the least room. Breaks no
/// constraint that was kept; a group without a place stays degraded.
///
/// The paper sorts the operators once; here an operator taken into use for one group counts as in use for the next.
#[must_use]
pub fn rearrange(instance: &Instance, plan: &Plan, failed: &BTreeSet<usize>) -> Plan {
    let instance = instance.clone().bar(failed.iter().copied());
    let has_failed = |rsnode: &Option<usize>| rsnode.is_some_and(|operator| failed.contains(&operator));
    let kept = Plan { rsnodes: plan.rsnodes.iter().map(|rsnode| rsnode.filter(|at| !failed.contains(at))).collect() };
    let mut draft = Draft::in_force(&instance, &kept);
    let mut groups: Vec<usize> = (0..plan.rsnodes.len()).filter(|&group| has_failed(&plan.rsnodes[group])).collect();
    groups.sort_by_key(|&group| (std::cmp::Reverse(instance.load(group)), group));
    for group in groups {
        let Some(from) = plan.rsnodes[group] else { continue };
        let tier = instance.topology().tier(from);
        let mut candidates: Vec<usize> = instance.on_path(group).collect();
        candidates.sort_by_key(|&operator| {
            let other = instance.topology().tier(operator);
            // The same tier, those above by distance, those below by distance.
            let turn = if other <= tier { (0, tier - other) } else { (1, other - tier) };
            (turn, !draft.in_use(operator), draft.free(operator), operator)
        });
        // It stays degraded if there is none.
        let _ = candidates.into_iter().find(|&operator| draft.place(group, operator));
    }
    draft.plan
}

/// Whether a new plan replaces the one in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The old one stays in force.
    Keep,
    /// The new plan is taken.
    Take,
}

/// A new RSNode starts without a view of the servers, so latency rises for a while after each change. A new plan is therefore taken only if
/// the old one violates a constraint, serves fewer groups, or has more than `hysteresis` RSNodes more.
#[must_use]
pub fn decide(instance: &Instance, old: &Plan, new: &Plan, hysteresis: usize) -> Decision {
    let degraded = |plan: &Plan| plan.under_drs().count();
    let is_cheaper = old.cost().saturating_sub(new.cost()) > hysteresis && degraded(new) == degraded(old);
    let is_broken = !violations(instance, old).is_empty();
    if is_broken || degraded(new) < degraded(old) || is_cheaper { Decision::Take } else { Decision::Keep }
}
