//! The event queue: earliest first, and in order of scheduling at equal times.

use super::calendar::Calendar;
use midflight_endpoint::Nanos;

/// Events by time. They are small and copied; large data is stored elsewhere.
#[derive(Clone, Debug)]
pub struct Heap<E> {
    calendar: Calendar<E>,
    order: u64,
}

impl<E: Copy> Default for Heap<E> {
    fn default() -> Self {
        Self { calendar: Calendar::default(), order: 0 }
    }
}

impl<E: Copy> Heap<E> {
    /// Schedules `event` at `at`, after all that is scheduled at that time already.
    pub fn push(&mut self, at: Nanos, event: E) {
        self.order += 1;
        self.calendar.push(at, self.order, event);
    }

    /// When the next event is.
    #[must_use]
    pub fn next_at(&mut self) -> Option<Nanos> {
        self.calendar.next_at()
    }

    /// Takes the next event.
    pub fn pop(&mut self) -> Option<(Nanos, E)> {
        self.calendar.pop().map(|(at, _, event)| (at, event))
    }

    /// Takes the next event if it is not later than `latest`.
    #[inline]
    pub fn pop_until(&mut self, latest: Nanos) -> Option<(Nanos, E)> {
        self.calendar.pop_until(latest).map(|(at, _, event)| (at, event))
    }

    /// Number of scheduled events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.calendar.len()
    }

    /// Whether none is scheduled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calendar.is_empty()
    }

    /// Number of events ever scheduled.
    #[must_use]
    pub fn pushed(&self) -> u64 {
        self.order
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
        /// Against a sorted list, with times in the calendar's current slot, its other slots, and beyond.
        #[test]
        fn it_is_a_stable_queue(
            ops in prop::collection::vec((prop_oneof![0u64..50, 0u64..100_000, 0u64..1 << 40], any::<bool>()), 1..300)
        ) {
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
