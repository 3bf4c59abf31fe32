//! Load for benchmarks of whole clusters: one operation at a time, and as many as possible.

use crate::median::median;
use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use midflight_host::{Client, Job, JobHandle, TaskSpec};
use midflight_tasks::functions::NOOP;
use midflight_terminal::envelope::Measure;
use midflight_terminal::units;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

pub(super) const SLOTS: u32 = 64;
/// The largest recorded round trip, one minute. Longer ones count as this.
const ROUND_TRIP_MAX_NS: u64 = 60_000_000_000;
/// In the throughput run: tasks in a job, and jobs in flight.
const JOB: usize = 2_048;
const JOBS: usize = 4;

#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    pub(super) runs: usize,
    round_trips: usize,
    tasks: usize,
    pub(super) idle: Duration,
}

impl Effort {
    const FULL: Self = Self { runs: 5, round_trips: 20_000, tasks: 500_000, idle: Duration::from_secs(5) };
    const QUICK: Self = Self { runs: 3, round_trips: 2_000, tasks: 50_000, idle: Duration::from_secs(1) };

    pub(super) fn of(quick: bool) -> Self {
        if quick { Self::QUICK } else { Self::FULL }
    }

    /// As [`Self::of`], for tasks that each start a program, which takes a hundred times as long.
    pub(super) fn of_programs(quick: bool) -> Self {
        let Self { round_trips, tasks, .. } = Self::of(quick);
        Self { round_trips: round_trips / 20, tasks: tasks / 50, ..Self::of(quick) }
    }
}

/// An operation that a client repeats.
pub(super) trait Load {
    /// Infix of the results' names.
    const WHAT: &'static str;
    /// Waits for the end.
    fn one(&self) -> Result<()>;
    /// Does it at least `count` times, with some always in flight; returns how often.
    fn many(&self, count: usize) -> Result<usize>;
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) per_s: f64,
    /// CPU time per operation of the throughput run, in microseconds.
    pub(super) cpu_us: f64,
}

/// All runs, after a warm-up. `cpu` returns the CPU time spent so far.
pub(super) fn runs<L: Load>(load: &L, effort: &Effort, cpu: impl Fn() -> Result<Duration>) -> Result<Vec<Run>> {
    round_trips(load, effort.round_trips / 10)?;
    (1..=effort.runs)
        .map(|number| {
            let trips = round_trips(load, effort.round_trips)?;
            let before = cpu()?;
            let started = Instant::now();
            let count = load.many(effort.tasks)?;
            let run = Run {
                p50_us: trips.value_at_quantile(0.5) as f64 / 1e3,
                p99_us: trips.value_at_quantile(0.99) as f64 / 1e3,
                per_s: count as f64 / started.elapsed().as_secs_f64(),
                cpu_us: (cpu()?.saturating_sub(before)).as_secs_f64() * 1e6 / count as f64,
            };
            let Run { p50_us, p99_us, per_s, .. } = run;
            let (all, what) = (effort.runs, L::WHAT);
            let [p50, p99] = [p50_us, p99_us].map(|us| units::time((us * 1e3).round() as u64));
            eprintln!("run {number} of {all}: round trip p50 {p50}, p99 {p99}; {per_s:.0} {what}/s");
            Ok(run)
        })
        .collect()
}

/// Operations per second: the median of some runs, after a warm-up.
pub(super) fn throughput<L: Load>(load: &L, effort: &Effort) -> Result<f64> {
    load.many(effort.tasks / 10)?;
    let run = |number| {
        let started = Instant::now();
        let per_s = load.many(effort.tasks)? as f64 / started.elapsed().as_secs_f64();
        eprintln!("run {number} of {}: {per_s:.0} {}/s", effort.runs, L::WHAT);
        Ok(per_s)
    };
    Ok(median((1..=effort.runs).map(run).collect::<Result<_>>()?))
}

/// Medians, as `PREFIX.rtt_p50_us` and so on.
pub(super) fn measures<L: Load>(prefix: &str, runs: &[Run]) -> Vec<Measure> {
    let name = |what| format!("{prefix}.{what}");
    let per_s = format!("{}_per_s", L::WHAT);
    vec![
        Measure::quantity(&name("rtt_p50_us"), median_of(runs, |run| run.p50_us), "us"),
        Measure::quantity(&name("rtt_p99_us"), median_of(runs, |run| run.p99_us), "us"),
        Measure {
            unit: format!("{}/s", L::WHAT).into(),
            ..Measure::count(&name(&per_s), median_of(runs, |run| run.per_s).round() as u64, "")
        },
    ]
}

pub(super) fn median_of(runs: &[Run], part: fn(&Run) -> f64) -> f64 {
    median(runs.iter().map(part).collect())
}

/// One at a time, in nanoseconds.
fn round_trips(load: &impl Load, count: usize) -> Result<Histogram<u64>> {
    let mut histogram = Histogram::new_with_max(ROUND_TRIP_MAX_NS, 3)?;
    for _ in 0..count {
        let started = Instant::now();
        load.one()?;
        histogram.saturating_record(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    Ok(histogram)
}

/// No-op tasks.
impl Load for Client {
    const WHAT: &'static str = "tasks";

    fn one(&self) -> Result<()> {
        one(self, Vec::new())
    }

    fn many(&self, count: usize) -> Result<usize> {
        many(self, count, || Job::builder(NOOP).repeat(JOB, Vec::new()).build())
    }
}

/// No-op tasks, each with its own argument of this many bytes.
pub(super) struct WithArguments<'a>(pub(super) &'a Client, pub(super) usize);

impl Load for WithArguments<'_> {
    const WHAT: &'static str = "tasks";

    fn one(&self) -> Result<()> {
        one(self.0, vec![0; self.1])
    }

    fn many(&self, count: usize) -> Result<usize> {
        let argument = |number: usize| number.to_be_bytes().into_iter().cycle().take(self.1).collect::<Vec<u8>>();
        many(self.0, count, || Job::builder(NOOP).tasks((0..JOB).map(argument)).build())
    }
}

fn one(client: &Client, argument: Vec<u8>) -> Result<()> {
    let outcomes = client.submit(TaskSpec::new(NOOP, argument))?.wait();
    ensure!(outcomes.iter().all(Result::is_ok), "a no-op task failed: {outcomes:?}");
    Ok(())
}

/// At least `count` tasks, in jobs from `job`.
fn many(client: &Client, count: usize, job: impl Fn() -> Job) -> Result<usize> {
    let mut jobs: VecDeque<JobHandle> = VecDeque::new();
    let count = count.div_ceil(JOB);
    for _ in 0..count {
        if jobs.len() == JOBS {
            jobs.pop_front().map_or(Ok(()), all_ok)?;
        }
        jobs.push_back(client.submit(job())?);
    }
    jobs.into_iter().try_for_each(all_ok)?;
    Ok(count * JOB)
}

fn all_ok(job: JobHandle) -> Result<()> {
    let failed = job.wait().into_iter().find_map(Result::err);
    failed.map_or(Ok(()), |error| Err(error).context("a no-op task failed"))
}
