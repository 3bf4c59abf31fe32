//! `midflight baseline sparrow submit`.

use super::SCHEDULER;
use crate::commands::submit::{LATENCY_MAX_US, LOOK_EVERY, argument};
use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use hdrhistogram::Histogram;
use midflight_host::baseline::{Outcome, SparrowClient};
use midflight_tasks::functions::function_id;
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::progress::Progress;
use midflight_terminal::signals::Shutdown;
use midflight_terminal::usage;
use midflight_wire::{ARGUMENT_MAX, Status, TaskInfo};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
EXAMPLES
  midflight baseline sparrow submit noop -n 100000
  midflight baseline sparrow submit sleep 10ms -n 280 --job 28
  midflight baseline sparrow submit noop --scheduler 10.0.0.1:7800,10.0.0.2:7800 --json

Jobs go to the schedulers in turn, all at once. The summary goes to stderr. Results are not sent
back. Ctrl-C ends it; what was submitted is still run.

EXIT CODES
  0 all succeeded, 1 some did not, or failed, 2 wrong usage, 130 interrupted";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Function to call: noop, sleep, spin or exec
    function: String,
    /// Its argument: a duration for sleep and spin, else at most 16 bytes
    #[arg(default_value = "")]
    argument: String,
    /// How many times
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    count: u32,
    /// Tasks of one job
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    job: u32,
    /// Schedulers, which take jobs in turn
    #[arg(long, value_name = "HOST:PORT,..", default_value = SCHEDULER)]
    scheduler: String,
    /// One JSON object with the summary on stdout
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let task = task(&args.function, &args.argument)?;
    let client = SparrowClient::connect(usage::resolve_all(&args.scheduler)?)?;
    let signals = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&signals);
    Shutdown::new()?.each(move |count| seen.store(count, Ordering::Relaxed));
    let mut tally = Tally::new()?;
    let started = Instant::now();
    let mut left = args.count;
    while left > 0 {
        let tasks = left.min(args.job);
        client.submit(&vec![task; tasks as usize])?;
        left -= tasks;
    }
    let progress = Progress::tasks(u64::from(args.count), args.json);
    let mut open = u64::from(args.count);
    while open > 0 && signals.load(Ordering::Relaxed) == 0 {
        if let Some(outcome) = client.next(LOOK_EVERY) {
            let ended = progress.suspend(|| tally.add(outcome));
            (0..ended).for_each(|_| progress.advance());
            open -= ended;
        }
    }
    progress.finish();
    tally.print(started.elapsed(), client.repeated(), args.json)?;
    let code = if open > 0 { usage::INTERRUPTED } else { u8::from(tally.failed + tally.lost > 0) };
    Ok(ExitCode::from(code))
}

fn task(function: &str, text: &str) -> Result<TaskInfo> {
    let bytes = argument(function, text)?;
    let mut inline = [0; ARGUMENT_MAX];
    let room = inline.get_mut(..bytes.len());
    room.ok_or_else(|| usage::error(format!("an argument of {} bytes: at most {ARGUMENT_MAX}", bytes.len())))?
        .copy_from_slice(&bytes);
    Ok(TaskInfo {
        tid: 0.into(),
        function: function_id(function).into(),
        priority: 1,
        resources: 0,
        argument_length: bytes.len() as u8,
        attempt: 1,
        argument: inline,
    })
}

struct Tally {
    ok: u64,
    failed: u64,
    lost: u64,
    latency_us: Histogram<u64>,
}

impl Tally {
    fn new() -> Result<Self> {
        let latency_us = Histogram::new_with_bounds(1, LATENCY_MAX_US, 3).context("a histogram of latencies")?;
        Ok(Self { ok: 0, failed: 0, lost: 0, latency_us })
    }

    /// How many tasks that were.
    fn add(&mut self, outcome: Outcome) -> u64 {
        match outcome {
            Outcome::Ended { status: Status::Ok, took_ns } => {
                self.latency_us.saturating_record(took_ns / 1_000);
                self.ok += 1;
            }
            Outcome::Ended { status, .. } => {
                if self.failed == 0 {
                    let why = if status == Status::Unknown { "no such function" } else { "see the worker's log" };
                    eprintln!("a task failed: {why}");
                }
                self.failed += 1;
            }
            Outcome::Lost { tasks } => {
                if self.lost == 0 {
                    eprintln!("no scheduler answered: check --scheduler and that it runs");
                }
                self.lost += u64::from(tasks);
                return tasks.into();
            }
        }
        1
    }

    fn print(&self, elapsed: Duration, repeated: u64, json: bool) -> Result<()> {
        let seconds = elapsed.as_secs_f64();
        let (rate, at) = (self.ok as f64 / seconds, |quantile| self.latency_us.value_at_quantile(quantile));
        if json {
            let results = vec![
                Measure::count("sparrow.ok", self.ok, "tasks"),
                Measure::count("sparrow.failed", self.failed, "tasks"),
                Measure::count("sparrow.lost", self.lost, "tasks"),
                Measure::quantity("sparrow.seconds", seconds, "s"),
                Measure::quantity("sparrow.tasks_per_s", rate, "tasks/s"),
                Measure::count("sparrow.latency_p50_us", at(0.5), "us"),
                Measure::count("sparrow.latency_p99_us", at(0.99), "us"),
                Measure::count("sparrow.repeated", repeated, "packets"),
            ];
            return Envelope::new("sparrow", results).print(true);
        }
        eprintln!("{} ok, {} failed, {} lost in {seconds:.3} s ({rate:.0} tasks/s)", self.ok, self.failed, self.lost);
        if !self.latency_us.is_empty() {
            eprintln!("submit to end: p50 {} us, p99 {} us, max {} us", at(0.5), at(0.99), self.latency_us.max());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_fit_the_packet_or_are_refused() {
        assert_eq!(task("sleep", "2us").unwrap().argument[..8], 2_000u64.to_be_bytes());
        assert_eq!(task("exec", "true").unwrap().argument_length, 4);
        for (function, argument) in [("sleep", "long"), ("exec", "a command of 17 b")] {
            assert!(task(function, argument).unwrap_err().is::<usage::UsageError>());
        }
    }
}
