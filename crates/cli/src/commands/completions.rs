//! `midflight completions`: completions for a shell.

use crate::Cli;
use anyhow::Result;
use clap::{Args as ClapArgs, CommandFactory};
use clap_complete::{Shell, generate};
use midflight_terminal::stdout;
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight completions bash >~/.local/share/bash-completion/completions/midflight
  midflight completions zsh >~/.zfunc/_midflight           with fpath+=~/.zfunc before compinit
  midflight completions fish >~/.config/fish/completions/midflight.fish

The Debian package brings them for bash, zsh and fish.

EXIT CODES
  0 printed, 1 stdout cannot be written, 2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// For which shell
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "midflight", &mut script);
    stdout::print_bytes(&script)?;
    Ok(ExitCode::SUCCESS)
}
