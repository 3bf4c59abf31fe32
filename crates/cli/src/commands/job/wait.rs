use super::select::{Select, select};
use super::{connect, one, wait_for_change};
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_jobs::model::{JobRow, JobState};
use midflight_terminal::usage::{self, duration};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
EXAMPLES
  midflight job wait 7 && echo all commands of job 7 have exited with 0
  midflight job wait last --timeout 10m
  midflight job wait all

EXIT CODES
  0 all have succeeded; 1 one did not, or failed to wait; 2 wrong usage; 3 --timeout came first";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Which jobs: numbers, ranges such as 2-4, last or all
    #[arg(value_name = "JOB", required = true, value_delimiter = ',')]
    jobs: Vec<Select>,
    /// How long to wait, such as 30s or 2h; default: for ever
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
    /// Say nothing
    #[arg(long, short)]
    quiet: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let began = Instant::now();
    let mut connection = connect()?;
    let mut waiting: Vec<u64> = select(&mut connection, &args.jobs)?.iter().map(|row| row.job).collect();
    let (mut all_succeeded, mut seen) = (true, 0);
    loop {
        // Wait before reading the jobs, so that a change after the read ends the next wait.
        wait_for_change(&mut connection, &mut seen)?;
        let mut left = Vec::new();
        for job in waiting {
            let row = one(&mut connection, job)?;
            if !row.state.has_ended() {
                left.push(job);
                continue;
            }
            all_succeeded &= row.state == JobState::Succeeded;
            if !args.quiet {
                eprintln!("{}", sentence(&row));
            }
        }
        waiting = left;
        if waiting.is_empty() {
            return Ok(if all_succeeded { ExitCode::SUCCESS } else { ExitCode::from(usage::FAILURE) });
        }
        if args.timeout.is_some_and(|timeout| began.elapsed() >= timeout) {
            return Ok(ExitCode::from(usage::NO));
        }
    }
}

fn sentence(row: &JobRow) -> String {
    let counts = row.counts;
    let parts = [
        ("succeeded", counts.succeeded),
        ("failed", counts.failed),
        ("lost", counts.lost),
        ("cancelled", counts.cancelled),
    ];
    let parts: Vec<_> = parts.iter().filter(|part| part.1 > 0).map(|(word, count)| format!("{count} {word}")).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    format!("job {} {}{parts}", row.job, row.state.word())
}
