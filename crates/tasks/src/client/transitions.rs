//! The state transitions of a task.

use super::in_flight::{Cancellation, Request};
use super::table::{Cancel, List, State};
use super::{CancelledHow, Client, Event, LostWhy};
use midflight_endpoint::Nanos;

/// Bound of the doublings of the timeout at a switch that keeps no record.
const DOUBLINGS: u8 = 6;

impl Client {
    pub(super) fn start_clock(&mut self, now: Nanos, at: u32) {
        let record = self.table.get_mut(at);
        if record.timeout == Nanos::MAX {
            return;
        }
        record.deadline = now.saturating_add(record.timeout);
        let (deadline, key) = (record.deadline, record.key);
        let table = &self.table;
        self.deadlines.push(deadline, key, table.len(), |deadline, key| {
            table.by_key(key).is_some_and(|at| table.get(at).deadline == deadline)
        });
    }

    pub(super) fn taken(&mut self, now: Nanos, at: u32) {
        self.table.append(at, List::Open);
        let record = self.table.get_mut(at);
        record.state = State::Open;
        record.checked_at = now;
        record.patience = (1 << record.info.attempt.min(DOUBLINGS)) - 1;
        if record.cancel != Cancel::No {
            let key = record.key;
            self.cancellations.extend(record.name().map(|name| Cancellation { key, name }));
        }
    }

    /// Queues the task for submission, or ends it if it was cancelled.
    pub(super) fn submit_again(&mut self, at: u32) {
        let record = self.table.get_mut(at);
        record.state = State::Waiting;
        record.gone = false;
        record.resumed = false;
        if record.cancel != Cancel::No {
            self.end_cancelled(at);
        } else {
            self.table.append(at, List::Returned);
        }
    }

    /// The attempt was lost with its executor. One of an earlier process may have ended while none was running, so it counts as
    /// failed.
    pub(super) fn attempt_lost(&mut self, now: Nanos, at: u32) {
        let record = self.table.get_mut(at);
        if record.resumed && record.cancel == Cancel::No {
            if !record.retry_failed {
                record.attempts_left = 0;
            }
            return self.retry_or_lose(now, at, 0, LostWhy::Forgotten);
        }
        record.info.attempt = record.info.attempt.saturating_add(1);
        self.submit_again(at);
    }

    /// An attempt ended without a final result. `attempt` is its number, or 0.
    pub(super) fn retry_or_lose(&mut self, now: Nanos, at: u32, attempt: u8, why: LostWhy) {
        let record = self.table.get_mut(at);
        let Some(left) = record.attempts_left.checked_sub(1) else {
            let key = record.key();
            self.events.push_back(Event::Lost { key, why });
            self.counters.lost += 1;
            self.table.remove(at);
            return;
        };
        record.attempts_left = left;
        record.info.attempt = record.info.attempt.saturating_add(1).max(attempt);
        self.counters.retried += 1;
        self.start_clock(now, at);
        self.submit_again(at);
    }

    /// Ends a cancelled task that no switch and no executor has.
    pub(super) fn end_cancelled(&mut self, at: u32) {
        // A task with a name was at a switch that lost it.
        let was_submitted = self.table.get(at).name().is_some();
        self.cancelled(at, if was_submitted { CancelledHow::Vanished } else { CancelledHow::TakenOut });
    }

    /// Reports that a cancelled task keeps running.
    pub(super) fn goes_on(&mut self, at: u32) {
        let record = self.table.get(at);
        if record.state == State::Open && record.cancel != Cancel::No {
            let key = record.key();
            self.events.push_back(Event::NotCancelled { key });
        }
    }

    pub(super) fn cancelled(&mut self, at: u32, how: CancelledHow) {
        let key = self.table.get(at).key();
        self.events.push_back(Event::Cancelled { key, how });
        self.counters.cancelled += 1;
        self.table.remove(at);
    }

    /// Cancels the attempt at the switch, whether or not another one follows.
    pub(super) fn time_out(&mut self, now: Nanos, at: u32) {
        let record = self.table.get(at);
        let cancellation = record.name().map(|name| Cancellation { key: record.key, name });
        match (record.state, cancellation) {
            (State::Open, Some(it)) if record.cancel != Cancel::Stop => self.cancellations.push_back(it),
            (State::Sent, Some(it)) => {
                if let Some(flight) = self.flights.get_mut(it.name.submission)
                    && let Request::Submit { unwanted, .. } = &mut flight.request
                {
                    unwanted.push(it);
                }
            }
            _ => {}
        }
        self.retry_or_lose(now, at, 0, LostWhy::TimedOut);
    }

    /// Another switch answers, or it restarted. Submits the accepted tasks again (T9). Packets in flight keep their sequences, by
    /// which the new switch detects repeats (T8).
    pub(super) fn change_switch(&mut self, now: Nanos, epoch: u32) {
        let was_another = self.switches.settle(epoch);
        let mut resubmitted = 0;
        let resumed = self.keep_resumed();
        while let Some(at) = self.table.front(List::Open) {
            let record = self.table.get_mut(at);
            record.info.attempt = record.info.attempt.saturating_add(1);
            resubmitted += usize::from(record.cancel == Cancel::No);
            self.submit_again(at);
        }
        self.counters.resubmitted += resubmitted as u64;
        resumed.into_iter().for_each(|at| self.table.append(at, List::Open));
        for sequence in self.flights.cancels() {
            self.flights.take(sequence);
        }
        self.cancellations.clear();
        self.stopping.switch_gone(now);
        self.gone.clear();
        self.backoff.reset();
        self.probe.restart(now + self.config.probe_interval);
        if was_another {
            self.flights.start_over(self.round_trip.timeout());
        }
        self.events.push_back(Event::SwitchChanged { switch: self.switches.address(), epoch, resubmitted });
    }
}
