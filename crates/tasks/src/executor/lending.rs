//! Prefetch and its bounds. A prefetched task runs on the worker of an ordinary slot while that slot waits for a task. Both are
//! short; otherwise these rules keep T6 (a *span* is a round trip, and at least `ahead_span` of the configuration):
//!
//! - a task not started within two spans of its arrival is returned;
//! - for each prefetched run that lasts longer, an ordinary slot withdraws its wait until the run ends, so that no slot without a
//!   worker gets a task.
//!
//! A run that waits for other tasks also lends its worker, to a spare slot. When the run continues, a wait is withdrawn, or the
//! next slot that finishes does not wait again.

use super::slots::{Kind, State};
use super::{Drain, Executor, RunKey};
use midflight_endpoint::Nanos;

impl Executor {
    /// Prefetches as many tasks as wanted. Slots that finished and do not ask again report that.
    pub(super) fn ask_ahead(&mut self, now: Nanos) {
        let round_trip = self.link.round_trip.smoothed();
        let may = self.drain == Drain::No && self.link.poll.is_none();
        let wanted = if may { self.ahead.wanted(round_trip) } else { 0 };
        let census = &self.slots.census;
        let mut more = wanted.saturating_sub(census.ahead(State::Waiting) + self.slots.ready());
        while more > 0
            && let Some(local) = self.slots.next_idle()
        {
            self.slots.wait(local);
            more -= 1;
        }
        while let Some(local) = self.slots.next_untold() {
            self.slots.tell_done(local);
        }
        if more > 0 && self.registrar.is_quiet() && self.ahead.may_register(now) {
            // Each running task keeps its slot.
            let slots = wanted + self.slots.census.ahead(State::Running);
            self.slots.unregistered_ahead(slots).into_iter().for_each(|local| self.registrar.want(local));
        }
    }

    pub(super) fn start_ready(&mut self, now: Nanos) {
        self.slots.forget_lent();
        while let Some(run) = self.slots.start_ready(now) {
            self.run(run);
        }
    }

    /// Longest time for a task that has not started, or a wait without a worker.
    fn patience(&self) -> Nanos {
        2 * self.ahead.span(self.link.round_trip.smoothed())
    }

    /// When the next task that has not started, or wait without a worker, must be returned; `None` while slots poll: such a switch
    /// accepts no returns.
    pub(super) fn next_return_due(&self) -> Option<Nanos> {
        let since = self.slots.ready_since().into_iter().chain(self.slots.lent_since()).min()?;
        self.link.poll.is_none().then(|| since + self.patience())
    }

    /// Returns tasks that did not start in time, and notes overdue runs.
    pub(super) fn give_back_late(&mut self, now: Nanos) {
        if self.next_return_due().is_none_or(|due| due > now) {
            return;
        }
        let since = now.saturating_sub(self.patience());
        self.slots.are_overdue(since);
        self.report.counters.given_back += self.slots.give_back_before(since);
    }

    /// A run starts to wait for other tasks and lends its slot to them. `false` if the bound is reached or the run has ended.
    pub fn wait_for_others(&mut self, now: Nanos, run: RunKey) -> bool {
        let has_room = self.slots.census.waiting_runs < self.slots.spares().len() as u32;
        let lends = has_room && self.slots.set_waiting(run, true).is_some();
        self.report.counters.waits_refused += u64::from(!has_room);
        self.report.counters.waits_for_others += u64::from(lends);
        if lends {
            self.start_ready(now);
            self.settle(now);
        }
        lends
    }

    /// A waiting run continues at once. Until another run ends, one run too many may work.
    pub fn go_on(&mut self, now: Nanos, run: RunKey) {
        if self.slots.set_waiting(run, false).is_some() {
            self.settle(now);
        }
    }

    /// Withdraws waits or parks more slots until the parked slots match the free workers.
    pub(super) fn lend(&mut self) {
        if self.drain != Drain::No {
            return;
        }
        for kind in [Kind::Spare, Kind::Ordinary] {
            while self.slots.census.has_surplus(kind)
                && self.link.poll.is_none()
                && let Some(local) = self.slots.one_in(kind, State::Waiting, |_| true)
            {
                self.slots.give_back(local);
            }
        }
        // A returning slot may wait again with its bundles; another in its place would lack them and return too.
        while self.slots.census.surplus() + i64::from(self.slots.census.parkable(State::Returning)) < 0
            && self.has_spare_worker()
            && let Some(local) = self.next_resting()
        {
            self.slots.wait(local);
        }
        while self.slots.census.waiting_runs > self.slots.census.registered(Kind::Spare) + self.registrar.spares()
            && let Some(local) =
                self.slots.one_in(Kind::Spare, State::Unregistered, |local| !self.registrar.asks_for(local))
        {
            self.registrar.want(local);
        }
    }

    /// The next idle slot that may wait, ordinary ones first.
    fn next_resting(&self) -> Option<u32> {
        [Kind::Ordinary, Kind::Spare].into_iter().find_map(|kind| self.slots.one_in(kind, State::Idle, |_| true))
    }

    /// Whether a worker is free without a waiting slot or a ready task.
    fn has_spare_worker(&self) -> bool {
        let census = &self.slots.census;
        let busy = census.working() + census.parkable(State::Waiting) + self.slots.ready();
        busy < self.slots.ordinary().end
    }

    pub(super) fn unused_due(&self) -> Option<Nanos> {
        let is_held =
            self.drain == Drain::No && self.registered_ahead() + self.slots.census.registered(Kind::Spare) > 0;
        is_held.then(|| self.ahead.looked_for_unused + self.link.lease / 2)
    }

    /// Others may need the room, and the switch drops unused slots soon anyway.
    pub(super) fn leave_unused(&mut self, now: Nanos) {
        if self.unused_due().is_some_and(|due| due <= now) {
            let before = now.saturating_sub(self.link.lease);
            self.slots.unused(before).into_iter().for_each(|local| self.slots.leave(local));
            self.ahead.looked_for_unused = now;
        }
    }
}
