//! The messages of the control stream, decoded.

use super::Refusal;
use std::net::SocketAddr;

/// The right to give orders. Operators obey the greatest term; the controller breaks ties of the number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    /// Increased by each takeover; 0: none yet.
    pub number: u64,
    /// Random number of the controller's process, so it changes with a restart.
    pub controller: u64,
}

impl Term {
    /// No controller.
    pub const NONE: Self = Self { number: 0, controller: 0 };
}

/// The number of a [`Set`]. A controller begins a new loading when it asks for an operator's inventory and then sends it all
/// rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetNumber {
    /// Grows with each loading of the operator by this controller; 0: none.
    pub loading: u32,
    /// Counts the SETs of the loading, from 1; 0: none yet.
    pub sequence: u32,
}

/// A rule in the encoding of the operator's core: `struct mf_cache_order`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuleRecord {
    /// `enum mf_cache_what`.
    pub what: u8,
    /// Number of a rack.
    pub rack: u16,
    /// Number of a traffic group.
    pub group: u16,
    /// RSNode id.
    pub rsnode: u16,
    /// Marker of a rack.
    pub marker: u32,
    /// An address; port 0 for a host, or for none.
    pub address: SocketAddr,
}

/// An order for an operator or its selector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// For the operator: a rule.
    Rule(RuleRecord),
    /// For the selector: the servers of a replica group.
    ReplicaGroup {
        /// Id of the group.
        group: u32,
        /// The servers with its keys; at most 255 are written.
        servers: Vec<SocketAddr>,
    },
    /// For the selector: the number of selectors.
    Selectors(u32),
}

/// A message of the control stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ControlMessage {
    /// controller → operator.
    Ask(Ask),
    /// controller → operator.
    Set(Set),
    /// operator → controller.
    Report(Report),
    /// operator → controller.
    Inventory(Inventory),
    /// operator → controller.
    Done(Done),
    /// operator → controller.
    Refused(Refused),
}

/// Asks for an operator's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// Counted by the controller; the response repeats it.
    pub number: u64,
    /// Term of an active controller: the operator follows it unless it follows a later one. `None`: from a standby.
    pub term: Option<Term>,
    /// Asks for an [`Inventory`] instead of a [`Report`] and begins this loading; orders of earlier loadings are void.
    pub inventory: Option<u32>,
}

/// Orders for an operator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Set {
    /// The controller's term.
    pub term: Term,
    /// A repeat has the same number.
    pub number: SetNumber,
    /// The incarnation of the operator for which the orders were made.
    pub incarnation: u64,
    /// Applied in this order; at most [`super::ORDERS_MAX`].
    pub orders: Vec<Order>,
    /// The operator now has all rules of this term: it removes all others.
    pub complete: bool,
}

/// State of an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Report {
    /// Repeats the request's.
    pub number: u64,
    /// Random number of the operator's process.
    pub incarnation: u64,
    /// The term that the operator follows.
    pub term: Term,
    /// The last SET applied in that term, or the loading begun since, with sequence 0.
    pub last: SetNumber,
    /// Nanoseconds since it last heard from that term's controller; `None`: never.
    pub heard_ns: Option<u64>,
    /// Time on the operator's clock, in nanoseconds.
    pub at_ns: u64,
    /// Incarnation of its selector; `None`: it has none.
    pub selector: Option<u64>,
    /// Requests sent to its selector since it started.
    pub selected: u64,
    /// Copies of responses sent to its selector.
    pub copied: u64,
    /// For each traffic group of its rack: the monitor's counts by the highest tier passed, the topmost first.
    pub counts: Vec<(u16, [u64; 4])>,
}

/// The plan's rules at an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Inventory {
    /// Repeats the request's.
    pub number: u64,
    /// As in [`Report`].
    pub incarnation: u64,
    /// As in [`Report`].
    pub term: Term,
    /// As in [`Report`].
    pub last: SetNumber,
    /// The latest RSNode id that it learned; 0: none yet.
    pub last_rsnode: u16,
    /// RSNode ids with their operators' addresses; `None`: this operator.
    pub rsnodes: Vec<(u16, Option<SocketAddr>)>,
    /// Traffic groups with the ids of their labels.
    pub labels: Vec<(u16, u16)>,
}

/// The orders of a [`Set`] were applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Done {
    /// As in [`Report`].
    pub incarnation: u64,
    /// The SET's term.
    pub term: Term,
    /// The SET's number.
    pub number: SetNumber,
    /// As in [`Report`].
    pub selector: Option<u64>,
    /// The exceptions: index and the outcome from the operator's core.
    pub refused: Vec<(u16, u8)>,
}

/// A message was refused and changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Refused {
    /// As in [`Report`].
    pub incarnation: u64,
    /// The term that the operator follows.
    pub term: Term,
    /// The last SET applied in that term.
    pub last: SetNumber,
    /// The reason.
    pub why: Refusal,
}
