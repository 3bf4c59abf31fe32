//! `midflight bench`: numbers of this machine. Each file measures one thing.

mod core;
mod keeper;
mod lab;
mod live;
mod load;
mod r#loop;
mod peers;
mod sim;
mod workload;
mod xdp;

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
    #[command(after_help = core::EXAMPLES)]
    Core(How),
    /// The same core in the kernel, as BPF: nanoseconds a decision
    #[command(after_help = xdp::EXAMPLES)]
    Xdp(How),
    /// Client, switch and executor as three processes on loopback: round trip, throughput, idle cost
    #[command(after_help = r#loop::EXAMPLES)]
    Loop(How),
    /// The same as processes on hosts of a lab: the switch in user space, and in the kernel
    #[command(after_help = lab::EXAMPLES)]
    Lab(lab::Args),
    /// The papers' figure live, in a lab: scheduling delay against load, beside Sparrow
    #[command(name = "falcon-8", after_help = live::FALCON_8_EXAMPLES)]
    Falcon8(live::Args),
    /// The papers' figure live, in a lab: decisions a second against executors, beside Sparrow
    #[command(name = "bolt-11", after_help = live::BOLT_11_EXAMPLES)]
    Bolt11(live::Args),
    /// The simulator: events a second
    #[command(after_help = sim::EXAMPLES)]
    Sim(How),
    /// The same no-op tasks on Ray, Dask, HyperQueue, NATS and Midflight: installs them, measures each, prints a table
    #[command(after_help = peers::EXAMPLES)]
    Peers(peers::Args),
}

/// What all benchmarks may be told.
#[derive(ClapArgs)]
struct How {
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
    /// Fewer and shorter runs
    #[arg(long)]
    quick: bool,
}

impl Args {
    /// See [`super::Command::ends_with_its_reader`].
    pub(crate) fn ends_with_its_reader(&self) -> bool {
        !matches!(self.bench, Bench::Lab(_) | Bench::Falcon8(_) | Bench::Bolt11(_) | Bench::Peers(_))
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.bench {
        Bench::Core(how) => core::run(&how),
        Bench::Xdp(how) => xdp::run(&how),
        Bench::Loop(how) => r#loop::run(&how),
        Bench::Lab(args) => lab::run(&args),
        Bench::Falcon8(args) => live::run(&live::FALCON_8, &args),
        Bench::Bolt11(args) => live::run(&live::BOLT_11, &args),
        Bench::Sim(how) => sim::run(&how),
        Bench::Peers(args) => peers::run(&args),
    }
}

/// The middle one; there is at least one.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
