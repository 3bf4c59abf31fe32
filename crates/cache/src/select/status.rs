//! A server's report in each response (NetRS's SS), and its plausibility.

use midflight_endpoint::Nanos;

/// Longest plausible service time.
pub const SERVICE_MAX_US: u32 = 60_000_000;

/// A server's state when it sent a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Queued requests, without those in service.
    pub queue: u16,
    /// Service time of this request without queueing, in microseconds.
    pub service_us: u32,
    /// Incremented with each response of this server; wraps.
    pub sequence: u16,
}

impl Status {
    /// N8: a service time is neither 0 nor above [`SERVICE_MAX_US`], and the largest queue is what a counter that does not fit would
    /// write.
    pub(super) fn is_believable(self) -> bool {
        self.queue != u16::MAX && (1..=SERVICE_MAX_US).contains(&self.service_us)
    }

    pub(super) fn service(self) -> f64 {
        (Nanos::from(self.service_us) * 1_000) as f64
    }

    /// Compares 16-bit serial numbers (RFC 1982).
    pub(super) fn is_later_than(self, sequence: u16) -> bool {
        self.sequence.wrapping_sub(sequence) as i16 > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Status = Status { queue: 3, service_us: 4_000, sequence: 1 };

    #[test]
    fn n8_absurd_statuses_are_not_believed() {
        assert!(USUAL.is_believable());
        assert!(!Status { service_us: 0, ..USUAL }.is_believable());
        assert!(!Status { service_us: u32::MAX, ..USUAL }.is_believable());
        assert!(!Status { queue: u16::MAX, ..USUAL }.is_believable());
    }

    #[test]
    fn sequences_wrap() {
        assert!(USUAL.is_later_than(0) && USUAL.is_later_than(65_535));
        assert!(!USUAL.is_later_than(1) && !USUAL.is_later_than(2));
    }
}
