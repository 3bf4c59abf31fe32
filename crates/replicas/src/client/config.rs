//! The configuration of a client, with the default of every bound and time.

use midflight_endpoint::{MS, Nanos, SECOND};
use thiserror::Error;

/// Bounds and times of a client. [`ClientConfig::new`] has the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Seeds all random choices of this client. It must stay secret, and be another one for each client: the numbers of its requests follow
    /// from it, and who knows them can forge answers.
    pub seed: u64,
    /// Reads that may be under way at once: 1 to 65,536. Default 1,024.
    pub under_way_max: usize,
    /// Reads that may wait for their turn: 1 to 1,048,576. Default 4,096.
    pub queued_max: usize,
    /// Times that a read is sent, at most: 1 to 1,024. Default 16.
    pub sends_max: u32,
    /// A read without an answer fails after this time. Default 10 s.
    pub timeout: Nanos,
    /// Time for an answer until a round trip is measured. Default 100 ms.
    pub rto_initial: Nanos,
    /// Shortest time for an answer. Default 20 ms: repeats are reads that a server does twice.
    pub rto_min: Nanos,
    /// Longest time for an answer, to which it doubles with each repeat. Default 1 s.
    pub rto_max: Nanos,
    /// First pause after a refusal; doubles each time. Default 1 ms.
    pub pause_min: Nanos,
    /// Longest pause after a refusal. Default 100 ms.
    pub pause_max: Nanos,
    /// Direct mode: attempts that are remembered, 1 to 65,536. Default 8,192.
    pub attempts_max: u32,
    /// Direct mode: an attempt without an answer for this long does not count as outstanding any more. Default 1 s.
    pub expire: Nanos,
}

/// A number outside its range.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{name}` is {value}: set it to {range}")]
pub struct ConfigError {
    /// The field.
    pub name: &'static str,
    /// What it was set to.
    pub value: u64,
    /// What it may be.
    pub range: &'static str,
}

impl ClientConfig {
    /// The defaults. `seed` is a random number of the caller's.
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

fn in_range(name: &'static str, value: u64, is_right: bool, range: &'static str) -> Result<(), ConfigError> {
    if is_right { Ok(()) } else { Err(ConfigError { name, value, range }) }
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
