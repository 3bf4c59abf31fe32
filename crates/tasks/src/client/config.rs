//! The configuration of a client, with all defaults.

use midflight_endpoint::config::{OutOfRange, in_range, repeated_address};
use midflight_endpoint::{MS, Nanos};
use siphasher::sip128::SipHasher24;
use std::net::SocketAddr;

/// Identity, switches and bounds of a client. [`ClientConfig::new`] sets the defaults.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// 64 random bits that identify this process to switches. Secret: with them anyone can send packets in its name. The bit
    /// [`midflight_wire::tasks::DURABLE`] keeps the client's tasks running while it is silent (T14).
    pub identity: u64,
    /// Seeds the client's random choices: first sequence, jitter.
    pub seed: u64,
    /// Key of the tokens that prove completions. Secret: with it anyone can forge completions. Default: derived from `seed`.
    pub secret: u128,
    /// User id: the first part of a task's name for people.
    pub uid: u32,
    /// The switches, the preferred one first. If the current one falls silent, the client uses the next.
    pub switches: Vec<SocketAddr>,
    /// Bound of open tasks. Default 1,048,576.
    pub max_open: usize,
    /// Bound of SUBMITs in flight, 1 to 32. Default 32.
    pub window_max: u32,
    /// Retransmission timeout before the first round trip is measured. Default 100 ms.
    pub rto_initial: Nanos,
    /// Smallest retransmission timeout. Default 5 ms.
    pub rto_min: Nanos,
    /// Largest retransmission timeout, also after doubling. Default 1 s.
    pub rto_max: Nanos,
    /// First wait after the queue was full; doubles each time. Default 1 ms.
    pub backoff_min: Nanos,
    /// Longest wait after the queue was full. Default 1 s.
    pub backoff_max: Nanos,
    /// Interval of probes for the epoch and for tasks older than this, while tasks are open. Default 100 ms.
    pub probe_interval: Nanos,
    /// Wait for the completion of a task that the switch no longer has. Default 500 ms.
    pub gone_after: Nanos,
    /// Longest interval between CANCELs that ask the switch which executor runs an attempt that must stop. The interval starts at two
    /// round trips and doubles. Default 500 ms.
    pub stop_max: Nanos,
    /// Wait for a completion at a switch that keeps no record of tasks (the asic engine); doubles with each attempt. A task that
    /// waits and runs for longer runs more than once. Default 10 s.
    pub timeout: Nanos,
    /// Silence after which the client uses the next switch. Default 1 s.
    pub switch_silence: Nanos,
    /// Whether tasks outlive this process ([`super::Client::resume`]). The driver then saves [`super::Event::Save`] and
    /// [`super::Event::Completed`], and confirms it before the client sends what depends on them. Default no.
    pub durable: bool,
}

/// Why a configuration is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The list of switches is empty.
    #[error("`switches` is empty: name at least one switch, such as 127.0.0.1:7700")]
    NoSwitch,
    /// A switch is listed twice.
    #[error("`switches` names {0} twice: name each switch once")]
    RepeatedSwitch(SocketAddr),
    /// A number is outside its range.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
}

impl ClientConfig {
    /// Sets the defaults. `identity` and `seed` are random numbers from the caller; `secret` is derived from `seed`.
    #[must_use]
    pub fn new(identity: u64, seed: u64, switches: Vec<SocketAddr>) -> Self {
        Self {
            identity,
            seed,
            // One-way, because other values drawn from the seed are sent.
            secret: SipHasher24::new_with_keys(seed, 0).hash(b"secret").as_u128(),
            uid: 0,
            switches,
            max_open: 1 << 20,
            window_max: 32,
            rto_initial: 100 * MS,
            rto_min: 5 * MS,
            rto_max: 1_000 * MS,
            backoff_min: MS,
            backoff_max: 1_000 * MS,
            probe_interval: 100 * MS,
            gone_after: 500 * MS,
            stop_max: 500 * MS,
            timeout: 10_000 * MS,
            switch_silence: 1_000 * MS,
            durable: false,
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.switches.is_empty() {
            return Err(ConfigError::NoSwitch);
        }
        if let Some(switch) = repeated_address(&self.switches) {
            return Err(ConfigError::RepeatedSwitch(switch));
        }
        let max_open = self.max_open as u64;
        in_range("max_open", max_open, (1..=1 << 24).contains(&max_open), "1 to 16,777,216")?;
        in_range("window_max", self.window_max.into(), (1..=32).contains(&self.window_max), "1 to 32")?;
        in_range("rto_min", self.rto_min, self.rto_min > 0, "at least 1 ns")?;
        in_range("rto_initial", self.rto_initial, self.rto_initial >= self.rto_min, "at least `rto_min`")?;
        in_range("rto_max", self.rto_max, self.rto_max >= self.rto_initial, "at least `rto_initial`")?;
        in_range("backoff_min", self.backoff_min, self.backoff_min > 0, "at least 1 ns")?;
        in_range("backoff_max", self.backoff_max, self.backoff_max >= self.backoff_min, "at least `backoff_min`")?;
        in_range("probe_interval", self.probe_interval, self.probe_interval > 0, "at least 1 ns")?;
        in_range("gone_after", self.gone_after, self.gone_after > 0, "at least 1 ns")?;
        in_range("stop_max", self.stop_max, self.stop_max > 0, "at least 1 ns")?;
        in_range("timeout", self.timeout, self.timeout > 0, "at least 1 ns")?;
        let silence = self.switch_silence;
        Ok(in_range("switch_silence", silence, silence >= self.probe_interval, "at least `probe_interval`")?)
    }
}
