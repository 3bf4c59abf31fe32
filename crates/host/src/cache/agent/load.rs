//! Utilization of an agent's slots, second by second.

use midflight_endpoint::{Nanos, SECOND};

/// What an agent did in the last whole second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadReport {
    /// Share of the slots in use, 0 to 1.
    pub utilization: f64,
    /// Requests by datagram answered.
    pub answered_per_s: f64,
    /// Requests by datagram refused.
    pub refused_per_s: f64,
}

/// Time and counts are arguments.
#[derive(Debug)]
pub(super) struct Load {
    slots: usize,
    served: usize,
    since: Nanos,
    /// Slot time in use, in nanoseconds.
    busy: u128,
    begin: Mark,
    report: LoadReport,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    at: Nanos,
    busy: u128,
    answered: u64,
    refused: u64,
}

impl Load {
    pub(super) fn new(now: Nanos, slots: usize) -> Self {
        let begin = Mark { at: now, ..Mark::default() };
        Self { slots: slots.max(1), served: 0, since: now, busy: 0, begin, report: LoadReport::default() }
    }

    pub(super) fn set(&mut self, now: Nanos, served: usize) {
        self.busy += u128::from(now.saturating_sub(self.since)) * self.served as u128;
        (self.since, self.served) = (self.since.max(now), served);
    }

    /// Ends the second if it has passed. The counts are totals.
    pub(super) fn tick(&mut self, now: Nanos, answered: u64, refused: u64) {
        let elapsed = now.saturating_sub(self.begin.at);
        if elapsed < SECOND {
            return;
        }
        self.set(now, self.served);
        let per_second = |count: u64| count as f64 * SECOND as f64 / elapsed as f64;
        let busy = (self.busy - self.begin.busy) as f64 / (elapsed as f64 * self.slots as f64);
        self.report = LoadReport {
            utilization: busy.min(1.0),
            answered_per_s: per_second(answered.saturating_sub(self.begin.answered)),
            refused_per_s: per_second(refused.saturating_sub(self.begin.refused)),
        };
        self.begin = Mark { at: now, busy: self.busy, answered, refused };
    }

    pub(super) fn report(&self) -> LoadReport {
        self.report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_in_use_in_the_last_second() {
        let mut load = Load::new(0, 4);
        load.set(0, 4);
        load.set(SECOND / 2, 0);
        load.tick(SECOND - 1, 10, 1);
        assert_eq!(load.report(), LoadReport::default(), "no second has passed");
        load.tick(SECOND, 10, 1);
        assert_eq!(load.report(), LoadReport { utilization: 0.5, answered_per_s: 10.0, refused_per_s: 1.0 });
        load.set(SECOND, 1);
        load.tick(3 * SECOND, 30, 1);
        assert_eq!(load.report(), LoadReport { utilization: 0.25, answered_per_s: 10.0, refused_per_s: 0.0 });
        load.tick(4 * SECOND, 30, 1);
        assert_eq!(load.report().utilization, 0.25, "a slot that is in use all the time");
    }
}
