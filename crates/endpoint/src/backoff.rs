//! Exponential back-off with jitter, after a peer was full (T7).

use crate::Nanos;
use rand::RngExt;
use rand_pcg::Pcg32;
use std::ops::RangeInclusive;

/// Holds new requests back. Retransmissions are still sent, because they ask for nothing new.
#[derive(Clone, Debug)]
pub struct Backoff {
    min: Nanos,
    max: Nanos,
    /// The present wait; 0 if the last request was accepted completely.
    wait: Nanos,
    began: Nanos,
    until: Nanos,
}

impl Backoff {
    /// `least` is the first wait, `greatest` the longest.
    #[must_use]
    pub fn new(waits: RangeInclusive<Nanos>) -> Self {
        let (min, max) = waits.into_inner();
        Self { min, max, wait: 0, began: 0, until: 0 }
    }

    /// The peer refused part of a request that was sent at `sent_at`. Answers to requests that were in flight when the wait
    /// began do not prolong it. Returns whether the wait was prolonged.
    pub fn full(&mut self, now: Nanos, sent_at: Nanos, rng: &mut Pcg32) -> bool {
        if self.wait > 0 && sent_at <= self.began {
            return false;
        }
        self.wait = (self.wait * 2).clamp(self.min, self.max);
        self.began = now;
        self.until = now + rng.random_range(self.wait.div_ceil(2)..=self.wait);
        true
    }

    /// A request was accepted completely, or the peer is another one: ends the wait.
    pub fn reset(&mut self) {
        self.wait = 0;
        self.until = 0;
    }

    /// When new requests may be sent again.
    #[must_use]
    pub fn until(&self) -> Nanos {
        self.until
    }
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
