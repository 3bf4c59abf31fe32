//! A knapsack: the bin of the greatest value.

const LITTLE: f64 = 1e-5;

/// A set of items that fits, of nearly the greatest value, and an upper bound for all sets.
pub(crate) fn fullest(loads: &[u64], capacity: u64, values: &[f64], steps: u32) -> (Vec<usize>, f64) {
    let mut items: Vec<usize> =
        (0..loads.len()).filter(|&item| values[item] > 1e-12 && loads[item] <= capacity).collect();
    // Items without load come first, at an infinite worth: then only the first item that does not fit is divided.
    let worth = |item: usize| values[item] / loads[item] as f64;
    items.sort_by(|&a, &b| worth(b).total_cmp(&worth(a)).then(a.cmp(&b)));
    let sums = items.iter().scan((0_u64, 0.0), |(load, value), &item| {
        *load += loads[item];
        *value += values[item];
        Some((*load, *value))
    });
    let sums: Vec<(u64, f64)> = std::iter::once((0, 0.0)).chain(sums).collect();
    let mut search =
        Search { loads, values, items: &items, sums, best: vec![], most: 0.0, given_up: 0.0, chosen: vec![], steps };
    search.go(0, capacity, 0.0);
    let upper = search.most.max(search.given_up) + LITTLE;
    (search.best, upper)
}

struct Search<'a> {
    loads: &'a [u64],
    values: &'a [f64],
    /// The items, the greatest value per load first.
    items: &'a [usize],
    /// Load and value of the first n items.
    sums: Vec<(u64, f64)>,
    best: Vec<usize>,
    most: f64,
    /// The greatest bound of what was not searched.
    given_up: f64,
    chosen: Vec<usize>,
    steps: u32,
}

impl Search<'_> {
    /// One of the items from `at` on may be divided.
    fn bound(&self, at: usize, free: u64) -> f64 {
        let (load, value) = self.sums[at];
        let whole = at + self.sums[at + 1..].partition_point(|(sum, _)| sum - load <= free);
        let (taken, worth) = self.sums[whole];
        let left = free - (taken - load);
        let part = self.items.get(whole).map_or(0.0, |&item| self.values[item] * left as f64 / self.loads[item] as f64);
        worth - value + part
    }

    fn go(&mut self, at: usize, free: u64, value: f64) {
        if value > self.most {
            self.most = value;
            self.best.clone_from(&self.chosen);
        }
        if at == self.items.len() {
            return;
        }
        let bound = value + self.bound(at, free);
        if bound <= self.most + LITTLE {
            return;
        }
        if self.steps == 0 {
            self.given_up = self.given_up.max(bound);
            return;
        }
        self.steps -= 1;
        let item = self.items[at];
        if self.loads[item] <= free {
            self.chosen.push(item);
            self.go(at + 1, free - self.loads[item], value + self.values[item]);
            self.chosen.pop();
        }
        self.go(at + 1, free, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The greatest value, by trying all sets.
    fn greatest(loads: &[u64], capacity: u64, values: &[f64]) -> f64 {
        let sets = 0..1_u32 << loads.len();
        let members = |set: u32| (0..loads.len()).filter(move |item| set >> item & 1 == 1);
        let fits = |set: &u32| members(*set).map(|item| loads[item]).sum::<u64>() <= capacity;
        sets.filter(fits).map(|set| members(set).map(|item| values[item]).sum()).fold(0.0, f64::max)
    }

    proptest! {
        #[test]
        fn n5_no_set_is_worth_more_than_a_knapsack_says(
            items in prop::collection::vec((0_u64..=20, 0_u32..=10), 0..9),
            steps in prop_oneof![Just(2), Just(10_000)],
        ) {
            let loads: Vec<u64> = items.iter().map(|&(load, _)| load).collect();
            let values: Vec<f64> = items.iter().map(|&(_, value)| f64::from(value) / 10.0).collect();
            let greatest = greatest(&loads, 20, &values);
            let (set, most) = fullest(&loads, 20, &values, steps);
            prop_assert!(greatest <= most);
            prop_assert!(set.iter().map(|&item| loads[item]).sum::<u64>() <= 20);
            let found: f64 = set.iter().map(|&item| values[item]).sum();
            prop_assert!(steps == 2 || found >= greatest - 2.0 * LITTLE, "{found} of {greatest}");
        }
    }
}
