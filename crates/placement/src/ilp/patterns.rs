//! The aggregated form pod by pod: a column for each way to divide the groups of a pod.
//!
//! Pods share only the switches at the top and the limit of extra hops. Where a pod has few groups, all ways to divide them
//! between the top, the pod's switches and its racks' are counted out, with exactly as many operators as each needs. Of these
//! *patterns* only those matter that no other one of the pod beats in everything that the rest of the network sees: operators,
//! load for the top, extra hops. The program that chooses a pattern for each pod has hardly any fractions to round, which is
//! what the plain aggregated form spends its time on.

use super::aggregate::Aggregated;
use super::{Answer, minimise};
use crate::classes::{Class, Classes};
use crate::instance::Instance;
use crate::packing::{Function, Packed, l2, pack};
use crate::pods::Division;
use highs::{Col, RowProblem};
use std::collections::BTreeMap;
use std::time::Duration;

/// A pod with more ways than this is not counted out.
const WAYS_MAX: usize = 60_000;
/// And none with more groups.
const GROUPS_MAX: usize = 12;
/// Values of functions are compared as integers.
const SCALE: f64 = 1e9;

/// What the program is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// The fewest operators.
    Fewest,
    /// At most so many operators, and the least load at the top: such a solution is the easiest to unpack.
    EasiestOf(usize),
}

/// The groups of one pod.
struct Pod {
    groups: Vec<usize>,
}

/// The pods and the class at the top, if the network is one whose patterns can be counted out.
pub(crate) struct Patterns {
    pods: Vec<Pod>,
    top: usize,
}

/// What the rest of the network sees of a way to divide a pod's groups.
#[derive(Clone, Debug)]
struct Pattern {
    operators: usize,
    top_load: u64,
    hops: u64,
    /// Of the groups at the top: a sum for each function.
    sums: Vec<u64>,
    /// The groups of the pod and their classes.
    class_of: Vec<(usize, usize)>,
}

impl Pattern {
    fn is_no_worse(&self, other: &Self) -> bool {
        self.operators <= other.operators
            && self.top_load <= other.top_load
            && self.hops <= other.hops
            && self.sums.iter().zip(&other.sums).all(|(ours, theirs)| ours <= theirs)
    }
}

impl Patterns {
    /// `None` if classes are tied by shared accelerators, or unlike at the top, or a pod is too large.
    pub(crate) fn of(instance: &Instance, classes: &Classes) -> Option<Self> {
        let tops: Vec<usize> = (0..classes.classes.len()).filter(|&class| classes.classes[class].tier == 0).collect();
        let [top] = tops[..] else { return None };
        if classes.classes.iter().any(|class| class.joint.is_some()) {
            return None;
        }
        let topology = instance.topology();
        let mut pods: BTreeMap<usize, Pod> = BTreeMap::new();
        for (group, of) in instance.groups().iter().enumerate() {
            // The last area below the whole network.
            let pod = topology.around(of.rack).filter(|&area| topology.areas()[area].within.is_some()).last()?;
            pods.entry(pod).or_insert_with(|| Pod { groups: vec![] }).groups.push(group);
        }
        let few = |pod: &Pod| {
            let ways =
                pod.groups.iter().try_fold(1_usize, |ways, &group| ways.checked_mul(classes.options[group].len()));
            pod.groups.len() <= GROUPS_MAX && ways.is_some_and(|ways| ways <= WAYS_MAX)
        };
        pods.values().all(few).then(|| Self { pods: pods.into_values().collect(), top })
    }

    /// The class at the top.
    pub(crate) fn top(&self) -> usize {
        self.top
    }

    /// A solution of the aggregated form, and a bound. The `functions` limit the groups at the top (see [`Function`]).
    pub(crate) fn solve(
        &self,
        instance: &Instance,
        classes: &Classes,
        functions: &[Function],
        aim: Aim,
        limit: Duration,
    ) -> Option<(Aggregated, usize)> {
        let of_pod = |pod: &Pod| undominated(all_patterns(instance, classes, self.top, functions, pod));
        let patterns = self.pods.iter().map(of_pod).collect();
        choose(instance, classes, self.top, functions, patterns, aim, limit)
    }
}

/// The best solution of some divisions of each pod; whether others are better is not known.
pub(crate) fn choose_division(
    instance: &Instance,
    classes: &Classes,
    top: usize,
    divisions: Vec<Vec<Division>>,
    limit: Duration,
) -> Option<Aggregated> {
    let functions = [Function::Steps(1)];
    let pattern = |division: Division| of_division(instance, classes, top, &functions, division);
    let of_pod = |divisions: Vec<Division>| undominated(divisions.into_iter().filter_map(pattern).collect());
    let patterns = divisions.into_iter().map(of_pod).collect();
    choose(instance, classes, top, &functions, patterns, Aim::Fewest, limit).map(|(solution, _)| solution)
}

/// The program: a pattern for each pod.
fn choose(
    instance: &Instance,
    classes: &Classes,
    top_class: usize,
    functions: &[Function],
    patterns: Vec<Vec<Pattern>>,
    aim: Aim,
    limit: Duration,
) -> Option<(Aggregated, usize)> {
    let top = &classes.classes[top_class];
    let mut problem = RowProblem::new();
    let price = if aim == Aim::Fewest { 1.0 } else { 0.0 };
    let in_use = problem.add_integer_column(price, 0.0..=top.operators.len() as f64);
    let mut columns: Vec<Vec<(Col, Pattern)>> = Vec::new();
    for pod in patterns {
        let cost = |pattern: &Pattern| match aim {
            Aim::Fewest => pattern.operators as f64,
            // In thousandths of what an operator may get.
            Aim::EasiestOf(_) => 1e3 * pattern.top_load as f64 / top.limit.max(1) as f64,
        };
        let column = |pattern: Pattern| (problem.add_integer_column(cost(&pattern), 0..=1), pattern);
        columns.push(pod.into_iter().map(column).collect());
    }
    for pod in &columns {
        problem.add_row(1..=1, pod.iter().map(|&(column, _)| (column, 1.0)));
    }
    let sum = |of: &dyn Fn(&Pattern) -> f64| -> Vec<(Col, f64)> {
        let all = columns.iter().flatten().map(|(column, pattern)| (*column, of(pattern)));
        all.filter(|(_, value)| *value > 0.0).collect()
    };
    let budget = instance.limits().extra_hops.max(1) as f64;
    problem.add_row(..=1.0, sum(&|pattern| pattern.hops as f64 / budget));
    let load = sum(&|pattern| pattern.top_load as f64 / top.limit.max(1) as f64);
    problem.add_row(..=0.0, load.into_iter().chain([(in_use, -1.0)]));
    if let Aim::EasiestOf(operators) = aim {
        let of_pods = sum(&|pattern| pattern.operators as f64);
        problem.add_row(..=operators as f64, of_pods.into_iter().chain([(in_use, 1.0)]));
    }
    for number in 0..functions.len() {
        let sums = sum(&|pattern| pattern.sums[number] as f64 / SCALE);
        problem.add_row(..=0.0, sums.into_iter().chain([(in_use, -1.0)]));
    }
    let Answer { values, bound, .. } = minimise(problem, None, limit);
    let values = values?;
    let mut class_of = vec![None; instance.groups().len()];
    for pod in &columns {
        let (_, pattern) = pod.iter().find(|(column, _)| values[column.index()] > 0.5)?;
        pattern.class_of.iter().for_each(|&(group, class)| class_of[group] = Some(class));
    }
    let mut counts = vec![0; classes.classes.len()];
    for (class, loads) in
        loads_by_class(instance, class_of.iter().enumerate().filter_map(|(at, of)| Some((at, (*of)?))))
    {
        counts[class] = bins_of(&loads, classes.classes[class].limit);
    }
    counts[top_class] = values[in_use.index()].round() as usize;
    Some((Aggregated { class_of, in_use: counts }, bound))
}

fn loads_by_class(instance: &Instance, at: impl Iterator<Item = (usize, usize)>) -> BTreeMap<usize, Vec<u64>> {
    let mut loads: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    at.for_each(|(group, class)| loads.entry(class).or_default().push(instance.load(group)));
    loads
}

/// How many bins packing needs.
fn bins_of(loads: &[u64], limit: u64) -> usize {
    let least = l2(loads, limit).max(1);
    (least..loads.len()).find(|&bins| matches!(pack(loads, limit, bins), Packed::Into(_))).unwrap_or(loads.len())
}

/// What the rest of the network sees of a division; `None` if the pod's operators cannot hold it.
fn of_division(
    instance: &Instance,
    classes: &Classes,
    top: usize,
    functions: &[Function],
    division: Division,
) -> Option<Pattern> {
    let mut pattern =
        Pattern { operators: 0, top_load: 0, hops: 0, sums: vec![0; functions.len()], class_of: division.class_of };
    let tier = |class: usize| classes.classes[class].tier;
    pattern.hops = pattern.class_of.iter().map(|&(group, class)| instance.extra_hops(group, tier(class))).sum();
    for (class, loads) in loads_by_class(instance, pattern.class_of.iter().copied()) {
        let Class { limit, operators, .. } = &classes.classes[class];
        if class == top {
            pattern.top_load = loads.iter().sum();
            for (sum, function) in pattern.sums.iter_mut().zip(functions) {
                *sum = loads.iter().map(|&load| scaled(function, load, *limit)).sum();
            }
        } else {
            let bins = bins_of(&loads, *limit);
            if bins > operators.len() {
                return None;
            }
            pattern.operators += bins;
        }
    }
    Some(pattern)
}

/// A function's value as an integer.
fn scaled(function: &Function, load: u64, limit: u64) -> u64 {
    (function.of(load, limit) * SCALE).floor() as u64
}

/// For each set of loads, as bits: how few bins hold it. The fewest bins, and of those with the fewest the emptiest last one,
/// are found from the same of the set without one load.
fn least_bins(loads: &[u64], capacity: u64) -> Vec<u8> {
    let sets = 1_usize << loads.len();
    let mut best = vec![(u8::MAX, u64::MAX); sets];
    best[0] = (0, 0);
    for set in 1..sets {
        for (item, &load) in loads.iter().enumerate().filter(|(item, _)| set >> item & 1 == 1) {
            let (bins, last) = best[set & !(1 << item)];
            let with =
                if bins > 0 && last + load <= capacity { (bins, last + load) } else { (bins.saturating_add(1), load) };
            best[set] = best[set].min(with);
        }
    }
    best.into_iter().map(|(bins, _)| bins).collect()
}

/// Every way to divide the groups of a pod that its operators can hold.
fn all_patterns(instance: &Instance, classes: &Classes, top: usize, functions: &[Function], pod: &Pod) -> Vec<Pattern> {
    let loads: Vec<u64> = pod.groups.iter().map(|&group| instance.load(group)).collect();
    // Classes with the same limit need equally many operators for the same groups.
    let mut tables: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let mut used: Vec<usize> = pod.groups.iter().flat_map(|&group| classes.options[group].iter().copied()).collect();
    used.sort_unstable();
    used.dedup();
    for class in used.iter().filter(|class| **class != top) {
        let limit = classes.classes[*class].limit;
        tables.entry(limit).or_insert_with(|| least_bins(&loads, limit));
    }
    let limit = classes.classes[top].limit;
    let values_of = |&load: &u64| functions.iter().map(|function| scaled(function, load, limit)).collect();
    let values: Vec<Vec<u64>> = loads.iter().map(values_of).collect();
    let hops = |group: usize, class: usize| instance.extra_hops(pod.groups[group], classes.classes[class].tier);
    let mut patterns = Vec::new();
    let mut option = vec![0; pod.groups.len()];
    loop {
        let class_of: Vec<usize> =
            pod.groups.iter().zip(&option).map(|(&group, &at)| classes.options[group][at]).collect();
        let mut sets: Vec<(usize, usize)> = used.iter().map(|&class| (class, 0)).collect();
        let mut pattern =
            Pattern { operators: 0, top_load: 0, hops: 0, sums: vec![0; functions.len()], class_of: vec![] };
        for (group, &class) in class_of.iter().enumerate() {
            pattern.hops += hops(group, class);
            if class == top {
                pattern.top_load += loads[group];
                pattern.sums.iter_mut().zip(&values[group]).for_each(|(sum, value)| *sum += value);
            } else if let Some((_, set)) = sets.iter_mut().find(|(other, _)| *other == class) {
                *set |= 1 << group;
            }
        }
        let mut fits = pattern.hops <= instance.limits().extra_hops;
        for &(class, set) in sets.iter().filter(|(_, set)| *set > 0) {
            let bins = usize::from(tables[&classes.classes[class].limit][set]);
            fits &= bins <= classes.classes[class].operators.len();
            pattern.operators += bins;
        }
        if fits {
            pattern.class_of = pod.groups.iter().copied().zip(class_of).collect();
            patterns.push(pattern);
        }
        // The next way, as a number whose digits are the options.
        let Some(digit) = (0..option.len()).find(|&group| option[group] + 1 < classes.options[pod.groups[group]].len())
        else {
            return patterns;
        };
        option[..digit].fill(0);
        option[digit] += 1;
    }
}

/// Those that no other one beats.
fn undominated(mut patterns: Vec<Pattern>) -> Vec<Pattern> {
    patterns
        .sort_by(|a, b| (a.operators, a.top_load, a.hops, &a.sums).cmp(&(b.operators, b.top_load, b.hops, &b.sums)));
    let mut kept: Vec<Pattern> = Vec::new();
    for pattern in patterns {
        match kept.iter().rposition(|other| other.is_no_worse(&pattern)) {
            // The one that beats this one probably beats the next one too.
            Some(at) if at + 1 < kept.len() && kept.len() > 8 => {
                let last = kept.len() - 1;
                kept.swap(at, last);
            }
            Some(_) => {}
            None => kept.push(pattern),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn n5_sets_need_as_few_bins_as_packing_finds(loads in prop::collection::vec(0_u64..=20, 1..8)) {
            let all = usize::from(least_bins(&loads, 20)[(1 << loads.len()) - 1]);
            prop_assert!(matches!(pack(&loads, 20, all), Packed::Into(_)));
            prop_assert!(all <= 1 || pack(&loads, 20, all - 1) == Packed::Impossible);
        }
    }
}
