//! The configuration of an executor: identity, switches, bounds and times.

use crate::resources::RESOURCE_BITS;
use midflight_endpoint::{MS, Nanos};
use midflight_wire::tasks::SLOT_PLACES;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::net::SocketAddr;

/// Largest number of slots of one executor.
pub const SLOTS_MAX: u32 = 4096;

/// Largest number of prefetch slots of one executor.
pub const AHEAD_MAX: u32 = 256;

/// Largest number of runs of one executor that wait for other tasks.
pub const WAITING_MAX: u32 = 4096;

/// Largest [`ExecutorConfig::ahead_span`].
pub const AHEAD_SPAN_MAX: Nanos = 20 * MS;

/// Largest number of bundles of a counted resource.
pub const BUNDLES_MAX: u16 = 4096;

/// Configuration of an [`super::Executor`]. [`ExecutorConfig::new`] sets the documented defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorConfig {
    /// Random at each start of the process and secret: identifies the executor to switches.
    pub identity: u64,
    /// Random and secret: seeds the first counter, the jitter and the hashes.
    pub seed: u64,
    /// Random: identifies the executor to clients in COMPLETE. Default: derived from `seed` by a one-way function.
    pub public_name: u64,
    /// The switches, the preferred one first. At least one.
    pub switches: Vec<SocketAddr>,
    /// Bound of concurrent tasks: 1 to [`SLOTS_MAX`].
    pub slots: u32,
    /// Prefetch slots, registered when needed: 0 to [`AHEAD_MAX`]; 0 disables prefetch. If tasks take less than a round trip, an
    /// executor prefetches those that it runs in one. Default [`AHEAD_MAX`].
    pub ahead: u32,
    /// Bound of runs that wait for other tasks and lend their slots: 0 to [`WAITING_MAX`]. Each gets a spare slot when needed.
    /// Default 0.
    pub waiting: u32,
    /// Prefetches also longer tasks, up to this run time, one per slot. A prefetched task may then wait for twice as long. At
    /// most [`AHEAD_SPAN_MAX`]. Default 0.
    pub ahead_span: Nanos,
    /// Mask of the offered resources. The executor gets tasks that need no others.
    pub resources: u8,
    /// Bundles of each resource, by bit: 0 to [`BUNDLES_MAX`]; 0: not counted. A running task that requires the resource has one
    /// bundle to itself. Default: none is counted.
    pub bundles: [u16; RESOURCE_BITS as usize],
    /// Its places (T19), such as machine and rack: [`place_id`](crate::place::place_id) of their names; 0: none. Default none.
    pub places: [u32; SLOT_PLACES],
    /// Lease assumed until the switch announces its own. Default 1 s.
    pub lease: Nanos,
    /// Round trip assumed until one is measured. Default 10 ms.
    pub round_trip: Nanos,
    /// Lower bound of the repeat interval of waits, otherwise twice the round trip. Default 1 ms.
    pub repeat_min: Nanos,
    /// The same at a polled switch, where a wait and its repeat may each get a task; the slot then runs both. Default 5 ms.
    pub poll_repeat_min: Nanos,
    /// Upper bound of the repeat interval of REGISTERs, which doubles from twice the round trip. Default 1 s.
    pub register_max: Nanos,
    /// Upper bound of the interval after SLOTS_FULL, which doubles from 100 ms. Default 5 s.
    pub slots_full_max: Nanos,
    /// Upper bound of the repeat interval of COMPLETEs, which doubles from twice the round trip. Default 250 ms.
    pub complete_max: Nanos,
    /// Number of times that a COMPLETE is sent. Default 20.
    pub complete_tries: u32,
    /// Bound of unacknowledged completions; beyond it the executor gives up the one sent most often. Default 65,536.
    pub completions: usize,
    /// Silence of the switch after which a drain stops waiting for it. Default 2 s.
    pub drain_silence: Nanos,
}

impl ExecutorConfig {
    /// Sets the defaults.
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

    /// Mask of the counted resources.
    #[must_use]
    pub fn counted(&self) -> u8 {
        (0..RESOURCE_BITS).filter(|&bit| self.bundles[usize::from(bit)] > 0).map(|bit| 1 << bit).sum()
    }

    /// Checks all bounds.
    ///
    /// # Errors
    /// A [`ConfigError`] that names the field and its range.
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

/// Why a configuration is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The list of switches is empty.
    #[error("no switch: name at least one address")]
    NoSwitch,
    /// The number of slots is out of range.
    #[error("{0} slots: use 1 to {SLOTS_MAX}, and several executors for more")]
    Slots(u32),
    /// The number of prefetch slots is out of range.
    #[error("{0} slots for asking ahead: use 0 (never ask ahead) to {AHEAD_MAX}")]
    Ahead(u32),
    /// The number of runs that may wait for other tasks is out of range.
    #[error("{0} tasks that may wait for others: use 0 (none lends its slot) to {WAITING_MAX}")]
    Waiting(u32),
    /// The prefetch span is too long.
    #[error("asking ahead for tasks of up to {} us: use up to {} us", .0 / 1000, AHEAD_SPAN_MAX / 1000)]
    AheadSpan(Nanos),
    /// The number of bundles is out of range, or the resource is not offered.
    #[error("{count} bundles of resource r{bit}: use up to {BUNDLES_MAX}, of a resource that the executor offers")]
    Bundles {
        /// Bit of the resource.
        bit: u8,
        /// Number of bundles.
        count: u16,
    },
    /// No completion could ever be kept or sent.
    #[error("completions and complete_tries must be at least 1")]
    NoCompletions,
    /// A time is out of range.
    #[error("{name} = {time} ns: use 100 us to 1 h")]
    Time {
        /// Name of the field.
        name: &'static str,
        /// Its value in nanoseconds.
        time: Nanos,
    },
}
