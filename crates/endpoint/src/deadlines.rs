//! When requests are due, or attempts time out.

use crate::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A request that has ended, or whose time has changed, leaves its entry behind. Such entries are the owner's to skip when they are
/// due, or to [tidy](Deadlines::tidy) away from the front; all of them are removed once they outnumber the others.
#[derive(Default)]
pub struct Deadlines {
    heap: BinaryHeap<Reverse<(Nanos, u64)>>,
}

/// With fewer entries than this nothing is removed.
const SMALL: usize = 1024;

impl Deadlines {
    /// `is_valid`: whether an entry (time, number) still is a request's. `open`: the number of requests.
    pub fn push(&mut self, at: Nanos, number: u64, open: usize, is_valid: impl Fn(Nanos, u64) -> bool) {
        if self.heap.len() >= SMALL + 2 * open {
            self.heap.retain(|Reverse((at, number))| is_valid(*at, *number));
        }
        self.heap.push(Reverse((at, number)));
    }

    /// Removes entries at the front that were left behind.
    pub fn tidy(&mut self, is_valid: impl Fn(Nanos, u64) -> bool) {
        while self.heap.peek().is_some_and(|Reverse((at, number))| !is_valid(*at, *number)) {
            self.heap.pop();
        }
    }

    /// The time of the first entry.
    #[must_use]
    pub fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// The first entry, if it is due.
    pub fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, u64)> {
        (self.next()? <= now).then(|| self.heap.pop())?.map(|Reverse(entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r7_entries_left_behind_are_bounded_and_do_not_stay_in_front() {
        let mut deadlines = Deadlines::default();
        for number in 0..100_000_u64 {
            deadlines.push(1_000_000 + number, number, 10, |_, n| n + 10 > number);
        }
        assert!(deadlines.heap.len() <= SMALL + 20);
        deadlines.tidy(|_, number| number >= 99_990);
        assert_eq!(deadlines.next(), Some(1_099_990));
        assert_eq!(deadlines.pop_due(5), None);
        assert_eq!(deadlines.pop_due(2_000_000), Some((1_099_990, 99_990)));
    }
}
