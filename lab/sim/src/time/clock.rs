//! A node's own clock, which may drift from the world's.

use midflight_endpoint::Nanos;

const MILLION: i128 = 1_000_000;
/// Maximum drift: a twentieth. Real clocks are below a ten-thousandth.
pub(crate) const PPM_MAX: i32 = 50_000;

/// Monotonic, like the clocks of drivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    since: Nanos,
    showed: Nanos,
    ppm: i32,
}

impl Clock {
    /// What it shows at the world's time `world`.
    #[must_use]
    pub fn at(&self, world: Nanos) -> Nanos {
        let passed = world - self.since;
        if self.ppm == 0 {
            return self.showed + passed;
        }
        self.showed + (i128::from(passed) * (MILLION + i128::from(self.ppm)) / MILLION) as Nanos
    }

    /// The world's time at which it first shows `local`; for a past time, the beginning of the current rate.
    #[must_use]
    pub fn world(&self, local: Nanos) -> Nanos {
        let ahead = local.saturating_sub(self.showed);
        if self.ppm == 0 {
            return self.since.saturating_add(ahead);
        }
        let rate = MILLION + i128::from(self.ppm);
        let ahead = (i128::from(ahead) * MILLION + rate - 1) / rate;
        self.since.saturating_add(Nanos::try_from(ahead).unwrap_or(Nanos::MAX))
    }

    /// At `world` it jumps ahead by `offset`, and then runs `ppm` parts per million too fast (below 0: too slow).
    pub(crate) fn drift(&mut self, world: Nanos, ppm: i32, offset: Nanos) {
        let showed = self.at(world) + offset;
        *self = Self { since: world, showed, ppm: ppm.clamp(-PPM_MAX, PPM_MAX) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fast_clock_gains_what_it_says() {
        let mut clock = Clock::default();
        clock.drift(1_000_000, 200, 5);
        assert_eq!(clock.at(1_000_000), 1_000_005);
        assert_eq!(clock.at(1_001_000_000), 1_001_000_005 + 200_000);
        clock.drift(1_001_000_000, 0, 0);
        assert_eq!(clock.at(1_001_000_010), 1_001_200_015);
    }

    proptest! {
        #[test]
        fn world_is_the_first_instant_at_which_it_shows_that(
            (since, offset, passed) in (0u64..1 << 40, 0u64..1 << 30, 0u64..1 << 40), ppm in -PPM_MAX..PPM_MAX
        ) {
            let mut clock = Clock::default();
            clock.drift(since, ppm, offset);
            let local = clock.at(since) + passed;
            let world = clock.world(local);
            prop_assert!(clock.at(world) >= local);
            prop_assert!(world == since || clock.at(world - 1) < local);
        }
    }
}
