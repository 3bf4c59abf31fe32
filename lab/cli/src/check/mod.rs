//! `midflight-lab check`: exhaustive search of small instances, and checks of histories.

mod asic;
mod history;
mod larger;
mod p4;
mod planted;
mod progress;
mod store;
mod table;

use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;

/// What the command line says.
#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The asic engine's programs: what they use of a switch, which rules the published one breaks, that the safe one breaks
    /// none in small queues, and that defects of it are found
    #[command(after_help = asic::EXAMPLES)]
    Asic(asic::Args),
    /// The protocol of the store: no rule breaks in any state of its model, and each planted protocol error is found
    #[command(after_help = store::EXAMPLES)]
    Store(store::Args),
    /// The P4 programs of tasks: compiled, run in BMv2, and compared with the model, packet by packet
    #[command(after_help = p4::EXAMPLES)]
    P4(p4::Args),
    /// A history of a store: whether it is linearizable
    #[command(after_help = history::EXAMPLES)]
    History(history::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Asic(args) => asic::run(args),
        Command::Store(args) => store::run(args),
        Command::P4(args) => p4::run(args),
        Command::History(args) => history::run(args),
    }
}
