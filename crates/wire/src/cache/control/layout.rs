//! The structures of the control stream, laid out as in `docs/cache-wire.md`. C does not have them.

use crate::Address;
use zerocopy::byteorder::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

layout! {
    /// Begins each message.
    pub struct ControlHead {
        pub magic: U32,
        pub version: u8,
        /// A [`super::ControlKind`].
        pub kind: u8,
        pub reserved: U16,
        pub length: U32,
    }

    /// A controller's term.
    pub struct ControlTerm {
        pub number: U64,
        pub controller: U64,
    }

    /// The number of a SET.
    pub struct ControlSetNumber {
        pub loading: U32,
        pub sequence: U32,
    }

    /// ASK.
    pub struct ControlAsk {
        pub number: U64,
        /// All 0: from a standby.
        pub term: ControlTerm,
        pub inventory: U32,
        pub reserved: U32,
    }

    /// SET; then `count` orders.
    pub struct ControlSet {
        pub term: ControlTerm,
        pub number: ControlSetNumber,
        pub incarnation: U64,
        pub count: U32,
        pub complete: u8,
        pub reserved: [u8; 3],
    }

    /// An order; that of a replica group is followed by `servers` addresses.
    pub struct ControlOrder {
        pub what: u8,
        pub servers: u8,
        pub rack: U16,
        pub group: U16,
        pub rsnode: U16,
        pub number: U32,
        pub address: Address,
    }

    /// REPORT; then `count` counts.
    pub struct ControlReport {
        pub number: U64,
        pub incarnation: U64,
        pub term: ControlTerm,
        pub last: ControlSetNumber,
        pub heard_ns: U64,
        pub at_ns: U64,
        pub selector: U64,
        pub selected: U64,
        pub copied: U64,
        pub count: U32,
        pub reserved: U32,
    }

    /// The monitor's counts of a traffic group.
    pub struct ControlCount {
        pub group: U16,
        pub reserved: [u8; 6],
        /// By the highest tier passed, the topmost first.
        pub tiers: [U64; 4],
    }

    /// INVENTORY; then RSNodes and labels. `last_rsnode`: the last RSNode id that the keeper was told of.
    pub struct ControlInventory {
        pub number: U64,
        pub incarnation: U64,
        pub term: ControlTerm,
        pub last: ControlSetNumber,
        pub last_rsnode: U16,
        pub reserved: U16,
        pub rsnodes: U32,
        pub labels: U32,
    }

    /// The operator of an RSNode id.
    pub struct ControlRsnode {
        pub id: U16,
        /// 1: this operator; `address` is 0.
        pub here: u8,
        pub reserved: u8,
        pub address: Address,
    }

    /// Label of a traffic group.
    pub struct ControlLabel {
        pub group: U16,
        pub rsnode: U16,
    }

    /// DONE; then `count` refused orders.
    pub struct ControlDone {
        pub incarnation: U64,
        pub term: ControlTerm,
        pub number: ControlSetNumber,
        pub selector: U64,
        pub count: U32,
        pub reserved: U32,
    }

    /// A refused order.
    pub struct ControlNotDone {
        pub order: U16,
        /// The outcome from the operator's core.
        pub outcome: u8,
        pub reserved: u8,
    }

    /// REFUSED.
    pub struct ControlRefused {
        pub incarnation: U64,
        pub term: ControlTerm,
        pub last: ControlSetNumber,
        /// A [`super::Refusal`].
        pub why: u8,
        pub reserved: [u8; 7],
    }
}
