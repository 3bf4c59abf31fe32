//! `midflight-lab sim`: the simulator.

mod cell;
mod check;
mod figure;
mod mutants;
mod run;
mod sweep;
pub(crate) mod traces;

use clap::{Args as ClapArgs, Subcommand};
use midflight_terminal::progress::Progress;
use std::process::ExitCode;

/// `total` is `None` if unknown.
fn campaign(total: Option<u64>, what: &'static str) -> Progress {
    Progress::counted(total, what, "{bar:40} {human_pos}/{human_len} {msg}, {per_sec}, {elapsed}")
}

/// The advice for runs that need too much memory.
const SMALLER: &str = "fewer executors or slots, a lower load or a shorter duration; --force starts it all the same";

/// What the command line says.
#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a scenario: a cluster, its network, its load and its faults
    #[command(after_help = run::EXAMPLES)]
    Run(run::Args),
    /// The fault campaign: random clusters with faults of all kinds, checked against the rules
    #[command(after_help = check::EXAMPLES)]
    Check(check::Args),
    /// Plant bugs, in a build of their own, and see whether the fault campaign finds them
    #[command(after_help = mutants::EXAMPLES)]
    Mutants(mutants::Args),
    /// Reproduce the papers' figures: verdicts, plots, a report
    #[command(after_help = figure::EXAMPLES)]
    Figure(figure::Args),
    /// Run all combinations of some values of a cell's parameters
    #[command(after_help = sweep::EXAMPLES)]
    Sweep(sweep::Args),
    /// Run one cell of a figure or a sweep: JSON in, JSON out
    #[command(after_help = cell::EXAMPLES)]
    Cell(cell::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Run(args) => run::run(args),
        Command::Check(args) => check::run(args),
        Command::Mutants(args) => mutants::run(args),
        Command::Figure(args) => figure::run(args),
        Command::Sweep(args) => sweep::run(args),
        Command::Cell(args) => cell::run(args),
    }
}
