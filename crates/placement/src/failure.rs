//! Changes between two plans (N6): failed operators (the paper's Algorithm 1), overloaded accelerators, the decision about a new plan.

use crate::check::{Violation, violations};
use crate::draft::Draft;
use crate::instance::Instance;
use crate::plan::Plan;
use std::collections::BTreeSet;

/// A group that has lost its RSNode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The group.
    pub group: usize,
    /// Its previous RSNode.
    pub from: usize,
    /// Its new one; `None`: it stays degraded.
    pub to: Option<usize>,
}

/// A plan after a failure or an overload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rearranged {
    /// The plan.
    pub plan: Plan,
    /// The groups that lost their RSNode, in the order in which they were placed.
    pub moved: Vec<Moved>,
}

/// Algorithm 1: finds other operators for the groups of failed ones, the heaviest group first: in the same tier, then in the tiers above,
/// the nearest first, then in those below. In each tier operators in use come first, of them the one with the least room. Breaks no
/// constraint that was kept; a group without a place stays degraded.
///
/// The paper sorts the operators once; here an operator taken into use for one group counts as in use for the next.
#[must_use]
pub fn rearrange(instance: &Instance, plan: &Plan, failed: &BTreeSet<usize>) -> Rearranged {
    let instance = instance.clone().bar(failed.iter().copied());
    let has_failed = |rsnode: &Option<usize>| rsnode.is_some_and(|operator| failed.contains(&operator));
    let kept = Plan { rsnodes: plan.rsnodes.iter().map(|rsnode| rsnode.filter(|at| !failed.contains(at))).collect() };
    let mut draft = Draft::in_force(&instance, &kept);
    let mut groups: Vec<usize> = (0..plan.rsnodes.len()).filter(|&group| has_failed(&plan.rsnodes[group])).collect();
    groups.sort_by_key(|&group| (std::cmp::Reverse(instance.load(group)), group));
    let mut moved = Vec::new();
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
        let to = candidates.into_iter().find(|&operator| draft.place(group, operator));
        moved.push(Moved { group, from, to });
    }
    Rearranged { plan: draft.plan, moved }
}

/// Degrades all groups of overloaded operators (section III-C), until the next plan.
#[must_use]
pub fn relieve(instance: &Instance, plan: &Plan) -> Rearranged {
    let topology = instance.topology();
    let loads = plan.loads(instance);
    let is_over = |operator: usize| {
        let accelerator = topology.operators()[operator].accelerator;
        loads.get(&accelerator).is_some_and(|&load| load > topology.accelerators()[accelerator].limit())
    };
    let mut relieved = plan.clone();
    let mut moved = Vec::new();
    for (group, rsnode) in relieved.rsnodes.iter_mut().enumerate() {
        if let Some(from) = rsnode.take_if(|operator| is_over(*operator)) {
            moved.push(Moved { group, from, to: None });
        }
    }
    Rearranged { plan: relieved, moved }
}

/// Whether a new plan replaces the one in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The old plan keeps all constraints, serves as many groups, and has at most `hysteresis` RSNodes more.
    Keep {
        /// RSNodes that the new plan would save.
        saves: usize,
    },
    /// The new plan is taken.
    Take {
        /// Groups whose RSNode changes.
        moves: usize,
        /// The reason.
        because: Because,
    },
}

/// Why a new plan is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Because {
    /// The old one violates constraints with the current traffic.
    Broken(Vec<Violation>),
    /// The new one has fewer groups under DRS.
    ServesMore {
        /// How many fewer.
        groups: usize,
    },
    /// The new one has enough fewer RSNodes to be worth the change.
    Saves {
        /// How many fewer.
        rsnodes: usize,
    },
}

/// A new RSNode starts without a view of the servers, so latency rises for a while after each change. A new plan is therefore taken only if
/// the old one violates a constraint, serves fewer groups, or has more than `hysteresis` RSNodes more.
#[must_use]
pub fn decide(instance: &Instance, old: &Plan, new: &Plan, hysteresis: usize) -> Decision {
    let broken = violations(instance, old);
    let moves = old.moves_to(new);
    let fewer_degraded = old.under_drs().count().saturating_sub(new.under_drs().count());
    let saves = old.cost().saturating_sub(new.cost());
    let because = if !broken.is_empty() {
        Because::Broken(broken)
    } else if fewer_degraded > 0 {
        Because::ServesMore { groups: fewer_degraded }
    } else if saves > hysteresis && new.under_drs().count() == old.under_drs().count() {
        Because::Saves { rsnodes: saves }
    } else {
        return Decision::Keep { saves };
    };
    Decision::Take { moves, because }
}
