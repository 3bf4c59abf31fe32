use super::SCHEDULER;
use super::sparrow::{Outcome, SparrowClient};
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_cli::submitting::{Ends, SIGNAL_POLL_INTERVAL, argument, interrupt_count};
use midflight_tasks::functions::function_id;
use midflight_terminal::envelope::Measure;
use midflight_terminal::progress::Progress;
use midflight_terminal::usage;
use midflight_wire::tasks::{ARGUMENT_MAX, Status, TaskInfo};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Instant;

const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab baseline sparrow submit noop -n 100000
  midflight-lab baseline sparrow submit sleep 10ms -n 280 --job 28
  midflight-lab baseline sparrow submit noop --scheduler 10.0.0.1:7800,10.0.0.2:7800 --json

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
    let (interrupts, mut ends) = (interrupt_count()?, Ends::new(None)?);
    let started = Instant::now();
    let mut left = args.count;
    while left > 0 {
        let tasks = left.min(args.job);
        client.submit(&vec![task; tasks as usize])?;
        left -= tasks;
    }
    let progress = Progress::tasks(u64::from(args.count), args.json);
    let mut open = u64::from(args.count);
    while open > 0 && interrupts.load(Ordering::Relaxed) == 0 {
        if let Some(outcome) = client.next(SIGNAL_POLL_INTERVAL) {
            let ended = progress.suspend(|| add(&mut ends, outcome));
            (0..ended).for_each(|_| progress.advance());
            open -= ended;
        }
    }
    progress.finish();
    let repeated = Measure::count("sparrow.repeated", client.repeated(), "packets");
    ends.print("sparrow", "end", started.elapsed(), args.json.then_some(repeated))?;
    let code = if open > 0 { usage::INTERRUPTED } else { u8::from(!ends.all_ok()) };
    Ok(ExitCode::from(code))
}

fn task(function: &str, text: &str) -> Result<TaskInfo> {
    let bytes = argument(function, text.as_ref())?;
    let mut inline = [0; ARGUMENT_MAX];
    let room = inline.get_mut(..bytes.len());
    room.ok_or_else(|| usage::error(format!("an argument of {} bytes: at most {ARGUMENT_MAX}", bytes.len())))?
        .copy_from_slice(&bytes);
    Ok(TaskInfo {
        function: function_id(function).into(),
        argument_length: bytes.len() as u8,
        attempt: 1,
        argument: inline,
        ..TaskInfo::PLAIN
    })
}

/// Returns its number of tasks.
fn add(ends: &mut Ends, outcome: Outcome) -> u64 {
    match outcome {
        Outcome::Ended { status: Status::Ok, took_ns } => {
            ends.latency_us.saturating_record(took_ns / 1_000);
            ends.ok += 1;
        }
        Outcome::Ended { status, .. } => {
            if ends.failed == 0 {
                let why = if status == Status::Unknown { "no such function" } else { "see the worker's log" };
                eprintln!("a task failed: {why}");
            }
            ends.failed += 1;
        }
        Outcome::Lost { tasks } => {
            if ends.lost == 0 {
                eprintln!("no scheduler answered: check --scheduler and that it runs");
            }
            ends.lost += u64::from(tasks);
            return tasks.into();
        }
    }
    1
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
