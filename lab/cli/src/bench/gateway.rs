//! `midflight-lab bench gateway`: redis-benchmark against redis-server and against the store's gateway, in turns.

use super::How;
use super::redis::{DURABLE, IN_MEMORY, Redis, benchmark, is_installed};
use super::turns::{MIDFLIGHT, Sample, Turns, wait_until};
use crate::processes::{Process, ours};
use crate::store::cluster::{Cluster, FIRST_CLIENT, Ground, Size};
use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use midflight_terminal::envelope::Envelope;
use midflight_terminal::signals::end_flag;
use midflight_terminal::usage::INTERRUPTED;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench gateway               four minutes
  midflight-lab bench gateway --quick --json

Runs redis-benchmark -t get,set -c 50 -d 1000 -r 100000, without and with -P 16, against
redis-server (Debian's packages redis-server and redis-tools), and against `midflight store serve`
with three replicas and a switch in user space, all on loopback. The replicas sync each write to the
disk. Redis runs without persistence, as it is usually measured; for SET also with appendfsync
always.

RESULTS (a ratio is the gateway's requests a second by Redis'; .low and .high end its 95 % interval)
  gateway.get_ratio, gateway.set_ratio   Redis without persistence
  gateway.durable_set_ratio              Redis with appendfsync always
  gateway.pipelined_...                  the same with -P 16
  gateway.NAME.TEST_per_s                medians of the rounds; NAME is midflight, redis or
                                         redis-durable

EXIT CODES
  0 measured, 1 failed (Redis is not installed), 2 wrong usage, 130 interrupted";

const RATIOS: &[(&str, &str, &str)] = &[
    ("gateway.get_ratio", "redis", "get_per_s"),
    ("gateway.pipelined_get_ratio", "redis", "pipelined_get_per_s"),
    ("gateway.set_ratio", "redis", "set_per_s"),
    ("gateway.pipelined_set_ratio", "redis", "pipelined_set_per_s"),
    ("gateway.durable_set_ratio", "redis-durable", "set_per_s"),
    ("gateway.pipelined_durable_set_ratio", "redis-durable", "pipelined_set_per_s"),
];

#[derive(ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    how: How,
    /// Rounds; default: 5, with --quick 2
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100))]
    rounds: Option<u32>,
    /// Requests of each test, with -P 16 four times as many; default: 50000, with --quick 5000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=100_000_000))]
    requests: Option<u32>,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if !is_installed("redis-server") || !is_installed("redis-benchmark") {
        bail!("Redis is not installed: install Debian's packages redis-server and redis-tools");
    }
    let interrupted = end_flag()?;
    let rounds = args.rounds.unwrap_or(if args.how.quick { 2 } else { 5 });
    let requests = args.requests.unwrap_or(if args.how.quick { 5_000 } else { 50_000 });
    let systems = [MIDFLIGHT, "redis", "redis-durable"];
    let turns = Turns::run(&systems, rounds, |system| turn(system, requests, &interrupted));
    if interrupted.load(Relaxed) {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Envelope::new("gateway", turns?.measures("gateway.", RATIOS)).print(args.how.json)?;
    Ok(ExitCode::SUCCESS)
}

fn turn(system: &str, requests: u32, interrupted: &AtomicBool) -> Result<Sample> {
    let redis = |options| Redis::start(Ground::Loopback, FIRST_CLIENT, options, interrupted);
    match system {
        MIDFLIGHT => {
            let cluster = Cluster::start(Ground::Loopback, Size::USUAL)?;
            wait_until(interrupted, || cluster.is_well())?;
            let (_gateway, address) = gateway(&cluster)?;
            measure(address, "get,set", requests, interrupted)
        }
        "redis" => measure(redis(IN_MEMORY)?.address, "get,set", requests, interrupted),
        _ => measure(redis(DURABLE)?.address, "set", requests, interrupted),
    }
}

fn gateway(cluster: &Cluster<'_>) -> Result<(Process, SocketAddr)> {
    let mut command = ours()?;
    command.args(["store", "serve", "--listen", "127.0.0.1:0", "--config"]).arg(cluster.config());
    let mut process = Process::start(&mut command)?;
    // gateway on 127.0.0.1:6379, for Redis' clients
    let line = process.line()?;
    let address = line.split_whitespace().nth(2).and_then(|word| word.trim_end_matches(',').parse().ok());
    Ok((process, address.with_context(|| format!("the gateway said {line:?} instead of its address"))?))
}

fn measure(server: SocketAddr, tests: &str, requests: u32, interrupted: &AtomicBool) -> Result<Sample> {
    let mut sample = Sample::new();
    for (prefix, pipeline, requests) in [("", "1", requests), ("pipelined_", "16", requests.saturating_mul(4))] {
        let requests = requests.to_string();
        let options = ["-t", tests, "-c", "50", "-d", "1000", "-r", "100000", "-n", &requests, "-P", pipeline];
        let results = benchmark((Ground::Loopback, FIRST_CLIENT), server, &options, interrupted)?;
        sample.extend(results.into_iter().map(|(test, rate)| (format!("{prefix}{}_per_s", test.to_lowercase()), rate)));
    }
    Ok(sample)
}
