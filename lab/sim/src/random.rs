//! Independent random streams from one seed: an additional draw for one purpose, or by one node, changes no other draw.

use midflight_endpoint::Nanos;
use rand::RngExt;
use rand_pcg::Pcg64;

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Delays and faults of what a node sends.
    Network = 1,
    /// Identities, epochs, secrets and seeds of a node's lives.
    Birth = 2,
    /// An actor's own draws.
    Actor = 3,
    /// Job arrivals.
    Arrivals = 4,
    /// Durations and other properties of tasks.
    Tasks = 5,
    /// Faults of the world, and their times.
    Faults = 6,
    /// Placement.
    Placement = 7,
    /// A disk's times, and what a crash leaves on it.
    Disk = 8,
    /// Delays and breaks of links.
    Links = 9,
}

/// The stream of a purpose and an `index` (a node, client, …).
#[must_use]
pub fn stream(seed: u64, purpose: Purpose, index: u64) -> Pcg64 {
    // Streams that differ only in the increment are correlated, so everything goes into state and increment.
    let mut state = seed ^ (purpose as u64) << 56 ^ index.rotate_left(24);
    let mut next = || u128::from(split_mix(&mut state));
    Pcg64::new(next() << 64 | next(), next() << 64 | u128::from(index))
}

/// Draws from an exponential distribution.
#[must_use]
pub fn exponential(random: &mut Pcg64, mean: Nanos) -> Nanos {
    (-(1.0 - random.random::<f64>()).ln() * mean as f64) as Nanos
}

/// Steele, Lea and Flood's SplitMix64.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn seed_purpose_and_index_each_make_another_stream() {
        let mut first = BTreeSet::new();
        for seed in 0..10 {
            for purpose in [Purpose::Network, Purpose::Birth, Purpose::Actor, Purpose::Arrivals] {
                for index in 0..100 {
                    first.insert(stream(seed, purpose, index).random::<u64>());
                }
            }
        }
        assert_eq!(first.len(), 10 * 4 * 100);
        assert_eq!(stream(1, Purpose::Tasks, 2).random::<u64>(), stream(1, Purpose::Tasks, 2).random::<u64>());
    }

    #[test]
    fn neighbouring_streams_do_not_go_together() {
        let (mut left, mut right) = (stream(1, Purpose::Actor, 1), stream(1, Purpose::Actor, 2));
        let same = (0..10_000).filter(|_| left.random_bool(0.5) == right.random_bool(0.5)).count();
        assert!((4_800..5_200).contains(&same), "{same} of 10,000");
    }
}
