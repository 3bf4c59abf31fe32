//! Throughput of empty tasks, with a constant backlog.

use super::arrivals::{sparrow_ended, sparrow_task};
use super::cluster::Submitter;
use crate::baseline::sparrow::SparrowClient;
use anyhow::{Context, Result, ensure};
use midflight_host::{Client, Job, JobHandle};
use midflight_tasks::functions::NOOP;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// More tasks in flight than any number of slots can run.
const JOB: usize = 256;
const JOBS: usize = 32;
const PATIENCE: Duration = Duration::from_secs(20);

/// Ends per second, after `warmup`, over about `duration`.
pub(super) fn rate(submitter: &Submitter, warmup: Duration, duration: Duration) -> Result<f64> {
    let window = Window::new(Instant::now(), warmup, duration);
    match submitter {
        Submitter::Midflight(client) => midflight(client, window),
        Submitter::Sparrow(client) => sparrow(client, window),
    }
}

fn midflight(client: &Client, mut window: Window) -> Result<f64> {
    let mut jobs: VecDeque<JobHandle> = VecDeque::new();
    loop {
        while jobs.len() < JOBS {
            jobs.push_back(client.submit(Job::builder(NOOP).repeat(JOB, Vec::new()).build())?);
        }
        let job = jobs.pop_front().context("no job is in flight")?;
        ensure!(job.wait_timeout(PATIENCE), "tasks did not end within {PATIENCE:?}");
        job.wait().into_iter().find_map(Result::err).map_or(Ok(()), Err).context("a task failed")?;
        if let Some(rate) = window.ended(Instant::now(), JOB as u64) {
            // Cancel the rest: the next measurement uses the same switch.
            jobs.iter().for_each(JobHandle::cancel);
            ensure!(jobs.iter().all(|job| job.wait_timeout(PATIENCE)), "tasks were not cancelled within {PATIENCE:?}");
            return Ok(rate);
        }
    }
}

fn sparrow(client: &SparrowClient, mut window: Window) -> Result<f64> {
    let job = vec![sparrow_task(NOOP, &[]); JOB];
    let mut open = 0;
    loop {
        while open + JOB <= JOBS * JOB {
            client.submit(&job)?;
            open += JOB;
        }
        sparrow_ended(client, PATIENCE)?;
        open -= 1;
        if let Some(rate) = window.ended(Instant::now(), 1) {
            return Ok(rate);
        }
    }
}

/// Counts from the first end after the warm-up to the first end after the duration.
struct Window {
    from: Instant,
    until: Instant,
    since: Option<Instant>,
    tasks: u64,
}

impl Window {
    fn new(now: Instant, warmup: Duration, duration: Duration) -> Self {
        let from = now + warmup;
        Self { from, until: from + duration, since: None, tasks: 0 }
    }

    /// Returns the rate once the time is over.
    fn ended(&mut self, now: Instant, tasks: u64) -> Option<f64> {
        let Some(since) = self.since else {
            self.since = (now >= self.from).then_some(now);
            return None;
        };
        self.tasks += tasks;
        (now >= self.until && now > since).then(|| self.tasks as f64 / (now - since).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_leaves_the_warm_up_out_and_counts_from_end_to_end() {
        let start = Instant::now();
        let mut window = Window::new(start, Duration::from_millis(100), Duration::from_millis(400));
        let mut ended = |ms, tasks| window.ended(start + Duration::from_millis(ms), tasks);
        assert_eq!(ended(50, 1_000), None, "before it opens");
        assert_eq!(ended(120, 1_000), None, "opens it");
        assert_eq!(ended(300, 10), None);
        assert_eq!(ended(520, 30), Some(100.0), "40 tasks in 400 ms");
    }

    #[test]
    fn one_end_is_no_rate() {
        let start = Instant::now();
        let mut window = Window::new(start, Duration::ZERO, Duration::ZERO);
        assert_eq!(window.ended(start, 5), None);
        assert_eq!(window.ended(start, 5), None, "no time has passed");
        assert_eq!(window.ended(start + Duration::from_secs(1), 5), Some(10.0));
    }
}
