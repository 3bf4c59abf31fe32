//! Asking ahead, and its bounds. A task that was taken ahead runs on the worker of an ordinary slot, which waits for a task
//! meanwhile: it lends its worker. Both are short; where they are not, this is what keeps T6 (a *span* is a round trip, and at least
//! `ahead_span` of the configuration):
//!
//! - a task that has not started within two spans of its arrival goes back, whoever's it is;
//! - for each run that was taken ahead and lasts for longer than two spans, an ordinary slot takes back its wait, until
//!   that run has ended: no task is given to a slot without a worker.
//!
//! A run that waits for other tasks lends its worker, too: a spare slot is registered, and waits for a task with it. When the run goes
//! on, a wait is taken back, or the next slot that is done does not wait again.

use super::slots::{Kind, State};
use super::{Drain, Executor, RunKey};
use midflight_endpoint::Nanos;

impl Executor {
    /// Asks ahead for as many tasks as are wanted. Slots whose tasks are done and which are not to ask again tell that.
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
            // Each task that runs keeps its slot until it is done.
            let slots = wanted + self.slots.census.ahead(State::Running);
            self.slots.unregistered_ahead(slots).into_iter().for_each(|local| self.registrar.want(local));
        }
    }

    /// Lets tasks that are ready start, as far as workers are free.
    pub(super) fn start_ready(&mut self, now: Nanos) {
        self.slots.forget_lent();
        while let Some(run) = self.slots.start_ready(now) {
            self.run(run);
        }
    }

    /// How long a task that has not started, or a wait without a worker, stays.
    fn patience(&self) -> Nanos {
        2 * self.ahead.span(self.link.round_trip.smoothed())
    }

    /// When the next task or wait has stayed too long. A switch that is polled takes nothing back.
    pub(super) fn late_due(&self) -> Option<Nanos> {
        let since = self.slots.ready_since().into_iter().chain(self.slots.lent_since()).min()?;
        self.link.poll.is_none().then(|| since + self.patience())
    }

    /// Gives back what has not started in time, and notes which runs last for longer than expected.
    pub(super) fn give_back_late(&mut self, now: Nanos) {
        if self.late_due().is_none_or(|due| due > now) {
            return;
        }
        let since = now.saturating_sub(self.patience());
        self.slots.are_overdue(since);
        self.report.counters.given_back += self.slots.give_back_before(since);
    }

    /// A run waits for other tasks from now on: it lends its slot, so that those can run here. `false` if as many do as may, or it has
    /// ended.
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

    /// A run that waited for others goes on, at once. Until another run ends, one more may work than there are ordinary slots.
    pub fn go_on(&mut self, now: Nanos, run: RunKey) {
        if self.slots.set_waiting(run, false).is_some() {
            self.settle(now);
        }
    }

    /// Withdraws waits or parks further slots, until as many slots are parked as workers are free for them.
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
        // One that returns may wait again as soon as it has, with its bundles: another one in its place would lack them, and return, too.
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

    /// The next idle slot that may send a wait. Ordinary slots come before spares.
    fn next_resting(&self) -> Option<u32> {
        [Kind::Ordinary, Kind::Spare].into_iter().find_map(|kind| self.slots.one_in(kind, State::Resting, |_| true))
    }

    /// Whether a worker is free that no other slot waits with, and that no task is ready for.
    fn has_spare_worker(&self) -> bool {
        let census = &self.slots.census;
        let busy = census.working() + census.parkable(State::Waiting) + self.slots.ready();
        busy < self.slots.ordinary().end
    }

    /// When slots for asking ahead, and spares, that are not used are looked for.
    pub(super) fn unused_due(&self) -> Option<Nanos> {
        let is_held =
            self.drain == Drain::No && self.registered_ahead() + self.slots.census.registered(Kind::Spare) > 0;
        is_held.then(|| self.ahead.looked_for_unused + self.link.lease / 2)
    }

    /// Gives up each of them that has not asked for a lease: others may need the room, and the switch forgets it soon.
    pub(super) fn leave_unused(&mut self, now: Nanos) {
        if self.unused_due().is_some_and(|due| due <= now) {
            let before = now.saturating_sub(self.link.lease);
            self.slots.unused(before).into_iter().for_each(|local| self.slots.leave(local));
            self.ahead.looked_for_unused = now;
        }
    }
}
