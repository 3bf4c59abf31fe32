pub use midflight_endpoint::config::OutOfRange as ConfigError;
use midflight_endpoint::config::in_range;
use midflight_endpoint::{MS, Nanos, SECOND};

/// Bounds and times of a client. [`ClientConfig::new`] sets the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Seeds all random choices. Must be secret and unique per client: request numbers follow from it, and knowing them allows forged
    /// answers.
    pub seed: u64,
    /// Concurrent reads; 1 to 65,536, default 1,024.
    pub under_way_max: usize,
    /// Bound on queued reads; 1 to 1,048,576, default 4,096.
    pub queued_max: usize,
    /// Bound on the transmissions of a read; 1 to 1,024, default 16.
    pub sends_max: u32,
    /// Timeout of a read. Default 10 s.
    pub timeout: Nanos,
    /// Retransmission timeout before the first measured round trip. Default 100 ms.
    pub rto_initial: Nanos,
    /// Smallest retransmission timeout. Default 20 ms; a repeat is a read that a server does twice.
    pub rto_min: Nanos,
    /// Largest retransmission timeout; it doubles with each repeat. Default 1 s.
    pub rto_max: Nanos,
    /// First pause after a refusal; doubles each time. Default 1 ms.
    pub pause_min: Nanos,
    /// Longest pause after a refusal. Default 100 ms.
    pub pause_max: Nanos,
    /// Direct mode: attempts to track; 1 to 65,536, default 8,192.
    pub attempts_max: u32,
    /// Direct mode: time after which an attempt without an answer is no longer outstanding. Default 1 s.
    pub expire: Nanos,
}

impl ClientConfig {
    /// The defaults, with a random `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            under_way_max: 1_024,
            queued_max: 4_096,
            sends_max: 16,
            timeout: 10 * SECOND,
            rto_initial: 100 * MS,
            rto_min: 20 * MS,
            rto_max: SECOND,
            pause_min: MS,
            pause_max: 100 * MS,
            attempts_max: 8_192,
            expire: SECOND,
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let counts = [
            ("under_way_max", self.under_way_max as u64, 1 << 16, "1 to 65,536"),
            ("queued_max", self.queued_max as u64, 1 << 20, "1 to 1,048,576"),
            ("sends_max", u64::from(self.sends_max), 1 << 10, "1 to 1,024"),
            ("attempts_max", u64::from(self.attempts_max), 1 << 16, "1 to 65,536"),
        ];
        for (name, value, most, range) in counts {
            in_range(name, value, (1..=most).contains(&value), range)?;
        }
        let times = [
            ("timeout", self.timeout),
            ("rto_min", self.rto_min),
            ("pause_min", self.pause_min),
            ("expire", self.expire),
        ];
        for (name, value) in times {
            in_range(name, value, value > 0, "at least 1 ns")?;
        }
        in_range("rto_initial", self.rto_initial, self.rto_initial >= self.rto_min, "at least `rto_min`")?;
        in_range("rto_max", self.rto_max, self.rto_max >= self.rto_initial, "at least `rto_initial`")?;
        in_range("pause_max", self.pause_max, self.pause_max >= self.pause_min, "at least `pause_min`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_names_the_field_and_what_it_may_be() {
        assert_eq!(ClientConfig::new(1).check(), Ok(()));
        let with = |change: fn(&mut ClientConfig)| {
            let mut config = ClientConfig::new(1);
            change(&mut config);
            config.check().expect_err("out of range").to_string()
        };
        assert_eq!(with(|c| c.under_way_max = 0), "`under_way_max` is 0: set it to 1 to 65,536");
        assert_eq!(with(|c| c.queued_max = 0), "`queued_max` is 0: set it to 1 to 1,048,576");
        assert_eq!(with(|c| c.sends_max = 1_025), "`sends_max` is 1025: set it to 1 to 1,024");
        assert_eq!(with(|c| c.attempts_max = 1 << 17), "`attempts_max` is 131072: set it to 1 to 65,536");
        assert_eq!(with(|c| c.expire = 0), "`expire` is 0: set it to at least 1 ns");
        assert_eq!(with(|c| c.rto_max = 1), "`rto_max` is 1: set it to at least `rto_initial`");
        assert_eq!(with(|c| c.pause_max = 1), "`pause_max` is 1: set it to at least `pause_min`");
    }
}
