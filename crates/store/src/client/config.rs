use midflight_endpoint::config::{OutOfRange, in_range, repeated_address};
use midflight_endpoint::{MS, Nanos, SECOND};
use std::net::SocketAddr;

/// Switches, replica set and bounds of a client. [`ClientConfig::new`] sets the defaults.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The set's switches, the preferred one first; 1 to 16.
    pub switches: Vec<SocketAddr>,
    /// The replica set.
    pub set: u16,
    /// Seeds all random choices. Must be secret and unique per client: request ids follow from it, and knowing them allows forged
    /// answers.
    pub seed: u64,
    /// Concurrent writes, each under its own client id; 1 to 256, default 16.
    pub lanes: usize,
    /// Concurrent reads; 1 to 65,536, default 1,024.
    pub reads_max: usize,
    /// Bound on queued operations; 1 to 1,048,576, default 4,096.
    pub queued_max: usize,
    /// Timeout of an operation. Default 10 s.
    pub timeout: Nanos,
    /// Retransmission timeout before the first measured round trip. Default 50 ms.
    pub rto_initial: Nanos,
    /// Smallest retransmission timeout. Default 5 ms.
    pub rto_min: Nanos,
    /// Largest retransmission timeout. Default 200 ms.
    pub rto_max: Nanos,
    /// The timeout doubles with each repeat up to this, unless it is already longer. Default 25 ms, which bounds how late a recovery is
    /// noticed (R5).
    pub repeat_max: Nanos,
    /// First wait after BUSY and NOT_LEADER; doubles each time. Default 1 ms.
    pub pause_min: Nanos,
    /// Longest wait after BUSY and NOT_LEADER. Default 20 ms.
    pub pause_max: Nanos,
    /// First wait if no switch has a session of the set; doubles each time. Default 1 ms.
    pub inactive_min: Nanos,
    /// Longest wait if no switch has a session of the set. Default 50 ms.
    pub inactive_max: Nanos,
    /// The store keeps an idle client id at least this long. Default 20 s. If a write was sent once and is refused within this time for
    /// an unknown id, it did not run, and is repeated under another id; with 0 it fails.
    pub id_kept: Nanos,
}

/// Why a configuration is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The same switch twice.
    #[error("`switches` names {0} twice: name each switch once")]
    RepeatedSwitch(SocketAddr),
    /// A number outside its range.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// No switch, or too many.
    #[error("`switches` names {0}: name 1 to 16, such as 127.0.0.1:7700")]
    SwitchCount(usize),
}

const SWITCHES_MAX: usize = 16;

impl ClientConfig {
    /// The defaults, with a random `seed`.
    #[must_use]
    pub fn new(switches: Vec<SocketAddr>, set: u16, seed: u64) -> Self {
        Self {
            switches,
            set,
            seed,
            lanes: 16,
            reads_max: 1_024,
            queued_max: 4_096,
            timeout: 10 * SECOND,
            rto_initial: 50 * MS,
            rto_min: 5 * MS,
            rto_max: 200 * MS,
            repeat_max: 25 * MS,
            pause_min: MS,
            pause_max: 20 * MS,
            inactive_min: MS,
            inactive_max: 50 * MS,
            id_kept: 20 * SECOND,
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if !(1..=SWITCHES_MAX).contains(&self.switches.len()) {
            return Err(ConfigError::SwitchCount(self.switches.len()));
        }
        if let Some(switch) = repeated_address(&self.switches) {
            return Err(ConfigError::RepeatedSwitch(switch));
        }
        self.check_bounds()?;
        Ok(self.check_times()?)
    }

    fn check_bounds(&self) -> Result<(), OutOfRange> {
        in_range("lanes", self.lanes as u64, (1..=256).contains(&self.lanes), "1 to 256")?;
        in_range("reads_max", self.reads_max as u64, (1..=1 << 16).contains(&self.reads_max), "1 to 65,536")?;
        in_range("queued_max", self.queued_max as u64, (1..=1 << 20).contains(&self.queued_max), "1 to 1,048,576")
    }

    fn check_times(&self) -> Result<(), OutOfRange> {
        let positive = [
            ("timeout", self.timeout),
            ("rto_min", self.rto_min),
            ("repeat_max", self.repeat_max),
            ("pause_min", self.pause_min),
            ("inactive_min", self.inactive_min),
        ];
        for (name, value) in positive {
            in_range(name, value, value > 0, "at least 1 ns")?;
        }
        in_range("rto_initial", self.rto_initial, self.rto_initial >= self.rto_min, "at least `rto_min`")?;
        in_range("rto_max", self.rto_max, self.rto_max >= self.rto_initial, "at least `rto_initial`")?;
        in_range("pause_max", self.pause_max, self.pause_max >= self.pause_min, "at least `pause_min`")?;
        in_range("inactive_max", self.inactive_max, self.inactive_max >= self.inactive_min, "at least `inactive_min`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> ClientConfig {
        ClientConfig::new(vec!["10.0.0.1:7700".parse().unwrap()], 1, 7)
    }

    #[test]
    fn the_defaults_are_accepted() {
        assert_eq!(config().check(), Ok(()));
    }

    #[test]
    fn r7_each_error_names_the_field_and_what_it_may_be() {
        let with = |change: fn(&mut ClientConfig)| {
            let mut config = config();
            change(&mut config);
            config.check().expect_err("out of range").to_string()
        };
        assert_eq!(with(|c| c.lanes = 257), "`lanes` is 257: set it to 1 to 256");
        assert_eq!(with(|c| c.reads_max = 0), "`reads_max` is 0: set it to 1 to 65,536");
        assert_eq!(with(|c| c.queued_max = 0), "`queued_max` is 0: set it to 1 to 1,048,576");
        assert_eq!(with(|c| c.rto_max = 1), "`rto_max` is 1: set it to at least `rto_initial`");
        assert_eq!(with(|c| c.pause_min = 0), "`pause_min` is 0: set it to at least 1 ns");
        assert!(with(|c| c.switches.clear()).starts_with("`switches` names 0: name 1 to 16"));
        assert_eq!(
            with(|c| c.switches.push("[::ffff:10.0.0.1]:7700".parse().unwrap())),
            "`switches` names [::ffff:10.0.0.1]:7700 twice: name each switch once"
        );
    }
}
