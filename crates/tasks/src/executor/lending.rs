//! Asking ahead, and its bounds. A task that was taken ahead runs on the worker of an ordinary slot, which waits for a task
//! meanwhile: it lends its worker. Both are short; where they are not, this is what keeps T6 (a *span* is a round trip, and at least
//! `ahead_span` of the configuration):
//!
//! - a task that has not started within two spans of its arrival goes back, whoever's it is;
//! - for each run that was taken ahead and lasts for longer than two spans, an ordinary slot takes back its wait, until
//!   that run has ended: no task is given to a slot without a worker.

use super::slots::State;
use super::{Drain, Executor};
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

    /// Whether more runs that were taken ahead last for long than ordinary slots have taken back their waits for them.
    pub(super) fn is_lent_for_long(&self) -> bool {
        let census = &self.slots.census;
        census.overdue > census.ordinary(State::Resting) + census.ordinary(State::Returning)
    }

    /// Takes back waits, or lets slots wait again, so that no ordinary slot waits whose worker is lent for long.
    pub(super) fn lend(&mut self) {
        if self.drain != Drain::No {
            return;
        }
        while self.is_lent_for_long()
            && let Some(local) = self.slots.ordinary_in(State::Waiting)
        {
            self.slots.give_back(local);
        }
        while self.has_spare_worker()
            && let Some(local) = self.slots.ordinary_in(State::Resting)
        {
            self.slots.wait(local);
        }
    }

    /// Whether a worker is free that no other slot waits with, and that no task is ready for.
    fn has_spare_worker(&self) -> bool {
        let census = &self.slots.census;
        let resting = census.ordinary(State::Resting);
        let busy = census.all(State::Running) + census.ordinary(State::Waiting) + self.slots.ready();
        resting > 0 && resting + census.ordinary(State::Returning) > census.overdue && busy < self.slots.ordinary().end
    }

    /// When slots for asking ahead that are not used are looked for.
    pub(super) fn unused_due(&self) -> Option<Nanos> {
        let is_held = self.drain == Drain::No && self.registered_ahead() > 0;
        is_held.then(|| self.ahead.looked_for_unused + self.link.lease / 2)
    }

    /// Gives up each slot for asking ahead that has not asked for a lease: others may need the room, and the switch forgets it soon.
    pub(super) fn leave_unused(&mut self, now: Nanos) {
        if self.unused_due().is_some_and(|due| due <= now) {
            let before = now.saturating_sub(self.link.lease);
            self.slots.unused(before).into_iter().for_each(|local| self.slots.leave(local));
            self.ahead.looked_for_unused = now;
        }
    }
}
