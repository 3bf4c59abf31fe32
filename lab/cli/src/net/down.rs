use super::{Name, lab_error};
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_net::Lab;
use midflight_terminal::stdout;
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab net down
  midflight-lab net down --name large
  midflight-lab net down --all

Processes inside are asked to end (SIGTERM) and a second later killed. Nothing of the lab is left,
also where setting it up was cut off.

EXIT CODES
  0 down, 1 failed (no root, no such lab), 2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    name: Name,
    /// All labs of this machine, whoever set them up
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if !args.all {
        let name = args.name.or_default();
        Lab::remove(&name).map_err(lab_error)?;
        stdout::print(&format!("lab {name} is down\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    midflight_net::check_privileges().map_err(lab_error)?;
    for name in Lab::names().map_err(lab_error)? {
        match Lab::remove(&name) {
            // Another process has taken it down.
            Err(midflight_net::LabError::NotFound(_)) => {}
            removed => {
                removed.map_err(lab_error)?;
                stdout::print(&format!("lab {name} is down\n"))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
