//! Faults of datagrams on their path, and their counts.

use midflight_endpoint::Nanos;
use rand::RngExt;
use rand_pcg::Pcg64;

/// Network faults. Probabilities are per datagram; delays add to those of hosts, links and switches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Faults {
    /// Shortest delay, in nanoseconds.
    pub delay_min: Nanos,
    /// Longest delay without reordering, in nanoseconds.
    pub delay_max: Nanos,
    /// Probability that it never arrives.
    pub loss: f64,
    /// Probability that it arrives twice.
    pub duplication: f64,
    /// Probability that it is delayed by up to `reordering_delay`, so that later ones overtake it.
    pub reordering: f64,
    /// Nanoseconds.
    pub reordering_delay: Nanos,
}

impl Faults {
    /// Delivers every datagram once, in order, after 20 µs.
    pub const NONE: Self = Self { delay_min: 20_000, delay_max: 20_000, ..Self::INSTANT };

    /// No faults and no delay: for worlds with hardware.
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

    /// Draws the additional delay of each arriving copy of the next datagram. Uses random numbers only if there is a
    /// choice.
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

/// Counts of datagrams by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounters {
    /// Handed to the network.
    pub sent: u64,
    /// Lost on the path.
    pub lost: u64,
    /// Delivered twice.
    pub duplicated: u64,
    /// Delayed for reordering.
    pub held_back: u64,
    /// Sent across a partition.
    pub partitioned: u64,
    /// Larger than the path allows.
    pub too_long: u64,
    /// Arrived at a node that was down, or at an unused address.
    pub unreachable: u64,
    /// Found a full receive buffer of a host, or of a paused or busy node.
    pub receive_buffer_full: u64,
    /// Exceeded a switch's packet-rate limit and its queue.
    pub switch_queue_full: u64,
}
