use super::connect;
use super::select::{Select, select};
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_jobs::protocol::Request;
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight job cancel 7              what waits does not begin, what runs is stopped
  midflight job cancel 2-4 last
  midflight job cancel all            all that have not ended
  midflight job remove 1-100          forgets those of them that have ended, with their outputs

EXIT CODES
  0 done, 1 failed, 2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Which jobs: numbers, ranges such as 2-4, last or all
    #[arg(value_name = "JOB", required = true, value_delimiter = ',')]
    jobs: Vec<Select>,
}

pub(super) fn cancel(args: &Args) -> Result<ExitCode> {
    let mut connection = connect()?;
    let jobs = select(&mut connection, &args.jobs)?;
    let jobs: Vec<u64> = jobs.iter().filter(|row| !row.state.has_ended()).map(|row| row.job).collect();
    connection.ask(&Request::Cancel(jobs.clone()))?;
    eprintln!("{} cancelled; what runs is being stopped (`midflight job wait` waits for it)", counted(jobs.len()));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn remove(args: &Args) -> Result<ExitCode> {
    let mut connection = connect()?;
    let rows = select(&mut connection, &args.jobs)?;
    // From a set of jobs, removes those that ended. A single job is always passed on, and the submitter explains a refusal.
    let is_single = matches!(args.jobs[..], [Select::Range(first, last)] if first == last);
    let jobs: Vec<u64> = rows.iter().filter(|row| is_single || row.state.has_ended()).map(|row| row.job).collect();
    connection.ask(&Request::Remove(jobs.clone()))?;
    eprintln!("{} removed", counted(jobs.len()));
    Ok(ExitCode::SUCCESS)
}

fn counted(jobs: usize) -> String {
    if jobs == 1 { "1 job".to_owned() } else { format!("{jobs} jobs") }
}
