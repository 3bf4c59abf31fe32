//! Exponential back-off with jitter after a refusal by a full peer (T7).

use crate::Nanos;
use rand::RngExt;
use rand_pcg::Pcg32;
use std::ops::RangeInclusive;

/// Delays new requests, but not retransmissions, which need no new room at the peer.
#[derive(Clone, Debug)]
pub struct Backoff {
    waits: RangeInclusive<Nanos>,
    /// Current wait; 0 if the last request was accepted in full.
    wait: Nanos,
    began: Nanos,
    until: Nanos,
}

impl Backoff {
    /// Waits grow from the start of `waits` to its end.
    #[must_use]
    pub fn new(waits: RangeInclusive<Nanos>) -> Self {
        Self { waits, wait: 0, began: 0, until: 0 }
    }

    /// The peer refused part of a request sent at `sent_at`. Returns whether the wait grew; a request already in flight when the
    /// wait began does not prolong it.
    pub fn full(&mut self, now: Nanos, sent_at: Nanos, rng: &mut Pcg32) -> bool {
        if self.wait > 0 && sent_at <= self.began {
            return false;
        }
        self.began = now;
        self.until = now + grow(&mut self.wait, &self.waits, rng);
        true
    }

    /// Ends the wait: the peer accepted a request in full, or the peer changed.
    pub fn reset(&mut self) {
        self.wait = 0;
        self.until = 0;
    }

    /// Earliest time for a new request.
    #[must_use]
    pub fn until(&self) -> Nanos {
        self.until
    }
}

/// Doubles a wait within its bounds, and draws a time between half of it and the whole.
pub(crate) fn grow(wait: &mut Nanos, bounds: &RangeInclusive<Nanos>, rng: &mut Pcg32) -> Nanos {
    *wait = wait.saturating_mul(2).clamp(*bounds.start(), *bounds.end());
    rng.random_range(wait.div_ceil(2)..=*wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MS;
    use rand::SeedableRng;

    #[test]
    fn t7_wait_doubles_from_1_ms_to_1_s_with_jitter_and_ends_when_all_is_taken() {
        let mut backoff = Backoff::new(MS..=1_000 * MS);
        let mut rng = Pcg32::seed_from_u64(7);
        let mut now = 1;
        for power in 0..14 {
            let wait = (MS << power).min(1_000 * MS);
            assert!(backoff.full(now, now, &mut rng));
            assert!((now + wait / 2..=now + wait).contains(&backoff.until()), "wait {power}");
            now = backoff.until() + 1;
        }
        backoff.reset();
        assert_eq!(backoff.until(), 0);
        assert!(backoff.full(now, now, &mut rng));
        assert!(backoff.until() <= now + MS);
    }

    #[test]
    fn t7_answers_to_one_flight_count_once() {
        let mut backoff = Backoff::new(MS..=1_000 * MS);
        let mut rng = Pcg32::seed_from_u64(7);
        assert!(backoff.full(100, 50, &mut rng));
        let until = backoff.until();
        assert!(!backoff.full(120, 60, &mut rng));
        assert_eq!(backoff.until(), until);
    }
}
