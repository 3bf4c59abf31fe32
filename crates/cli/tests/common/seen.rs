//! Counts the outcomes of one job: no task may end twice.

#![allow(clippy::unwrap_used, reason = "tests may")]

use super::PATIENCE;
use midflight::{Client, Completions, Job, functions};
use std::time::{Duration, Instant};

/// Outcomes of a job of sleeping tasks.
pub(crate) struct Seen {
    completions: Completions,
    tasks: Vec<bool>,
    /// Tasks that ran more than once.
    pub again: usize,
    /// Arrival of the last result of a later attempt.
    pub last_again: Option<Instant>,
}

impl Seen {
    /// `parts`: numbers of tasks, and how long each sleeps.
    pub(crate) fn new(client: &Client, parts: &[(usize, Duration)]) -> Self {
        let argument = |sleep: Duration| u64::try_from(sleep.as_nanos()).unwrap().to_be_bytes();
        let job = Job::builder(functions::SLEEP).retries(9);
        let job = parts.iter().fold(job, |job, &(count, sleep)| job.repeat(count, argument(sleep)));
        let tasks = vec![false; parts.iter().map(|part| part.0).sum()];
        let completions = client.submit(job.build()).unwrap().completions();
        Self { completions, tasks, again: 0, last_again: None }
    }

    pub(crate) fn take(&mut self, count: usize) {
        for _ in 0..count {
            assert!(self.take_within(PATIENCE), "no result in time");
        }
    }

    /// One more, if it arrives in time.
    pub(crate) fn take_within(&mut self, time: Duration) -> bool {
        let Some((index, outcome)) = self.completions.next_timeout(time) else { return false };
        let result = outcome.unwrap();
        assert!(!std::mem::replace(&mut self.tasks[index], true), "task {index} ended twice");
        if result.attempt > 1 {
            self.last_again = Some(Instant::now());
            self.again += 1;
        }
        true
    }

    pub(crate) fn take_all(&mut self) {
        self.take(self.completions.left());
        assert!(self.tasks.iter().all(|&ended| ended));
        assert!(self.completions.next_timeout(Duration::from_millis(50)).is_none(), "more results than tasks");
    }
}
