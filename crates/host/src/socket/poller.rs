//! Lets one waiting thread poll the socket briefly before it sleeps; an early answer then costs no wake-up. While answers keep coming late,
//! most waits do not poll.

use crate::clock;
use crate::driver::{Driver, Handler, Hands};
use crate::socket::busy_poll::Spin;
use midflight_endpoint::Endpoint;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Consecutive polls without success after which polling is mostly skipped.
const IN_VAIN_MAX: u32 = 16;
/// Then one of this many waits polls.
const TRY_EVERY: u32 = 16;

pub(crate) struct Poller {
    longest: Duration,
    hands: Mutex<Option<(Hands, Spin, RecentPolls)>>,
}

/// Polls since the last success, and skipped ones.
#[derive(Debug, Default)]
struct RecentPolls {
    in_vain: u32,
    skipped: u32,
}

impl RecentPolls {
    fn is_worth_it(&mut self) -> bool {
        if self.in_vain < IN_VAIN_MAX {
            return true;
        }
        self.skipped = (self.skipped + 1) % TRY_EVERY;
        self.skipped == 0
    }

    fn polled(&mut self, came: bool) {
        self.in_vain = if came { 0 } else { (self.in_vain + 1).min(IN_VAIN_MAX) };
    }
}

impl Poller {
    pub(crate) fn new(longest: Duration) -> Self {
        Self { longest, hands: Mutex::default() }
    }

    /// Polls until `done`. Afterwards the network thread watches the socket if `is_more_open`.
    pub(crate) fn poll_until<E: Endpoint, H: Handler<E>>(
        &self,
        driver: &Driver<E, H>,
        deadline: Option<Instant>,
        done: &dyn Fn() -> bool,
        is_more_open: impl Fn(&E) -> bool,
    ) {
        // A second polling thread would only slow down the first.
        let Ok(mut hands) = self.hands.try_lock() else { return };
        let (hands, spin, recent) =
            hands.get_or_insert_with(|| (Hands::new(), Spin::default(), RecentPolls::default()));
        if !self.longest.is_zero() && spin.is_allowed() && recent.is_worth_it() {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let longest = left.map_or(self.longest, |left| left.min(self.longest));
            let end = clock::now().saturating_add(clock::nanos(longest));
            driver.begin_polling();
            let came = spin.until(end, || {
                while !done() && clock::now() < end && driver.poll(hands) {}
                done()
            });
            // A shorter wait says nothing about how soon results come.
            if came || longest == self.longest {
                recent.polled(came);
            }
        }
        driver.end_polling(driver.peek(|endpoint, _| is_more_open(endpoint)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_sixteen_polls_in_vain_one_wait_of_sixteen_polls() {
        let mut recent = RecentPolls::default();
        let mut polls = |came: bool, waits: u32| {
            (0..waits)
                .filter(|_| {
                    recent.is_worth_it() && {
                        recent.polled(came);
                        true
                    }
                })
                .count()
        };
        assert_eq!(polls(true, 100), 100);
        assert_eq!(polls(false, 15), 15);
        assert_eq!(polls(true, 1), 1, "fifteen are no reason");
        assert_eq!(polls(false, 16), 16);
        assert_eq!(polls(false, 160), 10);
        assert_eq!(polls(true, 16), 1, "the last of them");
        assert_eq!(polls(true, 100), 100);
    }
}
