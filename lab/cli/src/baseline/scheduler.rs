use super::SCHEDULER;
use crate::baseline::sparrow::SparrowScheduler;
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_baselines::sparrow::SchedulerConfig;
use midflight_terminal::signals::Shutdown;
use midflight_terminal::{stdout, usage};
use std::net::SocketAddr;
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab baseline sparrow scheduler --worker 127.0.0.1:7801/4
  midflight-lab baseline sparrow scheduler --listen [::]:7800 --worker 10.0.0.2:7801/16,10.0.0.3:7801/16
  midflight-lab baseline sparrow scheduler --no-probing       workers that --ask it come by themselves

SIGTERM or SIGINT ends it and prints what it has counted.

EXIT CODES
  0 ended by a signal, 1 failed, 2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// UDP address to listen on
    #[arg(long, value_name = "HOST:PORT", default_value = SCHEDULER)]
    listen: String,
    /// Workers, each with its slots: the addresses that they listen on
    #[arg(long, value_name = "HOST:PORT/SLOTS,..", required_unless_present = "no_probing")]
    worker: Option<String>,
    /// Reservations for each task: 1 to 64
    #[arg(long, value_name = "R", default_value_t = 2.0)]
    ratio: f64,
    /// No reservations: free slots of workers that were started with --ask ask by themselves
    #[arg(long, conflicts_with_all = ["worker", "ratio"])]
    no_probing: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if !(1.0..=64.0).contains(&args.ratio) {
        return Err(usage::error(format!("--ratio {}: give 1 to 64", args.ratio)));
    }
    let listen = usage::resolve(&args.listen)?;
    let workers = args.worker.as_deref().unwrap_or_default();
    let workers: Vec<_> = workers.split(',').filter(|w| !w.is_empty()).map(worker).collect::<Result<_>>()?;
    if workers.is_empty() && !args.no_probing {
        return Err(usage::error("--worker: name at least one, such as 127.0.0.1:7801/4"));
    }
    let config = SchedulerConfig::new(rand::random(), workers);
    let config = SchedulerConfig { ratio: args.ratio, probing: !args.no_probing, ..config };
    let mut shutdown = Shutdown::new()?;
    let scheduler = SparrowScheduler::start(listen, config)?;
    stdout::print(&format!("sparrow scheduler at {}\n", scheduler.local_addr()))?;
    shutdown.wait();
    let (counters, socket) = scheduler.counts();
    stdout::print(&format!(
        "{} jobs, {} reservations, {} cancelled; {} tasks given, {} requests answered by no task; {} sent again, {} \
         rejected, {} dropped by the kernel\n",
        counters.jobs,
        counters.reservations,
        counters.cancelled,
        counters.given,
        counters.refused,
        counters.repeated,
        counters.rejected,
        socket.kernel_dropped,
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// HOST:PORT/SLOTS.
fn worker(text: &str) -> Result<(SocketAddr, u32)> {
    let wrong = || usage::error(format!("--worker {text}: write it like 127.0.0.1:7801/4, with 1 to 65536 slots"));
    let (address, slots) = text.split_once('/').ok_or_else(wrong)?;
    let slots = slots.trim().parse().ok().filter(|slots| (1..=65_536).contains(slots)).ok_or_else(wrong)?;
    Ok((usage::resolve(address)?, slots))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_an_address_and_slots() {
        assert_eq!(worker("127.0.0.1:7801/4").unwrap(), ("127.0.0.1:7801".parse().unwrap(), 4));
        for wrong in ["127.0.0.1:7801", "127.0.0.1:7801/0", "127.0.0.1:7801/many"] {
            let error = worker(wrong).unwrap_err();
            assert!(error.is::<usage::UsageError>() && error.to_string().contains("7801/4"), "{error}");
        }
    }
}
