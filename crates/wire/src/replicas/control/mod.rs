//! What a controller and an operator say to each other, over a stream: `docs/replicas-wire.md` has the bytes, `layout` the structures,
//! [`parse`] reads a message from what a stream has brought so far, [`write()`] appends one.
//!
//! The controller asks, the operator answers each message with exactly one. `docs/internals/replicas-controller.md` says why.

mod layout;
mod message;
mod parse;
mod write;

pub use layout::*;
pub use message::*;
pub use parse::{ControlReject, parse};
pub use write::write;

/// "MFNC": how each message begins.
pub const CONTROL_MAGIC: u32 = 0x4D46_4E43;
/// The version of the format.
pub const CONTROL_VERSION: u8 = 1;
/// Bytes of the longest message, behind its head.
pub const CONTROL_MAX: u32 = 4 << 20;
/// The largest number of a term. Terms count takeovers: nobody reaches it, and a number beyond it would leave none for the next one.
pub const TERM_MAX: u64 = (1 << 48) - 1;
/// Orders in a message.
pub const ORDERS_MAX: usize = 4_096;
/// `what` of an order that makes a replica group known; smaller ones are rules of the operator itself.
pub const WHAT_REPLICA_GROUP: u8 = 32;
/// `what` of an order that says how many selectors there are.
pub const WHAT_SELECTORS: u8 = 33;

codes! {
    /// What a message is.
    ControlKind {
        /// controller → operator: how are you?
        Ask = 1,
        /// controller → operator: set these rules.
        Set = 2,
        /// operator → controller: the answer to ASK.
        Report = 3,
        /// operator → controller: the answer to an ASK that wants it.
        Inventory = 4,
        /// operator → controller: the orders of a SET were carried out.
        Done = 5,
        /// operator → controller: a message was refused.
        Refused = 6,
    }

    /// Why an operator refuses a message.
    Refusal {
        /// It follows a later term.
        OlderTerm = 1,
        /// The orders were for the operator as it was before it started again.
        OtherIncarnation = 2,
        /// Orders before these have not come, or these came already and others after them, or another loading has begun since.
        OutOfSequence = 3,
    }
}
