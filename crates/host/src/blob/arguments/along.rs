//! Arguments that clients have sent before their tasks came. Anybody can send some, so there are few, and each address has a share of
//! them: what has no room is fetched when its task comes.

use super::parts::Name;
use std::collections::VecDeque;
use std::ops::Range;

/// How many are kept, and how many of one address (T14).
const KEPT_MAX: usize = 64;
const SHARE: usize = 16;

/// Those whose tasks have not come, and what became of the others.
#[derive(Debug, Default)]
pub(super) struct Along {
    /// The oldest first.
    kept: VecDeque<(Name, Range<u32>, Vec<u8>)>,
    pub(super) taken: u64,
    pub(super) unused: u64,
}

impl Along {
    /// Keeps an argument until its task comes, or others need the room: first those of the same address.
    pub(super) fn keep(&mut self, name: Name, range: Range<u32>, argument: Vec<u8>) {
        let is_of_the_same = |(other, ..): &(Name, _, _)| other.0.ip() == name.0.ip();
        let of_the_same = self.kept.iter().filter(|one| is_of_the_same(one)).count();
        let oldest = match (of_the_same >= SHARE, self.kept.len() >= KEPT_MAX) {
            (true, _) => self.kept.iter().position(is_of_the_same),
            (false, true) => Some(0),
            (false, false) => None,
        };
        if let Some(oldest) = oldest {
            self.kept.remove(oldest);
            self.unused += 1;
        }
        self.kept.push_back((name, range, argument));
    }

    /// The argument, once.
    pub(super) fn take(&mut self, name: Name, range: &Range<u32>) -> Option<Vec<u8>> {
        let place = self.kept.iter().position(|(other, there, _)| *other == name && there == range)?;
        let (_, _, argument) = self.kept.remove(place)?;
        self.taken += 1;
        Some(argument)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn name(host: u8, id: u64) -> Name {
        (SocketAddr::from(([10, 0, 0, host], 9)), id)
    }

    #[test]
    fn an_argument_is_taken_once_and_only_under_its_own_name() {
        let mut along = Along::default();
        along.keep(name(1, 7), 16..36, vec![1; 20]);
        assert_eq!(along.take(name(2, 7), &(16..36)), None, "of another client");
        assert_eq!(along.take(name(1, 8), &(16..36)), None, "of another pack");
        assert_eq!(along.take(name(1, 7), &(16..35)), None, "another length");
        assert_eq!(along.take(name(1, 7), &(16..36)), Some(vec![1; 20]));
        assert_eq!((along.take(name(1, 7), &(16..36)), along.taken, along.unused), (None, 1, 0));
    }

    #[test]
    fn t14_an_address_takes_its_own_room_before_that_of_others() {
        let mut along = Along::default();
        along.keep(name(1, 0), 0..17, vec![0; 17]);
        for id in 0..100 {
            along.keep(name(2, id), 0..17, vec![2; 17]);
        }
        assert_eq!((along.kept.len(), along.unused), (1 + SHARE, 100 - SHARE as u64));
        assert!(along.take(name(1, 0), &(0..17)).is_some());
        for host in 3..100 {
            along.keep(name(host, 0), 0..17, vec![3; 17]);
        }
        assert_eq!(along.kept.len(), KEPT_MAX);
        assert!(along.take(name(99, 0), &(0..17)).is_some(), "the youngest stay");
    }
}
