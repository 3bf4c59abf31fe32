//! Timers: retransmissions, a silent switch, overdue completions, attempts that time out, probes.

use super::Client;
use super::in_flight::Cancellation;
use super::table::{Cancel, List, State};
use midflight_endpoint::Nanos;
use midflight_wire::PROBE_MAX;

impl Client {
    /// Whether an answer of the switch is expected.
    pub(super) fn is_watching(&self) -> bool {
        self.open() > 0 || !self.flights.is_empty() || !self.switches.is_settled() || self.is_asking
    }

    /// An answer of the switch is now expected. If none was before, its silence counts from now.
    pub(super) fn begin_to_watch(&mut self, now: Nanos) {
        if !self.is_watching() {
            self.switches.expect(now);
            self.probe.restart(now + self.config.probe_interval);
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Nanos> {
        let watching = self.is_watching().then(|| self.probe.due.min(self.silent_at()));
        let held = self.may_submit_then().then(|| self.backoff.until());
        let overdue = self.gone.front().map(|(due, _)| *due).into_iter().chain(self.too_long_at());
        let failback = self.switches.failback_due().filter(|_| self.is_watching());
        let others =
            [self.flights.next_due(), watching, held, failback, self.deadlines.next(), self.stopping.next_due()];
        others.into_iter().flatten().chain(overdue).min()
    }

    fn silent_at(&self) -> Nanos {
        self.switches.heard + self.config.switch_silence
    }

    /// Whether tasks wait only for a back-off to end.
    fn may_submit_then(&self) -> bool {
        let waiting = self.table.front(List::Returned).or(self.table.front(List::Fresh)).is_some();
        waiting && self.flights.may_submit() && !self.is_barred()
    }

    /// Leaves a silent switch for the next one of the list.
    pub(super) fn watch_switch(&mut self, now: Nanos) {
        if !self.is_watching() || now < self.silent_at() {
            return;
        }
        // If the timer fires this late, this process stood still, and answers of the switch may wait to be read.
        if now >= self.silent_at() + self.config.switch_silence {
            self.switches.heard = now;
            return;
        }
        if self.switches.go_on(now) {
            self.ask_another(now);
        }
    }

    /// Uses another switch from now on.
    pub(super) fn ask_another(&mut self, now: Nanos) {
        self.counters.failovers += 1;
        self.round_trip.reset();
        self.flights.start_over(self.round_trip.timeout());
        self.probe.restart(now);
    }

    /// Submits tasks again whose completion did not come in time: it was lost with its executor.
    pub(super) fn resubmit_overdue(&mut self, now: Nanos) {
        while let Some(&(due, Cancellation { key, name })) = self.gone.front()
            && due <= now
        {
            self.gone.pop_front();
            let Some(at) = self.table.by_key_and_name(key, name) else { continue };
            let record = self.table.get_mut(at);
            if record.state == State::Open && record.gone {
                self.counters.gone += u64::from(record.cancel == Cancel::No);
                self.attempt_lost(now, at);
            }
        }
    }

    /// When the next task times out at a switch that keeps no record of tasks.
    fn too_long_at(&self) -> Option<Nanos> {
        let at = self.table.front(List::Open).filter(|_| self.switches.keeps_no_record)?;
        Some(self.table.get(at).checked_at.saturating_add(self.config.timeout))
    }

    /// Submits tasks again that have taken too long at a switch without records: it cannot say whether it lost them.
    pub(super) fn resubmit_too_long(&mut self, now: Nanos) {
        while self.too_long_at().is_some_and(|due| due <= now)
            && let Some(at) = self.table.front(List::Open)
        {
            let record = self.table.get_mut(at);
            if let Some(patience) = record.patience.checked_sub(1) {
                (record.patience, record.checked_at) = (patience, now);
                self.table.append(at, List::Open);
            } else {
                self.counters.gone += 1;
                self.attempt_lost(now, at);
            }
        }
    }

    /// Ends attempts that have taken longer than their tasks allow.
    pub(super) fn end_late_attempts(&mut self, now: Nanos) {
        while let Some((deadline, key)) = self.deadlines.pop_due(now) {
            if let Some(at) = self.table.by_key(key)
                && self.table.get(at).deadline == deadline
                && self.table.get(at).state != State::Fetching
            {
                self.time_out(now, at);
            }
        }
    }

    /// Decides whether to probe the switch now, and about which tasks: those whose last check was longest ago.
    pub(super) fn schedule_probe(&mut self, now: Nanos) {
        if !self.is_watching() || now < self.probe.due || self.probe.ready {
            return;
        }
        if self.probe.awaits_answer() {
            self.probe.ready = true;
            return;
        }
        self.probe.due = now + self.config.probe_interval;
        self.probe.tasks.clear();
        while !self.switches.keeps_no_record
            && self.probe.tasks.len() < PROBE_MAX
            && let Some(at) = self.table.front(List::Open)
            && self.table.get(at).checked_at + self.config.probe_interval <= now
        {
            self.table.append(at, List::Open);
            let record = self.table.get_mut(at);
            record.checked_at = now;
            let key = record.key;
            if !record.gone {
                self.probe.tasks.extend(record.name().map(|name| Cancellation { key, name }));
            }
        }
        let heard_lately = now < self.switches.heard + self.config.probe_interval;
        let is_certain = self.switches.is_settled() && !self.switches.keeps_no_record;
        self.probe.ready = !self.probe.tasks.is_empty() || !heard_lately || !is_certain || self.is_asking;
    }
}
