//! `midflight submitter`: keeps this user's jobs and runs their commands.

use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_jobs::directory::{DirectoryError, StateDirectory};
use midflight_jobs::submitter::{Settings, Submitter, SubmitterError};
use midflight_terminal::signals::Shutdown;
use midflight_terminal::usage::{NO, duration};
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
EXAMPLES
  midflight submitter                        in the foreground, for systemd; Ctrl-C ends it
  midflight submitter --keep 7d --store-max 107374182400

`midflight submit --detach` and `midflight job` start one in the background if none runs. It may be
ended at any time, also by SIGKILL: what runs goes on, and the next one takes it over. Its files are
in $MIDFLIGHT_STATE: see docs/jobs.md, also for a unit of systemd.

EXIT CODES
  0 ended by SIGINT or SIGTERM, 1 failed, 2 wrong usage, 3 one runs already for this directory";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Commands of one job that may be with the switch at once
    #[arg(long, value_name = "N", default_value_t = Settings::default().window, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    window: u32,
    /// Bytes of command lines and outputs of all jobs
    #[arg(long, value_name = "BYTES", default_value_t = Settings::default().bytes_max)]
    store_max: u64,
    /// How long a job is kept after its end
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "90d")]
    keep: Duration,
    /// Leave the terminal: what starts it for a command gives this
    #[arg(long, hide = true)]
    background: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.background {
        // Fails if the process already leads a session.
        let _ = rustix::process::setsid();
    }
    let directory = StateDirectory::of_environment()?;
    let settings = Settings { window: args.window, bytes_max: args.store_max, keep: args.keep, ..Settings::default() };
    let submitter = match Submitter::start(&directory, settings) {
        Err(error @ SubmitterError::Directory(DirectoryError::Locked { .. })) => {
            eprintln!("{error}");
            return Ok(ExitCode::from(NO)); // CODE_LOCKED of the connection
        }
        other => other?,
    };
    let stopper = submitter.stopper();
    Shutdown::new()?.each(move |_| stopper.stop());
    if !args.background {
        eprintln!("jobs are in {}", directory.path().display());
    }
    submitter.run();
    Ok(ExitCode::SUCCESS)
}
