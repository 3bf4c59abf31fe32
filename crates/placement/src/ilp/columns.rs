//! Column generation: the number of switches that the groups at the top need if they are packed one by one, as a linear program.
//!
//! The linear program of Gilmore and Gomory has a column for each set of groups that fits a switch at the top; this one also has a column
//! for each way to divide a pod. Columns that the last prices make cheap are added: sets by a knapsack, ways from the pod's list. Prices
//! that add up to at most 1 in every set give a bound, whether or not the last column has been found (Farley), and an inequality for the
//! other forms.

use super::patterns::{Pod, Way};
use crate::knapsack::fullest;
use crate::packing::pack_quickly;
use highs::{Col, Model, Row, RowProblem, Sense};

const ROUNDS: usize = 300;
const SETS: usize = 40;
/// Steps of a knapsack, and of one that must decide whether there is a better set.
const STEPS: u32 = 5_000;
const STEPS_MAX: u32 = 200_000;
/// A smaller difference in cost is no improvement.
const LITTLE: f64 = 1e-6;

/// A set of which this part is in use is taken whole.
const MOSTLY: f64 = 0.9;
/// A bound counts as above an integer only if it exceeds it by this much.
const ROUNDING: f64 = 1e-4;

pub(crate) struct Columns<'a> {
    loads: &'a [u64],
    /// Limit of a switch at the top.
    limit: u64,
    sets: Vec<Vec<usize>>,
}

pub(crate) struct Relaxed {
    /// No plan has fewer RSNodes.
    pub bound: usize,
    /// For each group: numbers that add up to at most 1 in every switch at the top.
    pub weights: Vec<f64>,
    /// The part of each set that is in use.
    pub parts: Vec<f64>,
}

pub(crate) enum Packed {
    Into(Vec<Vec<usize>>),
    /// Proven impossible by these weights, which add up to at most 1 in every switch.
    Impossible(Vec<f64>),
    /// Neither found nor excluded.
    Unknown,
}

struct Prices {
    of_pod: Vec<f64>,
    of_group: Vec<f64>,
    of_hops: f64,
}

impl<'a> Columns<'a> {
    pub(crate) fn new(loads: &'a [u64], limit: u64) -> Self {
        let alone = (0..loads.len()).filter(|&group| loads[group] <= limit).map(|group| vec![group]);
        Self { loads, limit, sets: alone.collect() }
    }

    /// Solves for these pods and for groups that are `at_top` in any case; `budget` is E.
    pub(crate) fn solve(&mut self, pods: &[Pod], budget: f64, at_top: &[usize]) -> Option<Relaxed> {
        let mut needed = vec![0.0; self.loads.len()];
        at_top.iter().for_each(|&group| needed[group] = 1.0);
        let mut model = Model::try_new(RowProblem::new()).ok()?;
        model.set_sense(Sense::Minimise);
        model.try_set_option("output_flag", false).ok()?;
        model.try_set_option("threads", 1).ok()?;
        model.try_set_option("presolve", "off").ok()?;
        let none: [(Col, f64); 0] = [];
        let pod_rows: Vec<Row> = pods.iter().map(|_| model.add_row(1.0..=1.0, none)).collect();
        let group_rows: Vec<Row> = needed.iter().map(|&needed| model.add_row(needed.., none)).collect();
        let hops_row = model.add_row(..=1.0, none);
        let mut set_columns = Vec::new();
        let add_set = |model: &mut Model, set: &[usize]| {
            model.add_col(1.0, 0.0.., set.iter().map(|&group| (group_rows[group], 1.0))).index()
        };
        let add_way = |model: &mut Model, number: usize, pod: &Pod, way: &Way| {
            let terms = [(pod_rows[number], 1.0), (hops_row, way.hops as f64 / budget)];
            let at_top = pod.at_top(way).map(|group| (group_rows[group], -1.0));
            model.add_col(way.operators as f64, 0.0.., terms.into_iter().chain(at_top));
        };
        set_columns.extend(self.sets.iter().map(|set| add_set(&mut model, set)));
        for (number, pod) in pods.iter().enumerate() {
            // The way with the fewest extra hops, so that there is a solution.
            add_way(&mut model, number, pod, pod.cheapest(|_| 0.0, 1.0).1);
        }
        let mut best: Option<(f64, Vec<f64>)> = None;
        for _ in 0..ROUNDS {
            let solved = model.try_solve().ok()?;
            let solution = solved.get_solution();
            let (pod_count, groups) = (pods.len(), self.loads.len());
            let rows = solution.dual_rows();
            if rows.len() != pod_count + groups + 1 {
                return None;
            }
            let prices = Prices {
                of_pod: rows[..pod_count].to_vec(),
                of_group: rows[pod_count..pod_count + groups].iter().map(|price| price.max(0.0)).collect(),
                of_hops: (-rows[pod_count + groups]).max(0.0),
            };
            let parts = set_columns.iter().map(|&column| solution.columns()[column]).collect();
            let value = solved.objective_value();
            model = solved.into();
            let (new, most) = self.new_sets(&prices.of_group);
            let scale = 1.0 / most.max(1.0);
            let mut bound = -prices.of_hops
                + needed.iter().zip(&prices.of_group).map(|(needed, price)| needed * price * scale).sum::<f64>();
            let mut done = new.is_empty();
            for (number, pod) in pods.iter().enumerate() {
                let hops = prices.of_hops / budget;
                bound += pod.cheapest(|group| prices.of_group[group] * scale, hops).0;
                let (cost, way) = pod.cheapest(|group| prices.of_group[group], hops);
                if cost < prices.of_pod[number] - LITTLE {
                    add_way(&mut model, number, pod, way);
                    done = false;
                }
            }
            for set in new {
                set_columns.push(add_set(&mut model, &set));
                self.sets.push(set);
            }
            if best.as_ref().is_none_or(|(value, _)| bound > *value) {
                best = Some((bound, prices.of_group.iter().map(|price| price * scale).collect()));
            }
            // More rounds would lower the value; the bound cannot rise above it.
            let (bound, weights) = best.as_ref()?;
            if done || whole(*bound) >= whole(value) {
                return Some(Relaxed { bound: whole(*bound), weights: weights.clone(), parts });
            }
        }
        let (bound, weights) = best?;
        Some(Relaxed { bound: whole(bound), weights, parts: vec![0.0; self.sets.len()] })
    }

    /// Sets of groups worth more than a switch, and an upper bound on the value of any set.
    fn new_sets(&self, prices: &[f64]) -> (Vec<Vec<usize>>, f64) {
        let worth = |set: &[usize]| set.iter().map(|&group| prices[group]).sum::<f64>() > 1.0 + LITTLE;
        let (mut set, mut most) = fullest(self.loads, self.limit, prices, STEPS);
        if !worth(&set) && most > 1.0 + 1e-4 {
            (set, most) = fullest(self.loads, self.limit, prices, STEPS_MAX);
        }
        let mut left = prices.to_vec();
        let mut sets = Vec::new();
        while sets.len() < SETS && worth(&set) {
            set.iter().for_each(|&group| left[group] = 0.0);
            sets.push(set);
            set = fullest(self.loads, self.limit, &left, STEPS).0;
        }
        (sets, most)
    }

    /// Takes the sets that are mostly in use whole and solves the rest again, until a quick method packs what remains.
    pub(crate) fn pack(&mut self, groups: &[usize], switches: usize) -> Packed {
        let mut left = groups.to_vec();
        let mut taken: Vec<Vec<usize>> = Vec::new();
        while taken.len() < switches && !left.is_empty() {
            let bins = switches - taken.len();
            let loads: Vec<u64> = left.iter().map(|&group| self.loads[group]).collect();
            if let Some(found) = pack_quickly(&loads, self.limit, bins) {
                let mut sets = vec![vec![]; bins];
                found.iter().zip(&left).for_each(|(&bin, &group)| sets[bin].push(group));
                taken.extend(sets);
                return Packed::Into(taken);
            }
            let Some(relaxed) = self.solve(&[], 1.0, &left) else { return Packed::Unknown };
            if relaxed.bound > bins {
                let weights = relaxed.weights;
                return if taken.is_empty() { Packed::Impossible(self.lifted(weights)) } else { Packed::Unknown };
            }
            let mut order: Vec<usize> = (0..relaxed.parts.len()).collect();
            order.sort_by(|&a, &b| relaxed.parts[b].total_cmp(&relaxed.parts[a]).then(a.cmp(&b)));
            let before = taken.len();
            for set in order {
                let first = taken.len() == before;
                if !first && relaxed.parts[set] < MOSTLY || taken.len() == switches {
                    break;
                }
                let part: Vec<usize> = self.sets[set].iter().copied().filter(|group| left.contains(group)).collect();
                if first || part.len() == self.sets[set].len() {
                    left.retain(|group| !part.contains(group));
                    taken.push(part);
                }
            }
        }
        if left.is_empty() { Packed::Into(taken) } else { Packed::Unknown }
    }

    /// Weights for groups without one, as large as a switch's rest allows, the heaviest group first.
    fn lifted(&self, mut weights: Vec<f64>) -> Vec<f64> {
        let fits = |&group: &usize| weights[group] <= 0.0 && self.loads[group] <= self.limit;
        let mut without: Vec<usize> = (0..self.loads.len()).filter(fits).collect();
        without.sort_by_key(|&group| (std::cmp::Reverse(self.loads[group]), group));
        for group in without {
            let (_, beside) = fullest(self.loads, self.limit - self.loads[group], &weights, STEPS);
            weights[group] = (1.0 - beside).max(0.0);
        }
        weights
    }
}

fn whole(bound: f64) -> usize {
    (bound - ROUNDING).ceil().max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packing;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn n5_packing_by_columns_never_contradicts_the_exact_search(
            loads in prop::collection::vec(1_u64..=20, 1..12),
            switches in 1_usize..8,
        ) {
            let groups: Vec<usize> = (0..loads.len()).collect();
            let exact = packing::pack(&loads, 20, switches);
            match Columns::new(&loads, 20).pack(&groups, switches) {
                Packed::Into(sets) => {
                    prop_assert!(sets.len() <= switches);
                    prop_assert!(sets.iter().all(|set| set.iter().map(|&group| loads[group]).sum::<u64>() <= 20));
                    let mut packed: Vec<usize> = sets.concat();
                    packed.sort_unstable();
                    prop_assert_eq!(packed, groups);
                }
                Packed::Impossible(weights) => {
                    prop_assert_eq!(exact, packing::Packed::Impossible);
                    prop_assert!(weights.iter().sum::<f64>() > switches as f64);
                    for set in 0_u32..1 << loads.len() {
                        let members = || groups.iter().filter(|group| set >> **group & 1 == 1);
                        if members().map(|&group| loads[group]).sum::<u64>() <= 20 {
                            prop_assert!(members().map(|&group| weights[group]).sum::<f64>() <= 1.0 + 1e-9);
                        }
                    }
                }
                Packed::Unknown => {}
            }
        }
    }
}
