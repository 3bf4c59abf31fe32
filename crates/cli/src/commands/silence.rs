//! Whether a switch answers, for the commands that wait for tasks.

use midflight_host::Client;
use std::time::Duration;

/// How long a switch may be silent before people hear of it. It is asked ten times a second.
pub(super) const ASK_AFTER: Duration = Duration::from_secs(3);

/// Tells once that no switch answers.
#[derive(Debug, Default)]
pub(super) struct Silence {
    is_told: bool,
}

impl Silence {
    /// Call now and then: words for people, once, if the client's switch has not answered for some time.
    pub(super) fn look(&mut self, client: &Client) -> Option<String> {
        let is_silent = client.unanswered_for().is_some_and(|silence| self.is_news(silence));
        is_silent
            .then(|| format!("the switch {} does not answer any more; it is asked until it does", client.switch().0))
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
