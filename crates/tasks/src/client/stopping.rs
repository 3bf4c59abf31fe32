//! Attempts that executors must stop: of cancelled tasks, and those that timed out.
//!
//! Only the switch knows the executor of an attempt. So one timer suffices: the client asks by CANCEL, and sends a STOP to each
//! executor named. `docs/internals/tasks.md` ("Cancelling what runs") explains when this ends.

use super::Client;
use super::in_flight::Cancellation;
use super::table::{Cancel, CountingMap, State, SubmissionName};
use crate::mutants::planted;
use midflight_endpoint::{Deadlines, Nanos};
use midflight_wire::Builder;
use midflight_wire::tasks::{CANCEL_MAX, Stop};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Number of STOPs for an attempt that no switch has any more.
const ALONE_MAX: u32 = 8;

struct Attempt {
    key: u64,
    executor: SocketAddr,
    /// Epoch of the switch that named the executor.
    epoch: u32,
    /// STOPs sent; since the attempt became `alone`, if it did.
    tries: u32,
    /// Next step; `Nanos::MAX` while a CANCEL is outstanding.
    due: Nanos,
    /// No switch has the attempt, so none can name its executor.
    alone: bool,
}

pub(super) enum Next {
    /// Ask the switch for its executor.
    Ask(Cancellation),
    /// STOP was queued, or sent often enough.
    Nothing,
}

#[derive(Default)]
pub(super) struct Stopping {
    attempts: CountingMap<u64, Attempt>,
    deadlines: Deadlines,
    ready: VecDeque<SubmissionName>,
}

fn number(name: SubmissionName) -> u64 {
    u64::from(name.submission) << 8 | u64::from(name.index)
}

impl Stopping {
    pub(super) fn is_empty(&self) -> bool {
        self.attempts.is_empty()
    }

    pub(super) fn next_due(&self) -> Option<Nanos> {
        // Entries of attempts that have ended stay in the heap.
        self.deadlines.next().filter(|_| !self.attempts.is_empty())
    }

    /// This executor has the attempt: sends a STOP at once, and asks the switch again after `waits`.
    fn stop(&mut self, now: Nanos, it: Cancellation, executor: SocketAddr, epoch: u32, waits: (Nanos, Nanos)) {
        let attempt = self.attempts.entry(number(it.name)).or_insert(Attempt {
            key: it.key,
            executor,
            epoch,
            tries: 0,
            due: Nanos::MAX,
            alone: false,
        });
        (attempt.executor, attempt.epoch, attempt.alone) = (executor, epoch, false);
        self.ready.push_back(it.name);
        self.wait(now, it.name, waits);
    }

    fn wait(&mut self, now: Nanos, name: SubmissionName, (first, longest): (Nanos, Nanos)) {
        let Some(attempt) = self.attempts.get_mut(&number(name)) else { return };
        let due = now + first.saturating_mul(1 << attempt.tries.min(16)).min(longest);
        attempt.tries += 1;
        self.schedule(number(name), due);
    }

    fn schedule(&mut self, number: u64, due: Nanos) {
        if let Some(attempt) = self.attempts.get_mut(&number) {
            attempt.due = due;
        }
        let attempts = &self.attempts;
        self.deadlines.push(due, number, attempts.len(), |due, n| attempts.get(&n).is_some_and(|a| a.due == due));
    }

    fn overdue(&mut self, now: Nanos, waits: (Nanos, Nanos)) -> Option<Next> {
        let (due, number) = self.deadlines.pop_due(now)?;
        let name = SubmissionName { submission: (number >> 8) as u32, index: number as u8 };
        let Some(attempt) = self.attempts.get_mut(&number).filter(|attempt| attempt.due == due) else {
            return Some(Next::Nothing);
        };
        if !attempt.alone {
            attempt.due = Nanos::MAX;
            return Some(Next::Ask(Cancellation { key: attempt.key, name }));
        }
        if attempt.tries >= ALONE_MAX {
            self.attempts.remove(&number);
        } else {
            self.ready.push_back(name);
            self.wait(now, name, waits);
        }
        Some(Next::Nothing)
    }

    pub(super) fn forget(&mut self, name: SubmissionName) {
        if !self.attempts.is_empty() {
            self.attempts.remove(&number(name));
        }
    }

    /// The switch no longer has this attempt: it ended, or its lease expired. A known executor gets a few more STOPs.
    pub(super) fn not_held(&mut self, now: Nanos, name: SubmissionName) {
        self.go_alone(now, number(name));
    }

    pub(super) fn switch_gone(&mut self, now: Nanos) {
        let all: Vec<u64> = self.attempts.keys().copied().collect();
        all.into_iter().for_each(|number| self.go_alone(now, number));
    }

    fn go_alone(&mut self, now: Nanos, number: u64) {
        if let Some(attempt) = self.attempts.get_mut(&number).filter(|attempt| !attempt.alone) {
            (attempt.alone, attempt.tries) = (true, 0);
            self.schedule(number, now);
        }
    }

    fn take_ready(&mut self) -> Option<(SocketAddr, u32, Vec<SubmissionName>)> {
        let mut names = Vec::new();
        let mut to = None;
        while names.len() < CANCEL_MAX
            && let Some(&name) = self.ready.front()
        {
            if let Some(attempt) = self.attempts.get(&number(name)) {
                let here = (attempt.executor, attempt.epoch);
                if to.is_some_and(|to| to != here) {
                    break;
                }
                to = Some(here);
                names.push(name);
            }
            self.ready.pop_front();
        }
        to.map(|(executor, epoch)| (executor, epoch, names))
    }
}

impl Client {
    pub(super) fn held(&mut self, now: Nanos, it: Cancellation, executor: SocketAddr) {
        if self.is_to_stop(it) {
            let (epoch, waits) = (self.switches.epoch(), self.stop_waits());
            self.stopping.stop(now, it, executor, epoch, waits);
        } else if let Some(at) = self.table.by_key_and_name(it.key, it.name) {
            self.goes_on(at);
        }
    }

    /// Whether its task was cancelled, or a later attempt replaced it.
    fn is_to_stop(&self, it: Cancellation) -> bool {
        let record = self.table.by_key_and_name(it.key, it.name).map(|at| self.table.get(at));
        record.is_none_or(|record| record.state != State::Open || record.cancel == Cancel::Stop)
    }

    fn stop_waits(&self) -> (Nanos, Nanos) {
        let twice = 2 * self.round_trip.smoothed().unwrap_or(self.config.rto_initial / 2);
        (twice.max(self.config.rto_min), self.config.stop_max)
    }

    pub(super) fn stop_overdue(&mut self, now: Nanos) {
        let waits = self.stop_waits();
        while let Some(next) = self.stopping.overdue(now, waits) {
            if let Next::Ask(it) = next {
                if planted(35) && self.stopping.attempts.len() > 2 {
                    continue; // planted bug: with many attempts to stop, the switch is not asked again
                }
                self.cancellations.push_back(it);
            }
        }
    }

    pub(super) fn tell_executor(&mut self, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        let (executor, epoch, names) = self.stopping.take_ready()?;
        let mut packet = Builder::new(buffer, &Stop::new(epoch, 0));
        for name in names {
            packet.push(&self.tokens.of(name.submission).run_name(name.submission, name.index));
            self.counters.stops += 1;
        }
        Some(executor)
    }
}
