//! `midflight replay`: plays a trace or a generated workload through a switch and measures scheduling delays.

use crate::replay::plan::{Plan, Work};
use crate::replay::{self, Stop, summary};
use anyhow::Result;
use clap::{Args as ClapArgs, ValueEnum};
use midflight_terminal::envelope::Envelope;
use midflight_terminal::machine::cores;
use midflight_terminal::progress::Progress;
use midflight_terminal::signals::Shutdown;
use midflight_terminal::{stdout, usage};
use midflight_workload::Format;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
EXAMPLES
  midflight replay                                 a generated workload, 32 executors, about 12 s
  midflight replay trace.tr --executors 64         a trace, scaled to tasks of 5 ms, load 0.8
  midflight replay tasks.csv.gz --format google --strict
  midflight replay --switch 10.0.0.1:7700          through a switch that runs elsewhere

Scheduling delay is from submission to start. Its parts: pacing (the client's window holds the task
back), queueing (no suitable executor is free) and dispatch (what the system adds). docs/replay.md
explains formats, scaling and every number.

EXIT CODES
  0 all tasks ended, 1 failed or tasks were lost, 2 wrong usage or an unreadable trace,
  130 interrupted";

/// What the command line says.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The trace; without it a workload is generated
    pub file: Option<PathBuf>,
    /// The trace's format; default: found from its name and first line
    #[arg(long, value_enum)]
    pub format: Option<FormatName>,
    /// Scale durations so that this is their median
    #[arg(long, value_name = "DURATION", default_value = "5ms", value_parser = usage::duration)]
    pub median: Duration,
    /// Scale arrivals so that executors are busy for this share of the time
    #[arg(long, value_name = "LOAD", default_value_t = 0.8, value_parser = load)]
    pub load: f64,
    /// Tasks that may run at once; default: 32 for sleep, the number of cores for spin
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub executors: Option<u32>,
    /// What tasks do
    #[arg(long, value_enum, default_value_t = Work::Sleep)]
    pub work: Work,
    /// A running switch; default: one in this process
    #[arg(long, value_name = "HOST:PORT")]
    pub switch: Option<String>,
    /// Seed of the generator, drawn priorities and the order of repetitions
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Submit for this long: repeats a shorter trace, cuts a longer one
    #[arg(long, value_name = "DURATION", value_parser = usage::duration)]
    pub duration: Option<Duration>,
    /// Submit no further job once this many tasks have been submitted
    #[arg(long, value_name = "TASKS")]
    pub limit: Option<u64>,
    /// Four levels (the trace's, or drawn), or one queue
    #[arg(long, value_enum, default_value_t = Switched::On)]
    pub priorities: Switched,
    /// Print the results as one JSON object
    #[arg(long)]
    pub json: bool,
    /// A malformed line is an error
    #[arg(long)]
    pub strict: bool,
}

/// The format of a trace.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FormatName {
    /// arrival, count, mean, durations; blank-separated seconds
    Tr,
    /// Alibaba 2017 batch_task CSV
    Alibaba,
    /// job_id,arrival_us,task_runtime_us,num_tasks
    Draconis,
    /// Google ClusterData 2011 task_events CSV
    Google,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Tr => Self::Tr,
            FormatName::Alibaba => Self::Alibaba,
            FormatName::Draconis => Self::Draconis,
            FormatName::Google => Self::Google,
        }
    }
}

/// Whether something is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switched {
    /// It is.
    On,
    /// It is not.
    Off,
}

/// Runs the command and returns the exit code.
///
/// # Errors
/// For wrong usage, or with the reason of the failure.
pub fn run(args: &Args) -> Result<ExitCode> {
    let switch = args.switch.as_deref().map(usage::resolve).transpose()?;
    let plan = Plan::new(args).map_err(|error| usage::error(format!("{error:#}")))?;
    let say = |line: &str| stdout::print_beside(args.json, &format!("{line}\n"));
    plan.describe().iter().try_for_each(|line| say(line))?;
    let (executors, cores) = (plan.executors, cores());
    if args.work == Work::Spin && executors > cores {
        say(&format!("{executors} executors compute on {cores} cores: tasks will take longer than planned"))?;
    }

    let stop = stop_by_signals()?;
    let progress = Progress::tasks(plan.tasks, false);
    let outcome = replay::run(&plan, switch, &stop, &progress)?;
    progress.finish();

    if args.json {
        Envelope::new("replay", summary::measures(&plan, &outcome)).print(true)?;
        summary::remarks(&plan, &outcome).iter().for_each(|remark| eprintln!("{remark}"));
    } else {
        stdout::print(&format!("\n{}", summary::table(&plan, &outcome)))?;
    }
    Ok(match outcome.ended {
        replay::outcome::Ended::Interrupted => ExitCode::from(usage::INTERRUPTED),
        _ if outcome.lost + outcome.failed > 0 => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

/// The first signal ends the run with a partial result. A later one ends the process, but not at once: some senders (`timeout`, a terminal
/// with its parent) signal twice.
fn stop_by_signals() -> Result<Stop> {
    const SAME: Duration = Duration::from_millis(300);
    let (stop, first) = (Stop::default(), OnceLock::new());
    let stopper = stop.clone();
    Shutdown::new()?.each(move |_count| {
        stopper.stop();
        if first.get_or_init(Instant::now).elapsed() > SAME {
            std::process::exit(usage::INTERRUPTED.into());
        }
    });
    Ok(stop)
}

impl Args {
    pub(super) fn executors(&self) -> u32 {
        self.executors.unwrap_or_else(|| if self.work == Work::Sleep { 32 } else { cores() })
    }

    /// Whether tasks have priority levels.
    pub fn has_priorities(&self) -> bool {
        self.priorities == Switched::On
    }
}

fn load(text: &str) -> Result<f64, String> {
    const RANGE: std::ops::RangeInclusive<f64> = 0.001..=1_000.0;
    let load = text.parse().ok().filter(|load| RANGE.contains(load));
    load.ok_or_else(|| "a number from 0.001 to 1000; 1 keeps all executors busy".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_means_nothing_is_refused() {
        assert_eq!(load("0.8"), Ok(0.8));
        for text in ["0", "-1", "nan", "inf", "1e300", "much"] {
            assert!(load(text).is_err(), "{text}");
        }
    }
}
