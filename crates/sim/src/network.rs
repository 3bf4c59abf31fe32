//! The simulated network: what happens to a datagram between two nodes.

use crate::random::{Purpose, stream};
use midflight_tasks::Nanos;
use rand::RngExt;
use rand_pcg::Pcg64;

/// How bad the network is. Probabilities are of each datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Faults {
    /// Shortest way, in nanoseconds.
    pub delay_min: Nanos,
    /// Longest way of a datagram that is not held back, in nanoseconds.
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
    pub const NONE: Self = Self {
        delay_min: 20_000,
        delay_max: 20_000,
        loss: 0.0,
        duplication: 0.0,
        reordering: 0.0,
        reordering_delay: 0,
    };

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
}

/// What became of datagrams, by count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounters {
    /// Handed to the network.
    pub sent: u64,
    /// Lost on the way.
    pub lost: u64,
    /// Delivered twice.
    pub duplicated: u64,
    /// Held back.
    pub held_back: u64,
    /// Arrived at a node that was down, or at an address where there is none.
    pub unreachable: u64,
}

#[derive(Debug)]
pub(crate) struct Network {
    faults: Faults,
    random: Pcg64,
    pub(crate) counters: NetworkCounters,
}

impl Network {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        Self { faults, random: stream(seed, Purpose::Network), counters: NetworkCounters::default() }
    }

    /// When a datagram that is sent now arrives: never, once or twice.
    pub(crate) fn arrivals(&mut self, now: Nanos) -> impl Iterator<Item = Nanos> + use<> {
        self.counters.sent += 1;
        let mut arrivals = [None; 2];
        if self.random.random_bool(self.faults.loss) {
            self.counters.lost += 1;
        } else {
            arrivals[0] = Some(now + self.delay());
            if self.random.random_bool(self.faults.duplication) {
                self.counters.duplicated += 1;
                arrivals[1] = Some(now + self.delay());
            }
        }
        arrivals.into_iter().flatten()
    }

    fn delay(&mut self) -> Nanos {
        let mut delay = self.random.random_range(self.faults.delay_min..=self.faults.delay_max);
        if self.random.random_bool(self.faults.reordering) {
            self.counters.held_back += 1;
            delay += self.random.random_range(0..=self.faults.reordering_delay);
        }
        delay
    }
}
