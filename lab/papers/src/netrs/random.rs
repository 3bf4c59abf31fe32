//! Randomness from one seed, in independent streams: all schemes see the same requests and servers.

use rand_pcg::Pcg64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Arrival times of requests.
    Arrivals = 1,
    /// Keys of requests.
    Keys = 2,
    /// Clients of requests.
    Clients = 3,
    /// Work of requests.
    Work = 4,
    /// Speeds of servers.
    Speeds = 5,
    /// Random numbers for selectors.
    Choices = 6,
    /// Places of clients and servers.
    Hosts = 7,
}

/// `index`: a server, generator etc.
pub(super) fn stream(seed: u64, purpose: Purpose, index: u32) -> Pcg64 {
    let own = hashed(seed) ^ ((purpose as u64) << 32) ^ u64::from(index);
    let word = |i| u128::from(hashed(hashed(own) ^ i));
    Pcg64::new((word(1) << 64) | word(2), (word(3) << 64) | word(4))
}

/// SplitMix64 (Steele, Lea and Flood) as a hash.
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
