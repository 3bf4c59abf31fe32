//! Whether there is anybody to run the commands. A client does not see executors, but it sees that one fetches a command.

use anyhow::{Result, bail};
use midflight_host::Client;
use std::time::{Duration, Instant};

/// When to ask for executors.
const ASK_AFTER: Duration = Duration::from_secs(3);
/// No run gives up before this.
const GIVE_UP_AFTER: Duration = Duration::from_secs(5);

/// Waits for the first command to be taken.
#[derive(Debug)]
pub(super) struct Waiting {
    /// As the user wrote them.
    resources: String,
    timeout: Option<Duration>,
    /// When the first command was submitted.
    since: Option<Instant>,
    has_asked: bool,
    /// Somebody has taken a command.
    is_over: bool,
}

impl Waiting {
    /// Of commands that need these resources. `is_known`: there is an executor that has them.
    pub(super) fn new(resources: &str, timeout: Option<Duration>, is_known: bool) -> Self {
        Self { resources: resources.to_owned(), timeout, since: None, has_asked: false, is_over: is_known }
    }

    /// Call now and then; `is_open`: there are commands at the switch. A question for people, once, if nobody has taken one for
    /// some time.
    ///
    /// # Errors
    /// If that takes longer than the timeout.
    pub(super) fn look(&mut self, client: &Client, is_open: bool) -> Result<Option<String>> {
        if self.is_over || !is_open {
            return Ok(None);
        }
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        if waited < ASK_AFTER {
            return Ok(None);
        }
        if client.counts().blobs.served > 0 {
            self.is_over = true;
            return Ok(None);
        }
        self.after(waited)
    }

    fn after(&mut self, waited: Duration) -> Result<Option<String>> {
        if let Some(timeout) = self.timeout
            && waited >= timeout.max(GIVE_UP_AFTER)
        {
            let waited = humantime::format_duration(Duration::from_secs(waited.as_secs()));
            bail!("no executor has taken a command within {waited}: {}", self.advice());
        }
        if std::mem::replace(&mut self.has_asked, true) {
            return Ok(None);
        }
        Ok(Some(format!("no executor has taken a command yet: {}", self.advice())))
    }

    fn advice(&self) -> String {
        let with = if self.resources.is_empty() { String::new() } else { format!(" with {}", self.resources) };
        let option = if self.resources.is_empty() { String::new() } else { format!(" --resources {}", self.resources) };
        format!(
            "either all executors{with} are busy, or there are none; `midflight status` says how many slots there are, `midflight executor{option}` starts some"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_asks_once_and_gives_up_after_the_timeout() {
        let mut waiting = Waiting::new("gpu,ssd", Some(Duration::from_secs(10)), false);
        let question = waiting.after(ASK_AFTER).unwrap().unwrap();
        assert!(
            question.contains("all executors with gpu,ssd") && question.contains("--resources gpu,ssd"),
            "{question}"
        );
        assert!(waiting.after(Duration::from_secs(9)).unwrap().is_none());
        assert!(waiting.after(Duration::from_secs(10)).unwrap_err().to_string().contains("within 10s"));
        let mut patient = Waiting::new("", None, false);
        assert!(patient.after(ASK_AFTER).unwrap().is_some());
        assert!(patient.after(Duration::from_secs(1000)).unwrap().is_none());
    }
}
