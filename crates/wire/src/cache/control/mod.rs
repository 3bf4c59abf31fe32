//! The stream between a cache controller and an operator, which answers each request with exactly one message.
//! `docs/cache-wire.md` defines the bytes; [`parse`] reads a message from those received so far, and [`write()`] appends one.
//! `docs/internals/cache-controller.md` explains the protocol.

mod layout;
mod message;
mod parse;
mod write;

pub use layout::*;
pub use message::*;
pub use parse::{ControlReject, parse};
pub use write::write;

/// "MFNC": begins each message.
pub const CONTROL_MAGIC: u32 = 0x4D46_4E43;
/// Version of the format.
pub const CONTROL_VERSION: u8 = 1;
/// Longest message, in bytes after its head.
pub const CONTROL_MAX: u32 = 4 << 20;
/// Largest number of a term. Terms count takeovers, so only a faulty controller exceeds it; no later term could follow.
pub const TERM_MAX: u64 = (1 << 48) - 1;
/// Orders in a message.
pub const ORDERS_MAX: usize = 4_096;
/// `what` of an order that announces a replica group; smaller values are rules of the operator.
pub const WHAT_REPLICA_GROUP: u8 = 32;
/// `what` of an order that sets the number of selectors.
pub const WHAT_SELECTORS: u8 = 33;

codes! {
    /// Kind of a message.
    ControlKind {
        /// controller → operator: asks for its state.
        Ask = 1,
        /// controller → operator: set these rules.
        Set = 2,
        /// operator → controller: the response to ASK.
        Report = 3,
        /// operator → controller: the response to an ASK for it.
        Inventory = 4,
        /// operator → controller: the orders of a SET were applied.
        Done = 5,
        /// operator → controller: a message was refused.
        Refused = 6,
    }

    /// Why an operator refuses a message.
    Refusal {
        /// The operator follows a later term.
        OlderTerm = 1,
        /// The orders were for an earlier start of the operator.
        OtherIncarnation = 2,
        /// Earlier orders are missing, later ones were applied, or another loading has begun.
        OutOfSequence = 3,
    }
}
