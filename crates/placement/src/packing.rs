//! Bin packing: groups of one class onto its operators, and lower bounds.

const STEPS: u32 = 200_000;
const SUBSET_STEPS: u32 = 5_000;
/// Most items for which the exact search is tried.
const EXACT_MAX: usize = 60;

/// L2 of Martello and Toth: no packing needs fewer bins. For each threshold up to half of the capacity, items above half need a bin each;
/// those that leave less than the threshold free have it for themselves; items from the threshold to half must fit next to the others.
pub(crate) fn l2(loads: &[u64], capacity: u64) -> usize {
    let mut sorted: Vec<u64> = loads.iter().copied().filter(|&load| load > 0).collect();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let prefix: Vec<u128> = std::iter::once(0)
        .chain(sorted.iter().scan(0_u128, |sum, &load| {
            *sum += u128::from(load);
            Some(*sum)
        }))
        .collect();
    let large = sorted.partition_point(|&load| load > capacity / 2 && load * 2 > capacity);
    let thresholds = std::iter::once(0).chain(sorted[large..].iter().copied());
    let bound = |threshold: u64| {
        let alone = sorted.partition_point(|&load| load > capacity - threshold).min(large);
        let small = sorted.partition_point(|&load| load >= threshold).max(large);
        let free = (large - alone) as u128 * u128::from(capacity) - (prefix[large] - prefix[alone]);
        let over = (prefix[small] - prefix[large]).saturating_sub(free);
        large + over.div_ceil(u128::from(capacity.max(1))) as usize
    };
    thresholds.map(bound).max().unwrap_or(0)
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Packed {
    Into(Vec<usize>),
    Impossible,
    /// Neither found nor excluded.
    Unknown,
}

/// Packs these loads into at most `bins` bins: first-fit decreasing, best-fit decreasing, minimum bin slack, then a bounded exact search.
pub(crate) fn pack(loads: &[u64], capacity: u64, bins: usize) -> Packed {
    if loads.iter().any(|&load| load > capacity) || l2(loads, capacity) > bins {
        return Packed::Impossible;
    }
    if let Some(found) = pack_quickly(loads, capacity, bins) {
        return Packed::Into(found);
    }
    let order = heaviest_first(loads);
    if loads.len() > EXACT_MAX {
        return Packed::Unknown;
    }
    let rest: Vec<u128> = order
        .iter()
        .rev()
        .scan(0, |sum, &item| {
            *sum += u128::from(loads[item]);
            Some(*sum)
        })
        .collect();
    let mut search = Search {
        loads,
        order: &order,
        rest: rest.into_iter().rev().collect(),
        free: vec![capacity; bins],
        bin_of: vec![0; loads.len()],
        steps: STEPS,
    };
    match search.place(0, 0) {
        Some(true) => Packed::Into(search.bin_of),
        Some(false) => Packed::Impossible,
        None => Packed::Unknown,
    }
}

fn heaviest_first(loads: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by_key(|&item| (std::cmp::Reverse(loads[item]), item));
    order
}

/// As [`pack`], without the search.
pub(crate) fn pack_quickly(loads: &[u64], capacity: u64, bins: usize) -> Option<Vec<usize>> {
    let order = heaviest_first(loads);
    let first = |_free: u64| 0;
    let best = |free: u64| free;
    let quick = fit(loads, &order, capacity, bins, first).or_else(|| fit(loads, &order, capacity, bins, best));
    quick.or_else(|| fill(loads, &order, capacity, bins))
}

/// Puts each item into the bin with room whose free space has the least `rank`; the earliest of equals.
fn fit(loads: &[u64], order: &[usize], capacity: u64, bins: usize, rank: impl Fn(u64) -> u64) -> Option<Vec<usize>> {
    let mut free = vec![capacity; bins];
    let mut bin_of = vec![0; loads.len()];
    for &item in order {
        let with_room = (0..bins).filter(|&bin| free[bin] >= loads[item]);
        let bin = with_room.min_by_key(|&bin| rank(free[bin]))?;
        free[bin] -= loads[item];
        bin_of[item] = bin;
    }
    Some(bin_of)
}

/// Minimum bin slack (Gupta and Ho): each bin in turn gets the largest remaining item, and the others that fill it best.
fn fill(loads: &[u64], order: &[usize], capacity: u64, bins: usize) -> Option<Vec<usize>> {
    let mut left = order.to_vec();
    let mut bin_of = vec![0; loads.len()];
    for bin in 0..bins {
        let Some((&largest, others)) = left.split_first() else { break };
        let mut subset = Subset { loads, items: others, best: vec![], most: 0, chosen: vec![], steps: SUBSET_STEPS };
        let rest = others.iter().map(|&item| loads[item]).sum();
        subset.search(0, capacity - loads[largest], 0, rest);
        let chosen = subset.best;
        std::iter::once(&largest).chain(&chosen).for_each(|&item| bin_of[item] = bin);
        left.retain(|item| *item != largest && !chosen.contains(item));
    }
    left.is_empty().then_some(bin_of)
}

struct Subset<'a> {
    loads: &'a [u64],
    items: &'a [usize],
    best: Vec<usize>,
    most: u64,
    chosen: Vec<usize>,
    steps: u32,
}

impl Subset<'_> {
    /// `rest` is the load of this item and those behind it.
    fn search(&mut self, at: usize, free: u64, sum: u64, rest: u64) {
        if sum > self.most || (self.best.is_empty() && !self.chosen.is_empty()) {
            self.most = sum;
            self.best.clone_from(&self.chosen);
        }
        if at == self.items.len() || sum + rest.min(free) <= self.most || self.steps == 0 {
            return;
        }
        self.steps -= 1;
        let load = self.loads[self.items[at]];
        if load <= free {
            self.chosen.push(self.items[at]);
            self.search(at + 1, free - load, sum + load, rest - load);
            self.chosen.pop();
        }
        self.search(at + 1, free, sum, rest - load);
    }
}

/// Items in falling order, each into every bin with a different free space; bins in use come first.
struct Search<'a> {
    loads: &'a [u64],
    order: &'a [usize],
    /// Load of each item and those behind it.
    rest: Vec<u128>,
    free: Vec<u64>,
    bin_of: Vec<usize>,
    steps: u32,
}

impl Search<'_> {
    /// `None` if the steps were not enough.
    fn place(&mut self, at: usize, used: usize) -> Option<bool> {
        let Some(&item) = self.order.get(at) else { return Some(true) };
        self.steps = self.steps.checked_sub(1)?;
        let load = self.loads[item];
        let smallest = self.loads[self.order[self.order.len() - 1]];
        let usable = self.free.iter().filter(|&&free| free >= smallest).map(|&free| u128::from(free)).sum::<u128>();
        if usable < self.rest[at] {
            return Some(false);
        }
        let mut tried = Vec::new();
        for bin in 0..self.free.len().min(used + 1) {
            let free = self.free[bin];
            if free < load || tried.contains(&free) {
                continue;
            }
            tried.push(free);
            self.free[bin] -= load;
            self.bin_of[item] = bin;
            let fits = self.place(at + 1, used.max(bin + 1))?;
            if fits {
                return Some(true);
            }
            self.free[bin] += load;
        }
        Some(false)
    }
}

/// A dual feasible function of a load's share of the limit: for loads that fit one operator it adds up to at most 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// The largest integer not above (k+1)·share, divided by k; the share itself where (k+1)·share is an integer.
    Steps(u64),
    /// L2's: loads below this one count 0, those that leave less than it count 1.
    Without(u64),
}

impl Function {
    /// The function that shows best that these loads need more than `bins` bins, if one does.
    pub(crate) fn against(loads: &[u64], limit: u64, bins: usize) -> Option<Self> {
        let mut functions: Vec<Self> = (1..=6).map(Self::Steps).collect();
        functions.extend(loads.iter().filter(|&&load| load * 2 <= limit).map(|&load| Self::Without(load)));
        let sum = |function: Self| loads.iter().map(|&load| function.of(load, limit)).sum::<f64>();
        let shows = functions.into_iter().map(|function| (sum(function), function));
        let best = shows.filter(|(sum, _)| *sum > bins as f64 + 1e-6).max_by(|a, b| a.0.total_cmp(&b.0));
        best.map(|(_, function)| function)
    }

    pub(crate) fn of(self, load: u64, limit: u64) -> f64 {
        match self {
            Self::Steps(k) => {
                let scaled = u128::from(load) * u128::from(k + 1);
                if scaled.is_multiple_of(u128::from(limit.max(1))) {
                    load as f64 / limit.max(1) as f64
                } else {
                    (scaled / u128::from(limit.max(1))) as f64 / k as f64
                }
            }
            Self::Without(least) if load < least => 0.0,
            Self::Without(least) if load > limit - least => 1.0,
            Self::Without(_) => load as f64 / limit.max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The least number of bins, by trying all.
    fn least(loads: &[u64], capacity: u64) -> usize {
        fn go(rest: &[u64], bins: &mut Vec<u64>, capacity: u64, best: &mut usize) {
            let Some((&load, rest)) = rest.split_first() else {
                *best = bins.len().min(*best);
                return;
            };
            for bin in 0..bins.len() {
                if bins[bin] + load <= capacity {
                    bins[bin] += load;
                    go(rest, bins, capacity, best);
                    bins[bin] -= load;
                }
            }
            bins.push(load);
            go(rest, bins, capacity, best);
            bins.pop();
        }
        let mut best = loads.len();
        go(loads, &mut vec![], capacity, &mut best);
        best
    }

    #[test]
    fn n5_l2_sees_items_above_half_where_volume_does_not() {
        assert_eq!(l2(&[51, 51, 51, 51], 100), 4);
        assert_eq!(l2(&[60, 60, 40, 40], 100), 2);
        assert_eq!(l2(&[60, 60, 41, 41], 100), 3);
        assert_eq!(l2(&[50, 50, 50, 50], 100), 2);
        assert_eq!(l2(&[], 100), 0);
    }

    proptest! {
        #[test]
        fn n5_l2_is_a_bound_and_packing_is_exact_for_few_items(loads in prop::collection::vec(1_u64..=20, 1..8)) {
            let least = least(&loads, 20);
            prop_assert!(l2(&loads, 20) <= least);
            let Packed::Into(bin_of) = pack(&loads, 20, least) else { panic!("{least} bins are enough") };
            for bin in 0..least {
                let load: u64 = (0..loads.len()).filter(|&item| bin_of[item] == bin).map(|item| loads[item]).sum();
                prop_assert!(load <= 20);
            }
            prop_assert_eq!(pack(&loads, 20, least - 1), Packed::Impossible);
        }

        #[test]
        fn n5_functions_of_cuts_are_dual_feasible(loads in prop::collection::vec(1_u64..=30, 1..8), least in 0_u64..=15) {
            prop_assume!(loads.iter().sum::<u64>() <= 30);
            for function in (1..=6).map(Function::Steps).chain([Function::Without(least)]) {
                let sum: f64 = loads.iter().map(|&load| function.of(load, 30)).sum();
                prop_assert!(sum <= 1.0 + 1e-9, "{function:?} of {loads:?} is {sum}");
            }
        }
    }
}
