//! Chooses the executors that get reservations.

use rand::RngExt;
use rand_pcg::Pcg64;

pub(super) fn reservations(tasks: usize, ratio: f64) -> usize {
    // A ratio like 1.05 is not exact in binary: 20 tasks must not become 22 reservations.
    (tasks as f64 * ratio - 1e-9).ceil() as usize
}

/// `pool` keeps its order between draws; any order is as good.
#[derive(Debug)]
pub(super) struct Sampler {
    pool: Vec<u32>,
}

impl Sampler {
    pub(super) fn new(executors: usize) -> Self {
        Self { pool: (0..executors as u32).collect() }
    }

    /// Distinct, or each once before any repeats.
    pub(super) fn draw(&mut self, count: usize, random: &mut Pcg64, mut each: impl FnMut(u32)) {
        let mut left = count;
        while left > 0 {
            let round = left.min(self.pool.len());
            for place in 0..round {
                let other = random.random_range(place..self.pool.len());
                self.pool.swap(place, other);
                each(self.pool[place]);
            }
            left -= round;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn executors_are_different_and_as_many_as_asked(
            executors in 1usize..200, tasks in 1usize..100, ratio in 1.0f64..4.0, seed: u64,
        ) {
            let count = reservations(tasks, ratio);
            prop_assert!(count as f64 >= tasks as f64 * ratio - 1e-6 && (count as f64) < tasks as f64 * ratio + 1.0);
            let (mut sampler, mut random) = (Sampler::new(executors), Pcg64::new(u128::from(seed), 1));
            for _ in 0..3 {
                let mut drawn = vec![0usize; executors];
                let mut total = 0;
                sampler.draw(count, &mut random, |executor| { drawn[executor as usize] += 1; total += 1; });
                prop_assert_eq!(total, count);
                let (least, most) = (count / executors, count.div_ceil(executors));
                prop_assert!(drawn.iter().all(|&times| (least..=most).contains(&times)));
            }
        }
    }

    #[test]
    fn ratios_are_rounded_up() {
        for (tasks, ratio, expected) in [(1, 1.05, 2), (20, 1.05, 21), (100, 1.05, 105), (7, 2.0, 14), (5, 3.0, 15)] {
            assert_eq!(reservations(tasks, ratio), expected, "{tasks} tasks at {ratio}");
        }
    }

    #[test]
    fn every_executor_is_as_likely_as_any_other() {
        let (mut sampler, mut random) = (Sampler::new(10), Pcg64::new(5, 1));
        let mut drawn = [0u32; 10];
        for _ in 0..10_000 {
            sampler.draw(3, &mut random, |executor| drawn[executor as usize] += 1);
        }
        assert!(drawn.iter().all(|&times| (2_800..3_200).contains(&times)), "{drawn:?}");
    }
}
