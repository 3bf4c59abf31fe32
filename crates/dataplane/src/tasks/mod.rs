//! The tasks program: the cluster's task queue.

mod order;
pub(crate) mod read;
mod stats;
pub(crate) mod survey;
mod verdict;

pub use order::{Purge, Which};
pub use stats::{OPERATIONS, Stats, TICK_SLOTS, TaskTotals, WAIT_BUCKETS};
pub use survey::{Survey, SurveyedClient, SurveyedSlot, SurveyedState, SurveyedTask};
pub use verdict::Verdict;

use crate::Native;
use crate::program::{Bound, Clock, ConfigError, Program, SoftProgram};
use crate::raw::RawDatagram;
use midflight_endpoint::{Nanos, SECOND};
use midflight_wire::tasks::Operation;
use midflight_wire::{Address, Header};
use zerocopy::FromBytes;

/// The tasks program.
#[derive(Clone, Copy, Debug)]
pub struct TasksProgram;

/// The cluster's task queue in this process, the C core. `docs/internals/core.md` explains its structures.
pub type Tasks = Native<TasksProgram>;

/// Bounds and times of a queue. A sender is told when it meets a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(default, deny_unknown_fields))]
#[repr(C)]
pub struct TasksConfig {
    /// Tasks, queued and assigned: 1 to 4 Mi. Default 131,072.
    pub queue: u32,
    /// Executor slots: 1 to 1 Mi. Default 65,536.
    pub slots: u32,
    /// Clients: 1 to 1 Mi. Default 65,536.
    pub clients: u32,
    /// Priority levels: 1 to 8. Default 8.
    pub levels: u32,
    /// Places of slots (T19): 1 to 64 Ki. Default 1,024.
    pub places: u32,
    /// KiB for appended arguments: 8 to 2 Mi. Default 16,384.
    pub arguments: u32,
    /// Silence after which an assigned task is requeued (T10); a parked slot is unparked after half of it. Default 1 s.
    #[cfg_attr(feature = "serde", serde(rename = "lease", deserialize_with = "crate::duration::nanos"))]
    pub lease_ns: Nanos,
    /// Silence after which an idle slot is removed. Default 10 s.
    #[cfg_attr(feature = "serde", serde(rename = "slot_idle", deserialize_with = "crate::duration::nanos"))]
    pub slot_idle_ns: Nanos,
    /// Silence after which a client's queued tasks are dropped, and a client without tasks is removed. Default 60 s.
    #[cfg_attr(feature = "serde", serde(rename = "client_idle", deserialize_with = "crate::duration::nanos"))]
    pub client_idle_ns: Nanos,
    /// Length of a cookie interval; a cookie is valid in its own interval and the next. At most half of `slot_idle_ns` and of
    /// `client_idle_ns`, so that a copied packet cannot recreate its record. Default 5 s.
    #[cfg_attr(feature = "serde", serde(rename = "cookie", deserialize_with = "crate::duration::nanos"))]
    pub cookie_ns: Nanos,
}

impl Default for TasksConfig {
    fn default() -> Self {
        Self {
            queue: 131_072,
            slots: 65_536,
            clients: 65_536,
            levels: 8,
            places: 1024,
            arguments: 16_384,
            lease_ns: SECOND,
            slot_idle_ns: 10 * SECOND,
            client_idle_ns: 60_000_000_000,
            cookie_ns: 5_000_000_000,
        }
    }
}

const SAID_TO_ANYBODY: [Option<Operation>; 5] = [
    None, // VERSION
    Some(Operation::Cookie),
    Some(Operation::Reset),
    Some(Operation::Released),
    Some(Operation::CancelAck),
];

impl Program for TasksProgram {
    const NAME: &'static str = "tasks";
    const CLOCK: Clock = Clock::Monotonic;
    const OPERATIONS: &'static [&'static str] = &stats::OPERATION_NAMES;

    type Config = TasksConfig;
    type Verdict = Verdict;
    type Stats = Stats;
    type Order = Purge;
    type Survey = Survey;

    fn violated(_config: &TasksConfig) -> ConfigError {
        ConfigError(
            "queue must be 1 to 4194304, slots and clients 1 to 1048576, levels 1 to 8, places 1 to 65536, \
             arguments 8 to 2097152, no time 0, and slot_idle and client_idle at least twice as long as cookie"
                .into(),
        )
    }

    fn bounds(config: &TasksConfig) -> Vec<(&'static str, Bound)> {
        vec![
            ("queue", Bound::Count(config.queue)),
            ("slots", Bound::Count(config.slots)),
            ("clients", Bound::Count(config.clients)),
            ("levels", Bound::Count(config.levels)),
            ("places", Bound::Count(config.places)),
            ("arguments", Bound::Count(config.arguments)),
            ("lease", Bound::Time(config.lease_ns)),
            ("slot_idle", Bound::Time(config.slot_idle_ns)),
            ("client_idle", Bound::Time(config.client_idle_ns)),
            ("cookie", Bound::Time(config.cookie_ns)),
        ]
    }

    /// Visits every slot once in 100 ms.
    fn ticks(config: &TasksConfig) -> u32 {
        const TICKS_PER_ROUND: u32 = 10;
        config.slots.div_ceil(TICK_SLOTS * TICKS_PER_ROUND)
    }

    fn packets(stats: &Stats) -> &[u64] {
        &stats.packets
    }

    fn verdicts(stats: &Stats) -> &[u64] {
        &stats.reasons
    }

    /// A RESET with sequence 1 goes to an executor that has named one of its slots, so not to any sender.
    fn is_for_anybody(answer: &[u8]) -> bool {
        let Ok((header, _)) = Header::ref_from_prefix(answer) else { return true };
        let operation = Operation::from_number(header.operation);
        let is_known = operation == Some(Operation::Reset) && header.sequence.get() != 0;
        SAID_TO_ANYBODY.contains(&operation) && !is_known
    }
}

crate::soft_program!(
    TasksProgram,
    "tasks",
    "MIDFLIGHT_LAYOUT_TASKS",
    mf_tasks_size,
    mf_tasks_init,
    mf_tasks_packet,
    mf_tasks_tick,
    mf_tasks_order,
    mf_tasks_owes_more,
    mf_tasks_stats,
    mf_tasks_check,
    survey: survey::go_on
);

impl Tasks {
    /// Whether [`take`](Self::take) may owe several datagrams for this one, or one to another peer than its sender.
    #[must_use]
    pub fn owes_several(&self, from: impl Into<Address>, datagram: &[u8]) -> bool {
        let raw = RawDatagram::read_only(from.into(), datagram);
        // SAFETY: pointers are valid for the call, the datagram's bytes for its length; this function only reads them.
        unsafe { TasksProgram::owes_more(self.state(), &raw const raw, u32::MAX) != 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RawOut;
    use zerocopy::IntoBytes;

    unsafe extern "C" {
        fn mf_tasks_layout(layout: *mut u64);
    }

    #[test]
    fn structures_and_bounds_are_those_of_tasks_h() {
        let mut of_c = [0; 16];
        // SAFETY: it writes sixteen numbers.
        unsafe { mf_tasks_layout(of_c.as_mut_ptr()) };
        let sizes =
            [size_of::<TasksConfig>(), size_of::<Stats>(), size_of::<RawDatagram>(), size_of::<RawOut>(), OPERATIONS];
        let bounds = [WAIT_BUCKETS, crate::raw::OUT_MAX, TICK_SLOTS as usize];
        let order = order::LAYOUT;
        let of_rust = sizes.into_iter().chain(bounds).chain(order).chain(survey::LAYOUT);
        assert_eq!(of_c.to_vec(), of_rust.map(|n| n as u64).collect::<Vec<_>>());
    }

    /// T13: under attack an idle executor still hears its switch, and stays.
    #[test]
    fn t13_who_names_a_slot_of_his_is_not_anybody() {
        let reset = |sequence| Header::new(Operation::Reset, 7, sequence);
        let is_for_anybody = TasksProgram::is_for_anybody;
        assert!(is_for_anybody(reset(0).as_bytes()) && !is_for_anybody(reset(1).as_bytes()));
        assert!(is_for_anybody(Header::new(Operation::Cookie, 7, 1).as_bytes()));
        assert!(!is_for_anybody(Header::new(Operation::SubmitAck, 7, 0).as_bytes()));
        assert!(is_for_anybody(&[0; 8]), "VERSION");
    }
}
