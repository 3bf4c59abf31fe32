use super::select::{Select, select};
use super::{connect, one, wait_for_change};
use anyhow::{Context, Result, bail, ensure};
use clap::{Args as ClapArgs, ValueEnum};
use midflight_jobs::connection::Connection;
use midflight_jobs::model::{EndedRow, JobRow};
use midflight_jobs::protocol::{Answer, Request};
use midflight_terminal::{stdout, usage};
use std::io::Write;
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight job output 7                    stdout and stderr of each command, by their indices
  midflight job output last --index 12
  midflight job output 7 --only stderr
  midflight job output last --follow        of each command as it and all before it have ended

Commands that have not ended are left out, but for --follow. A command's output comes when it has
ended, not while it runs.

EXIT CODES
  0 printed, 1 failed, 2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Which job: a number or last
    #[arg(value_name = "JOB")]
    job: Select,
    /// Only the command with this index
    #[arg(long, value_name = "N")]
    index: Option<u32>,
    /// Only one of the two
    #[arg(long, value_name = "STREAM")]
    only: Option<Stream>,
    /// Wait for commands that have not ended
    #[arg(long, short)]
    follow: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stream {
    Stdout,
    Stderr,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let mut connection = connect()?;
    let jobs = select(&mut connection, &[args.job])?;
    ensure!(jobs.len() == 1, usage::error(format!("{} jobs are meant: name one", jobs.len())));
    let row = &jobs[0];
    let places = match args.index {
        None => 0..row.count(),
        Some(index) => {
            let place = row.spec.place(index);
            let place = place.ok_or_else(|| usage::error(format!("job {} has no command {index}", row.job)))?;
            place..place + 1
        }
    };
    let mut left_out = 0_u64;
    for place in places {
        match copy(&mut connection, args, row, place)? {
            Some(ended) => left_out += u64::from(!ended.kept),
            None if args.follow => {}
            None if args.index.is_some() => bail!("this command has not ended, or never began: --follow waits for it"),
            None => {}
        }
    }
    if left_out > 0 {
        eprintln!("the outputs of {left_out} commands were left out: the store was full (`midflight job status`)");
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints nothing if the command has not ended, or with --follow if it never will.
fn copy(connection: &mut Connection, args: &Args, row: &JobRow, place: u32) -> Result<Option<EndedRow>> {
    let mut seen = 0;
    loop {
        if args.follow {
            wait_for_change(connection, &mut seen)?;
        }
        let job_has_ended = !args.follow || one(connection, row.job)?.state.has_ended();
        let ended = pieces(connection, args, row.job, place)?;
        if ended.is_some() || job_has_ended {
            return Ok(ended);
        }
    }
}

fn pieces(connection: &mut Connection, args: &Args, job: u64, place: u32) -> Result<Option<EndedRow>> {
    connection.tell(&Request::Output { job, place })?;
    loop {
        match connection.hear()? {
            Answer::Piece { stderr: false, bytes } if args.only != Some(Stream::Stderr) => stdout::print_bytes(&bytes)?,
            Answer::Piece { stderr: true, bytes } if args.only != Some(Stream::Stdout) => {
                std::io::stderr().write_all(&bytes).context("cannot write the output")?;
            }
            Answer::Piece { .. } => {}
            Answer::EndOfOutput(ended) => return Ok(ended),
            other => bail!("the submitter has answered {other:?}"),
        }
    }
}
