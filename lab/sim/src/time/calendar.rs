//! A calendar queue (Brown 1988). Events due within two milliseconds are in slots of a quarter of a microsecond, of
//! which only the current one is sorted; later ones wait in a heap.
//!
//! Most events of a simulated network are due within microseconds, so nearly all cost a list link and a share of a
//! short sort, however many later ones wait.

use midflight_endpoint::Nanos;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Width of a slot in nanoseconds, as a power of two.
const WIDTH_BITS: u32 = 8;
const SLOTS: usize = 8192;
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

/// Reversed: the standard heap returns the greatest first, and a sorted slot is read from its end.
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

/// Events by time, and at equal times by a given order. They are small and copied; large data is stored elsewhere.
#[derive(Clone, Debug)]
pub struct Calendar<E> {
    /// The current slot, counted from time 0; `present` has what is due up to its end, sorted.
    slot: u64,
    present: Vec<Scheduled<E>>,
    first: Box<[u32]>,
    /// Which slots are not empty, a bit each.
    some: Box<[u64]>,
    near: usize,
    links: Vec<(Scheduled<E>, u32)>,
    free: u32,
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
    /// Schedules `event` at `at`; at equal times, the lowest `order` comes first.
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

    /// Takes the next event: time, order, event.
    pub fn pop(&mut self) -> Option<(Nanos, u64, E)> {
        self.pop_until(Nanos::MAX)
    }

    /// Takes the next event if it is not later than `latest`.
    #[inline]
    pub fn pop_until(&mut self, latest: Nanos) -> Option<(Nanos, u64, E)> {
        if self.present.is_empty() {
            self.turn();
        }
        let next = self.present.pop_if(|next| next.at <= latest)?;
        Some((next.at, next.order, next.event))
    }

    /// Number of scheduled events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.present.len() + self.near + self.far.len()
    }

    /// Whether none is scheduled.
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

    /// Advances to the next slot with an event, after the current one is empty.
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

    /// The first later slot with an event; there must be one.
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
