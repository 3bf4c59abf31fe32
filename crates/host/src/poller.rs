//! Threads that wait for an answer poll the socket themselves for a short while before they sleep, one at a time: an answer that
//! comes soon costs no wake-up.

use crate::busy_poll::Spin;
use crate::clock;
use crate::driver::{Driver, Handler, Hands};
use midflight_endpoint::Endpoint;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The state of the one thread that may poll.
pub(crate) struct Poller {
    longest: Duration,
    hands: Mutex<Option<(Hands, Spin)>>,
}

impl Poller {
    /// Polls for at most that long; zero: never.
    pub(crate) fn new(longest: Duration) -> Self {
        Self { longest, hands: Mutex::default() }
    }

    /// Polls until `done`. If then `is_more_open`, the network thread watches the socket from now on.
    pub(crate) fn poll_until<E: Endpoint, H: Handler<E>>(
        &self,
        driver: &Driver<E, H>,
        deadline: Option<Instant>,
        done: &dyn Fn() -> bool,
        is_more_open: impl Fn(&E) -> bool,
    ) {
        // A second thread that polls would only slow down the first.
        let Ok(mut hands) = self.hands.try_lock() else { return };
        let (hands, spin) = hands.get_or_insert_with(|| (Hands::new(), Spin::default()));
        if !self.longest.is_zero() && spin.is_allowed() {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let longest = left.map_or(self.longest, |left| left.min(self.longest));
            let end = clock::now().saturating_add(clock::nanos(longest));
            driver.begin_polling();
            spin.until(end, || {
                while !done() && clock::now() < end && driver.poll(hands) {}
                done()
            });
        }
        driver.end_polling(driver.peek(|endpoint, _| is_more_open(endpoint)));
    }
}
