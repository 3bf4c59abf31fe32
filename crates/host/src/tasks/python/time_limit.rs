//! The time limit of a worker's task.

use std::time::{Duration, Instant};

/// Least time to unpickle and import before calls with a timeout begin. An interrupted import would start over in the next attempt.
const LOADING_PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimeLimit {
    timeout: Option<Duration>,
    deadline: Option<Instant>,
    has_begun: bool,
}

impl TimeLimit {
    /// Starts the limit of calls with this timeout; `None`: unlimited.
    pub(super) fn new(timeout: Option<Duration>) -> Self {
        Self { timeout, deadline: timeout.map(for_loading).and_then(after), has_begun: false }
    }

    /// Whether the worker has yet to report that the calls begin.
    pub(super) fn waits_for_begin(&self) -> bool {
        self.timeout.is_some() && !self.has_begun
    }

    pub(super) fn begin(&mut self) {
        self.has_begun = true;
        self.deadline = self.timeout.and_then(after);
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    pub(super) fn exceeded(&self) -> String {
        match self.timeout {
            Some(timeout) if self.has_begun => format!("it ran for longer than its timeout of {timeout:?}"),
            timeout => {
                let patience = timeout.map_or(LOADING_PATIENCE, for_loading);
                format!("its function and arguments were not loaded within {patience:?}")
            }
        }
    }
}

fn for_loading(timeout: Duration) -> Duration {
    timeout.max(LOADING_PATIENCE)
}

/// `None` beyond the clock's range: never.
fn after(duration: Duration) -> Option<Instant> {
    Instant::now().checked_add(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loading_has_a_time_of_its_own() {
        let mut limit = TimeLimit::new(Some(Duration::from_millis(5)));
        assert!(limit.waits_for_begin() && limit.exceeded().contains("not loaded within 60s"));
        assert!(limit.deadline().is_some_and(|deadline| deadline > Instant::now() + Duration::from_secs(30)));
        limit.begin();
        assert!(!limit.waits_for_begin() && limit.exceeded().contains("timeout of 5ms"));
        assert!(limit.deadline().is_some_and(|deadline| deadline <= Instant::now() + Duration::from_millis(5)));
    }

    #[test]
    fn what_may_run_for_long_may_load_for_as_long() {
        let limit = TimeLimit::new(Some(Duration::from_secs(300)));
        assert!(limit.deadline().is_some_and(|deadline| deadline > Instant::now() + Duration::from_secs(200)));
        assert!(limit.exceeded().contains("not loaded within 300s"));
    }

    #[test]
    fn calls_without_a_timeout_and_those_with_one_beyond_the_clock_have_no_deadline() {
        let without = TimeLimit::new(None);
        assert!(without.deadline().is_none() && !without.waits_for_begin());
        let mut long = TimeLimit::new(Some(Duration::MAX));
        assert!(long.deadline().is_none() && long.waits_for_begin());
        long.begin();
        assert!(long.deadline().is_none());
    }
}
