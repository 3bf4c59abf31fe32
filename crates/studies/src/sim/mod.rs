//! `midflight sim`: the simulated world. Each file is a subcommand.

mod cell;
mod check;
mod figure;
mod mutants;
mod run;
mod seeds;
mod sweep;

use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;

/// What needs less memory.
const SMALLER: &str = "fewer executors or slots, a lower load or a shorter duration; --force starts it all the same";

/// What the command line says.
#[derive(ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// A scenario: a cluster, its network, what is submitted, and what goes wrong
    #[command(after_help = run::EXAMPLES)]
    Run(run::Args),
    /// Clusters drawn from seeds, disturbed in every way, held to the rules
    #[command(after_help = check::EXAMPLES)]
    Check(check::Args),
    /// Bugs planted in a build of its own, which check must find
    #[command(after_help = mutants::EXAMPLES)]
    Mutants(mutants::Args),
    /// The papers' figures, run again: verdicts, plots, a report
    #[command(after_help = figure::EXAMPLES)]
    Figure(figure::Args),
    /// All combinations of some values of a cell's parameters
    #[command(after_help = sweep::EXAMPLES)]
    Sweep(sweep::Args),
    /// One cell of a figure or a sweep: JSON in, JSON out
    #[command(after_help = cell::EXAMPLES)]
    Cell(cell::Args),
}

/// Runs the study and returns the exit code.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Run(args) => run::run(args),
        Command::Check(args) => check::run(args),
        Command::Mutants(args) => mutants::run(args),
        Command::Figure(args) => figure::run(args),
        Command::Sweep(args) => sweep::run(args),
        Command::Cell(args) => cell::run(args),
    }
}
