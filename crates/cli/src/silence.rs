//! Checks that a switch answers and tasks reach it, for commands that wait for tasks.

use anyhow::{Result, ensure};
use midflight_host::Client;
use std::time::{Duration, Instant};

/// The client sends ten requests a second.
pub(crate) const ASK_AFTER: Duration = Duration::from_secs(3);
/// Interval of repeated messages of one kind.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// Reports a lasting condition soon, and then at most once a minute.
#[derive(Debug, Default)]
pub(crate) struct Reminder {
    told: Option<Instant>,
}

impl Reminder {
    /// Whether to report a condition that has `lasted` this long.
    pub(crate) fn is_due(&mut self, lasted: Duration, now: Instant) -> bool {
        let is_due =
            lasted >= ASK_AFTER && self.told.is_none_or(|told| now.saturating_duration_since(told) >= AGAIN_AFTER);
        if is_due {
            self.put_off(now);
        }
        is_due
    }

    /// Suppresses messages for a minute.
    pub(crate) fn put_off(&mut self, now: Instant) {
        self.told = Some(now);
    }
}

/// Reports that no switch answers, or that tasks cannot reach it.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    reminder: Reminder,
}

impl Silence {
    /// Call regularly. Returns a message, at most once a minute.
    ///
    /// # Errors
    /// If the switch answers, but tasks cannot reach it.
    pub(crate) fn look(&mut self, client: &Client) -> Result<Option<String>> {
        let switch = client.switch();
        let unanswered = client.unanswered_length();
        ensure!(
            unanswered.is_none(),
            "packets of {} bytes do not reach the switch {switch}, shorter ones do: a link on the path has an MTU below 1280 bytes; raise \
             it (`ip link` shows the MTU of this machine's links)",
            unanswered.unwrap_or_default()
        );
        let silence = client.unanswered_for().unwrap_or_default();
        let words = || format!("the switch {switch} does not answer any more; it is asked until it does");
        Ok(self.reminder.is_due(silence, Instant::now()).then(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_told_again_each_minute() {
        let (mut reminder, begin) = (Reminder::default(), Instant::now());
        let mut is_due = |lasted, at| {
            let [lasted, at] = [lasted, at].map(Duration::from_secs);
            reminder.is_due(lasted, begin + at)
        };
        assert_eq!(
            [2, 3, 4, 62, 63, 64].map(|seconds| is_due(seconds, seconds)),
            [false, true, false, false, true, false]
        );
        assert!(!is_due(3, 100), "it has ended in between, and is there again");
        assert!(is_due(30, 127));
    }
}
