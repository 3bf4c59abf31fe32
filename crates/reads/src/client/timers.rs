//! When requests are due.

use midflight_endpoint::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A request whose time has changed, or that has ended, leaves its entry behind. Such entries are removed when they come to the
/// front, and all of them once they outnumber the others.
#[derive(Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Nanos, u64)>>,
}

/// With fewer entries than this nothing is removed.
const SMALL: usize = 1024;

impl Timers {
    /// `is_valid`: whether an entry (time, number) still is a request's. `open`: the number of requests.
    pub(super) fn push(&mut self, at: Nanos, number: u64, open: usize, is_valid: impl Fn(Nanos, u64) -> bool) {
        if self.heap.len() >= SMALL + 2 * open {
            self.heap.retain(|Reverse((at, number))| is_valid(*at, *number));
        }
        self.heap.push(Reverse((at, number)));
    }

    /// Removes entries at the front that were left behind.
    pub(super) fn tidy(&mut self, is_valid: impl Fn(Nanos, u64) -> bool) {
        while self.heap.peek().is_some_and(|Reverse((at, number))| !is_valid(*at, *number)) {
            self.heap.pop();
        }
    }

    pub(super) fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    pub(super) fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, u64)> {
        (self.next()? <= now).then(|| self.heap.pop())?.map(|Reverse(entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r7_entries_left_behind_are_bounded_and_do_not_stay_in_front() {
        let mut timers = Timers::default();
        for number in 0..100_000_u64 {
            timers.push(1_000_000 + number, number, 10, |_, n| n + 10 > number);
        }
        assert!(timers.heap.len() <= SMALL + 20);
        timers.tidy(|_, number| number >= 99_990);
        assert_eq!(timers.next(), Some(1_099_990));
        assert_eq!(timers.pop_due(5), None);
        assert_eq!(timers.pop_due(2_000_000), Some((1_099_990, 99_990)));
    }
}
