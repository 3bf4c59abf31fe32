//! Actions: a table's effects on a packet, all at once.

use crate::field::{At, Field, Operand};
use crate::program::Mirror;
use crate::register::Access;
use std::panic::Location;

/// An operation of the stage's ALUs: one destination, at most two sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    Set,
    Add,
    Sub,
    And,
    AndNot,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    /// Copies `bits` bits of the source from bit `from` on into the destination from bit `into` on; its other bits stay.
    Deposit {
        from: u32,
        bits: u32,
        into: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Op {
    pub(crate) verb: Verb,
    pub(crate) to: Field,
    pub(crate) a: Operand,
    pub(crate) b: Operand,
    pub(crate) at: At,
}

/// A packet's destination. Only ingress sets it, for the traffic manager between the pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// An egress port.
    Port(Operand),
    /// The receiver in the packet's own address fields: the controller's routes give the port.
    Requester,
    /// Through egress and back into ingress, as a new packet.
    Recirculate,
}

/// An action's effects other than writes to fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Effect {
    Forward(Destination),
    Drop(&'static str),
    Mirror(Mirror),
    Pop,
}

/// Writes to fields, at most one access to a register, and a destination.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Action {
    pub(crate) name: String,
    pub(crate) ops: Vec<Op>,
    pub(crate) access: Option<Access>,
    pub(crate) effects: Vec<(Effect, At)>,
}

impl Action {
    /// An action without effect.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ops: Vec::new(), access: None, effects: Vec::new() }
    }

    /// `to := a`
    #[track_caller]
    #[must_use]
    pub fn set(self, to: Field, a: impl Into<Operand>) -> Self {
        self.op(Verb::Set, to, a, 0)
    }

    /// `to := a + b`
    #[track_caller]
    #[must_use]
    pub fn add(self, to: Field, a: impl Into<Operand>, b: impl Into<Operand>) -> Self {
        self.op(Verb::Add, to, a, b)
    }

    /// `to := a − b`
    #[track_caller]
    #[must_use]
    pub fn sub(self, to: Field, a: impl Into<Operand>, b: impl Into<Operand>) -> Self {
        self.op(Verb::Sub, to, a, b)
    }

    /// `to := a AND b`
    #[track_caller]
    #[must_use]
    pub fn and(self, to: Field, a: impl Into<Operand>, b: impl Into<Operand>) -> Self {
        self.op(Verb::And, to, a, b)
    }

    /// `to := a AND NOT b`
    #[track_caller]
    #[must_use]
    pub fn and_not(self, to: Field, a: impl Into<Operand>, b: impl Into<Operand>) -> Self {
        self.op(Verb::AndNot, to, a, b)
    }

    /// `to := a OR b`
    #[track_caller]
    #[must_use]
    pub fn or(self, to: Field, a: impl Into<Operand>, b: impl Into<Operand>) -> Self {
        self.op(Verb::Or, to, a, b)
    }

    /// `to := a XOR b`
    #[track_caller]
    #[must_use]
    pub fn xor(self, to: Field, a: impl Into<Operand>, b: impl Into<Operand>) -> Self {
        self.op(Verb::Xor, to, a, b)
    }

    /// `to := a << by`
    #[track_caller]
    #[must_use]
    pub fn shift_left(self, to: Field, a: impl Into<Operand>, by: u32) -> Self {
        self.op(Verb::ShiftLeft, to, a, by)
    }

    /// `to := a >> by`
    #[track_caller]
    #[must_use]
    pub fn shift_right(self, to: Field, a: impl Into<Operand>, by: u32) -> Self {
        self.op(Verb::ShiftRight, to, a, by)
    }

    /// Copies `bits` bits of `a` from bit `from` on into `to` from bit `into` on; the other bits of `to` stay.
    #[track_caller]
    #[must_use]
    pub fn deposit(self, to: Field, into: u32, a: impl Into<Operand>, from: u32, bits: u32) -> Self {
        self.op(Verb::Deposit { from, bits, into }, to, a, 0)
    }

    /// Sets the register access. A second call replaces the first: an action has one.
    #[must_use]
    pub fn access(self, access: Access) -> Self {
        Self { access: Some(access), ..self }
    }

    /// Forwards the packet; a later stage may choose again. Ingress only.
    #[track_caller]
    #[must_use]
    pub fn forward(self, to: Destination) -> Self {
        self.effect(Effect::Forward(to))
    }

    /// Drops the packet under a reason, unless a later stage of ingress forwards it.
    #[track_caller]
    #[must_use]
    pub fn drop(self, reason: &'static str) -> Self {
        self.effect(Effect::Drop(reason))
    }

    /// Makes the copy that `mirror` describes, at the end of this pipeline; it is recirculated.
    #[track_caller]
    #[must_use]
    pub fn mirror(self, mirror: Mirror) -> Self {
        self.effect(Effect::Mirror(mirror))
    }

    /// Removes the packet's first record, at the end of this pipeline: in the next pass the fields hold the next record.
    #[track_caller]
    #[must_use]
    pub fn pop(self) -> Self {
        self.effect(Effect::Pop)
    }

    #[track_caller]
    fn op(mut self, verb: Verb, to: Field, a: impl Into<Operand>, b: impl Into<Operand>) -> Self {
        self.ops.push(Op { verb, to, a: a.into(), b: b.into(), at: Location::caller() });
        self
    }

    #[track_caller]
    fn effect(mut self, effect: Effect) -> Self {
        self.effects.push((effect, Location::caller()));
        self
    }

    /// Number of sources that are arguments of the entry.
    pub(crate) fn arguments(&self) -> usize {
        let of = |operand: Operand| if let Operand::Argument(n) = operand { usize::from(n) + 1 } else { 0 };
        let forwards = self.effects.iter().filter_map(|(effect, _)| match effect {
            Effect::Forward(Destination::Port(port)) => Some(of(*port)),
            _ => None,
        });
        self.ops.iter().flat_map(|op| [of(op.a), of(op.b)]).chain(forwards).max().unwrap_or(0)
    }
}
