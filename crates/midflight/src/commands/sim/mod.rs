//! `midflight sim`: the simulated world. Each file is a subcommand.

mod cell;
mod figure;

use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;

#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The papers' figures, run again: verdicts, plots, a report
    #[command(after_help = figure::EXAMPLES)]
    Figure(figure::Args),
    /// One cell of a figure or a sweep: JSON in, JSON out
    #[command(after_help = cell::EXAMPLES)]
    Cell(cell::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Figure(args) => figure::run(args),
        Command::Cell(args) => cell::run(args),
    }
}
