//! A heap of deadlines of requests or attempts.

use crate::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A heap of (time, request number). An entry becomes stale when its request ends or changes its time. The owner skips stale
/// entries when due, or [removes](Deadlines::tidy) them from the front; [`push`](Deadlines::push) removes all once they are the
/// majority.
#[derive(Default)]
pub struct Deadlines {
    heap: BinaryHeap<Reverse<(Nanos, u64)>>,
}

/// A heap smaller than this is not cleaned.
const SMALL: usize = 1024;

impl Deadlines {
    /// `is_valid` tells whether an entry is still current; `open` is the number of requests.
    pub fn push(&mut self, at: Nanos, number: u64, open: usize, is_valid: impl Fn(Nanos, u64) -> bool) {
        if self.heap.len() >= SMALL + 2 * open {
            self.heap.retain(|Reverse((at, number))| is_valid(*at, *number));
        }
        self.heap.push(Reverse((at, number)));
    }

    /// Removes stale entries from the front.
    pub fn tidy(&mut self, is_valid: impl Fn(Nanos, u64) -> bool) {
        while self.heap.peek().is_some_and(|Reverse((at, number))| !is_valid(*at, *number)) {
            self.heap.pop();
        }
    }

    /// Time of the first entry, stale or not.
    #[must_use]
    pub fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Removes and returns the first entry if it is due.
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
