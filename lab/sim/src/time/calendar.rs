//! A calendar queue (Brown 1988): what is due within two milliseconds lies in slots of a quarter of a microsecond, of which only
//! the present one is sorted; what is due later waits in a heap until its slot comes in sight.
//!
//! Most events of a simulated network are due within microseconds, so nearly all of them cost a link in a list and a share of a
//! short sort, whatever the number of those that are due later.

use midflight_endpoint::Nanos;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Nanoseconds of a slot, as a power of two.
const WIDTH_BITS: u32 = 8;
/// Slots in sight.
const SLOTS: usize = 8192;
/// The end of a list.
const NONE: u32 = u32::MAX;

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

/// The earliest is the greatest: the standard heap gives the greatest first, and a sorted slot is taken from its end.
impl<E> Ord for Scheduled<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<E> PartialOrd for Scheduled<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Scheduled<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Scheduled<E> {}

/// Events at their times, those of one time by an order that is given. They are small and copied: what is large lies elsewhere.
#[derive(Clone, Debug)]
pub struct Calendar<E> {
    /// The slot that is being taken, counted from time 0; what is due in it or before is in `present`, sorted.
    slot: u64,
    present: Vec<Scheduled<E>>,
    /// The slots after it: the first of each one's list.
    first: Box<[u32]>,
    /// Which of them have any, a bit each.
    some: Box<[u64]>,
    near: usize,
    /// The lists' links.
    links: Vec<(Scheduled<E>, u32)>,
    free: u32,
    /// What is due after all slots in sight.
    far: BinaryHeap<Scheduled<E>>,
}

impl<E: Copy> Default for Calendar<E> {
    fn default() -> Self {
        Self {
            slot: 0,
            present: Vec::new(),
            first: vec![NONE; SLOTS].into(),
            some: vec![0; SLOTS / 64].into(),
            near: 0,
            links: Vec::new(),
            free: NONE,
            far: BinaryHeap::new(),
        }
    }
}

impl<E: Copy> Calendar<E> {
    /// Schedules `event` at `at`; of those at one time, the one of the least `order` comes first.
    pub fn push(&mut self, at: Nanos, order: u64, event: E) {
        let scheduled = Scheduled { at, order, event };
        let slot = at >> WIDTH_BITS;
        if slot <= self.slot {
            let place = self.present.partition_point(|other| *other < scheduled);
            self.present.insert(place, scheduled);
        } else if slot < self.slot + SLOTS as u64 {
            self.link(slot, scheduled);
        } else {
            self.far.push(scheduled);
        }
    }

    /// When the next event is.
    pub fn next_at(&mut self) -> Option<Nanos> {
        if self.present.is_empty() {
            self.turn();
        }
        self.present.last().map(|next| next.at)
    }

    /// Takes the next event: its time, its order and what it is.
    pub fn pop(&mut self) -> Option<(Nanos, u64, E)> {
        self.pop_until(Nanos::MAX)
    }

    /// The same, if it is not later than `latest`.
    #[inline]
    pub fn pop_until(&mut self, latest: Nanos) -> Option<(Nanos, u64, E)> {
        if self.present.is_empty() {
            self.turn();
        }
        let next = self.present.pop_if(|next| next.at <= latest)?;
        Some((next.at, next.order, next.event))
    }

    /// How many events are scheduled.
    #[must_use]
    pub fn len(&self) -> usize {
        self.present.len() + self.near + self.far.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn link(&mut self, slot: u64, scheduled: Scheduled<E>) {
        let index = slot as usize % SLOTS;
        let link = (scheduled, self.first[index]);
        self.first[index] = self.free;
        if self.free == NONE {
            self.first[index] = self.links.len() as u32;
            self.links.push(link);
        } else {
            self.free = std::mem::replace(&mut self.links[self.free as usize], link).1;
        }
        self.some[index / 64] |= 1 << (index % 64);
        self.near += 1;
    }

    /// Turns to the next slot with an event: nothing is left of the present one.
    fn turn(&mut self) {
        self.slot = match self.far.peek() {
            _ if self.near > 0 => self.next_slot(),
            Some(next) => next.at >> WIDTH_BITS,
            None => return,
        };
        while let Some(next) = self.far.peek().filter(|next| next.at >> WIDTH_BITS < self.slot + SLOTS as u64) {
            let (scheduled, slot) = (*next, next.at >> WIDTH_BITS);
            self.far.pop();
            self.link(slot, scheduled);
        }
        let index = self.slot as usize % SLOTS;
        self.some[index / 64] &= !(1 << (index % 64));
        let mut at = std::mem::replace(&mut self.first[index], NONE);
        while at != NONE {
            let (scheduled, next) = &mut self.links[at as usize];
            self.present.push(*scheduled);
            self.near -= 1;
            let next = std::mem::replace(next, self.free);
            self.free = std::mem::replace(&mut at, next);
        }
        self.present.sort_unstable();
    }

    /// The first slot after the present one that has any. One has.
    fn next_slot(&self) -> u64 {
        let mut slot = self.slot + 1;
        loop {
            let index = slot as usize % SLOTS;
            let ahead = self.some[index / 64] >> (index % 64);
            if ahead != 0 {
                return slot + u64::from(ahead.trailing_zeros());
            }
            slot += 64 - index as u64 % 64;
        }
    }
}
