//! What an executor is told at its start: who it is, where the switches are, and every bound and time.

use midflight_endpoint::Nanos;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::net::SocketAddr;

const MS: Nanos = 1_000_000;

/// Most slots of one executor.
pub const SLOTS_MAX: u32 = 4096;

/// Configuration of an [`super::Executor`]. [`ExecutorConfig::new`] has the documented defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorConfig {
    /// Random, new at each start of the process: the switch tells executors apart by it. Nobody else is told.
    pub identity: u64,
    /// Random too, and a secret: gives the first counter, the jitter of retries, and salts hashes.
    pub seed: u64,
    /// Random: what clients are told in COMPLETE. Default: drawn from `seed`, which it does not betray.
    pub public_name: u64,
    /// The switches, the preferred one first. At least one.
    pub switches: Vec<SocketAddr>,
    /// Tasks that may run at once: 1 to [`SLOTS_MAX`].
    pub slots: u32,
    /// What this executor offers, one bit a resource; it gets tasks whose mask is contained in this one.
    pub resources: u8,
    /// The lease that is assumed until a switch has told its own. Default 1 s.
    pub lease: Nanos,
    /// The round trip that is assumed until one was measured. Default 10 ms.
    pub round_trip: Nanos,
    /// A wait is repeated after twice the round trip, but never sooner. Default 1 ms.
    pub repeat_min: Nanos,
    /// The same at a switch that is polled, which may give a task to the wait and another to its repeat: the slot then runs one
    /// behind the other. Default 5 ms.
    pub poll_repeat_min: Nanos,
    /// An unanswered REGISTER is repeated after twice the round trip, doubling up to this. Default 1 s.
    pub register_max: Nanos,
    /// Slots that found no room (SLOTS_FULL) ask again after a time that doubles from 100 ms to this. Default 5 s.
    pub slots_full_max: Nanos,
    /// An unanswered COMPLETE is repeated after twice the round trip, doubling up to this. Default 250 ms.
    pub complete_max: Nanos,
    /// Times that a COMPLETE is sent before it is given up. Default 20.
    pub complete_tries: u32,
    /// Completions that are kept until their client has them; beyond, the one that was sent most often is given up.
    /// Default 65,536.
    pub completions: usize,
    /// A drain does not wait for the switch when it has been silent for this long. Default 2 s.
    pub drain_silence: Nanos,
}

impl ExecutorConfig {
    /// The defaults, for this identity and these switches.
    #[must_use]
    pub fn new(identity: u64, seed: u64, switches: Vec<SocketAddr>, slots: u32, resources: u8) -> Self {
        Self {
            identity,
            seed,
            public_name: StdRng::seed_from_u64(seed).random(),
            switches,
            slots,
            resources,
            lease: 1000 * MS,
            round_trip: 10 * MS,
            repeat_min: MS,
            poll_repeat_min: 5 * MS,
            register_max: 1000 * MS,
            slots_full_max: 5000 * MS,
            complete_max: 250 * MS,
            complete_tries: 20,
            completions: 65_536,
            drain_silence: 2000 * MS,
        }
    }

    /// Says what is wrong with it, if anything is.
    ///
    /// # Errors
    /// A [`ConfigError`] that names the field and what it may be.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.switches.is_empty() {
            return Err(ConfigError::NoSwitch);
        }
        if !(1..=SLOTS_MAX).contains(&self.slots) {
            return Err(ConfigError::Slots(self.slots));
        }
        if self.completions == 0 || self.complete_tries == 0 {
            return Err(ConfigError::NoCompletions);
        }
        let times = [
            ("lease", self.lease),
            ("round_trip", self.round_trip),
            ("repeat_min", self.repeat_min),
            ("poll_repeat_min", self.poll_repeat_min),
            ("register_max", self.register_max),
            ("slots_full_max", self.slots_full_max),
            ("complete_max", self.complete_max),
            ("drain_silence", self.drain_silence),
        ];
        match times.into_iter().find(|(_, time)| !(MS / 10..=3_600_000 * MS).contains(time)) {
            Some((name, time)) => Err(ConfigError::Time { name, time }),
            None => Ok(()),
        }
    }
}

/// Why an executor cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The list of switches is empty.
    #[error("no switch: name at least one address")]
    NoSwitch,
    /// The number of slots is out of range.
    #[error("{0} slots: use 1 to {SLOTS_MAX}, and several executors for more")]
    Slots(u32),
    /// No completion could ever be kept or sent.
    #[error("completions and complete_tries must be at least 1")]
    NoCompletions,
    /// A time is out of range.
    #[error("{name} = {time} ns: use 100 us to 1 h")]
    Time {
        /// The field.
        name: &'static str,
        /// Its value in nanoseconds.
        time: Nanos,
    },
}
