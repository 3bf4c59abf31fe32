//! The configuration of a client, with the default of every bound and time.

use super::same_host_and_port;
use midflight_endpoint::{MS, Nanos};
use siphasher::sip128::SipHasher24;
use std::net::SocketAddr;

/// Identity, switches and bounds of a client. [`ClientConfig::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// 64 random bits that identify this client process to switches. They must stay secret: whoever knows them can send
    /// packets in its name. By the bit [`midflight_wire::DURABLE`] switches know whose running tasks go on while nobody hears the
    /// client (T14).
    pub identity: u64,
    /// Seeds all random choices of this client: first sequence, jitter.
    pub seed: u64,
    /// The key of the tokens that prove completions genuine. It must stay secret: whoever knows it can forge completions of
    /// all this client's tasks. Default: derived from `seed`, and as hard to guess as that.
    pub secret: u128,
    /// The user id: the first part of a task's name as people see it.
    pub uid: u32,
    /// The switches, the preferred one first. If the current one falls silent, the client uses the next one.
    pub switches: Vec<SocketAddr>,
    /// Tasks that may be open at once. Default 1,048,576.
    pub max_open: usize,
    /// SUBMIT packets in flight, at most: 1 to 32. Default 32.
    pub window_max: u32,
    /// Retransmission timeout until a round trip is measured. Default 100 ms.
    pub rto_initial: Nanos,
    /// Smallest retransmission timeout. Default 5 ms.
    pub rto_min: Nanos,
    /// Largest retransmission timeout, also when doubling. Default 1 s.
    pub rto_max: Nanos,
    /// First wait after a full queue; doubles each time. Default 1 ms.
    pub backoff_min: Nanos,
    /// Longest wait after a full queue. Default 1 s.
    pub backoff_max: Nanos,
    /// How often the client probes the switch while tasks are open: for its epoch, and for tasks older than this. Default
    /// 100 ms.
    pub probe_interval: Nanos,
    /// A task that the switch no longer has and whose completion does not arrive for this long is submitted again.
    /// Default 500 ms.
    pub gone_after: Nanos,
    /// Longest time until the switch is asked again who has an attempt that is to be stopped; the first is two round trips,
    /// and it doubles. Default 500 ms.
    pub stop_max: Nanos,
    /// A switch that keeps no record of tasks (the asic engine) cannot say whether it still has a task. There, a task is
    /// submitted again if its completion does not arrive for this long after the switch accepted it; the time doubles with
    /// each attempt. So a task that waits and runs for longer than this runs more than once. Default 10 s.
    pub timeout: Nanos,
    /// If a switch answers nothing for this long, the client uses the next one. Default 1 s.
    pub switch_silence: Nanos,
    /// Whether the driver remembers what it is told by [`super::Event::Save`] and [`super::Event::Completed`], and says so, before
    /// the client sends what depends on it: so that its tasks outlive this process ([`super::Client::resume`]). Default no.
    pub durable: bool,
}

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No switch.
    #[error("`switches` is empty: name at least one switch, such as 127.0.0.1:7700")]
    NoSwitch,
    /// The same switch twice.
    #[error("`switches` names {0} twice: name each switch once")]
    RepeatedSwitch(SocketAddr),
    /// A number outside its range.
    #[error("`{name}` is {value}: set it to {range}")]
    OutOfRange {
        /// The field.
        name: &'static str,
        /// What it was set to.
        value: u64,
        /// What it may be.
        range: &'static str,
    },
}

impl ClientConfig {
    /// The defaults. `identity` and `seed` are random numbers of the caller's; `secret` is derived from `seed`.
    #[must_use]
    pub fn new(identity: u64, seed: u64, switches: Vec<SocketAddr>) -> Self {
        Self {
            identity,
            seed,
            // A one-way function, because other values drawn from the seed go on the wire and must not reveal the secret.
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
        for (i, &switch) in self.switches.iter().enumerate() {
            if self.switches[..i].iter().any(|&other| same_host_and_port(other, switch)) {
                return Err(ConfigError::RepeatedSwitch(switch));
            }
        }
        let max_open = self.max_open as u64;
        let in_range =
            |name, value, ok, range| if ok { Ok(()) } else { Err(ConfigError::OutOfRange { name, value, range }) };
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
        in_range(
            "switch_silence",
            self.switch_silence,
            self.switch_silence >= self.probe_interval,
            "at least `probe_interval`",
        )
    }
}
