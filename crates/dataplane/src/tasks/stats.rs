//! Counts of the tasks program: `struct mf_tasks_stats`.

use super::Verdict;
use midflight_wire::tasks::{LEVELS, Operation};
use zerocopy::FromZeros;

/// `MF_OP_END`: operations are numbered from 1.
pub const OPERATIONS: usize = Operation::ALL.len() + 1;
/// `MF_WAIT_BUCKETS`.
pub const WAIT_BUCKETS: usize = 40;
/// `MF_TICK_SLOTS`: slots visited per tick.
pub const TICK_SLOTS: u32 = 1024;

/// By number.
pub(super) const OPERATION_NAMES: [&str; OPERATIONS] = [
    "version",
    "submit",
    "submit_ack",
    "register",
    "registered",
    "reset",
    "retrieve",
    "assign",
    "keepalive",
    "release",
    "released",
    "complete",
    "complete_ack",
    "probe",
    "probe_ack",
    "cancel",
    "cancel_ack",
    "no_op",
    "cookie",
    "stop",
];

/// Counts of a switch: `struct mf_tasks_stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros)]
pub struct Stats {
    /// Datagrams with a valid header, by operation number.
    pub packets: [u64; OPERATIONS],
    /// By the number of the [`Verdict`]: datagrams taken, datagrams and records refused.
    pub reasons: [u64; Verdict::COUNT],
    /// Totals of tasks.
    pub tasks: TaskTotals,
    /// Pauses between ticks of more than a third of a lease.
    pub gaps: u64,
    /// From acceptance to first assignment: bucket b counts waits of 2^(b-1) to 2^b µs, bucket 0 those below 1 µs.
    pub wait_us: [u64; WAIT_BUCKETS],
    /// Sum of those waits.
    pub wait_sum_us: u64,
    /// From assignment to the report that the task is done, same buckets.
    pub run_us: [u64; WAIT_BUCKETS],
    /// Sum of those times.
    pub run_sum_us: u64,
    /// Tasks queued now, by level; index 0 is level 1.
    pub queued: [u32; LEVELS as usize],
    /// Slots parked now.
    pub parked: u32,
    /// Slots with a task now.
    pub busy: u32,
    /// Slots registered now.
    pub slots: u32,
    /// Clients known now.
    pub clients: u32,
    /// Queued tasks that wait for their place now (T19).
    pub for_place: u32,
    /// Places known now.
    pub places: u32,
    /// Blocks of 128 bytes that appended arguments take now.
    pub argument_blocks: u32,
    /// Zero.
    pub reserved: u32,
}

/// Totals of tasks since the start.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromZeros)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TaskTotals {
    /// Tasks acknowledged.
    pub submitted: u64,
    /// Assignments, including further attempts, without repeats.
    pub assigned: u64,
    /// Tasks reported done by their slot.
    pub completed: u64,
    /// Tasks whose slot's lease expired (T10).
    pub expired: u64,
    /// Tasks requeued because their slot left or registered again.
    pub returned: u64,
    /// Tasks cancelled by their client, either queued or lost by their slot afterwards.
    pub cancelled: u64,
    /// Queued tasks dropped because their client was silent (T14).
    pub dropped: u64,
    /// Queued tasks purged by the operator.
    pub purged: u64,
    /// Tasks in STOPs to executors: the client was dropped or purged (T14).
    pub stops: u64,
    /// Tasks assigned at their preferred place (T19).
    pub at_place: u64,
    /// Tasks whose patience ran out.
    pub out_of_patience: u64,
}
