//! How bad a trial's network is, as data.

use super::BadTrial;
use crate::Faults;
use rand::RngExt;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

/// What becomes of datagrams. Shares are of each datagram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Net {
    /// The shortest way.
    pub delay_min_us: u64,
    /// The longest way of what is not held back.
    pub delay_max_us: u64,
    /// Lost.
    pub loss: f64,
    /// Delivered twice.
    pub duplication: f64,
    /// Held back, so that others overtake it.
    pub reordering: f64,
    /// For at most so long.
    pub reordering_us: u64,
}

impl Net {
    /// No network is kinder.
    pub const KIND: Self =
        Self { delay_min_us: 20, delay_max_us: 20, loss: 0.0, duplication: 0.0, reordering: 0.0, reordering_us: 0 };

    /// A bad one for a while, in which datagrams take at least a time below `delay_min_us`.
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

    /// As the world has it.
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

    /// Whether it makes sense; `name` is what errors call it.
    ///
    /// # Errors
    /// Says what does not.
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
