//! SW1 as an open loop: each client submits a job of 10 ms tasks about every 10 ms.

use super::cluster::Submitter;
use super::starts::{Begun, Given};
use crate::baseline::sparrow::{Outcome, SparrowClient};
use anyhow::{Context, Result, bail, ensure};
use midflight_cli::replay::pacer::Pacer;
use midflight_endpoint::Nanos;
use midflight_host::{Client, Job, JobHandle};
use midflight_papers::calibration::CLIENT_LATE_NS;
use midflight_tasks::functions::{Began, SLEEP, function_id};
use midflight_wire::tasks::{ARGUMENT_MAX, Status, TaskInfo};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// As in the simulated figure. With exactly 10 ms, tasks of 10 ms plus their overhead would delay each other from job to job.
const INTERVAL_NS: Nanos = 10_000_000 + CLIENT_LATE_NS;
const SLEEP_NS: Nanos = 10_000_000;
const PATIENCE: Duration = Duration::from_secs(20);

/// Nanoseconds from the start, and numbers of tasks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Arrivals(Vec<(Nanos, u32)>);

impl Arrivals {
    /// `tasks` is the mean of a job. The seed decides the start within the first interval: clients are not in step, and all contenders get
    /// the same times.
    pub(super) fn new(seed: u64, number: u64, tasks: f64, end: Duration) -> Self {
        let mut random = Pcg64::new(u128::from(seed), 0xF1_0000 + u128::from(number));
        let first = random.random_range(0..INTERVAL_NS);
        let (mut owed, mut jobs) = (0.0, Vec::new());
        for at in (first..end.as_nanos() as Nanos).step_by(INTERVAL_NS as usize) {
            owed += tasks;
            let now = owed as u32;
            owed -= f64::from(now);
            if now > 0 {
                jobs.push((at, now));
            }
        }
        Self(jobs)
    }

    /// Calls `submit` with the tasks of each job at its time after `origin`.
    fn pace<T>(&self, origin: Nanos, mut submit: impl FnMut(u32) -> Result<T>) -> Result<Vec<T>> {
        let never = AtomicBool::new(false);
        let pacer = Pacer::new(&never);
        let mut submitted = Vec::with_capacity(self.0.len());
        for &(at, tasks) in &self.0 {
            if pacer.wait(origin + at).is_some() {
                submitted.push(submit(tasks)?);
            }
        }
        Ok(submitted)
    }
}

/// What a client knows when all its tasks have ended.
pub(super) enum Known {
    /// Midflight: everything.
    Ways(Vec<Begun>),
    /// Sparrow: only what it submitted.
    Jobs(Vec<Given>),
}

pub(super) fn submit(submitter: &Submitter, arrivals: &Arrivals, origin: Nanos) -> Result<Known> {
    Ok(match submitter {
        Submitter::Midflight(client) => Known::Ways(midflight(client, arrivals, origin)?),
        Submitter::Sparrow(client) => Known::Jobs(sparrow(client, arrivals, origin)?),
    })
}

fn midflight(client: &Client, arrivals: &Arrivals, origin: Nanos) -> Result<Vec<Begun>> {
    let job = |tasks: u32| Job::builder(SLEEP).repeat(tasks as usize, SLEEP_NS.to_be_bytes()).build();
    let jobs: Vec<JobHandle> = arrivals.pace(origin, |tasks| Ok(client.submit(job(tasks))?))?;
    let deadline = Instant::now() + PATIENCE;
    let mut begun = Vec::new();
    for job in jobs {
        let in_time = job.wait_timeout(deadline.saturating_duration_since(Instant::now()));
        ensure!(in_time, "tasks did not end within {PATIENCE:?}");
        for outcome in job.wait() {
            let result = outcome.context("a task failed")?;
            let began = Began::decode(&result.value).context("an executor did not say when a task began")?;
            begun.push(Begun { submitted: result.timing.submitted, started: began.started });
        }
    }
    Ok(begun)
}

fn sparrow(client: &SparrowClient, arrivals: &Arrivals, origin: Nanos) -> Result<Vec<Given>> {
    let task = sparrow_task(SLEEP, &SLEEP_NS.to_be_bytes());
    let jobs = arrivals.pace(origin, |tasks| {
        let job = client.submit(&vec![task; tasks as usize])?;
        Ok(Given { client: client.identity(), job, tasks })
    })?;
    let mut open: u64 = jobs.iter().map(|job| u64::from(job.tasks)).sum();
    while open > 0 {
        sparrow_ended(client, PATIENCE)?;
        open -= 1;
    }
    Ok(jobs)
}

/// Cuts the argument to fit a packet.
pub(in crate::bench) fn sparrow_task(function: &str, bytes: &[u8]) -> TaskInfo {
    let mut argument = [0; ARGUMENT_MAX];
    let length = bytes.len().min(ARGUMENT_MAX);
    argument[..length].copy_from_slice(&bytes[..length]);
    TaskInfo {
        function: function_id(function).into(),
        argument_length: length as u8,
        attempt: 1,
        argument,
        ..TaskInfo::PLAIN
    }
}

pub(in crate::bench) fn sparrow_ended(client: &SparrowClient, patience: Duration) -> Result<()> {
    match client.next(patience) {
        Some(Outcome::Ended { status: Status::Ok, .. }) => Ok(()),
        Some(Outcome::Ended { status, .. }) => bail!("a task ended as {status:?}"),
        Some(Outcome::Lost { tasks }) => bail!("no scheduler answered: {tasks} tasks were lost"),
        None => bail!("no task ended within {patience:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_come_at_their_interval_and_share_the_load_out() {
        let arrivals = Arrivals::new(1, 0, 28.5, Duration::from_nanos(100 * INTERVAL_NS));
        let jobs = &arrivals.0;
        assert_eq!(jobs.len(), 100);
        assert!(jobs[0].0 < INTERVAL_NS && jobs.windows(2).all(|pair| pair[1].0 - pair[0].0 == INTERVAL_NS));
        assert_eq!(jobs.iter().map(|job| job.1).sum::<u32>(), 2_850);
        assert!(jobs.iter().all(|job| [28, 29].contains(&job.1)));
    }

    #[test]
    fn the_seed_decides_and_clients_are_not_in_step() {
        let first = |seed, number| Arrivals::new(seed, number, 1.0, Duration::from_secs(1)).0[0].0;
        assert_eq!(first(3, 0), first(3, 0));
        assert!(first(3, 0) != first(3, 1) && first(3, 0) != first(4, 0));
    }
}
