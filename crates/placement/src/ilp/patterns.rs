//! The aggregated form pod by pod: a column for each way to divide the groups of a pod.
//!
//! Pods share only the switches at the top and the limit of extra hops. For a pod with few groups, all ways to divide them between the top,
//! the pod's switches and its racks' are enumerated. Only *patterns* matter that no other pattern of the pod dominates in what the rest of
//! the network sees: operators, load for the top, extra hops. The program that chooses a pattern for each pod has hardly any fractions to
//! round, on which the plain aggregated form spends most of its time.

use super::aggregate::Aggregated;
use super::{Answer, minimise};
use crate::classes::{Class, Classes};
use crate::instance::Instance;
use crate::packing::{Function, Packed, l2, pack};
use crate::pods::Division;
use highs::{Col, RowProblem};
use std::collections::BTreeMap;
use std::time::Duration;

/// A pod with more ways than this is not enumerated.
const WAYS_MAX: usize = 60_000;
/// A pod with more groups than this is not enumerated.
const GROUPS_MAX: usize = 12;
/// Values of functions are compared as integers of this scale.
const SCALE: f64 = 1e9;

/// The solver stops at a gap below 1, so room below 4 % of an operator is ignored.
const ROOM_UNITS: f64 = 25.0;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    Fewest,
    /// At most this many operators, and the most room at the top, by load and by each of the weights, which eases unpacking.
    RoomiestOf(usize),
}

pub(crate) enum Chosen {
    Solution(Aggregated, usize),
    None,
    /// The time limit was too short.
    Unknown,
}

pub(crate) struct Pod {
    groups: Vec<usize>,
    ways: Vec<Way>,
}

#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub operators: usize,
    pub hops: u64,
    /// The groups at the top, as bits.
    top: usize,
    /// For each group, the index of its class in its options.
    options: Vec<u8>,
}

impl Pod {
    /// Enumerates all ways that the pod's operators can hold; drops those that another with the same groups at the top dominates.
    fn of(instance: &Instance, classes: &Classes, top: usize, groups: Vec<usize>) -> Self {
        let loads: Vec<u64> = groups.iter().map(|&group| instance.load(group)).collect();
        let mut used: Vec<usize> = groups.iter().flat_map(|&group| classes.options[group].iter().copied()).collect();
        used.sort_unstable();
        used.dedup();
        // Classes with the same limit need equally many operators for the same groups; the top's are not counted here.
        let mut tables: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for &class in used.iter().filter(|class| **class != top) {
            let limit = classes.classes[class].limit;
            tables.entry(limit).or_insert_with(|| least_bins(&loads, limit));
        }
        let below: Vec<(usize, &[u8], usize)> = (0..used.len())
            .filter(|&at| used[at] != top)
            .map(|at| (at, &tables[&classes.classes[used[at]].limit][..], classes.classes[used[at]].operators.len()))
            .collect();
        let place = |class: usize| used.binary_search(&class).unwrap_or(0);
        let options: Vec<Vec<(usize, u64)>> = groups
            .iter()
            .map(|&group| {
                let option = |&class: &usize| (place(class), instance.extra_hops(group, classes.classes[class].tier));
                classes.options[group].iter().map(option).collect()
            })
            .collect();
        let mut fronts: Vec<Vec<Way>> = vec![vec![]; 1 << groups.len()];
        let mut way = vec![0_u8; groups.len()];
        let mut sets = vec![0_usize; used.len()];
        loop {
            sets.fill(0);
            let mut hops = 0;
            for (group, (&option, options)) in way.iter().zip(&options).enumerate() {
                let (class, extra) = options[usize::from(option)];
                sets[class] |= 1 << group;
                hops += extra;
            }
            let bins = below.iter().try_fold(0, |sum, &(at, table, count)| {
                let bins = usize::from(table[sets[at]]);
                (bins <= count).then_some(sum + bins)
            });
            if let Some(operators) = bins.filter(|_| hops <= instance.limits().extra_hops) {
                let top = used.binary_search(&top).map_or(0, |at| sets[at]);
                let front = &mut fronts[top];
                if !front.iter().any(|other| other.operators <= operators && other.hops <= hops) {
                    front.retain(|other| other.operators < operators || other.hops < hops);
                    front.push(Way { operators, hops, top, options: way.clone() });
                }
            }
            // The next way, as a number whose digits are the options.
            let Some(digit) = (0..way.len()).find(|&group| usize::from(way[group]) + 1 < options[group].len()) else {
                break;
            };
            way[..digit].fill(0);
            way[digit] += 1;
        }
        Self { groups, ways: fronts.into_iter().flatten().collect() }
    }

    fn pattern(&self, instance: &Instance, classes: &Classes, top: usize, weights: &[Vec<f64>], way: &Way) -> Pattern {
        let class_of = self.groups.iter().zip(&way.options);
        let class_of = class_of.map(|(&group, &option)| (group, classes.options[group][usize::from(option)]));
        Pattern { operators: way.operators, ..Pattern::new(instance, classes, top, weights, class_of.collect()) }
    }

    pub(crate) fn at_top(&self, way: &Way) -> impl Iterator<Item = usize> {
        let top = way.top;
        self.groups.iter().enumerate().filter(move |(at, _)| top >> at & 1 == 1).map(|(_, &group)| group)
    }

    /// The cheapest way at these prices.
    pub(crate) fn cheapest(&self, price: impl Fn(usize) -> f64, hop_price: f64) -> (f64, &Way) {
        let mut sums = vec![0.0; 1 << self.groups.len()];
        for set in 1..sums.len() {
            let lowest = set.trailing_zeros() as usize;
            sums[set] = sums[set & (set - 1)] + price(self.groups[lowest]);
        }
        let cost = |way: &Way| way.operators as f64 + way.hops as f64 * hop_price + sums[way.top];
        let all = self.ways.iter().map(|way| (cost(way), way));
        all.min_by(|a, b| a.0.total_cmp(&b.0)).expect("`Patterns` are made only if each pod has ways")
    }
}

/// The aggregated problem: its pods with their enumerated ways to divide groups, and the class of the top switches.
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
    sums: Vec<u64>,
    class_of: Vec<(usize, usize)>,
}

impl Pattern {
    /// A pattern without the pod's operators.
    fn new(
        instance: &Instance,
        classes: &Classes,
        top: usize,
        weights: &[Vec<f64>],
        class_of: Vec<(usize, usize)>,
    ) -> Self {
        let hops = |&(group, class): &(usize, usize)| instance.extra_hops(group, classes.classes[class].tier);
        let at_top = || class_of.iter().filter(|(_, class)| *class == top).map(|&(group, _)| group);
        // Rounded down, so that a sum never exceeds the exact value.
        let sum = |weights: &Vec<f64>| at_top().map(|group| (weights[group] * SCALE).floor() as u64).sum();
        Self {
            operators: 0,
            top_load: at_top().map(|group| instance.load(group)).sum(),
            hops: class_of.iter().map(hops).sum(),
            sums: weights.iter().map(sum).collect(),
            class_of,
        }
    }

    fn is_no_worse(&self, other: &Self) -> bool {
        self.operators <= other.operators
            && self.top_load <= other.top_load
            && self.hops <= other.hops
            && self.sums.iter().zip(&other.sums).all(|(ours, theirs)| ours <= theirs)
    }
}

impl Patterns {
    /// `None` if shared accelerators tie classes together, the classes at the top differ, or a pod is too large.
    pub(crate) fn of(instance: &Instance, classes: &Classes) -> Option<Self> {
        let tops: Vec<usize> = (0..classes.classes.len()).filter(|&class| classes.classes[class].tier == 0).collect();
        let [top] = tops[..] else { return None };
        if classes.classes.iter().any(|class| class.joint.is_some()) {
            return None;
        }
        let topology = instance.topology();
        let mut pods: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (group, of) in instance.groups().iter().enumerate() {
            // The last area below the whole network.
            let pod = topology.around(of.rack).filter(|&area| topology.areas()[area].within.is_some()).last()?;
            pods.entry(pod).or_default().push(group);
        }
        let few = |pod: &Vec<usize>| {
            let ways = pod.iter().try_fold(1_usize, |ways, &group| ways.checked_mul(classes.options[group].len()));
            pod.len() <= GROUPS_MAX && ways.is_some_and(|ways| ways <= WAYS_MAX)
        };
        if !pods.values().all(few) {
            return None;
        }
        let pods: Vec<Pod> = pods.into_values().map(|groups| Pod::of(instance, classes, top, groups)).collect();
        pods.iter().all(|pod| !pod.ways.is_empty()).then_some(Self { pods, top })
    }

    pub(crate) fn top(&self) -> usize {
        self.top
    }

    pub(crate) fn pods(&self) -> &[Pod] {
        &self.pods
    }

    /// A solution of the aggregated form, and a bound. In any switch at the top each of `weights` adds up to at most 1.
    pub(crate) fn solve(
        &self,
        instance: &Instance,
        classes: &Classes,
        weights: &[Vec<f64>],
        aim: Aim,
        limit: Duration,
    ) -> Chosen {
        let of_pod = |pod: &Pod| {
            undominated(pod.ways.iter().map(|way| pod.pattern(instance, classes, self.top, weights, way)).collect())
        };
        let patterns = self.pods.iter().map(of_pod).collect();
        choose(instance, classes, self.top, patterns, aim, limit)
    }
}

/// The best solution of some divisions of each pod; it proves nothing about other divisions.
pub(crate) fn choose_division(
    instance: &Instance,
    classes: &Classes,
    top: usize,
    divisions: Vec<Vec<Division>>,
    limit: Duration,
) -> Option<Aggregated> {
    let half = [weights_of(instance, classes, top, Function::Steps(1))];
    let pattern = |division: Division| of_division(instance, classes, top, &half, division);
    let of_pod = |divisions: Vec<Division>| undominated(divisions.into_iter().filter_map(pattern).collect());
    let patterns = divisions.into_iter().map(of_pod).collect();
    match choose(instance, classes, top, patterns, Aim::Fewest, limit) {
        Chosen::Solution(solution, _) => Some(solution),
        Chosen::None | Chosen::Unknown => None,
    }
}

/// The program: a pattern for each pod.
fn choose(
    instance: &Instance,
    classes: &Classes,
    top_class: usize,
    patterns: Vec<Vec<Pattern>>,
    aim: Aim,
    limit: Duration,
) -> Chosen {
    let top = &classes.classes[top_class];
    let mut problem = RowProblem::new();
    let fewest = aim == Aim::Fewest;
    let price = f64::from(u8::from(fewest));
    let in_use = problem.add_integer_column(price, 0.0..=top.operators.len() as f64);
    let room = (!fewest).then(|| problem.add_column(-ROOM_UNITS, 0.0..=top.operators.len() as f64));
    let mut columns: Vec<Vec<(Col, Pattern)>> = Vec::new();
    for pod in patterns {
        let column = |pattern: Pattern| (problem.add_integer_column(price * pattern.operators as f64, 0..=1), pattern);
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
    if let Aim::RoomiestOf(operators) = aim {
        let of_pods = sum(&|pattern| pattern.operators as f64);
        problem.add_row(..=operators as f64, of_pods.into_iter().chain([(in_use, 1.0)]));
    }
    let rest: Vec<(Col, f64)> = room.map(|room| (room, 1.0)).into_iter().chain([(in_use, -1.0)]).collect();
    let load = sum(&|pattern| pattern.top_load as f64 / top.limit.max(1) as f64);
    problem.add_row(..=0.0, load.into_iter().chain(rest.iter().copied()));
    let functions = columns.first().and_then(|pod| pod.first()).map_or(0, |(_, pattern)| pattern.sums.len());
    for number in 0..functions {
        let sums = sum(&|pattern| pattern.sums[number] as f64 / SCALE);
        problem.add_row(..=0.0, sums.into_iter().chain(rest.iter().copied()));
    }
    let Answer { values, bound, infeasible } = minimise(problem, None, limit);
    let Some(values) = values else { return if infeasible { Chosen::None } else { Chosen::Unknown } };
    let mut class_of = vec![None; instance.groups().len()];
    for pod in &columns {
        let Some((_, pattern)) = pod.iter().find(|(column, _)| values[column.index()] > 0.5) else {
            return Chosen::Unknown;
        };
        pattern.class_of.iter().for_each(|&(group, class)| class_of[group] = Some(class));
    }
    let mut counts = vec![0; classes.classes.len()];
    for (class, loads) in
        loads_by_class(instance, class_of.iter().enumerate().filter_map(|(at, of)| Some((at, (*of)?))))
    {
        counts[class] = bins_of(&loads, classes.classes[class].limit);
    }
    counts[top_class] = values[in_use.index()].round() as usize;
    Chosen::Solution(Aggregated { class_of, in_use: counts }, bound)
}

fn loads_by_class(instance: &Instance, at: impl Iterator<Item = (usize, usize)>) -> BTreeMap<usize, Vec<u64>> {
    let mut loads: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    at.for_each(|(group, class)| loads.entry(class).or_default().push(instance.load(group)));
    loads
}

fn bins_of(loads: &[u64], limit: u64) -> usize {
    let least = l2(loads, limit).max(1);
    (least..loads.len()).find(|&bins| matches!(pack(loads, limit, bins), Packed::Into(_))).unwrap_or(loads.len())
}

/// `None` if the pod's operators cannot hold it.
fn of_division(
    instance: &Instance,
    classes: &Classes,
    top: usize,
    weights: &[Vec<f64>],
    division: Division,
) -> Option<Pattern> {
    let mut pattern = Pattern::new(instance, classes, top, weights, division.class_of);
    for (class, loads) in loads_by_class(instance, pattern.class_of.iter().copied()) {
        let Class { limit, operators, .. } = &classes.classes[class];
        if class != top {
            let bins = bins_of(&loads, *limit);
            if bins > operators.len() {
                return None;
            }
            pattern.operators += bins;
        }
    }
    Some(pattern)
}

pub(crate) fn weights_of(instance: &Instance, classes: &Classes, top: usize, function: Function) -> Vec<f64> {
    let limit = classes.classes[top].limit;
    (0..instance.groups().len()).map(|group| function.of(instance.load(group), limit)).collect()
}

/// For each subset of the loads (the index is a bit mask) the fewest bins that hold it. Dynamic programming: a subset's fewest bins, and
/// then the least load of the last one, follow from the subsets with one load less.
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

/// The patterns that no other one dominates.
fn undominated(mut patterns: Vec<Pattern>) -> Vec<Pattern> {
    patterns
        .sort_by(|a, b| (a.operators, a.top_load, a.hops, &a.sums).cmp(&(b.operators, b.top_load, b.hops, &b.sums)));
    let mut kept: Vec<Pattern> = Vec::new();
    for pattern in patterns {
        match kept.iter().rposition(|other| other.is_no_worse(&pattern)) {
            // The pattern that dominates this one probably dominates the next one too.
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
