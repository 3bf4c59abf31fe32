//! SW1 as an open loop: each client submits a job of 10 ms tasks about every 10 ms.

use super::cluster::Submitter;
use super::starts::{Begun, Given};
use crate::baseline::sparrow::{Outcome, SparrowClient};
use anyhow::{Context, Result, bail, ensure};
use midflight_cli::replay::pacer::Pacer;
use midflight_endpoint::Nanos;
use midflight_host::{Client, Job, JobHandle};
use midflight_papers::cell::{Cell, Jobs};
use midflight_tasks::functions::{Began, SLEEP, function_id};
use midflight_wire::tasks::{ARGUMENT_MAX, Status, TaskInfo};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

pub(super) const SLEEP_NS: Nanos = 10_000_000;
const PATIENCE: Duration = Duration::from_secs(20);

/// Nanoseconds from the start, and numbers of tasks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Arrivals(Vec<(Nanos, u32)>);

impl Arrivals {
    /// The jobs of a client of the simulated cell, so all contenders and the simulator get the same.
    pub(super) fn of(cell: &Cell, client: u32) -> Result<Self> {
        let jobs = Jobs::new(cell)?.filter(|job| job.client == client);
        Ok(Self(jobs.map(|job| (job.at, job.tasks.len() as u32)).collect()))
    }

    /// Equal jobs, one per `interval`.
    pub(super) fn apart(jobs: u64, tasks: u32, interval: Nanos) -> Self {
        Self((0..jobs).map(|job| (job * interval, tasks)).collect())
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
            begun.push(Begun {
                submitted: result.timing.submitted,
                started: began.started,
                ran: Some(result.timing.ran_ns),
            });
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
