//! Timers: retransmissions, silent switches, overdue completions, timeouts of attempts, probes.

use super::Client;
use super::in_flight::Cancellation;
use super::table::{Cancel, List, State};
use midflight_endpoint::Nanos;
use midflight_wire::tasks::PROBE_MAX;

impl Client {
    pub(super) fn is_watching(&self) -> bool {
        self.open() > 0 || !self.flights.is_empty() || !self.switches.is_settled() || self.is_asking
    }

    /// Call before a response becomes expected. If none was, silence counts from now.
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

    fn may_submit_then(&self) -> bool {
        let first = self.table.front(List::Returned).or(self.table.front(List::Fresh));
        let may_go = |at| self.table.get(at).appended.is_none() || self.switches.appends.is_some();
        first.is_some_and(may_go) && self.flights.may_submit() && !self.is_barred()
    }

    pub(super) fn watch_switch(&mut self, now: Nanos) {
        if !self.is_watching() || now < self.silent_at() {
            return;
        }
        // So late, this process was suspended, and responses may wait in the socket.
        if now >= self.silent_at() + self.config.switch_silence {
            self.switches.heard = now;
            return;
        }
        if self.switches.go_on(now) {
            self.ask_another(now);
        }
    }

    pub(super) fn ask_another(&mut self, now: Nanos) {
        self.counters.failovers += 1;
        self.round_trip.reset();
        self.flights.start_over(self.round_trip.timeout());
        self.probe.restart(now);
    }

    /// Submits tasks again whose completion was lost with their executor.
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

    fn too_long_at(&self) -> Option<Nanos> {
        let at = self.table.front(List::Open).filter(|_| self.switches.keeps_no_record)?;
        Some(self.table.get(at).checked_at.saturating_add(self.config.timeout))
    }

    /// The same at a switch that keeps no record.
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

    /// Decides whether to probe now, and about which tasks: those checked longest ago.
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
