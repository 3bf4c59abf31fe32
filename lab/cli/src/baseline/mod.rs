//! `midflight-lab baseline`: schedulers for comparison, over real sockets.

mod scheduler;
pub(crate) mod sparrow;
mod submit;
mod worker;

use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;

const SCHEDULER: &str = "127.0.0.1:7800";
const WORKER: &str = "127.0.0.1:7801";

const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab baseline sparrow worker --slots 4
  midflight-lab baseline sparrow scheduler --worker 127.0.0.1:7801/4
  midflight-lab baseline sparrow submit sleep 10ms -n 100

Sparrow asks a few executors at random where Midflight has one queue for all. It is here to be
measured, with the same functions and the same kind of packets: docs/baselines.md.

EXIT CODES
  0 done, 1 failed, 2 wrong usage, 130 interrupted";

#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    baseline: Baseline,
}

#[derive(Subcommand)]
enum Baseline {
    /// Batch sampling with late binding (Ousterhout and others, SOSP 2013)
    #[command(after_help = EXAMPLES)]
    Sparrow(SparrowArgs),
}

#[derive(ClapArgs)]
struct SparrowArgs {
    #[command(subcommand)]
    party: Party,
}

#[derive(Subcommand)]
enum Party {
    /// Start a scheduler: it places reservations for jobs at workers
    Scheduler(scheduler::Args),
    /// Start a worker: slots that ask for the tasks of their reservations and run them
    Worker(worker::Args),
    /// Call a function many times, in jobs
    Submit(submit::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Baseline::Sparrow(sparrow) = &args.baseline;
    match &sparrow.party {
        Party::Scheduler(args) => scheduler::run(args),
        Party::Worker(args) => worker::run(args),
        Party::Submit(args) => submit::run(args),
    }
}
