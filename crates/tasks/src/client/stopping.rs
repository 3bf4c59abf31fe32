//! Attempts that executors are to stop: of tasks that the caller cancels, and those that took too long.
//!
//! The switch says which executor has an attempt, and only it knows whether that changes. So there is one timer: the client asks
//! the switch again, by CANCEL, and each answer that names an executor makes it send a STOP. `docs/internals/tasks.md`
//! ("Cancelling what runs") says what ends this.

use super::Client;
use super::in_flight::Cancellation;
use super::table::{Cancel, CountingMap, Name, State};
use crate::mutants::planted;
use midflight_endpoint::{Deadlines, Nanos};
use midflight_wire::{Builder, CANCEL_MAX, Stop};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// How often an executor is told to stop an attempt that no switch has any more.
const ALONE_MAX: u32 = 8;

/// An attempt to stop, and the executor that has it.
struct Attempt {
    key: u64,
    executor: SocketAddr,
    /// Of the switch that named the executor.
    epoch: u32,
    /// How often it was told to stop; since it is alone, if it is.
    tries: u32,
    /// When to go on; `Nanos::MAX` while a CANCEL awaits its answer.
    due: Nanos,
    /// No switch has it: nobody can be asked who has it.
    alone: bool,
}

/// What to do about an attempt that has not stopped in time.
pub(super) enum Next {
    /// Ask the switch who has it now.
    Ask(Cancellation),
    /// STOP is to be sent again, or it was sent often enough.
    Nothing,
}

/// The attempts that executors are to stop.
#[derive(Default)]
pub(super) struct Stopping {
    attempts: CountingMap<u64, Attempt>,
    deadlines: Deadlines,
    /// Those to be told now.
    ready: VecDeque<Name>,
}

/// A name as one number.
fn number(name: Name) -> u64 {
    u64::from(name.submission) << 8 | u64::from(name.index)
}

impl Stopping {
    pub(super) fn is_empty(&self) -> bool {
        self.attempts.is_empty()
    }

    pub(super) fn next_due(&self) -> Option<Nanos> {
        // Entries of attempts that have ended stay behind.
        self.deadlines.next().filter(|_| !self.attempts.is_empty())
    }

    /// This executor has the attempt: it is told at once, and the switch is asked again after `wait`, doubled with each time.
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

    /// Counts a STOP, and sets when to go on.
    fn wait(&mut self, now: Nanos, name: Name, (first, longest): (Nanos, Nanos)) {
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

    /// The next attempt that has not stopped in time.
    fn overdue(&mut self, now: Nanos, waits: (Nanos, Nanos)) -> Option<Next> {
        let (due, number) = self.deadlines.pop_due(now)?;
        let name = Name { submission: (number >> 8) as u32, index: number as u8 };
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

    /// The attempt has ended.
    pub(super) fn forget(&mut self, name: Name) {
        if !self.attempts.is_empty() {
            self.attempts.remove(&number(name));
        }
    }

    /// The switch no longer has this attempt. Its COMPLETE is on its way, or its lease ran out: if an executor was named
    /// before, it is told a few times more.
    pub(super) fn not_held(&mut self, now: Nanos, name: Name) {
        self.go_alone(now, number(name));
    }

    /// The switch has gone, and with it all that it knew.
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

    /// Those that one executor is told next.
    fn take_ready(&mut self) -> Option<(SocketAddr, u32, Vec<Name>)> {
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
    /// An executor has this task of a CANCEL: it is told to stop it, unless the caller only cancels what does not run.
    pub(super) fn held(&mut self, now: Nanos, it: Cancellation, executor: SocketAddr) {
        if self.is_to_stop(it) {
            let (epoch, waits) = (self.switches.epoch(), self.stop_waits());
            self.stopping.stop(now, it, executor, epoch, waits);
        } else if let Some(at) = self.table.by_key_and_name(it.key, it.name) {
            self.goes_on(at);
        }
    }

    /// Whether this attempt shall not run on: its task was cancelled, or it is not the task's present one.
    fn is_to_stop(&self, it: Cancellation) -> bool {
        let record = self.table.by_key_and_name(it.key, it.name).map(|at| self.table.get(at));
        record.is_none_or(|record| record.state != State::Open || record.cancel == Cancel::Stop)
    }

    fn stop_waits(&self) -> (Nanos, Nanos) {
        let twice = 2 * self.round_trip.smoothed().unwrap_or(self.config.rto_initial / 2);
        (twice.max(self.config.rto_min), self.config.stop_max)
    }

    /// Goes on with attempts that have not stopped in time.
    pub(super) fn stop_overdue(&mut self, now: Nanos) {
        let waits = self.stop_waits();
        while let Some(next) = self.stopping.overdue(now, waits) {
            if let Next::Ask(it) = next {
                if planted(35) && self.stopping.attempts.len() > 2 {
                    continue; // planted bug: with many to stop, nobody is asked again
                }
                self.cancellations.push_back(it);
            }
        }
    }

    /// Writes a STOP.
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
