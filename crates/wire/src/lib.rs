//! The packet formats of Midflight.
//!
//! [`layout`](crate::Header) holds the structures, byte for byte as in `dataplane/include/midflight/wire.h`;
//! [`parse`] reads a datagram into a [`Packet`] or says why it is none; [`Builder`] writes one into a buffer, [`packet`] a new one.
//! `docs/wire.md` explains each field.

#[macro_use]
mod macros;

mod builder;
mod host;
mod layout;
mod mutants;
mod parse;
pub mod reads;
pub mod replicas;

pub use builder::{Builder, counting, packet};
pub use host::Host;
pub use layout::*;
pub use macros::Field;
pub use parse::{Completions, Packet, Reject, parse};

/// "MF", the first two bytes of every packet.
pub const MAGIC: u16 = 0x4D46;
/// The version of the format.
pub const VERSION: u8 = 3;
/// The operation of [`Version`], which opens no other packet.
pub const VERSION_OPERATION: u8 = 0;
/// Bytes of the largest datagram: what every link passes that may carry IPv6 (T15).
pub const PACKET_MAX: usize = 1232;
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
/// Bytes of argument inside a task.
pub const ARGUMENT_MAX: usize = 16;
/// Bytes of result inside a completion.
pub const RESULT_MAX: usize = 1024;
/// Sequences of a client that the switch remembers (T8).
pub const WINDOW: u32 = 64;
/// Priority levels; 1 is the highest.
pub const LEVELS: u8 = 8;
/// Places that a slot may be at (T19).
pub const SLOT_PLACES: usize = 2;
/// Milliseconds that a task waits for its place at most.
pub const PATIENCE_MAX: u32 = 32_768;
/// Bit of a client's identity: another process may go on in its name, so what it has running goes on while it is silent.
pub const DURABLE: u64 = 1;
/// `argument_length` of an argument that is a [`BlobRef`].
pub const BY_REFERENCE: u8 = 255;
/// Bytes of the largest argument by reference.
pub const ARGUMENT_BLOB_MAX: u32 = 64 << 20;
/// Arguments in a pack begin at multiples of so many bytes.
pub const PACK_UNIT: u32 = 16;
/// Pieces of an argument in an ARGUMENT, each of [`PACK_UNIT`] bytes.
pub const PIECES_MAX: usize = 64;
/// Bytes of the largest result by reference: all that its length can say.
pub const RESULT_BLOB_MAX: u32 = u32::MAX;

codes! {
    /// What a packet is for.
    Operation {
        /// client → switch: queue these tasks.
        Submit = 1,
        /// switch → client: these were taken, these not.
        SubmitAck = 2,
        /// executor → switch: wants slots.
        Register = 3,
        /// switch → executor: has slots.
        Registered = 4,
        /// switch → executor: these slots are void.
        Reset = 5,
        /// executor → switch: these slots want a task.
        Retrieve = 6,
        /// switch → executor: tasks for slots.
        Assign = 7,
        /// executor → switch: these slots live.
        Keepalive = 8,
        /// executor → switch: these slots want no more.
        Release = 9,
        /// switch → executor: these slots are forgotten.
        Released = 10,
        /// executor → client: these attempts ended.
        Complete = 11,
        /// client → executor: these results are here.
        CompleteAck = 12,
        /// client → switch: which epoch is it, and does it have these tasks?
        Probe = 13,
        /// switch → client: this one.
        ProbeAck = 14,
        /// client → switch: do not run these.
        Cancel = 15,
        /// switch → client: these will not run, those are with executors.
        CancelAck = 16,
        /// switch → executor: there is no task now, ask again.
        NoOp = 17,
        /// switch → client or executor: repeat this with a cookie.
        Cookie = 18,
        /// client → executor: stop these.
        Stop = 19,
        /// client → executor: the argument of a task that it probably gets.
        Argument = 20,
    }

    /// Why a request was not taken whole.
    Reason {
        /// It was.
        None = 0,
        /// The queue has no room (T7).
        Full = 1,
        /// The sequence is below the window (T8), or of a registration before the slot's last.
        TooOld = 2,
        /// No room for another client.
        ClientsFull = 3,
        /// No room for another executor slot.
        SlotsFull = 4,
        /// The sender's address holds its share of what there is (T14).
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
        /// The argument could not be fetched.
        Abandoned = 3,
        /// Its client asked to stop it, and it has stopped.
        Cancelled = 4,
        /// It runs on, and gives back a part of its task; the result says which.
        Part = 5,
    }

    /// What a client says of a completion.
    AckState {
        /// Has it, or does not want it.
        Done = 0,
        /// Is fetching the result by reference.
        Fetching = 1,
        /// Knows which part it got back.
        Part = 2,
    }

    /// What slots are for, in REGISTER.
    SlotKind {
        /// For tasks that start at once.
        Ordinary = 0,
        /// For tasks that are taken ahead: refused first where slots become few (T14).
        Ahead = 1,
    }

    /// What RELEASE says of a slot. Every other number means the same as [`LeaveHow::Done`].
    LeaveHow {
        /// It leaves and withdraws its wait; a task given to it meanwhile is queued again.
        Withdrawn = 0,
        /// It leaves; its task is done.
        Done = 1,
        /// As withdrawn, but it stays registered, and the attempt of its task does not count: it never began.
        Stays = 2,
    }

    /// Whether a switch remembers a client, in PROBE_ACK.
    Known {
        /// It does not.
        No = 0,
        /// It remembers the client's window.
        Yes = 1,
        /// It cannot say: it keeps no record of tasks, and `open` means nothing.
        NoRecord = 2,
    }
}
