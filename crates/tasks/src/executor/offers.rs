//! When waits are taken back because they could offer more bundles of counted resources: the slot then waits anew, and offers
//! what is free. Most bundles need none of this, as the next slot that waits offers them.

use super::{Drain, Executor};
use midflight_endpoint::Nanos;

impl Executor {
    /// Notes whether some waits could offer more, and since when. A switch that is polled takes nothing back.
    pub(super) fn watch_offers(&mut self, now: Nanos) {
        if !self.slots.have_offers_changed() {
            return;
        }
        let may = self.drain == Drain::No && self.link.poll.is_none();
        let is_behind = may && !self.slots.waits_behind(Nanos::MAX).is_empty();
        let due = self.offers_due.unwrap_or(now + self.link.round_trip.smoothed());
        self.offers_due = is_behind.then_some(due);
    }

    /// Takes back waits that could offer more. One that was sent within the last round trip is left alone: its answer may be on
    /// its way, and the slot will have a task.
    pub(super) fn renew_offers(&mut self, now: Nanos) {
        if self.offers_due.is_none_or(|due| due > now) {
            return;
        }
        let round_trip = self.link.round_trip.smoothed();
        let behind = self.slots.waits_behind(now.saturating_sub(round_trip));
        self.report.counters.offers_renewed += behind.len() as u64;
        behind.into_iter().for_each(|local| self.slots.give_back(local));
        let is_left = !self.slots.waits_behind(Nanos::MAX).is_empty();
        self.offers_due = is_left.then_some(now + round_trip);
    }
}
