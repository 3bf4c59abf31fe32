//! Direct return: a replica sends its reply to the client, and not through the switch. Whether the network between them lets it pass, the
//! client finds out: it asks with one READ at first, and stops asking for a while when such replies do not come.

use midflight_endpoint::{Nanos, SECOND};
use std::ops::RangeInclusive;

/// READs in a row whose direct replies were lost, after which the client stops asking for them.
const LOSSES: usize = 3;
/// Direct replies in a row after which all is well again.
const WELL: u32 = 100;
/// For so long it does not ask then: twice as long each time, until all is well.
const PAUSE: RangeInclusive<Nanos> = 10 * SECOND..=600 * SECOND;

/// What is known of the way from the replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// Nothing.
    Untried,
    /// This READ tries it.
    Trying(u64),
    /// Direct replies come.
    Works,
    /// They did not. It is not tried again before this time.
    NotBefore(Nanos),
}

pub(super) struct Direct {
    trust: Trust,
    /// The last READs in a row whose direct replies have not come.
    lost: Vec<u64>,
    /// Direct replies since the last loss.
    came: u32,
    /// The next pause.
    pause: Nanos,
}

impl Direct {
    pub(super) fn new() -> Self {
        Self { trust: Trust::Untried, lost: Vec::new(), came: 0, pause: *PAUSE.start() }
    }

    /// Whether this READ, which has not been sent before, asks for a direct reply. `is_open` says which READs have not ended: one that
    /// has, and of which nothing was heard here, has shown nothing.
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

    /// A direct reply has come.
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

    /// This READ asked for a direct reply, and was answered only when it was repeated through the same switch.
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

    /// A direct reply to a READ that has ended. If it was counted as lost, it was only late: replicas or this client were busy.
    pub(super) fn came_late(&mut self, read: u64) {
        if self.lost.contains(&read) {
            self.trust = Trust::Works;
            self.lost.clear();
            self.pause = (self.pause / 2).max(*PAUSE.start());
        }
    }

    /// This READ is refused: it will not be answered directly.
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
            // All that were under way at once are lost with it.
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
