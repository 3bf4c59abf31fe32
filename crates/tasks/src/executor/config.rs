//! The configuration of an executor: identity, switches, and every bound and time.

use crate::resources::RESOURCE_BITS;
use midflight_endpoint::{MS, Nanos};
use midflight_wire::SLOT_PLACES;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::net::SocketAddr;

/// The largest number of slots of one executor.
pub const SLOTS_MAX: u32 = 4096;

/// The largest number of slots of one executor for asking ahead.
pub const AHEAD_MAX: u32 = 256;

/// The largest number of tasks of one executor that may wait for other tasks at a time.
pub const WAITING_MAX: u32 = 4096;

/// The longest span of asking ahead.
pub const AHEAD_SPAN_MAX: Nanos = 20 * MS;

/// The largest number of bundles of one counted resource.
pub const BUNDLES_MAX: u16 = 4096;

/// Configuration of an [`super::Executor`]. [`ExecutorConfig::new`] has the documented defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorConfig {
    /// A random number, new at each start of the process, by which the switch distinguishes executors. It must stay secret.
    pub identity: u64,
    /// Random and secret too: seeds the first counter, the jitter of retries, and the hashes.
    pub seed: u64,
    /// Random: identifies the executor to clients in COMPLETE. Default: drawn from `seed`, by a one-way function.
    pub public_name: u64,
    /// The switches, the preferred one first. At least one.
    pub switches: Vec<SocketAddr>,
    /// Tasks that may run at once: 1 to [`SLOTS_MAX`].
    pub slots: u32,
    /// Slots for asking ahead, registered when they are needed: 0 to [`AHEAD_MAX`]. Where tasks take less than a round trip,
    /// an executor asks ahead for those that it runs in that time. 0: never. Default [`AHEAD_MAX`].
    pub ahead: u32,
    /// Runs that may wait for other tasks at a time, each of which lends its slot: 0 to [`WAITING_MAX`]. The executor
    /// registers a spare slot for each of them when needed. Default 0.
    pub waiting: u32,
    /// Asks ahead, one task a slot, also where tasks take longer than a round trip, up to this. A task that is taken ahead then
    /// may wait for twice as long before it goes back. At most [`AHEAD_SPAN_MAX`]. Default 0.
    pub ahead_span: Nanos,
    /// The resources that this executor offers, one bit each. It gets tasks that need no others.
    pub resources: u8,
    /// How many bundles of each resource there are, by its bit: 0 to [`BUNDLES_MAX`]. A task that requires it has one while it
    /// runs, and no other task has that one. 0: it is not counted. Default: none is.
    pub bundles: [u16; RESOURCE_BITS as usize],
    /// Where it is (T19), such as its machine and its rack: [`place_id`](crate::place::place_id) of their names; 0: none.
    /// Default none.
    pub places: [u32; SLOT_PLACES],
    /// The lease that is assumed until a switch announces its own. Default 1 s.
    pub lease: Nanos,
    /// The round trip that is assumed until one is measured. Default 10 ms.
    pub round_trip: Nanos,
    /// A wait is repeated after twice the round trip, but never sooner. Default 1 ms.
    pub repeat_min: Nanos,
    /// The same for a switch that is polled. Such a switch may give one task to a wait and another to its repeat; the slot
    /// then runs one after the other. Default 5 ms.
    pub poll_repeat_min: Nanos,
    /// An unanswered REGISTER is repeated after twice the round trip, doubling up to this. Default 1 s.
    pub register_max: Nanos,
    /// Slots that were refused (SLOTS_FULL) ask again after a time that doubles from 100 ms to this. Default 5 s.
    pub slots_full_max: Nanos,
    /// An unanswered COMPLETE is repeated after twice the round trip, doubling up to this. Default 250 ms.
    pub complete_max: Nanos,
    /// How often a COMPLETE is sent before it is given up. Default 20.
    pub complete_tries: u32,
    /// How many unacknowledged completions are kept; beyond that, the one that was sent most often is given up. Default
    /// 65,536.
    pub completions: usize,
    /// A drain stops waiting for the switch when that has been silent for this long. Default 2 s.
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
            ahead: AHEAD_MAX,
            waiting: 0,
            ahead_span: 0,
            resources,
            bundles: [0; RESOURCE_BITS as usize],
            places: [0; SLOT_PLACES],
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

    /// The resources that are counted.
    #[must_use]
    pub fn counted(&self) -> u8 {
        (0..RESOURCE_BITS).filter(|&bit| self.bundles[usize::from(bit)] > 0).map(|bit| 1 << bit).sum()
    }

    /// Checks all bounds.
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
        if self.ahead > AHEAD_MAX {
            return Err(ConfigError::Ahead(self.ahead));
        }
        if self.waiting > WAITING_MAX {
            return Err(ConfigError::Waiting(self.waiting));
        }
        if self.ahead_span > AHEAD_SPAN_MAX {
            return Err(ConfigError::AheadSpan(self.ahead_span));
        }
        let of_bundles = |bit: &u8| {
            let count = self.bundles[usize::from(*bit)];
            count > BUNDLES_MAX || (count > 0 && self.resources & 1 << bit == 0)
        };
        if let Some(bit) = (0..RESOURCE_BITS).find(of_bundles) {
            return Err(ConfigError::Bundles { bit, count: self.bundles[usize::from(bit)] });
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
    /// The number of slots for asking ahead is out of range.
    #[error("{0} slots for asking ahead: use 0 (never ask ahead) to {AHEAD_MAX}")]
    Ahead(u32),
    /// The number of runs that may wait for other tasks is out of range.
    #[error("{0} tasks that may wait for others: use 0 (none lends its slot) to {WAITING_MAX}")]
    Waiting(u32),
    /// Tasks would wait for too long at an executor.
    #[error("asking ahead for tasks of up to {} us: use up to {} us", .0 / 1000, AHEAD_SPAN_MAX / 1000)]
    AheadSpan(Nanos),
    /// The number of bundles of a resource is out of range, or the resource is not offered.
    #[error("{count} bundles of resource r{bit}: use up to {BUNDLES_MAX}, of a resource that the executor offers")]
    Bundles {
        /// The bit of the resource.
        bit: u8,
        /// The number of bundles.
        count: u16,
    },
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
