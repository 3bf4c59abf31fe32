//! Faults of datagrams on their path, and their counts.

use midflight_endpoint::Nanos;
use rand::RngExt;
use rand_pcg::Pcg64;

/// How bad the network is. Probabilities are of each datagram; delays come on top of what hosts, links and switches
/// take, where there are any.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Faults {
    /// Shortest delay, in nanoseconds.
    pub delay_min: Nanos,
    /// Longest delay of a datagram that is not held back, in nanoseconds.
    pub delay_max: Nanos,
    /// Never arrives.
    pub loss: f64,
    /// Arrives twice.
    pub duplication: f64,
    /// Is held back for up to `reordering_delay`, so that later ones overtake it.
    pub reordering: f64,
    /// Nanoseconds.
    pub reordering_delay: Nanos,
}

impl Faults {
    /// A network that delivers every datagram once, in order, after 20 µs.
    pub const NONE: Self = Self { delay_min: 20_000, delay_max: 20_000, ..Self::INSTANT };

    /// No faults and no delay: for worlds whose hosts and links take the time.
    pub const INSTANT: Self =
        Self { delay_min: 0, delay_max: 0, loss: 0.0, duplication: 0.0, reordering: 0.0, reordering_delay: 0 };

    /// Loses, duplicates and reorders (by up to 2 ms) this share of the datagrams each.
    #[must_use]
    pub fn lossy(share: f64) -> Self {
        Self {
            delay_min: 10_000,
            delay_max: 60_000,
            loss: share,
            duplication: share,
            reordering: share,
            reordering_delay: 2_000_000,
        }
    }

    /// Draws the faults of the next datagram: the additional delay of each copy that arrives. Uses random numbers only if there
    /// is a choice.
    pub(super) fn draw(&self, random: &mut Pcg64, counters: &mut NetworkCounters) -> [Option<Nanos>; 2] {
        let mut happens = |probability: f64| probability > 0.0 && random.random_bool(probability);
        if happens(self.loss) {
            counters.lost += 1;
            return [None, None];
        }
        let twice = happens(self.duplication);
        counters.duplicated += u64::from(twice);
        let first = self.delay(random, counters);
        [Some(first), twice.then(|| self.delay(random, counters))]
    }

    fn delay(&self, random: &mut Pcg64, counters: &mut NetworkCounters) -> Nanos {
        let mut delay = self.delay_min;
        if self.delay_max > self.delay_min {
            delay = random.random_range(self.delay_min..=self.delay_max);
        }
        if self.reordering > 0.0 && random.random_bool(self.reordering) {
            counters.held_back += 1;
            delay += random.random_range(0..=self.reordering_delay);
        }
        delay
    }
}

/// Counts of datagrams by what happened to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounters {
    /// Handed to the network.
    pub sent: u64,
    /// Lost on the path.
    pub lost: u64,
    /// Delivered twice.
    pub duplicated: u64,
    /// Held back.
    pub held_back: u64,
    /// Sent across a partition.
    pub partitioned: u64,
    /// Larger than the path allows.
    pub too_long: u64,
    /// Arrived at a node that was down, or at an address without a node.
    pub unreachable: u64,
    /// Found the receive buffer of a host, or of a node that is paused or busy, full.
    pub receive_buffer_full: u64,
    /// Found a switch's packet-rate limit exceeded for too long.
    pub switch_queue_full: u64,
}
