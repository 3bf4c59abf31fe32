use super::WORKER;
use crate::baseline::sparrow::{SparrowWorker, Start};
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_baselines::sparrow::WorkerConfig;
use midflight_terminal::machine::cores;
use midflight_terminal::signals::Shutdown;
use midflight_terminal::{stdout, usage};
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab baseline sparrow worker                        a slot for each core
  midflight-lab baseline sparrow worker --listen 10.0.0.2:7801 --slots 16
  midflight-lab baseline sparrow worker --ask 10.0.0.1:7800    schedulers with --no-probing

Listen on the address that the schedulers name, not on 0.0.0.0: they know a worker by it.
It runs noop, sleep, spin and exec; only whether a task succeeded goes back.
SIGTERM or SIGINT ends it at once and prints what it has counted.

EXIT CODES
  0 ended by a signal, 1 failed, 2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// UDP address to listen on
    #[arg(long, value_name = "HOST:PORT", default_value = WORKER)]
    listen: String,
    /// Tasks at one time; default: cores of this machine
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    slots: Option<u32>,
    /// Schedulers without probing, which free slots ask in turn
    #[arg(long, value_name = "HOST:PORT,..")]
    ask: Option<String>,
    /// How long a slot that got no task waits before it asks again
    #[arg(long, value_name = "DURATION", value_parser = usage::duration, default_value = "50us", requires = "ask")]
    poll: std::time::Duration,
    /// At the end, print when each task was started: CLIENT JOB TASK NANOSECONDS, of CLOCK_MONOTONIC
    #[arg(long)]
    starts: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let listen = usage::resolve(&args.listen)?;
    let ask = args.ask.as_deref().map(usage::resolve_all).transpose()?.unwrap_or_default();
    let poll = midflight_host::clock::nanos(args.poll);
    if poll < 1_000 {
        return Err(usage::error("--poll: give 1us or more"));
    }
    let slots = args.slots.unwrap_or_else(cores);
    let mut shutdown = Shutdown::new()?;
    let start = if args.starts { SparrowWorker::start_recorded } else { SparrowWorker::start };
    let worker = start(listen, WorkerConfig { ask, poll, ..WorkerConfig::new(0, slots) })?;
    stdout::print(&format!("sparrow worker with {slots} slots at {}\n", worker.local_addr()))?;
    shutdown.wait();
    let lines =
        worker.starts().into_iter().map(|Start { client, job, tid, at }| format!("{client} {job} {tid} {at}\n"));
    stdout::print(&lines.collect::<String>())?;
    let (counters, socket) = worker.counts();
    stdout::print(&format!(
        "{} reservations, {} cancelled; {} tasks run, {} requests answered by no task; {} sent again, {} rejected, {} \
         dropped by the kernel\n",
        counters.reservations,
        counters.cancelled,
        counters.runs,
        counters.nothing,
        counters.repeated,
        counters.rejected,
        socket.kernel_dropped,
    ))?;
    Ok(ExitCode::SUCCESS)
}
