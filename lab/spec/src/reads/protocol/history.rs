//! What clients did and saw, and whether one order of it explains all they saw.

/// What an operation on the one key of the model does. A write stores the number of the operation plus one; 0 is the value
/// before any write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    /// GET.
    Read,
    /// PUT, through the switch.
    Write,
    /// PUT by a client that maps the key to another key group than the replicas do.
    WriteByWrongHash,
    /// FLUSHDB, at the leader. It counts as a write.
    Flush,
}

/// How far an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Status {
    /// Its client has not begun it.
    Unsent,
    /// It has no answer yet; it may or may not have taken effect.
    Pending,
    /// It was answered with this value (a write: with its own).
    Returned(u8),
}

/// An operation in the history.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Operation {
    /// What it does.
    pub(super) kind: Kind,
    /// How far it is.
    pub(super) status: Status,
    /// Operations that had returned before it began, a bit each: they come before it in every order.
    pub(super) before: u8,
    /// The client id that it carries: the log index of the entry that opened it (R3). 0 where clients have no ids.
    pub(super) client: u8,
}

impl Operation {
    /// An operation that its client has not begun.
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, status: Status::Unsent, before: 0, client: 0 }
    }

    /// Whether its client has its answer.
    pub(super) fn has_returned(&self) -> bool {
        matches!(self.status, Status::Returned(_))
    }
}

/// The operations that have returned, a bit each.
pub(super) fn returned(operations: &[Operation]) -> u8 {
    let bits = operations.iter().enumerate().map(|(number, operation)| u8::from(operation.has_returned()) << number);
    bits.fold(0, |all, bit| all | bit)
}

/// Whether an order of the operations exists in which each read sees the write before it, and which keeps what came before
/// what in real time (R1). A pending write may stand anywhere after its beginning, or nowhere.
pub(super) fn is_linearizable(operations: &[Operation]) -> bool {
    can_continue(operations, 0, 0)
}

/// Whether the operations that are not `placed` can follow them, where the key has this `value`.
fn can_continue(operations: &[Operation], placed: u8, value: u8) -> bool {
    if returned(operations) & !placed == 0 {
        return true;
    }
    operations.iter().enumerate().any(|(number, operation)| {
        let bit = 1 << number;
        let may_come = placed & bit == 0 && operation.status != Status::Unsent && operation.before & !placed == 0;
        may_come
            && match (operation.kind, operation.status) {
                (Kind::Read, Status::Returned(seen)) => seen == value && can_continue(operations, placed | bit, value),
                (Kind::Read, _) => false,
                _ => can_continue(operations, placed | bit, number as u8 + 1),
            }
    })
}

#[cfg(test)]
mod tests {
    use super::Kind::{Read, Write};
    use super::Status::{Pending, Returned};
    use super::*;

    fn operation(kind: Kind, status: Status, before: u8) -> Operation {
        Operation { kind, status, before, client: 0 }
    }

    #[test]
    fn r1_a_read_may_see_a_pending_write_but_not_forget_it() {
        let write = operation(Write, Pending, 0);
        let [sees, misses] = [1, 0].map(|value| operation(Read, Returned(value), 0));
        assert!(is_linearizable(&[write.clone(), sees.clone(), misses.clone()]), "concurrent reads");
        let late = Operation { before: 0b010, ..misses };
        assert!(!is_linearizable(&[write, sees, late]), "the second read begins after the first has returned");
    }

    #[test]
    fn r1_a_read_sees_the_last_write_that_was_acknowledged() {
        let first = operation(Write, Returned(1), 0);
        let second = operation(Write, Returned(2), 0b001);
        for (value, right) in [(2, true), (1, false), (0, false)] {
            let read = operation(Read, Returned(value), 0b011);
            assert_eq!(is_linearizable(&[first.clone(), second.clone(), read]), right, "{value}");
        }
    }

    #[test]
    fn r1_concurrent_writes_take_either_order() {
        let writes = [operation(Write, Returned(1), 0), operation(Write, Returned(2), 0)];
        for value in [1, 2] {
            let read = operation(Read, Returned(value), 0b011);
            assert!(is_linearizable(&[writes[0].clone(), writes[1].clone(), read]), "{value}");
        }
    }
}
