//! Degraded replica selection (DRS): the groups without an RSNode if no plan serves all (N5, section III-C).
//!
//! Groups that no operator can take even alone are always degraded. Of the others the heaviest are degraded first, as in the paper, and as
//! few as possible. That order need not give the fewest groups, so the least possible number is reported too.

use crate::classes::Classes;
use crate::instance::Instance;
use crate::plan::Plan;
use crate::solve::{Method, Options, Outcome, Solved, solve};

/// The least possible number of groups under DRS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinimumDegraded {
    /// No plan has fewer groups under DRS.
    pub number: usize,
    /// Whether a plan with this number is known.
    pub exact: bool,
}

/// A plan that keeps all constraints, perhaps with groups under DRS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Degraded {
    /// The plan; cost and bound are those of the groups that it serves.
    pub solved: Solved,
    /// The groups under DRS, the heaviest first.
    pub groups: Vec<usize>,
    /// The least possible number of them.
    pub least: MinimumDegraded,
}

/// Plans for all groups; if there is no such plan, or none is found, degrades some.
#[must_use]
pub fn solve_or_degrade(instance: &Instance, options: &Options) -> Degraded {
    let outcome = solve(instance, options);
    if let Outcome::Solved(solved) = outcome {
        return Degraded { solved, groups: vec![], least: MinimumDegraded { number: 0, exact: true } };
    }
    let classes = Classes::of(instance);
    let mut order: Vec<usize> = (0..instance.groups().len()).collect();
    // A group that fits nowhere is under DRS in every plan, whatever its weight.
    let fits = |group: usize| !classes.options[group].is_empty();
    order.sort_by_key(|&group| (fits(group), std::cmp::Reverse(instance.load(group)), group));
    let homeless = classes.homeless().count();
    let probes = usize::BITS - order.len().leading_zeros() + 1;
    let options = Options { time_limit: options.time_limit / (probes + 1), ..*options };
    // A plan for some groups exists for fewer too, so binary search finds the shortest prefix.
    let (mut low, mut high) = (homeless, order.len());
    let mut best = Solved { plan: Plan::degraded(order.len()), bound: 0, method: Method::FirstFit };
    while low < high {
        let middle = low.midpoint(high);
        match without(instance, &order[..middle], &options) {
            Some(solved) => (best, high) = (solved, middle),
            None => low = middle + 1,
        }
    }
    let mut groups = order[..high].to_vec();
    groups.sort_by_key(|&group| (std::cmp::Reverse(instance.load(group)), group));
    let known = usize::from(outcome == Outcome::Infeasible).max(homeless);
    let least = least(instance, &classes, &options, known, groups.len());
    Degraded { solved: best, groups, least }
}

fn without(instance: &Instance, groups: &[usize], options: &Options) -> Option<Solved> {
    let served: Vec<usize> = (0..instance.groups().len()).filter(|group| !groups.contains(group)).collect();
    let mut part = instance.clone();
    part.groups = served.iter().map(|&group| instance.groups()[group].clone()).collect();
    let solved = solve(&part, options).solved()?;
    let mut plan = Plan::degraded(instance.groups().len());
    served.iter().zip(solved.plan.rsnodes).for_each(|(&group, rsnode)| plan.rsnodes[group] = rsnode);
    Some(Solved { plan, ..solved })
}

/// The aggregated form with slack variables: its optimum is a bound, and exact if its solution can be unpacked.
#[cfg(feature = "ilp")]
fn least(instance: &Instance, classes: &Classes, options: &Options, known: usize, found: usize) -> MinimumDegraded {
    use crate::check::violations;
    use crate::ilp::aggregate::{Goal, Relaxed, solve as solve_aggregate};
    use crate::solve::Use;
    let plain = MinimumDegraded { number: known, exact: known == found };
    if options.methods == Use::FirstFit {
        return plain;
    }
    match solve_aggregate(instance, classes, Goal::Degraded, &[], None, options.time_limit) {
        Relaxed::Solved(solution, bound) => {
            let degraded = solution.class_of.iter().filter(|class| class.is_none()).count();
            let number = bound.max(known);
            let all = |class: usize| classes.classes[class].operators.len();
            let unpacked = crate::unpack::pack_all(instance, classes, &solution, all);
            let is_plan = degraded == number && unpacked.is_some_and(|plan| violations(instance, &plan).is_empty());
            MinimumDegraded { number, exact: is_plan || number == found }
        }
        Relaxed::OutOfTime(bound) => MinimumDegraded { number: bound.max(known), exact: bound.max(known) == found },
        Relaxed::Infeasible => plain,
    }
}

#[cfg(not(feature = "ilp"))]
fn least(_: &Instance, _: &Classes, _: &Options, known: usize, found: usize) -> MinimumDegraded {
    MinimumDegraded { number: known, exact: known == found }
}
