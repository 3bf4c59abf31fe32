//! The events of a client.

use super::{Saved, TaskKey};
use midflight_endpoint::Nanos;
use midflight_wire::tasks::{BlobRef, Status};
use std::net::SocketAddr;
use std::sync::Arc;

/// What the driver must know or do. Each task ends in exactly one of `Completed`, `Lost` and `Cancelled`. With a result by
/// reference, or of a durable client, `Completed` is provisional until [`super::Client::fetched`].
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A task ended. The driver fetches a result by reference and calls [`super::Client::fetched`]; after `false` another attempt
    /// follows, or `Lost`.
    Completed {
        /// Key of the task.
        key: TaskKey,
        /// `Ok`; or `Failed` or `Unknown` if no retry is requested or left.
        status: Status,
        /// Number of the attempt, from 1; stays at 255.
        attempt: u8,
        /// The value, or the failure's message.
        result: Outcome,
        /// Durations of the task's phases.
        timing: TaskTiming,
    },
    /// A running attempt returns a part of its task. May repeat, even if a later attempt runs the whole task.
    Part {
        /// Key of the task.
        key: TaskKey,
        /// Number of the attempt, from 1; stays at 255.
        attempt: u8,
        /// The part, in the function's own encoding. Its executor serves one by reference while the attempt runs.
        part: Outcome,
    },
    /// A task ended without a result.
    Lost {
        /// Key of the task.
        key: TaskKey,
        /// The reason.
        why: LostWhy,
    },
    /// A task was cancelled and will not be assigned again.
    Cancelled {
        /// Key of the task.
        key: TaskKey,
        /// Whether it may have run.
        how: CancelledHow,
    },
    /// A task was not cancelled: it may run, and its final event will follow. After [`super::Client::cancel_queued`], at a switch
    /// that keeps no record, or while a result is being fetched.
    NotCancelled {
        /// Key of the task.
        key: TaskKey,
    },
    /// The switch takes no appended arguments. The driver serves this one and calls [`super::Client::refer`]; without room for it,
    /// the event comes again later.
    NeedsReference {
        /// Key of the task.
        key: TaskKey,
        /// The argument.
        argument: Arc<Vec<u8>>,
    },
    /// The switch answered for the first time, restarted, or another switch answers.
    SwitchChanged {
        /// Address of the switch.
        switch: SocketAddr,
        /// Epoch of the switch.
        epoch: u32,
        /// Tasks submitted again because of it (T9).
        resubmitted: usize,
    },
    /// A switch of the list uses another version of the format and accepts no packets. Once per switch and version.
    OtherVersion {
        /// Address of the switch.
        switch: SocketAddr,
        /// Its version.
        version: u8,
    },
    /// A durable client's tasks to save; replaces their earlier state. Packets that depend on it wait for
    /// [`super::Client::saved`].
    Save(Vec<Saved>),
    /// The client's address as the switch sees it, when first known and after each change. If it differs from the driver's own, a
    /// NAT keeps executors from reaching the client.
    SeenAs(SocketAddr),
}

/// The value of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The bytes.
    Inline(Vec<u8>),
    /// The executor keeps the value; fetch it there over TCP at the reference's port.
    ByReference {
        /// Source address of the completion.
        executor: SocketAddr,
        /// The blob to fetch.
        blob: BlobRef,
    },
}

/// How a cancelled task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CancelledHow {
    /// Removed from the queue; it did not run.
    TakenOut,
    /// Its executor stopped it.
    Stopped,
    /// Its switch or executor died, or its result was lost; it may have run.
    Vanished,
}

/// Why a task has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LostWhy {
    /// The last attempt timed out.
    TimedOut,
    /// The last executor could not fetch the argument.
    Abandoned,
    /// The last attempt's result could not be fetched.
    FetchFailed,
    /// The switch no longer has it, and its completion may have arrived while no process of this client ran; it may have run.
    Forgotten,
}

impl std::fmt::Display for LostWhy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "timed out",
            Self::Abandoned => "the executor could not fetch the argument",
            Self::FetchFailed => "the result could not be fetched from the executor",
            Self::Forgotten => "it may have run: its end came while nobody listened, or its switch is gone",
        })
    }
}

/// Durations of a task's phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TaskTiming {
    /// Time of [`super::Client::submit`] (client's clock).
    pub submitted: Nanos,
    /// Time at which it was first sent, after any wait for the window (client's clock).
    pub sent: Nanos,
    /// Arrival of the completion (client's clock).
    pub completed: Nanos,
    /// From acceptance to assignment (switch's clock).
    pub waited_us: u32,
    /// From arrival of the assignment to the start (executor's clock).
    pub held_us: u32,
    /// From start to end (executor's clock).
    pub ran_ns: u64,
}
