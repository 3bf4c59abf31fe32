//! `midflight bench loop`: the whole way of a task, through the kernel's loopback. Client, switch and executors are processes.

use super::processes::{Process, executor, switch};
use super::{How, median};
use crate::embedded::connect;
use crate::envelope::{Envelope, Measure};
use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use midflight_host::{Client, Job, JobHandle, TaskSpec};
use midflight_tasks::functions::NOOP;
use std::collections::VecDeque;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The longest round trip that is told apart from longer ones: a minute.
const ROUND_TRIP_MAX_NS: u64 = 60_000_000_000;
/// Slots of the executor of round trip and throughput.
const SLOTS: u32 = 64;
/// Tasks in a job of the throughput run, and jobs in flight.
const JOB: usize = 2_048;
const JOBS: usize = 4;
/// Executor processes of the idle run, and their slots: 2,200 in all.
const IDLE_EXECUTORS: u32 = 4;
const IDLE_SLOTS: u32 = 550;
/// Time for the last registrations to settle before idling is measured.
const SETTLE: Duration = Duration::from_secs(1);

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight bench loop
  midflight bench loop --quick           a few seconds, less exact
  midflight bench loop --json

RESULTS (medians of the runs)
  loop.rtt_p50_us, loop.rtt_p99_us  one no-op task at a time, from the submit call to its result
  loop.tasks_per_s                  no-op tasks, one client, one executor process with 64 slots
  loop.idle_cpu_percent             of a core, in the switch: 2,200 parked slots, 4 executors

EXIT CODES
  0 measured, 1 failed, 2 wrong usage";

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Effort {
    runs: usize,
    round_trips: usize,
    tasks: usize,
    idle: Duration,
}

impl Effort {
    const FULL: Self = Self { runs: 5, round_trips: 20_000, tasks: 500_000, idle: Duration::from_secs(5) };
    const QUICK: Self = Self { runs: 3, round_trips: 2_000, tasks: 50_000, idle: Duration::from_secs(1) };
}

pub(super) fn run(how: &How) -> Result<ExitCode> {
    let effort = if how.quick { Effort::QUICK } else { Effort::FULL };
    let mut results = busy(&effort)?;
    results.push(idle(&effort)?);
    Envelope::new("loop", results).print(how.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Round trip and throughput.
fn busy(effort: &Effort) -> Result<Vec<Measure>> {
    let (_switch, address) = switch()?;
    let _executor = executor(address, SLOTS)?;
    let client = connect(vec![address])?;
    round_trips(&client, effort.round_trips / 10)?;
    let (mut p50, mut p99, mut rate) = (Vec::new(), Vec::new(), Vec::new());
    for run in 1..=effort.runs {
        let trips = round_trips(&client, effort.round_trips)?;
        p50.push(trips.value_at_quantile(0.5) as f64 / 1e3);
        p99.push(trips.value_at_quantile(0.99) as f64 / 1e3);
        rate.push(throughput(&client, effort.tasks)?);
        eprintln!(
            "run {run} of {}: round trip p50 {:.1} us, p99 {:.1} us; {:.0} tasks/s",
            effort.runs,
            p50[run - 1],
            p99[run - 1],
            rate[run - 1]
        );
    }
    Ok(vec![
        Measure::quantity("loop.rtt_p50_us", median(p50), "us"),
        Measure::quantity("loop.rtt_p99_us", median(p99), "us"),
        Measure::count("loop.tasks_per_s", median(rate).round() as u64, "tasks/s"),
    ])
}

/// One task at a time, in nanoseconds.
fn round_trips(client: &Client, count: usize) -> Result<Histogram<u64>> {
    let mut histogram = Histogram::new_with_max(ROUND_TRIP_MAX_NS, 3)?;
    for _ in 0..count {
        let started = Instant::now();
        let outcomes = client.submit(TaskSpec::new(NOOP, Vec::new()))?.wait();
        histogram.saturating_record(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX));
        ensure!(outcomes.iter().all(Result::is_ok), "a no-op task failed: {outcomes:?}");
    }
    Ok(histogram)
}

/// Tasks a second, with some jobs always in flight.
fn throughput(client: &Client, tasks: usize) -> Result<f64> {
    let mut jobs: VecDeque<JobHandle> = VecDeque::new();
    let count = tasks.div_ceil(JOB);
    let started = Instant::now();
    for _ in 0..count {
        if jobs.len() == JOBS {
            jobs.pop_front().map_or(Ok(()), all_ok)?;
        }
        jobs.push_back(client.submit(Job::builder(NOOP).repeat(JOB, Vec::new()).build())?);
    }
    jobs.into_iter().try_for_each(all_ok)?;
    Ok((count * JOB) as f64 / started.elapsed().as_secs_f64())
}

fn all_ok(job: JobHandle) -> Result<()> {
    let failed = job.wait().into_iter().find_map(Result::err);
    failed.map_or(Ok(()), |error| Err(error).context("a no-op task failed"))
}

/// What waiting executors cost the switch.
fn idle(effort: &Effort) -> Result<Measure> {
    let (switch, address) = switch()?;
    let _executors = (0..IDLE_EXECUTORS).map(|_| executor(address, IDLE_SLOTS)).collect::<Result<Vec<Process>>>()?;
    sleep(SETTLE);
    let mut percent = Vec::new();
    for run in 1..=effort.runs.div_ceil(2) {
        let (before, started) = (switch.cpu_time()?, Instant::now());
        sleep(effort.idle);
        let share = (switch.cpu_time()? - before).as_secs_f64() / started.elapsed().as_secs_f64();
        eprintln!("idle run {run}: {:.2} % of a core", share * 100.0);
        percent.push(share * 100.0);
    }
    Ok(Measure::quantity("loop.idle_cpu_percent", median(percent), "%"))
}
