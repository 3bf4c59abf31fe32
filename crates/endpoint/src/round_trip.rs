//! Round-trip measurement and the retransmission timeout derived from it (RFC 6298).

use crate::Nanos;
use std::ops::RangeInclusive;

/// Smoothed round trip, its variation, and the retransmission timeout.
#[derive(Clone, Debug)]
pub struct RoundTrip {
    smoothed: Option<Nanos>,
    variation: Nanos,
    timeout: Nanos,
    initial: Nanos,
    min: Nanos,
    max: Nanos,
}

impl RoundTrip {
    /// The timeout is `initial` before the first sample and within `bounds` afterwards.
    #[must_use]
    pub fn new(initial: Nanos, bounds: RangeInclusive<Nanos>) -> Self {
        let (min, max) = bounds.into_inner();
        Self { smoothed: None, variation: 0, timeout: initial, initial, min, max }
    }

    /// Adds the round trip of a packet sent once; after a retransmission it would be ambiguous (Karn's algorithm).
    pub fn sample(&mut self, measured: Nanos) {
        let smoothed = match self.smoothed {
            None => {
                self.variation = measured / 2;
                measured
            }
            Some(smoothed) => {
                self.variation = (3 * self.variation + smoothed.abs_diff(measured)) / 4;
                (7 * smoothed + measured) / 8
            }
        };
        self.smoothed = Some(smoothed);
        self.timeout = (smoothed + 4 * self.variation).clamp(self.min, self.max);
    }

    /// Returns the next timeout of a packet that was not answered within `timeout`. Also raises the timeout of new packets until
    /// the next sample; otherwise the round trip of a path that became slow could never be measured.
    pub fn back_off(&mut self, timeout: Nanos) -> Nanos {
        let doubled = timeout.saturating_mul(2).min(self.max);
        self.timeout = self.timeout.max(doubled);
        doubled
    }

    /// Forgets all samples, because the path changed.
    pub fn reset(&mut self) {
        self.smoothed = None;
        self.timeout = self.initial;
    }

    /// Retransmission timeout of a packet sent now.
    #[must_use]
    pub fn timeout(&self) -> Nanos {
        self.timeout
    }

    /// Smoothed round trip; `None` before the first sample.
    #[must_use]
    pub fn smoothed(&self) -> Option<Nanos> {
        self.smoothed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MS;

    fn round_trip() -> RoundTrip {
        RoundTrip::new(100 * MS, 5 * MS..=1_000 * MS)
    }

    #[test]
    fn first_and_second_sample_follow_rfc_6298() {
        let mut rt = round_trip();
        assert_eq!(rt.timeout(), 100 * MS);
        rt.sample(20 * MS);
        assert_eq!(rt.timeout(), 60 * MS, "20 + 4 * 10");
        rt.sample(28 * MS);
        assert_eq!(rt.smoothed(), Some(21 * MS));
        assert_eq!(rt.timeout(), 21 * MS + 4 * (9 * MS + MS / 2), "variation (3 * 10 + 8) / 4");
    }

    #[test]
    fn timeout_stays_within_its_bounds() {
        let mut rt = round_trip();
        (0..50).for_each(|_| rt.sample(50_000));
        assert_eq!(rt.timeout(), 5 * MS);
        rt.sample(10_000 * MS);
        assert_eq!(rt.timeout(), 1_000 * MS);
    }

    #[test]
    fn backing_off_doubles_and_holds_for_new_packets_until_a_sample() {
        let mut rt = round_trip();
        let next = rt.back_off(rt.timeout());
        assert_eq!((next, rt.timeout()), (200 * MS, 200 * MS));
        assert_eq!(rt.back_off(900 * MS), 1_000 * MS);
        rt.sample(10 * MS);
        assert_eq!(rt.timeout(), 30 * MS);
    }
}
