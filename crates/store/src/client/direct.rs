//! Direct return: a replica sends its reply to the client, not through the switch. The client probes with one READ whether the network
//! permits it, and stops asking for a while if direct replies are lost.

use midflight_endpoint::{Nanos, SECOND};
use std::ops::RangeInclusive;

/// Consecutive lost direct replies after which the client stops asking.
const LOSSES: usize = 3;
/// Consecutive direct replies after which the pause is reset.
const WELL: u32 = 100;
/// How long the client stops asking; doubles each time.
const PAUSE: RangeInclusive<Nanos> = 10 * SECOND..=600 * SECOND;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    Untried,
    Trying(u64),
    Works,
    NotBefore(Nanos),
}

pub(super) struct Direct {
    trust: Trust,
    /// The last consecutive READs whose direct replies are missing.
    lost: Vec<u64>,
    came: u32,
    pause: Nanos,
}

impl Direct {
    pub(super) fn new() -> Self {
        Self { trust: Trust::Untried, lost: Vec::new(), came: 0, pause: *PAUSE.start() }
    }

    /// Whether this READ, before its first transmission, asks for a direct reply. `is_open` tells which READs have not ended; an ended
    /// one without a report here proves nothing.
    pub(super) fn asks(&mut self, now: Nanos, read: u64, is_open: impl FnOnce(u64) -> bool) -> bool {
        let tries = match self.trust {
            Trust::Works => return true,
            Trust::Untried => true,
            Trust::Trying(trying) => !is_open(trying),
            Trust::NotBefore(time) => now >= time,
        };
        if tries {
            self.trust = Trust::Trying(read);
            self.lost.clear();
        }
        tries
    }

    pub(super) fn came(&mut self) {
        if matches!(self.trust, Trust::NotBefore(_)) {
            return;
        }
        self.trust = Trust::Works;
        self.lost.clear();
        self.came = self.came.saturating_add(1);
        if self.came >= WELL {
            self.pause = *PAUSE.start();
        }
    }

    /// This READ asked for a direct reply, but was answered only by a repeat through the same switch.
    pub(super) fn was_lost(&mut self, now: Nanos, read: u64) {
        let is_trial = self.trust == Trust::Trying(read);
        if !is_trial && self.trust != Trust::Works {
            return;
        }
        self.lost.push(read);
        self.came = 0;
        if is_trial || self.lost.len() >= LOSSES {
            self.trust = Trust::NotBefore(now.saturating_add(self.pause));
            self.pause = (2 * self.pause).min(*PAUSE.end());
        }
    }

    /// A direct reply came after its READ had ended. If it counted as lost, it was only late.
    pub(super) fn came_late(&mut self, read: u64) {
        if self.lost.contains(&read) {
            self.trust = Trust::Works;
            self.lost.clear();
            self.pause = (self.pause / 2).max(*PAUSE.start());
        }
    }

    /// This READ was refused, so no direct reply will come.
    pub(super) fn refused(&mut self, read: u64) {
        if self.trust == Trust::Trying(read) {
            self.trust = Trust::Untried;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r6_one_read_tries_it_and_when_its_reply_comes_all_ask() {
        let (mut direct, open) = (Direct::new(), |_| true);
        assert!(direct.asks(0, 1, open));
        assert!(!direct.asks(0, 2, open), "one is trying");
        direct.refused(2);
        assert!(!direct.asks(0, 3, open), "another one was refused");
        direct.refused(1);
        assert!(direct.asks(0, 4, open), "it has shown nothing");
        assert!(direct.asks(0, 5, |read| read != 4), "it has ended, and shown nothing");
        direct.came();
        assert!(direct.asks(0, 6, open) && direct.asks(0, 7, open));
    }

    #[test]
    fn r6_after_losses_it_asks_no_more_for_a_while_and_then_longer() {
        let (mut direct, mut now, open) = (Direct::new(), 0, |_| true);
        for seconds in [10, 20, 40, 80, 160, 320, 600, 600] {
            assert!(direct.asks(now, 1, open));
            // The others in flight are lost with it.
            (1..20).for_each(|read| direct.was_lost(now, read));
            now += seconds * SECOND;
            assert!(!direct.asks(now - 1, 2, open), "{seconds} s");
        }
        assert!(direct.asks(now, 1, open));
        direct.came();
        for read in [2, 3] {
            direct.was_lost(now, read);
            assert!(direct.asks(now, read, open), "fewer than three in a row");
        }
        direct.came();
        (4..7).for_each(|read| direct.was_lost(now, read));
        assert!(!direct.asks(now + 600 * SECOND - 1, 7, open), "single replies do not make it short");
        direct.came();
        assert!(!direct.asks(now, 8, open), "other replies come, but these three have not");
        now += 600 * SECOND;
        assert!(direct.asks(now, 9, open));
        (0..WELL).for_each(|_| direct.came());
        (10..13).for_each(|read| direct.was_lost(now, read));
        assert!(direct.asks(now + 10 * SECOND, 13, open), "it had worked well");
    }

    #[test]
    fn r6_replies_that_were_only_late_are_not_lost() {
        let (mut direct, open) = (Direct::new(), |_| true);
        assert!(direct.asks(0, 1, open));
        direct.was_lost(0, 1);
        assert!(!direct.asks(0, 2, open));
        direct.came_late(2);
        assert!(!direct.asks(0, 3, open), "of another read");
        direct.came_late(1);
        assert!(direct.asks(0, 4, open) && direct.asks(0, 5, open));
        (4..7).for_each(|read| direct.was_lost(0, read));
        assert!(!direct.asks(0, 7, open));
        direct.came_late(5);
        assert!(direct.asks(0, 8, open));
    }
}
