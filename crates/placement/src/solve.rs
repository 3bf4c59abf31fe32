//! The planner: the order of its methods, and what is proven about its plan (N5).

use crate::check::violations;
use crate::classes::Classes;
use crate::first_fit;
use crate::instance::Instance;
use crate::plan::Plan;
use std::time::Duration;

/// How a plan was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// First-fit decreasing; the bound too came without a solver.
    FirstFit,
    /// The aggregated form, unpacked.
    Aggregated,
    /// The full form.
    Full,
}

/// The methods that may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The ILP if it was built in, otherwise first-fit.
    Best,
    /// First-fit only.
    FirstFit,
    /// First-fit, then the aggregated form only.
    Aggregated,
    /// The full form only, as in the paper.
    Full,
}

/// Options of the planner.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The methods.
    pub methods: Use,
    /// Time limit of the solver in total; first-fit takes milliseconds and needs no limit.
    pub time_limit: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { methods: Use::Best, time_limit: Duration::from_secs(5) }
    }
}

/// Whether this build has the ILP.
pub const HAS_ILP: bool = cfg!(feature = "ilp");

/// A plan that serves all groups and keeps all constraints, and how good it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solved {
    /// The plan.
    pub plan: Plan,
    /// No plan has fewer RSNodes than this.
    pub bound: usize,
    /// How the plan was found.
    pub method: Method,
}

impl Solved {
    /// Whether no plan has fewer RSNodes.
    #[must_use]
    pub fn is_optimal(&self) -> bool {
        self.plan.cost() == self.bound
    }

    /// How many RSNodes fewer the best plan may have, at most.
    #[must_use]
    pub fn gap(&self) -> usize {
        self.plan.cost() - self.bound
    }
}

/// The result of planning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A plan.
    Solved(Solved),
    /// Proven: no plan serves all groups.
    Infeasible,
    /// No plan was found, and none is excluded.
    Unknown,
}

impl Outcome {
    /// The plan, if there is one.
    #[must_use]
    pub fn solved(self) -> Option<Solved> {
        match self {
            Self::Solved(solved) => Some(solved),
            Self::Infeasible | Self::Unknown => None,
        }
    }
}

/// Plans for all groups.
#[must_use]
pub fn solve(instance: &Instance, options: &Options) -> Outcome {
    if instance.groups().is_empty() {
        return Outcome::Solved(Solved { plan: Plan::degraded(0), bound: 0, method: Method::FirstFit });
    }
    let classes = Classes::of(instance);
    if classes.homeless().next().is_some() || too_much_load(instance, &classes) {
        return Outcome::Infeasible;
    }
    let first_fit = first_fit::first_fit(instance, &classes).filter(|plan| violations(instance, plan).is_empty());
    #[cfg_attr(feature = "ilp", allow(unused_mut, reason = "the ILP asks for the bound of pods where it needs it"))]
    let mut bound = first_fit::bound(instance, &classes);
    #[cfg(not(feature = "ilp"))]
    if let Some(pods) = crate::pods::Pods::of(instance, &classes) {
        bound = bound.max(pods.bound(instance, &classes).0);
    }
    let best = Best { plan: first_fit.map(|plan| (plan, Method::FirstFit)), bound };
    #[cfg(feature = "ilp")]
    return with_ilp::solve(instance, &classes, best, options);
    #[cfg(not(feature = "ilp"))]
    {
        let _ = options;
        best.outcome()
    }
}

fn too_much_load(instance: &Instance, classes: &Classes) -> bool {
    let all: u128 = (0..instance.groups().len()).map(|group| u128::from(instance.load(group))).sum();
    let mut counted = std::collections::BTreeSet::new();
    let limits =
        classes.classes.iter().filter(|class| class.joint.is_none_or(|accelerator| counted.insert(accelerator)));
    all > limits.map(|class| u128::from(class.limit) * class.operators.len() as u128).sum()
}

struct Best {
    plan: Option<(Plan, Method)>,
    bound: usize,
}

impl Best {
    fn outcome(self) -> Outcome {
        let bound = self.bound;
        match self.plan {
            Some((plan, method)) => Outcome::Solved(Solved { bound: bound.min(plan.cost()), plan, method }),
            None => Outcome::Unknown,
        }
    }

    /// Takes a plan if it keeps the constraints exactly and is better.
    #[cfg(feature = "ilp")]
    fn offer(&mut self, instance: &Instance, plan: Plan, method: Method) {
        let better = self.plan.as_ref().is_none_or(|(best, _)| plan.cost() < best.cost());
        let serves_all = plan.under_drs().next().is_none();
        if better && serves_all && violations(instance, &plan).is_empty() {
            self.plan = Some((plan, method));
        }
    }

    #[cfg(feature = "ilp")]
    fn is_certain(&self) -> bool {
        self.plan.as_ref().is_some_and(|(plan, _)| plan.cost() <= self.bound)
    }
}

#[cfg(feature = "ilp")]
mod with_ilp {
    use super::{Best, Method, Options, Outcome, Use};
    use crate::classes::Classes;
    use crate::ilp::aggregate::{self, Aggregated, Goal, Relaxed};
    use crate::ilp::columns::{Columns, Packed};
    use crate::ilp::full::{self, Full};
    use crate::ilp::patterns::{Aim, Chosen, Patterns, choose_division, weights_of};
    use crate::instance::Instance;
    use crate::packing::Function;
    use crate::plan::Plan;
    use crate::pods::Pods;
    use crate::unpack::{Unpacked, pack_all, unpack};

    /// Solutions of the aggregated form, each with cuts that the previous one violates.
    const ROUNDS: u32 = 12;
    /// Most binary variables of the full form; a larger one takes longer to read than the time limit.
    const BINARIES_MAX: usize = 50_000;
    /// As [`ROUNDS`], for the form that is solved pod by pod.
    const PATTERN_ROUNDS: u32 = 10;
    /// Most groups for column generation; more take longer than the time limit.
    const COLUMN_GROUPS_MAX: usize = 300;
    /// Solutions of the same form, each with what column generation found about groups that do not fit.
    const COLUMN_ROUNDS: u32 = 8;

    /// A quarter of the time is for the first solution, a quarter for the full form, half for the methods between. No clock is read, so
    /// unused time is lost.
    pub(super) fn solve(instance: &Instance, classes: &Classes, mut best: Best, options: &Options) -> Outcome {
        if matches!(options.methods, Use::Best | Use::Aggregated) {
            let by_patterns = match Patterns::of(instance, classes) {
                Some(patterns) => pod_by_pod(instance, classes, &patterns, &mut best, options),
                None => large_pods(instance, classes, &mut best, options),
            };
            if !by_patterns && aggregated(instance, classes, &mut best, options) {
                return Outcome::Infeasible;
            }
        }
        if best.is_certain() && options.methods != Use::Full
            || matches!(options.methods, Use::FirstFit | Use::Aggregated)
        {
            return best.outcome();
        }
        let binaries: usize = (0..instance.groups().len()).map(|group| instance.on_path(group).count()).sum();
        if options.methods == Use::Best && binaries > BINARIES_MAX {
            return best.outcome();
        }
        let (start, least) = match options.methods {
            Use::Full => (None, 0),
            _ => (best.plan.as_ref().map(|(plan, _)| plan), best.bound),
        };
        let share = if options.methods == Use::Full { 1 } else { 4 };
        match full::solve(instance, classes, start, least, options.time_limit / share) {
            Full::Infeasible => return Outcome::Infeasible,
            Full::OutOfTime(bound) => best.bound = best.bound.max(bound),
            Full::Solved(plan, bound) => {
                best.bound = best.bound.max(bound);
                if options.methods == Use::Full {
                    best.plan = None;
                }
                best.offer(instance, plan, Method::Full);
            }
        }
        best.outcome()
    }

    /// Returns whether the solver ended in time.
    fn pod_by_pod(
        instance: &Instance,
        classes: &Classes,
        patterns: &Patterns,
        best: &mut Best,
        options: &Options,
    ) -> bool {
        let top = patterns.top();
        let mut functions = vec![Function::Steps(1)];
        let mut weights = vec![weights_of(instance, classes, top, Function::Steps(1))];
        for round in 0..PATTERN_ROUNDS {
            if best.is_certain() {
                return true;
            }
            let share = if round == 0 { 4 } else { 8 * (PATTERN_ROUNDS - 1) };
            let limit = options.time_limit / share;
            let solved = patterns.solve(instance, classes, &weights, Aim::Fewest, limit);
            let Chosen::Solution(solution, bound) = solved else { return round > 0 };
            best.bound = best.bound.max(bound);
            if let Some(plan) = unpack(instance, classes, &solution).plan {
                best.offer(instance, plan, Method::Aggregated);
            }
            // Only the groups at the top may fail to fit: those of pods were enumerated.
            let at_top = solution.class_of.iter().enumerate().filter(|(_, class)| **class == Some(patterns.top()));
            let loads: Vec<u64> = at_top.map(|(group, _)| instance.load(group)).collect();
            match Function::against(&loads, classes.classes[top].limit, solution.in_use[top]) {
                Some(function) if !functions.contains(&function) => {
                    functions.push(function);
                    weights.push(weights_of(instance, classes, top, function));
                }
                _ => break,
            }
        }
        if options.methods == Use::Best {
            by_columns(instance, classes, patterns, weights, best, options);
        }
        true
    }

    /// A better bound, and a better packing.
    fn by_columns(
        instance: &Instance,
        classes: &Classes,
        patterns: &Patterns,
        mut weights: Vec<Vec<f64>>,
        best: &mut Best,
        options: &Options,
    ) {
        if best.is_certain() || instance.groups().len() > COLUMN_GROUPS_MAX {
            return;
        }
        let top = patterns.top();
        let loads: Vec<u64> = (0..instance.groups().len()).map(|group| instance.load(group)).collect();
        let mut columns = Columns::new(&loads, classes.classes[top].limit);
        let budget = instance.limits().extra_hops.max(1) as f64;
        if let Some(relaxed) = columns.solve(patterns.pods(), budget, &[]) {
            best.bound = best.bound.max(relaxed.bound);
            weights.push(relaxed.weights);
        }
        // RSNodes allowed above the bound.
        let mut more = 0;
        for round in 0..COLUMN_ROUNDS {
            if round + 2 == COLUMN_ROUNDS {
                more = more.max(1);
            }
            let target = best.bound + more;
            if best.plan.as_ref().is_some_and(|(plan, _)| plan.cost() <= target) {
                return;
            }
            let aim = Aim::RoomiestOf(target);
            let mut solution = match patterns.solve(instance, classes, &weights, aim, options.time_limit / 24) {
                Chosen::Solution(solution, _) => solution,
                Chosen::None => {
                    best.bound = target + 1;
                    continue;
                }
                Chosen::Unknown => {
                    more += 1;
                    continue;
                }
            };
            let at_top: Vec<usize> = (0..loads.len()).filter(|&group| solution.class_of[group] == Some(top)).collect();
            let sets = match columns.pack(&at_top, solution.in_use[top]) {
                Packed::Into(sets) => sets,
                Packed::Impossible(new) => {
                    weights.push(new);
                    continue;
                }
                Packed::Unknown => {
                    more += 1;
                    continue;
                }
            };
            at_top.iter().for_each(|&group| solution.class_of[group] = None);
            let in_use = |class: usize| solution.in_use[class];
            let Some(mut plan) = pack_all(instance, classes, &solution, in_use) else { return };
            for (set, &operator) in sets.iter().zip(&classes.classes[top].operators) {
                set.iter().for_each(|&group| plan.rsnodes[group] = Some(operator));
            }
            best.offer(instance, plan, Method::Aggregated);
        }
    }

    /// For pods that are too large to enumerate. Returns whether at most one RSNode is left between plan and bound; the plain form would
    /// hardly improve on that.
    fn large_pods(instance: &Instance, classes: &Classes, best: &mut Best, options: &Options) -> bool {
        let Some(pods) = Pods::of(instance, classes) else { return false };
        let (bound, divisions) = pods.bound(instance, classes);
        best.bound = best.bound.max(bound);
        if best.is_certain() {
            return true;
        }
        let chosen = choose_division(instance, classes, pods.top, divisions, options.time_limit / 4);
        if let Some(plan) = chosen.and_then(|solution| unpack(instance, classes, &solution).plan) {
            best.offer(instance, plan, Method::Aggregated);
        }
        best.plan.as_ref().is_some_and(|(plan, _)| plan.cost() <= best.bound + 1)
    }

    /// Returns whether it proves that there is no plan.
    fn aggregated(instance: &Instance, classes: &Classes, best: &mut Best, options: &Options) -> bool {
        let mut cuts = Vec::new();
        for round in 0..ROUNDS {
            if best.is_certain() {
                return false;
            }
            let share = if round == 0 { 4 } else { 4 * (ROUNDS - 1) };
            let start = best.plan.as_ref().map(|(plan, _)| of_plan(classes, plan));
            let limit = options.time_limit / share;
            match aggregate::solve(instance, classes, Goal::Operators, &cuts, start.as_ref(), limit) {
                Relaxed::Infeasible => return true,
                Relaxed::OutOfTime(bound) => {
                    best.bound = best.bound.max(bound);
                    return false;
                }
                Relaxed::Solved(solution, bound) => {
                    best.bound = best.bound.max(bound);
                    let Unpacked { plan, cuts: broken } = unpack(instance, classes, &solution);
                    if let Some(plan) = plan {
                        best.offer(instance, plan, Method::Aggregated);
                    }
                    if broken.is_empty() {
                        return false;
                    }
                    cuts.extend(broken);
                }
            }
        }
        false
    }

    /// A plan as a solution of the aggregated form.
    fn of_plan(classes: &Classes, plan: &Plan) -> Aggregated {
        let class = classes.of_operators();
        let mut in_use = vec![0; classes.classes.len()];
        plan.in_use().iter().filter_map(|operator| class.get(operator)).for_each(|&class| in_use[class] += 1);
        let class_of = plan.rsnodes.iter().map(|rsnode| rsnode.and_then(|operator| class.get(&operator).copied()));
        Aggregated { class_of: class_of.collect(), in_use }
    }
}
