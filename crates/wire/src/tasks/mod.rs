//! The packet formats of tasks.
//!
//! [`layout`](Submit) has the structures of `dataplane/include/midflight/tasks_wire.h`. [`parse`] reads a datagram into a [`Packet`];
//! [`crate::Builder`] writes one. `docs/wire.md` explains the fields.

mod builder;
mod layout;
mod parse;

pub use layout::*;
pub use parse::{Appendix, Completions, Packet, parse};

/// Tasks in a SUBMIT.
pub const SUBMIT_MAX: usize = 32;
/// Slots in RETRIEVE, ASSIGN, NO_OP and RELEASE.
pub const SLOTS_MAX: usize = 13;
/// Slots in REGISTER, REGISTERED, RESET, KEEPALIVE and RELEASED.
pub const REGISTER_MAX: usize = 32;
/// Tasks in a CANCEL or STOP.
pub const CANCEL_MAX: usize = 32;
/// Tasks in a PROBE.
pub const PROBE_MAX: usize = 32;
/// Completions in COMPLETE and COMPLETE_ACK.
pub const COMPLETE_MAX: usize = 32;
/// Bytes of an argument inside a task.
pub const ARGUMENT_MAX: usize = 16;
/// Bytes of a result inside a completion.
pub const RESULT_MAX: usize = 1024;
/// Sequences of a client that the switch remembers (T8).
pub const WINDOW: u32 = 64;
/// Priority levels; 1 is the highest.
pub const LEVELS: u8 = 8;
/// Places of a slot (T19).
pub const SLOT_PLACES: usize = 2;
/// Longest wait of a task for its place, in milliseconds.
pub const PATIENCE_MAX: u32 = 32_768;
/// Bit of a client's identity: another process may continue in its name, so its tasks outlast its silence.
pub const DURABLE: u64 = 1;
/// `argument_length` of an argument that is a [`BlobRef`].
pub const BY_REFERENCE: u8 = 255;
/// `argument_length` of an argument that is appended to the records; the task has an [`Appended`].
pub const APPENDED: u8 = 254;
/// Longest appended argument, in bytes.
pub const APPENDED_MAX: usize = 480;
/// Alignment of appended arguments, in bytes.
pub const APPENDED_UNIT: usize = 8;
/// Largest argument by reference, in bytes.
pub const ARGUMENT_BLOB_MAX: u32 = 64 << 20;
/// Largest result by reference, in bytes: the range of its length field.
pub const RESULT_BLOB_MAX: u32 = u32::MAX;

codes! {
    /// The purpose of a packet.
    Operation {
        /// client → switch: queue these tasks.
        Submit = 1,
        /// switch → client: which tasks were accepted.
        SubmitAck = 2,
        /// executor → switch: register slots.
        Register = 3,
        /// switch → executor: these slots are registered.
        Registered = 4,
        /// switch → executor: these slots are void.
        Reset = 5,
        /// executor → switch: these slots want a task.
        Retrieve = 6,
        /// switch → executor: tasks for slots.
        Assign = 7,
        /// executor → switch: renew the leases of these slots.
        Keepalive = 8,
        /// executor → switch: these slots leave or return tasks.
        Release = 9,
        /// switch → executor: these slots are removed.
        Released = 10,
        /// executor → client: these attempts ended.
        Complete = 11,
        /// client → executor: these results arrived.
        CompleteAck = 12,
        /// client → switch: what is the epoch, and does it have these tasks?
        Probe = 13,
        /// switch → client: the response to PROBE.
        ProbeAck = 14,
        /// client → switch: do not run these tasks.
        Cancel = 15,
        /// switch → client: which tasks will not run, and which are at executors.
        CancelAck = 16,
        /// switch → executor: no task now; poll again.
        NoOp = 17,
        /// switch → client or executor: repeat the packet with this cookie.
        Cookie = 18,
        /// client → executor: stop these tasks.
        Stop = 19,
    }

    /// Why a request was not accepted in full.
    Reason {
        /// It was accepted in full.
        None = 0,
        /// The queue is full (T7).
        Full = 1,
        /// The sequence is below the window (T8), or from an older registration of the slot.
        TooOld = 2,
        /// The client table is full.
        ClientsFull = 3,
        /// The slot table is full.
        SlotsFull = 4,
        /// The sender's address has used its share (T14).
        Share = 5,
    }

    /// How an attempt ended.
    Status {
        /// The function returned; the result is its value.
        Ok = 0,
        /// The function failed; the result is its message.
        Failed = 1,
        /// The executor has no such function.
        Unknown = 2,
        /// The executor could not fetch the argument.
        Abandoned = 3,
        /// Stopped at the client's request.
        Cancelled = 4,
        /// Still running; returns the part of its task that the result names.
        Part = 5,
    }

    /// The client's response to a completion.
    AckState {
        /// Received, or not wanted.
        Done = 0,
        /// The client is fetching the result by reference.
        Fetching = 1,
        /// The client knows which part was returned.
        Part = 2,
    }

    /// Purpose of the slots in a REGISTER.
    SlotKind {
        /// For tasks that start at once.
        Ordinary = 0,
        /// For prefetched tasks; refused first when slots are scarce (T14).
        Ahead = 1,
    }

    /// How a slot leaves, in RELEASE. Other numbers mean [`LeaveHow::Done`].
    LeaveHow {
        /// Leaves and withdraws its wait; the switch queues a task assigned to it again.
        Withdrawn = 0,
        /// Leaves; its task is done.
        Done = 1,
        /// Withdraws its wait and stays registered. The attempt of an assigned task does not count, because it never began.
        Stays = 2,
    }

    /// Whether a switch remembers a client, in PROBE_ACK.
    Known {
        /// No record of the client.
        No = 0,
        /// The switch has the client's window.
        Yes = 1,
        /// The switch keeps no record of tasks, and `open` means nothing.
        NoRecord = 2,
    }
}
