//! The events of a client for its driver.

use super::{Saved, TaskKey};
use midflight_endpoint::Nanos;
use midflight_wire::{BlobRef, Status};
use std::net::SocketAddr;

/// What the driver must know or do. Each task ends in exactly one of `Completed`, `Lost` and `Cancelled`. A `Completed`
/// whose result is by reference is provisional until [`super::Client::fetched`]; of a durable client each one is.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A task ended. If the result is by reference, the driver fetches it and calls [`super::Client::fetched`]: with
    /// `true` this was the task's end, with `false` another attempt follows, or `Lost` if none is left.
    Completed {
        /// Which task.
        key: TaskKey,
        /// How it ended: `Ok`, or `Failed` and `Unknown` where the task does not ask for retries or has none left.
        status: Status,
        /// Which attempt this was, from 1; stays at 255.
        attempt: u8,
        /// Its value, or the message of its failure.
        result: Outcome,
        /// Where its time went.
        timing: Timing,
    },
    /// An attempt goes on and gives back a part of its task. May repeat, even if a later attempt does the whole task.
    Part {
        /// Which task.
        key: TaskKey,
        /// Which attempt, from 1; stays at 255.
        attempt: u8,
        /// Which part.
        part: Vec<u8>,
    },
    /// A task ended without a result.
    Lost {
        /// Which task.
        key: TaskKey,
        /// Why.
        why: LostWhy,
    },
    /// A task was cancelled, and will not be assigned again.
    Cancelled {
        /// Which task.
        key: TaskKey,
        /// What became of it.
        how: CancelledHow,
    },
    /// A task was not cancelled: it may run, and the event of its end will follow. Only after
    /// [`super::Client::cancel_queued`], at a switch that keeps no record, and while a result is being fetched.
    NotCancelled {
        /// Which task.
        key: TaskKey,
    },
    /// The switch answered for the first time, or another one answers, or it restarted.
    SwitchChanged {
        /// Its address.
        switch: SocketAddr,
        /// Its epoch.
        epoch: u32,
        /// Tasks that are submitted again because of it (T9).
        resubmitted: usize,
    },
    /// A switch of the list uses another version of the wire format and accepts nothing of ours. Once for each switch and
    /// version.
    OtherVersion {
        /// Its address.
        switch: SocketAddr,
        /// Its version.
        version: u8,
    },
    /// Only of a durable client: what to remember of these tasks, in the place of what was said of them before. What is to be sent
    /// because of it waits for [`super::Client::saved`].
    Save(Vec<Saved>),
    /// This client's address as the switch sees it. If it differs from the driver's own, there is NAT between them, and
    /// executors cannot reach this client. Sent first when the address is known, and whenever it changes.
    SeenAs(SocketAddr),
}

/// The value of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The bytes themselves.
    Inline(Vec<u8>),
    /// The executor keeps it; fetch it there over TCP at the reference's port.
    ByReference {
        /// The address from which the completion came.
        executor: SocketAddr,
        /// The blob to fetch.
        blob: BlobRef,
    },
}

/// What became of a cancelled task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CancelledHow {
    /// No executor had it: it did not run.
    TakenOut,
    /// Its executor stopped it.
    Stopped,
    /// Its switch or executor died, or its result was lost: it may have run.
    Vanished,
}

/// Why a task has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LostWhy {
    /// The last attempt timed out.
    TimedOut,
    /// The last attempt's executor could not fetch the argument.
    Abandoned,
    /// The last attempt's result could not be fetched.
    FetchFailed,
    /// Its switch no longer has it, and its completion may have come while no process of this client ran: it may have run.
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

/// Where a task's time went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Timing {
    /// When [`super::Client::submit`] was called (this client's clock).
    pub submitted: Nanos,
    /// When the task was first sent, which is later for tasks that the client's window held back (this client's clock).
    pub sent: Nanos,
    /// When the completion arrived (this client's clock).
    pub completed: Nanos,
    /// From its acceptance to its assignment (the switch's clock).
    pub waited_us: u32,
    /// From the arrival of the assignment to the start (the executor's clock).
    pub held_us: u32,
    /// From start to end (the executor's clock).
    pub ran_ns: u64,
}
