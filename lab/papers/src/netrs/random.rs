//! Randomness from one seed, in streams that do not disturb each other: all schemes meet the same requests and the same servers.

use rand_pcg::Pcg64;

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// When requests come.
    Arrivals = 1,
    /// Of what keys.
    Keys = 2,
    /// To which clients.
    Clients = 3,
    /// How long they are in service.
    Work = 4,
    /// How fast servers are.
    Speeds = 5,
    /// What selectors get.
    Choices = 6,
    /// Where clients and servers are.
    Hosts = 7,
}

/// The stream of a purpose, and within it of one server, generator or whatever `index` counts.
pub(super) fn stream(seed: u64, purpose: Purpose, index: u32) -> Pcg64 {
    let own = hashed(seed) ^ ((purpose as u64) << 32) ^ u64::from(index);
    let word = |i| u128::from(hashed(hashed(own) ^ i));
    Pcg64::new((word(1) << 64) | word(2), (word(3) << 64) | word(4))
}

/// Steele, Lea and Flood's SplitMix64, as a hash of a number.
pub(super) fn hashed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;
    use std::collections::BTreeSet;

    #[test]
    fn seed_purpose_and_index_each_make_another_stream() {
        let mut first = BTreeSet::new();
        for seed in 0..10 {
            for purpose in [Purpose::Arrivals, Purpose::Speeds, Purpose::Choices] {
                first.extend((0..100).map(|index| stream(seed, purpose, index).random::<u64>()));
            }
        }
        assert_eq!(first.len(), 10 * 3 * 100);
        assert_eq!(stream(1, Purpose::Keys, 2).random::<u64>(), stream(1, Purpose::Keys, 2).random::<u64>());
    }
}
