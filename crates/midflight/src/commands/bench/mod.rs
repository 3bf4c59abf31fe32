//! `midflight bench`: numbers of this machine. Each file measures one thing.

mod core;
mod r#loop;
mod processes;

use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;

#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// The scheduler's core alone: nanoseconds a decision
    Core(core::Args),
    /// Client, switch and executor as three processes on loopback: round trip, throughput, idle cost
    Loop(r#loop::Args),
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.bench {
        Bench::Core(args) => core::run(&args),
        Bench::Loop(args) => r#loop::run(&args),
    }
}
