//! `midflight-lab net exec`: replaces this process by a command at a place of a lab.

use super::{Name, lab_error};
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_net::{Lab, Place};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;

/// Exit codes for a command that could not run, as in a shell.
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab net exec host0 -- ping -c 3 10.77.255.1
  midflight-lab net exec switch -- midflight switch --listen 10.77.255.1:7700
  midflight-lab net exec --name large host7               a shell there

Only the network is that of the place: files, users and processes are the machine's. The command
takes the place of this process, so signals reach it and its exit code comes back.

EXIT CODES
  those of the command; 127 it was not found, 126 it cannot be run; 1 failed (no root, no such lab),
  2 wrong usage; stderr then has a line \"error: …\"";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    name: Name,
    /// Where: switch, rack0, host0, host1, ..
    #[arg(value_name = "PLACE")]
    place: String,
    /// What to run, after --; default: a shell
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<OsString>,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let place: Place = args.place.parse().map_err(lab_error)?;
    let lab = Lab::open(&args.name.or_default()).map_err(lab_error)?;
    lab.netns(place).map_err(lab_error)?;
    midflight_net::check_privileges().map_err(lab_error)?;
    let shell = || vec![std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())];
    let words = if args.command.is_empty() { shell() } else { args.command.clone() };
    let error = lab.command(place, &words[0]).args(&words[1..]).exec();
    Ok(not_run(&words[0], &error))
}

pub(super) fn not_run(program: &OsString, error: &std::io::Error) -> ExitCode {
    eprintln!("error: cannot run {}: {error}", program.display());
    ExitCode::from(if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { CANNOT_RUN })
}
