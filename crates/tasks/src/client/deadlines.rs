//! When attempts time out. Holds only tasks with a timeout.

use midflight_endpoint::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A task that ends in time leaves its entry behind. Such an entry is skipped when it is due, and all of them are removed
/// once they outnumber the others.
#[derive(Default)]
pub(super) struct Deadlines {
    heap: BinaryHeap<Reverse<(Nanos, u64)>>,
}

/// With fewer entries than this nothing is removed.
const SMALL: usize = 1024;

impl Deadlines {
    /// `is_valid`: whether an entry (deadline, key) still belongs to a task. `open`: the number of open tasks.
    pub(super) fn push(&mut self, at: Nanos, key: u64, open: usize, is_valid: impl Fn(Nanos, u64) -> bool) {
        if self.heap.len() >= SMALL + 2 * open {
            self.heap.retain(|Reverse((at, key))| is_valid(*at, *key));
        }
        self.heap.push(Reverse((at, key)));
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
    fn entries_left_behind_are_bounded() {
        let mut deadlines = Deadlines::default();
        for key in 0..100_000_u64 {
            deadlines.push(1_000_000 + key, key, 10, |_, k| k + 10 > key);
        }
        assert!(deadlines.heap.len() <= SMALL + 20);
        assert_eq!(deadlines.pop_due(5), None);
        assert!(deadlines.pop_due(2_000_000).is_some());
    }
}
