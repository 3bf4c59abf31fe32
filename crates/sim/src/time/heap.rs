//! The heap of events: of all that is scheduled, the earliest comes out first; of those at one nanosecond, the one
//! that was scheduled first.
//!
//! Four children a node: half as deep as a binary heap, and the four stand side by side in memory.

use midflight_tasks::Nanos;

const CHILDREN: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Scheduled<E> {
    at: Nanos,
    order: u64,
    event: E,
}

impl<E> Scheduled<E> {
    fn key(&self) -> u128 {
        u128::from(self.at) << 64 | u128::from(self.order)
    }
}

/// Events at their times. They are small and copied: what is large lies elsewhere.
#[derive(Clone, Debug)]
pub struct Heap<E> {
    heap: Vec<Scheduled<E>>,
    order: u64,
}

impl<E: Copy> Default for Heap<E> {
    fn default() -> Self {
        Self { heap: Vec::new(), order: 0 }
    }
}

impl<E: Copy> Heap<E> {
    /// Schedules `event` at `at`, after all that is scheduled at that time already.
    pub fn push(&mut self, at: Nanos, event: E) {
        self.order += 1;
        let scheduled = Scheduled { at, order: self.order, event };
        self.heap.push(scheduled);
        self.rise(self.heap.len() - 1, scheduled);
    }

    /// When the next event is.
    #[must_use]
    pub fn next_at(&self) -> Option<Nanos> {
        self.heap.first().map(|first| first.at)
    }

    /// Takes the next event.
    pub fn pop(&mut self) -> Option<(Nanos, E)> {
        let last = self.heap.pop()?;
        let Some(&first) = self.heap.first() else { return Some((last.at, last.event)) };
        self.sink(last);
        Some((first.at, first.event))
    }

    /// How many events are scheduled.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is scheduled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// How many events were scheduled since the beginning.
    #[must_use]
    pub fn pushed(&self) -> u64 {
        self.order
    }

    /// Finds the place for `new`, from `at` towards the root.
    fn rise(&mut self, mut at: usize, new: Scheduled<E>) {
        let key = new.key();
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            if self.heap[parent].key() <= key {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = new;
    }

    /// Fills the root's place: down to a leaf along the smallest children, then up. `new` was a leaf, so it will mostly
    /// be one again.
    fn sink(&mut self, new: Scheduled<E>) {
        let (mut at, count) = (0, self.heap.len());
        loop {
            let first = CHILDREN * at + 1;
            if first >= count {
                break;
            }
            let mut smallest = first;
            let mut key = self.heap[first].key();
            for child in first + 1..(first + CHILDREN).min(count) {
                let other = self.heap[child].key();
                if other < key {
                    (smallest, key) = (child, other);
                }
            }
            self.heap[at] = self.heap[smallest];
            at = smallest;
        }
        self.rise(at, new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_one_time_the_first_scheduled_comes_first() {
        let mut heap = Heap::default();
        for number in 0..100 {
            heap.push(number % 3, number);
        }
        let mut sorted: Vec<_> = (0..100).collect();
        sorted.sort_by_key(|number| number % 3);
        let popped: Vec<_> = std::iter::from_fn(|| heap.pop().map(|(_, number)| number)).collect();
        assert_eq!(popped, sorted);
        assert_eq!((heap.len(), heap.pushed(), heap.next_at()), (0, 100, None));
    }

    proptest! {
        /// Against a sorted list.
        #[test]
        fn it_is_a_stable_queue(ops in prop::collection::vec((0u64..50, any::<bool>()), 1..300)) {
            let (mut heap, mut model) = (Heap::default(), Vec::<(u64, u32)>::new());
            for (number, (at, push)) in ops.into_iter().enumerate() {
                if push {
                    heap.push(at, number as u32);
                    let place = model.partition_point(|&(other, _)| other <= at);
                    model.insert(place, (at, number as u32));
                } else {
                    let expected = (!model.is_empty()).then(|| model.remove(0));
                    prop_assert_eq!(heap.pop(), expected);
                }
                prop_assert_eq!((heap.len(), heap.next_at()), (model.len(), model.first().map(|first| first.0)));
            }
        }
    }
}
