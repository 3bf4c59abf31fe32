//! `midflight-lab net run`: a lab for the duration of a command.

use super::exec::not_run;
use super::{NAME_VARIABLE, Wanted};
use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use midflight_terminal::signals::{TO_END, end_flag};
use midflight_terminal::usage;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_millis(20);

const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab net run --hosts 3 -- ./test.sh
  midflight-lab net run -- midflight-lab net exec host0 -- ping -c 3 10.77.255.1
  midflight-lab net run --loss 1% -- bash               a shell; the lab goes with it

The command runs outside; `midflight-lab net exec PLACE -- …` in it finds the lab by the environment
variable MIDFLIGHT_LAB. Ctrl-C, SIGTERM and SIGHUP go on to the command. When it ends, so do all
processes that it left in the lab.

EXIT CODES
  those of the command; 127 it was not found, 126 it cannot be run; 1 failed (no root), 2 wrong
  usage, 130 interrupted before it began";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    wanted: Wanted,
    /// What to run, after --
    #[arg(value_name = "COMMAND", last = true, required = true)]
    command: Vec<OsString>,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let (interrupted, mut signals) = (end_flag()?, Signals::new(TO_END)?);
    let lab = args.wanted.up(format!("run{}", std::process::id()), &interrupted)?;
    let (program, rest) = (&args.command[0], &args.command[1..]);
    let code = match Command::new(program).args(rest).env(NAME_VARIABLE, lab.name()).spawn() {
        Ok(child) => exit_code(wait(child, &mut signals)?),
        Err(error) => not_run(program, &error),
    };
    lab.down()?;
    Ok(code)
}

/// Forwards signals.
fn wait(mut child: Child, signals: &mut Signals) -> Result<ExitStatus> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // Ctrl-C reaches all processes of the terminal.
    let told_by_terminal = |signal| signal == SIGINT && std::io::stdin().is_terminal();
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for the command")? {
            return Ok(status);
        }
        for signal in signals.pending().filter(|signal| !told_by_terminal(*signal)) {
            if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
                let _ = kill_process(pid, signal); // an error means that it has exited
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(u8::try_from(code).unwrap_or(usage::FAILURE))
}
