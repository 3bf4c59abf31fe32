//! A trial's network as data.

use super::BadTrial;
use crate::Faults;
use rand::RngExt;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

/// Faults of datagrams. Shares are of all datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Net {
    /// Shortest delay.
    pub delay_min_us: u64,
    /// Longest delay, without reordering.
    pub delay_max_us: u64,
    /// Share lost.
    pub loss: f64,
    /// Share delivered twice.
    pub duplication: f64,
    /// Share delayed so that others overtake it.
    pub reordering: f64,
    /// Longest additional delay of reordered datagrams.
    pub reordering_us: u64,
}

impl Net {
    /// The most benign network of a trial.
    pub const KIND: Self =
        Self { delay_min_us: 20, delay_max_us: 20, loss: 0.0, duplication: 0.0, reordering: 0.0, reordering_us: 0 };

    /// A bad network for a burst; its shortest delay is below `delay_min_us`.
    pub(crate) fn burst(random: &mut Pcg64, delay_min_us: u64) -> Self {
        let delay_min_us = random.random_range(5..delay_min_us);
        Self {
            delay_min_us,
            delay_max_us: delay_min_us + random.random_range(0..10_000),
            loss: random.random_range(0.0..0.5),
            duplication: random.random_range(0.0..0.5),
            reordering: random.random_range(0.0..0.5),
            reordering_us: random.random_range(1_000..200_000),
        }
    }

    /// Converts to the world's type.
    #[must_use]
    pub fn faults(&self) -> Faults {
        Faults {
            delay_min: self.delay_min_us * 1_000,
            delay_max: self.delay_max_us * 1_000,
            loss: self.loss,
            duplication: self.duplication,
            reordering: self.reordering,
            reordering_delay: self.reordering_us * 1_000,
        }
    }

    /// Checks it; errors call it `name`.
    ///
    /// # Errors
    /// If a field is invalid; says which.
    pub fn validate(&self, name: &str) -> Result<(), BadTrial> {
        for (key, share) in [("loss", self.loss), ("duplication", self.duplication), ("reordering", self.reordering)] {
            if !(0.0..=0.95).contains(&share) {
                return Err(BadTrial(format!("{name}: {key} = {share}: use 0 to 0.95")));
            }
        }
        if self.delay_min_us > self.delay_max_us || self.delay_max_us > 1_000_000 || self.reordering_us > 1_000_000 {
            return Err(BadTrial(format!("{name}: delays are up to 1000000 us, delay_min_us <= delay_max_us")));
        }
        Ok(())
    }
}
