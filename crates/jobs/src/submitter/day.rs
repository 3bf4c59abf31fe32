//! Whether the time of day can be trusted.

use std::time::{Duration, Instant};

/// Time for which the time of day must agree with the monotonic clock. A wrong time at boot is corrected sooner.
const STEADY_AFTER: Duration = Duration::from_secs(3_600);
/// Adjustment within [`STEADY_AFTER`] that is no jump, in milliseconds.
const ADJUSTED_MAX: u64 = 60_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Day {
    since: Instant,
    /// The time of day at the reference instant, in milliseconds since 1970.
    then: u64,
}

impl Day {
    pub(super) fn new(since: Instant, then: u64) -> Self {
        Self { since, then }
    }

    /// Whether the time of day has not jumped for [`STEADY_AFTER`]; call it regularly. A momentarily wrong time must not remove old jobs.
    pub(super) fn is_steady(&mut self, at: Instant, now: u64) -> bool {
        let passed = at.saturating_duration_since(self.since);
        let expected = self.then.saturating_add(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX));
        if expected.abs_diff(now) > ADJUSTED_MAX {
            *self = Self::new(at, now);
            return false;
        }
        passed >= STEADY_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_has_just_jumped_decides_nothing() {
        let (began, minute) = (Instant::now(), Duration::from_secs(60));
        let mut day = Day::new(began, 1_000_000);
        let at = |minutes: u32| (began + minute * minutes, 1_000_000 + u64::from(minutes) * 60_000);
        assert!(!day.is_steady(at(59).0, at(59).1), "too early");
        assert!(day.is_steady(at(60).0, at(60).1 + 30_000), "adjusted");
        let year = 365 * 24 * 3_600_000;
        for minutes in 61..121 {
            assert!(!day.is_steady(at(minutes).0, at(minutes).1 + year), "it has jumped");
        }
        assert!(day.is_steady(at(121).0, at(121).1 + year), "it stays so");
        assert!(!day.is_steady(at(122).0, at(122).1), "back");
    }
}
