//! Repeat timers with exponential back-off for numbered items. Items at one step wait equally long, so each step has a list in
//! order of due times: all operations take constant time, and parked slots cost nothing. Polling slots share one interval and
//! have a list of their own.

use midflight_endpoint::Nanos;

/// Number of steps with a list; the last list holds all later steps.
const STEPS: usize = 16;
/// List of polling items; the steps' lists follow.
const POLLS: usize = 0;
const LISTS: usize = 1 + STEPS;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    due: Nanos,
    previous: u32,
    next: u32,
    list: Option<u8>,
}

const IDLE: Entry = Entry { due: 0, previous: NONE, next: NONE, list: None };

#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

#[derive(Debug)]
pub(super) struct Timers {
    entries: Vec<Entry>,
    lists: [List; LISTS],
}

impl Timers {
    pub(super) fn new() -> Self {
        Self { entries: Vec::new(), lists: [List { head: NONE, tail: NONE }; LISTS] }
    }

    /// Arms `item` for `base` doubled `step` times, at most `max`. Later steps are rounded down to an eighth of the interval, so
    /// that items share packets.
    pub(super) fn arm(&mut self, item: u32, now: Nanos, step: u8, base: Nanos, max: Nanos) {
        let step = step.min(STEPS as u8 - 1);
        let delay = (base << step).min(max);
        let mut due = now + delay;
        if step > 0 {
            due -= due % (delay / 8).max(1);
        }
        self.append(item, 1 + step, due);
    }

    /// All items have the same `every` unless the switch changes it.
    pub(super) fn arm_poll(&mut self, item: u32, now: Nanos, every: Nanos) {
        self.append(item, POLLS as u8, now + every);
    }

    fn append(&mut self, item: u32, number: u8, mut due: Nanos) {
        self.disarm(item);
        let index = item as usize;
        if index >= self.entries.len() {
            self.entries.resize(index + 1, IDLE);
        }
        let list = &mut self.lists[usize::from(number)];
        let previous = list.tail;
        list.tail = item;
        if previous == NONE {
            list.head = item;
        } else {
            let before = &mut self.entries[previous as usize];
            before.next = item;
            due = due.max(before.due); // the interval may have become shorter
        }
        self.entries[index] = Entry { due, previous, next: NONE, list: Some(number) };
    }

    pub(super) fn disarm(&mut self, item: u32) {
        let Some(entry) = self.entries.get_mut(item as usize) else { return };
        let Entry { previous, next, list: Some(list), .. } = *entry else { return };
        *entry = IDLE;
        match self.entries.get_mut(previous as usize) {
            Some(before) => before.next = next,
            None => self.lists[usize::from(list)].head = next,
        }
        match self.entries.get_mut(next as usize) {
            Some(after) => after.previous = previous,
            None => self.lists[usize::from(list)].tail = previous,
        }
    }

    pub(super) fn next(&self) -> Option<Nanos> {
        self.heads().map(|head| self.entries[head as usize].due).min()
    }

    pub(super) fn pop(&mut self, now: Nanos) -> Option<u32> {
        let due = self.heads().find(|&head| self.entries[head as usize].due <= now)?;
        self.disarm(due);
        Some(due)
    }

    pub(super) fn pop_furthest(&mut self) -> Option<u32> {
        let furthest = self.heads().last()?;
        self.disarm(furthest);
        Some(furthest)
    }

    fn heads(&self) -> impl Iterator<Item = u32> + '_ {
        self.lists.iter().map(|list| list.head).filter(|&head| head != NONE)
    }
}

/// A smoothed round trip. The sample of a repeated request counts from its first transmission: after a loss the estimate is too
/// large for a while, which costs no packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    smoothed: Nanos,
    measured: bool,
}

impl RoundTrip {
    /// Bound of a sample; longer ones show a failure, not the path.
    const SAMPLE_MAX: Nanos = 250_000_000;

    pub(super) fn assumed(round_trip: Nanos) -> Self {
        Self { smoothed: round_trip, measured: false }
    }

    pub(super) fn sample(&mut self, round_trip: Nanos) {
        let round_trip = round_trip.min(Self::SAMPLE_MAX);
        self.smoothed = if self.measured { (7 * self.smoothed + round_trip) / 8 } else { round_trip };
        self.measured = true;
    }

    pub(super) fn smoothed(&self) -> Nanos {
        self.smoothed
    }

    /// The repeat interval: twice the round trip, at least `min`.
    pub(super) fn twice(&self, min: Nanos) -> Nanos {
        (2 * self.smoothed).max(min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_repeat_comes_after_twice_the_round_trip() {
        let mut round_trip = RoundTrip::assumed(10_000);
        assert_eq!(round_trip.twice(1_000), 20_000);
        round_trip.sample(3_000);
        assert_eq!(round_trip.twice(1_000), 6_000, "the first sample replaces the assumption");
        assert_eq!(round_trip.twice(9_000), 9_000);
    }

    #[test]
    fn items_that_back_off_together_become_due_together() {
        let mut timers = Timers::new();
        for item in 0..100 {
            timers.arm(item, 1_000_000 + u64::from(item) * 100, 6, 1_000_000, 64_000_000);
        }
        let due = timers.next().unwrap();
        let together = std::iter::from_fn(|| timers.pop(due)).count();
        assert!(together >= 90, "{together} of 100");
    }

    proptest! {
        /// The same items are due at the same times as in a map, except that a list keeps its order.
        #[test]
        fn timers_match_a_map(ops in prop::collection::vec((0u32..20, 0u8..7, 0u64..3_000, any::<bool>()), 1..200)) {
            let (mut timers, mut model, mut now) = (Timers::new(), BTreeMap::new(), 0);
            for (item, step, wait, arm) in ops {
                now += wait;
                if arm && step == 6 {
                    timers.arm_poll(item, now, 150);
                    model.insert(item, now + 150);
                } else if arm {
                    timers.arm(item, now, step, 100, 2_000);
                    model.insert(item, now + (100 << step).min(2_000));
                } else {
                    timers.disarm(item);
                    model.remove(&item);
                }
                while let Some(item) = timers.pop(now) {
                    let due: Nanos = model.remove(&item).expect("armed in the model");
                    prop_assert!(due - due / 8 <= now + 250, "{item} due {due} popped at {now}");
                }
                prop_assert!(model.values().all(|&due| due > now), "nothing due stays");
                prop_assert_eq!(timers.next().is_some(), !model.is_empty());
            }
        }
    }
}
