//! Detects lack of progress, from what a client sees: commands are fetched and end, and the switch answers.

use crate::silence::{Reminder, Silence};
use anyhow::{Result, bail};
use midflight_host::{Client, ClientCounts};
use std::time::{Duration, Instant};

/// Shortest wait before a run gives up.
const GIVE_UP_AFTER: Duration = Duration::from_secs(5);
/// Time to end after its timeout.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// Warn when commands without a timeout delay others for this long.
const LONG: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Waiting {
    /// As the user wrote them.
    resources: String,
    timeout: Option<Duration>,
    /// Switch and executor are in this process.
    is_own: bool,
    /// Last progress, and its time.
    moved: Option<(Moves, Instant)>,
    /// Limits how often the missing executor is reported.
    reminder: Reminder,
    silence: Silence,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Moves {
    /// Commands fetched by executors.
    taken: u64,
    /// Runs that ended, well or not.
    over: u64,
}

impl Moves {
    fn of(counts: &ClientCounts) -> Self {
        let tasks = &counts.protocol;
        let over = tasks.completed + tasks.lost + tasks.cancelled + tasks.retried + tasks.gone;
        Self { taken: counts.blobs.served, over }
    }

    /// An overestimate after an executor died.
    fn running(self) -> u64 {
        self.taken.saturating_sub(self.over)
    }
}

impl Waiting {
    /// If `is_own`, the switch and an executor with these resources are in this process.
    pub(super) fn new(resources: &str, timeout: Option<Duration>, is_own: bool) -> Self {
        let resources = resources.to_owned();
        Self { resources, timeout, is_own, moved: None, reminder: Reminder::default(), silence: Silence::default() }
    }

    /// Whether it learns from fetched arguments that executors have taken commands.
    pub(super) fn needs_fetches(&self) -> bool {
        !self.is_own
    }

    /// Call regularly; `open` commands are at the switch. Returns a question, at most once a minute, if no executor fetches one for some
    /// time or the switch is silent.
    ///
    /// # Errors
    /// If that lasts longer than the timeout, or commands cannot reach the switch.
    pub(super) fn look(&mut self, client: &Client, open: usize) -> Result<Option<String>> {
        if self.is_own {
            return Ok(None);
        }
        if open == 0 {
            self.moved = None;
            return Ok(None);
        }
        let (now, counts) = (Instant::now(), client.counts());
        let moves = Moves::of(&counts);
        let waited = unchanged(&mut self.moved, moves, now);
        let silence = self.silence.look(client)?;
        if silence.is_some() {
            self.reminder.put_off(now); // without a switch no executor can fetch one
        }
        Ok(self.after(waited, now, moves, open as u64)?.or(silence))
    }

    fn after(&mut self, waited: Duration, now: Instant, moves: Moves, open: u64) -> Result<Option<String>> {
        // By then running commands have ended, or their results are lost.
        let runs = match (moves.running(), self.timeout) {
            (0, _) => Duration::ZERO,
            (_, Some(timeout)) => timeout + ENDS_WITHIN,
            (running, None) if running >= open => return Ok(None),
            (_, None) => LONG,
        };
        let idle = waited.saturating_sub(runs);
        let said = humantime::format_duration(Duration::from_secs(waited.as_secs()));
        if let Some(timeout) = self.timeout
            && idle >= timeout.max(GIVE_UP_AFTER)
        {
            bail!("no executor has taken a command within {said}: {}", self.advice());
        }
        if !self.reminder.is_due(idle, now) {
            return Ok(None);
        }
        let since = if moves.taken == 0 { "yet".to_owned() } else { format!("for {said}, and none has ended") };
        Ok(Some(format!("no executor has taken a command {since}: {}", self.advice())))
    }

    fn advice(&self) -> String {
        let with = if self.resources.is_empty() { String::new() } else { format!(" with {}", self.resources) };
        let option = if self.resources.is_empty() { String::new() } else { format!(" --resources {}", self.resources) };
        format!(
            "either all executors{with} are busy, or there are none; `midflight status` says how many slots there are, `midflight executor{option}` starts some"
        )
    }
}

/// How long the value has been the same.
fn unchanged<T: PartialEq>(last: &mut Option<(T, Instant)>, value: T, now: Instant) -> Duration {
    match last {
        Some((same, since)) if *same == value => now.saturating_duration_since(*since),
        _ => {
            *last = Some((value, now));
            Duration::ZERO
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::LazyLock;

    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    const SECOND: Duration = Duration::from_secs(1);
    const NONE: Moves = Moves { taken: 0, over: 0 };

    /// The message after `seconds` without progress.
    fn after(waiting: &mut Waiting, seconds: u64, moves: Moves, open: u64) -> Result<Option<String>> {
        let lasted = Duration::from_secs(seconds);
        waiting.after(lasted, *BEGIN + lasted, moves, open)
    }

    #[test]
    fn it_asks_each_minute_and_gives_up_after_the_timeout() {
        let mut waiting = Waiting::new("gpu,ssd", Some(10 * SECOND), false);
        let question = after(&mut waiting, 3, NONE, 9).unwrap().unwrap();
        assert!(
            question.contains("all executors with gpu,ssd") && question.contains("--resources gpu,ssd"),
            "{question}"
        );
        assert!(after(&mut waiting, 9, NONE, 9).unwrap().is_none());
        assert!(after(&mut waiting, 10, NONE, 9).unwrap_err().to_string().contains("within 10s"));
        let mut patient = Waiting::new("", None, false);
        let asks = [3, 4, 62, 63, 64, 123].map(|seconds| after(&mut patient, seconds, NONE, 9).unwrap().is_some());
        assert_eq!(asks, [true, false, false, true, false, true]);
    }

    #[test]
    fn it_also_asks_where_executors_vanish_later() {
        let idle = Moves { taken: 5, over: 5 };
        let question = after(&mut Waiting::new("", None, false), 3, idle, 1).unwrap().unwrap();
        assert!(question.contains("for 3s, and none has ended: either all"), "{question}");
        assert!(after(&mut Waiting::new("", Some(SECOND), false), 5, idle, 1).is_err());
    }

    #[test]
    fn a_command_that_runs_long_is_no_silence_until_its_timeout_is_over() {
        let running = Moves { taken: 6, over: 5 };
        let mut waiting = Waiting::new("", Some(10 * SECOND), false);
        assert!(after(&mut waiting, 17, running, 4).unwrap().is_none());
        assert!(after(&mut waiting, 18, running, 4).unwrap().is_some());
        assert!(after(&mut waiting, 24, running, 4).unwrap().is_none());
        assert!(after(&mut waiting, 25, running, 4).is_err());
        let mut patient = Waiting::new("", None, false);
        assert!(after(&mut patient, 1000, running, 1).unwrap().is_none(), "nothing waits");
        assert!(after(&mut patient, 60, running, 2).unwrap().is_none());
        assert!(after(&mut patient, 63, running, 2).unwrap().is_some());
    }

    #[test]
    fn the_time_counts_from_the_last_change() {
        let (mut last, now) = (None, Instant::now());
        assert_eq!(unchanged(&mut last, 1, now), Duration::ZERO);
        assert_eq!(unchanged(&mut last, 1, now + SECOND), SECOND);
        assert_eq!(unchanged(&mut last, 2, now + 2 * SECOND), Duration::ZERO);
        assert_eq!(unchanged(&mut last, 2, now + 4 * SECOND), 2 * SECOND);
    }
}
