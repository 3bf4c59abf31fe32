//! What time takes from the silent: ticks (T10, T14).

use super::super::rules::*;
use super::slots::Silence;
use super::{Ledger, Seen, given};
use crate::check::{Checked, holds};
use midflight_dataplane::{Out, Stats, TICK_SLOTS};
use midflight_endpoint::Nanos;

/// When ticks came.
#[derive(Debug)]
pub(super) struct Ticks {
    lease: Nanos,
    last: Option<Nanos>,
    /// Nothing expires before.
    expires: Nanos,
}

impl Ticks {
    pub(super) fn new(lease: Nanos) -> Self {
        Self { lease, last: None, expires: 0 }
    }

    /// Whether the switch stood still before this tick: it has not heard who spoke meanwhile, and waits for a lease.
    fn has_gap(&mut self, now: Nanos) -> bool {
        let before = self.last.replace(now);
        let gap = before.is_some_and(|before| now - before > self.lease / 3);
        if gap {
            self.expires = now + self.lease;
        }
        gap
    }
}

impl Ledger {
    /// A tick of the switch, which looked at so many slots.
    pub(super) fn tick(&mut self, now: Nanos, looked: u32, out: &Out, stats: &Stats) -> Checked<Seen> {
        holds!(T12, looked <= TICK_SLOTS, "a tick looked at {looked} slots");
        self.expected.gaps += u64::from(self.ticks.has_gap(now));
        let answers = self.answers(out)?;
        let mut given = given(&answers);
        if now >= self.ticks.expires {
            for slot in self.slots.in_tick_order() {
                match self.slots.expire(now, slot) {
                    Silence::Costs(task, holder) => {
                        self.expected.expired += 1;
                        self.seen.expired.push(holder);
                        self.requeue(now, task, &mut given)?;
                    }
                    Silence::Unparks(holder) => self.seen.unparked.push(holder),
                    Silence::IsNothing => {}
                }
            }
            self.give_up_clients(now);
        }
        holds!(T10, given.is_empty(), "a tick assigned {:?}, which no lease gave back", given[0].1);
        self.settle(now, stats)
    }

    /// T14: a silent client is forgotten, or loses what it has queued. A tick looks at 64 clients and at 256 records: no trial
    /// has more.
    fn give_up_clients(&mut self, now: Nanos) {
        let queue = &self.queue;
        self.clients.forget_silent(now, |identity| queue.has_of(identity));
        for client in self.clients.silent(now) {
            self.expected.dropped += self.queue.drop_of(client);
        }
    }
}
