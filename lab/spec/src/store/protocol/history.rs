//! What clients did and saw, and whether one order explains it.

/// An operation on the model's one key. A write stores its operation's number plus one; 0 is the initial value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Read,
    Write,
    /// PUT by a client that maps the key to another key group than the replicas.
    WriteByWrongHash,
    /// FLUSHDB, at the leader. Counts as a write.
    Flush,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Status {
    Unsent,
    /// Not answered yet; may or may not have taken effect.
    Pending,
    /// Answered with this value (a write: its own).
    Returned(u8),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Operation {
    pub(super) kind: Kind,
    pub(super) status: Status,
    /// A bit for each operation that had returned before it began, and so precedes it in every order.
    pub(super) before: u8,
    /// The client id that it carries: the log index of the entry that opened it (R3). 0 where clients have no ids.
    pub(super) client: u8,
}

impl Operation {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, status: Status::Unsent, before: 0, client: 0 }
    }

    pub(super) fn has_returned(&self) -> bool {
        matches!(self.status, Status::Returned(_))
    }
}

pub(super) fn returned(operations: &[Operation]) -> u8 {
    let bits = operations.iter().enumerate().map(|(number, operation)| u8::from(operation.has_returned()) << number);
    bits.fold(0, |all, bit| all | bit)
}

/// R1: whether an order exists in which each read sees the write before it, and which keeps real-time order. A pending
/// write may stand anywhere after its beginning, or nowhere.
pub(super) fn is_linearizable(operations: &[Operation]) -> bool {
    can_continue(operations, 0, 0)
}

/// Whether the operations not in `placed` can follow, if the key has this `value`.
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
