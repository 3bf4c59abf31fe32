//! Whether a switch answers and tasks reach it, for the commands that wait for tasks.

use anyhow::{Result, ensure};
use midflight_host::Client;
use std::time::Duration;

/// How long a switch may be silent before people hear of it. It is asked ten times a second.
pub(super) const ASK_AFTER: Duration = Duration::from_secs(3);

/// Tells once that no switch answers, and when tasks cannot reach one.
#[derive(Debug, Default)]
pub(super) struct Silence {
    is_told: bool,
}

impl Silence {
    /// Call now and then: words for people, once, if the client's switch has not answered for some time.
    ///
    /// # Errors
    /// If the switch answers, but tasks cannot reach it.
    pub(super) fn look(&mut self, client: &Client) -> Result<Option<String>> {
        let (switch, _) = client.switch();
        let unanswered = client.unanswered_length();
        ensure!(
            unanswered.is_none(),
            "packets of {} bytes do not reach the switch {switch}, shorter ones do: a link on the path has an MTU below 1280 bytes; raise \
             it (`ip link` shows the MTU of this machine's links)",
            unanswered.unwrap_or_default()
        );
        let is_silent = client.unanswered_for().is_some_and(|silence| self.is_news(silence));
        Ok(is_silent.then(|| format!("the switch {switch} does not answer any more; it is asked until it does")))
    }

    fn is_news(&mut self, silence: Duration) -> bool {
        silence >= ASK_AFTER && !std::mem::replace(&mut self.is_told, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_switch_is_named_once() {
        let mut silence = Silence::default();
        assert!(!silence.is_news(ASK_AFTER - Duration::from_millis(1)));
        assert!(silence.is_news(ASK_AFTER));
        assert!(!silence.is_news(2 * ASK_AFTER));
    }
}
