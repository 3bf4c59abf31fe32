//! The messages as values.

use super::Refusal;
use std::net::SocketAddr;

/// Who may give orders, and since when. The greater one is obeyed: by its number, and between two controllers that have taken the same
/// number, by theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    /// Counted up by whoever takes over; 0: nobody yet.
    pub number: u64,
    /// A random number of the controller's process: after a restart it is another controller.
    pub controller: u64,
}

impl Term {
    /// Of nobody.
    pub const NONE: Self = Self { number: 0, controller: 0 };
}

/// The number of a [`Set`]. Each time a controller asks an operator what it has, and gives it all its rules, a new loading begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetNumber {
    /// Grows with each loading of the operator by this controller; 0: none.
    pub loading: u32,
    /// Counts the orders of the loading, from 1; 0: none yet.
    pub sequence: u32,
}

/// What a rule says, as the operator's core has it: `struct mf_replicas_order`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuleRecord {
    /// `enum mf_replicas_what`.
    pub what: u8,
    /// A rack.
    pub rack: u16,
    /// A traffic group.
    pub group: u16,
    /// An RSNode id.
    pub rsnode: u16,
    /// A rack's marker.
    pub marker: u32,
    /// An address; port 0: of a host, or none.
    pub address: SocketAddr,
}

/// What an operator, or the selector beside it, is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The operator: a rule.
    Rule(RuleRecord),
    /// The selector: the servers of a replica group.
    ReplicaGroup {
        /// Its id.
        group: u32,
        /// Who has its keys; at most 255 are written.
        servers: Vec<SocketAddr>,
    },
    /// The selector: how many selectors there are.
    Selectors(u32),
}

/// A message.
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

/// How are you?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// Counted by the controller; the answer repeats it.
    pub number: u64,
    /// Of the controller, if it is active: the operator follows it from now on, if it follows no later one. `None`: of a standby.
    pub term: Option<Term>,
    /// What is wanted is an [`Inventory`], not a [`Report`]; with it this loading begins, and orders of earlier ones count no more.
    pub inventory: Option<u32>,
}

/// Orders.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Set {
    /// Of the controller.
    pub term: Term,
    /// The same orders have the same number.
    pub number: SetNumber,
    /// For which the orders were made.
    pub incarnation: u64,
    /// To be carried out in this order, at most [`super::ORDERS_MAX`].
    pub orders: Vec<Order>,
    /// With these, the operator has all rules that it should have: it removes those that this term has not set.
    pub complete: bool,
}

/// How an operator is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Report {
    /// Of the question.
    pub number: u64,
    /// A random number of the operator's process.
    pub incarnation: u64,
    /// That it follows.
    pub term: Term,
    /// Of the last orders of that term that were carried out, or of the loading that has begun since, with the sequence 0.
    pub last: SetNumber,
    /// How long ago it has heard of the controller of that term, in nanoseconds; `None`: never.
    pub heard_ns: Option<u64>,
    /// The time by its own clock, in nanoseconds.
    pub at_ns: u64,
    /// The incarnation of the selector beside it; `None`: there is none.
    pub selector: Option<u64>,
    /// Requests that went to its selector since it was started.
    pub selected: u64,
    /// Copies of answers that went to its selector.
    pub copied: u64,
    /// Of the traffic groups of its rack: the monitor's counts, by the highest tier that was passed, the topmost first.
    pub counts: Vec<(u16, [u64; 4])>,
}

/// Which rules of the plan an operator has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Inventory {
    /// Of the question.
    pub number: u64,
    /// As in [`Report`].
    pub incarnation: u64,
    /// As in [`Report`].
    pub term: Term,
    /// As in [`Report`].
    pub last: SetNumber,
    /// The RSNode id that it heard of last; 0: none yet.
    pub newest: u16,
    /// RSNode ids; without an address: this operator's.
    pub rsnodes: Vec<(u16, Option<SocketAddr>)>,
    /// Traffic groups and the ids that they are labelled with.
    pub labels: Vec<(u16, u16)>,
}

/// The orders of a [`Set`] were carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Done {
    /// As in [`Report`].
    pub incarnation: u64,
    /// Of the orders.
    pub term: Term,
    /// Of the orders.
    pub number: SetNumber,
    /// As in [`Report`].
    pub selector: Option<u64>,
    /// But for these: their place, and the outcome that the operator's core gave.
    pub refused: Vec<(u16, u8)>,
}

/// A message was refused, and nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Refused {
    /// As in [`Report`].
    pub incarnation: u64,
    /// That the operator follows.
    pub term: Term,
    /// Of the last orders of that term that were carried out.
    pub last: SetNumber,
    /// Why.
    pub why: Refusal,
}
