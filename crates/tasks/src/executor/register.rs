//! Registration. A REGISTER names consecutive slots under a new sequence; its repeats have the same one, so they change nothing.
//! A COOKIE makes it repeat at once.

use super::ExecutorConfig;
use super::link::Link;
use midflight_endpoint::Nanos;
use midflight_wire::Builder;
use midflight_wire::tasks::{Cookie, REGISTER_MAX, Reason, Register, Registered, SLOT_PLACES, SlotKind};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeSet;

/// Bound of REGISTERs in flight, so that a large executor does not flood a switch.
const REQUESTS_MAX: usize = 8;
/// First wait after a refusal.
const REFUSED_DELAY: Nanos = 100_000_000;

/// Whether a REGISTER is repeated early for a new cookie: at most once between two regular repeats, so a flood of COOKIEs at most
/// doubles the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extra {
    No,
    Wanted,
    Sent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) sequence: u32,
    first_sent: Nanos,
    tries: u32,
    due: Nanos,
    extra: Extra,
}

impl Request {
    fn new(now: Nanos, first: u32, count: u32, sequence: u32) -> Self {
        Self { first, count, sequence, first_sent: 0, tries: 0, due: now, extra: Extra::No }
    }

    /// Whether a response may answer it.
    fn is_asked(&self, sequence: u32) -> bool {
        self.sequence == sequence && self.tries > 0
    }

    /// Age if sent only once; otherwise the response is ambiguous.
    fn round_trip(&self, now: Nanos) -> Option<Nanos> {
        (self.tries == 1 && self.extra == Extra::No).then(|| now.saturating_sub(self.first_sent))
    }
}

#[derive(Debug)]
pub(super) struct Registrar {
    executor: u64,
    resources: u8,
    places: [u32; SLOT_PLACES],
    /// Local number of the first prefetch slot. A REGISTER names slots of one kind.
    first_ahead: u32,
    first_spare: u32,
    delay_min: Nanos,
    delay_max: Nanos,
    refused_max: Nanos,
    wanted: BTreeSet<u32>,
    requests: Vec<Request>,
    refused: Vec<u32>,
    refused_due: Option<Nanos>,
    refused_delay: Nanos,
    pub(super) refused_for: Option<Reason>,
    next_sequence: u32,
    random: Pcg64Mcg,
}

impl Registrar {
    pub(super) fn new(config: &ExecutorConfig, random: Pcg64Mcg) -> Self {
        Self {
            executor: config.identity,
            resources: config.resources & !config.counted(),
            places: config.places,
            first_ahead: config.slots,
            first_spare: config.slots + config.ahead,
            delay_min: config.repeat_min,
            delay_max: config.register_max,
            refused_max: config.slots_full_max,
            wanted: BTreeSet::new(),
            requests: Vec::new(),
            refused: Vec::new(),
            refused_due: None,
            refused_delay: REFUSED_DELAY.min(config.slots_full_max),
            refused_for: None,
            next_sequence: 1,
            random,
        }
    }

    /// Whether no REGISTER is in flight or needed. Refused slots may still wait.
    pub(super) fn is_quiet(&self) -> bool {
        self.requests.is_empty() && self.wanted.is_empty()
    }

    /// Whether ordinary slots ask for a name, which any live switch answers. Prefetch slots do not count: a switch with a
    /// suspended process does not answer them, yet serves the slots that it knows.
    pub(super) fn is_question(&self) -> bool {
        let is_ordinary = |&local: &u32| local < self.first_ahead;
        self.requests.iter().map(|request| &request.first).chain(self.wanted.first()).any(is_ordinary)
    }

    /// Whether a slot asks to be registered, or will after a refusal.
    pub(super) fn asks_for(&self, local: u32) -> bool {
        let is_in = |request: &Request| (request.first..request.first + request.count).contains(&local);
        self.wanted.contains(&local) || self.refused.contains(&local) || self.requests.iter().any(is_in)
    }

    /// Number of such spares.
    pub(super) fn spares(&self) -> u32 {
        let is_spare = |local: u32| local >= self.first_spare;
        let asked = self.requests.iter().filter(|request| is_spare(request.first)).map(|request| request.count);
        let wanted = self.wanted.range(self.first_spare..).count();
        let refused = self.refused.iter().filter(|&&local| is_spare(local)).count();
        asked.sum::<u32>() + (wanted + refused) as u32
    }

    pub(super) fn want(&mut self, local: u32) {
        self.wanted.insert(local);
    }

    /// Drops everything: the switch changed, or the executor drains.
    pub(super) fn clear(&mut self) {
        self.wanted.clear();
        self.requests.clear();
        self.refused.clear();
        self.refused_due = None;
    }

    /// Removes the request that this answers; with its round trip, if unambiguous. Ignores responses to an earlier process at
    /// this address.
    pub(super) fn answered(&mut self, now: Nanos, answer: &Registered) -> Option<(Request, Option<Nanos>)> {
        if answer.executor.get() != self.executor {
            return None;
        }
        let (first, sequence) = (answer.first.get(), answer.header.sequence.get());
        let index = self.requests.iter().position(|r| r.first == first && r.is_asked(sequence))?;
        let request = self.requests.swap_remove(index);
        Some((request, request.round_trip(now)))
    }

    /// Whether this COOKIE answers a request; with the round trip, if unambiguous.
    pub(super) fn is_refused(&self, now: Nanos, answer: &Cookie) -> Option<Option<Nanos>> {
        let is_ours = answer.identity.get() == self.executor;
        let request = self.requests.iter().find(|r| is_ours && r.is_asked(answer.header.sequence.get()))?;
        Some(request.round_trip(now))
    }

    pub(super) fn ask_again(&mut self) {
        for request in self.requests.iter_mut().filter(|r| r.tries > 0 && r.extra == Extra::No) {
            request.extra = Extra::Wanted;
        }
    }

    pub(super) fn satisfied(&mut self, local: u32) {
        self.wanted.remove(&local);
        self.refused_delay = REFUSED_DELAY.min(self.refused_max);
    }

    /// The switch refused an ordinary slot, which asks again later.
    pub(super) fn refused(&mut self, local: u32, reason: Option<Reason>) {
        self.wanted.remove(&local);
        self.refused.push(local);
        self.refused_for = reason;
    }

    /// Schedules the next attempt of refused slots. Returns whether some were not scheduled yet.
    pub(super) fn back_off(&mut self, now: Nanos) -> bool {
        if self.refused.is_empty() || self.refused_due.is_some() {
            return false;
        }
        self.refused_due = Some(now + self.refused_delay + self.random.random_range(0..=self.refused_delay / 4));
        self.refused_delay = (2 * self.refused_delay).min(self.refused_max);
        true
    }

    pub(super) fn next_timeout(&self) -> Option<Nanos> {
        self.requests.iter().map(|request| request.due).chain(self.refused_due).min()
    }

    pub(super) fn handle_timeout(&mut self, now: Nanos) {
        if self.refused_due.is_some_and(|due| due <= now) {
            self.ask_refused();
        }
    }

    /// Refused slots ask again: their time has come, or the switch changed.
    pub(super) fn ask_refused(&mut self) {
        self.refused_due = None;
        self.wanted.extend(self.refused.drain(..));
    }

    pub(super) fn poll_transmit(&mut self, now: Nanos, link: &Link, buffer: &mut Vec<u8>) -> bool {
        self.ask(now);
        let is_due = |request: &&mut Request| request.due <= now || request.extra == Extra::Wanted;
        let Some(request) = self.requests.iter_mut().find(is_due) else { return false };
        if request.due <= now {
            if request.tries == 0 {
                request.first_sent = now;
            }
            let delay = (link.round_trip.twice(self.delay_min) << request.tries.min(15)).min(self.delay_max);
            request.due = now + delay + self.random.random_range(0..=delay / 4);
            request.tries = request.tries.saturating_add(1);
            request.extra = Extra::No;
        } else {
            request.extra = Extra::Sent;
        }
        let is_ahead = (self.first_ahead..self.first_spare).contains(&request.first);
        let kind = if is_ahead { SlotKind::Ahead } else { SlotKind::Ordinary };
        // With epoch 0, so that any switch may answer.
        let fixed = Register {
            executor: self.executor.into(),
            cookie: link.cookie.into(),
            first: request.first.into(),
            resources: self.resources,
            kind: kind.into(),
            counter: ((link.next_counter() >> 16) as u16).into(),
            places: self.places.map(Into::into),
            ..Register::new(0, request.sequence)
        };
        Builder::new(buffer, &fixed).set_count(request.count as u8);
        true
    }

    fn ask(&mut self, now: Nanos) {
        while self.requests.len() < REQUESTS_MAX
            && let Some(first) = self.wanted.pop_first()
        {
            let mut count = 1;
            while (count as usize) < REGISTER_MAX
                && first + count != self.first_ahead
                && first + count != self.first_spare
                && self.wanted.remove(&(first + count))
            {
                count += 1;
            }
            let sequence = self.next_sequence;
            self.next_sequence = self.next_sequence.wrapping_add(1).max(1);
            self.requests.push(Request::new(now, first, count, sequence));
        }
    }
}
