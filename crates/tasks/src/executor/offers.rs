//! Withdraws waits that could offer more bundles of counted resources; the slot then waits again with what is free. This is rare,
//! because the next slot that waits offers most bundles.

use super::{Drain, Executor};
use midflight_endpoint::Nanos;

impl Executor {
    /// A polled switch accepts no returns.
    pub(super) fn watch_offers(&mut self, now: Nanos) {
        if !self.slots.have_offers_changed() {
            return;
        }
        let may = self.drain == Drain::No && self.link.poll.is_none();
        let is_behind = may && !self.slots.waits_behind(Nanos::MAX).is_empty();
        let due = self.offers_due.unwrap_or(now + self.link.round_trip.smoothed());
        self.offers_due = is_behind.then_some(due);
    }

    /// Spares waits sent within the last round trip, whose tasks may be on their way.
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
