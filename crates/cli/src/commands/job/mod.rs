//! `midflight job`: jobs submitted with --detach.

mod cancel;
pub(super) mod detach;
mod list;
mod output;
mod select;
mod show;
mod wait;

use anyhow::{Context, Result, bail};
use clap::{Args as ClapArgs, Subcommand};
use midflight_jobs::connection::{ConnectError, Connection};
use midflight_jobs::directory::StateDirectory;
use midflight_jobs::model::JobRow;
use midflight_jobs::protocol::{Answer, ProtocolError, Request, Status};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Shortest interval between requests.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Warn after this time; the submitter sends about ten requests in it.
const SWITCH_WITHIN: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
EXAMPLES
  midflight submit --detach exec 'make test'             prints the number of the job, and returns
  midflight submit --detach exec 'echo $MIDFLIGHT_INDEX' --array 1-1000
  ls *.log | midflight map --detach -- gzip -9
  midflight submit --detach exec ./publish --after 1     when job 1 has succeeded
  midflight job list                                     all jobs, the newest last
  midflight job wait last && midflight job output last   its outputs, in the order of the indices
  midflight job cancel 2-4

JOB is a number, a range such as 2-4, `last` or `all`; several with commas or blanks. A process of
yours, the submitter, keeps the jobs and their outputs in $MIDFLIGHT_STATE (default: midflight in
$XDG_STATE_HOME or ~/.local/state), and starts by itself. It may be killed, and the machine
restarted: see docs/jobs.md.

EXIT CODES
  0 done; 1 failed, or (wait) a job did not succeed; 2 wrong usage; 3 (wait --timeout) too long";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List jobs, the newest last
    #[command(visible_alias = "ls")]
    List(list::Args),
    /// Show jobs and their commands: exit codes, hosts, times
    #[command(visible_alias = "info")]
    Show(show::Args),
    /// Wait until jobs have ended
    Wait(wait::Args),
    /// Print the outputs of a job's commands, in the order of their indices
    #[command(visible_alias = "cat")]
    Output(output::Args),
    /// Cancel jobs: what waits does not begin, what runs is stopped
    Cancel(cancel::Args),
    /// Forget jobs that have ended, with their outputs
    #[command(visible_alias = "forget")]
    Remove(cancel::Args),
    /// Show how the submitter is
    Status(list::StatusArgs),
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::List(args) => list::run(args),
        Command::Show(args) => show::run(args),
        Command::Wait(args) => wait::run(args),
        Command::Output(args) => output::run(args),
        Command::Cancel(args) => cancel::cancel(args),
        Command::Remove(args) => cancel::remove(args),
        Command::Status(args) => list::status(args),
    }
}

/// Starts this user's submitter if none runs.
fn connect() -> Result<Connection> {
    let directory = StateDirectory::of_environment()?;
    let program = std::env::current_exe().context("cannot find the program of this command")?;
    Ok(Connection::open_or_start(&directory, &program)?)
}

/// Sends an idempotent request. If the submitter exits before it answers, retries with a new one, which continues its jobs.
fn ask(connection: &mut Connection, request: &Request) -> Result<Answer> {
    match connection.ask(request) {
        Err(ConnectError::Protocol(ProtocolError::Io(_))) => {
            *connection = connect()?;
            Ok(connection.ask(request)?)
        }
        answer => Ok(answer?),
    }
}

fn all(connection: &mut Connection) -> Result<Vec<JobRow>> {
    let mut jobs = Vec::new();
    let mut first = 0;
    while let Answer::Jobs(rows) = ask(connection, &Request::List { first })? {
        let Some(last) = rows.last() else { return Ok(jobs) };
        first = last.job + 1;
        jobs.extend(rows);
    }
    bail!("the submitter has answered something else than was asked for")
}

fn one(connection: &mut Connection, job: u64) -> Result<JobRow> {
    match ask(connection, &Request::Show { job })? {
        Answer::Jobs(rows) if rows.len() == 1 => Ok(rows.into_iter().next().context("one row")?),
        other => bail!("the submitter has answered {other:?}"),
    }
}

fn status(connection: &mut Connection) -> Result<Status> {
    match ask(connection, &Request::Status)? {
        Answer::Status(status) => Ok(status),
        other => bail!("the submitter has answered {other:?}"),
    }
}

/// The submitter's status, and whether a switch has answered since this call.
fn status_after_asking(connection: &mut Connection) -> Result<(Status, bool)> {
    let began = Instant::now();
    loop {
        let status = status(connection)?;
        let has_answered = status.answered.is_some_and(|ago| ago <= began.elapsed());
        let is_silent = status.unanswered.is_some_and(|silence| silence >= SWITCH_WITHIN);
        if has_answered || is_silent || status.switches.is_empty() || began.elapsed() >= 2 * SWITCH_WITHIN {
            return Ok((status, has_answered));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Waits for a change since the last call, and a moment longer so that many changes are seen at once.
fn wait_for_change(connection: &mut Connection, seen: &mut u64) -> Result<()> {
    if *seen > 0 {
        std::thread::sleep(LOOK_EVERY);
    }
    match ask(connection, &Request::Wait { seen: *seen })? {
        Answer::Changed(now) => {
            *seen = now;
            Ok(())
        }
        other => bail!("the submitter has answered {other:?}"),
    }
}
