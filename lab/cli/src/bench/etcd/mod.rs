//! `midflight-lab bench etcd`: the store, etcd and Redis in turns, under the same load.

mod load;
mod midflight;
mod nodes;
mod redis;

use super::How;
use super::redis::{DURABLE, IN_MEMORY, Redis, is_installed};
use super::turns::{MIDFLIGHT, Sample, Turns, wait_until};
use crate::engines::LabEngine;
use crate::store::cluster::{Cluster, Ground, Size};
use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use load::Load;
use midflight_net::{Lab, Options};
use midflight_terminal::envelope::Envelope;
use midflight_terminal::signals::end_flag;
use midflight_terminal::usage::{self, INTERRUPTED};
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench etcd                        on loopback; three minutes
  midflight-lab bench etcd --quick --json
  midflight-lab bench etcd --lab --engine kernel  each process on a host of a lab, as root

Three replicas of the store behind a switch, three nodes of etcd (Debian's package etcd-server) and
one redis-server (left out if it is not installed) run in turns, each under the same load: 64
clients in a closed loop, 10,000 keys, values of 1,000 bytes. Reads of the store and of etcd are
linearizable. Each write is synced to the disk, by the store and etcd on a majority of the replicas.
GETs of Redis are by a server without persistence, SETs by one with appendfsync always. The data is
in a temporary directory: set TMPDIR if that is in memory.

RESULTS (a ratio is Midflight's value by the other's; .low and .high end its 95 % interval)
  etcd.reads_ratio, etcd.writes_ratio    operations a second: above 1 Midflight is faster
  etcd.p50_ratio, etcd.p99_ratio         latencies of reads: below 1 Midflight is faster
  redis.get_ratio, redis.set_ratio       operations a second
  NAME.reads_per_s, .writes_per_s, .p50_us, .p99_us
                                         medians of the rounds; NAME is midflight, etcd or redis

EXIT CODES
  0 measured, 1 failed (etcd is not installed), 2 wrong usage, 130 interrupted";

const RATIOS: &[(&str, &str, &str)] = &[
    ("etcd.reads_ratio", "etcd", "reads_per_s"),
    ("etcd.p50_ratio", "etcd", "p50_us"),
    ("etcd.p99_ratio", "etcd", "p99_us"),
    ("etcd.writes_ratio", "etcd", "writes_per_s"),
    ("redis.get_ratio", "redis", "reads_per_s"),
    ("redis.set_ratio", "redis", "writes_per_s"),
];

#[derive(ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    how: How,
    /// Rounds; default: 5, with --quick 2
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100))]
    rounds: Option<u32>,
    /// How long each measurement takes, after a half of it to warm up; default: 3s, with --quick 500ms
    #[arg(long, value_name = "DURATION", value_parser = usage::duration)]
    duration: Option<Duration>,
    /// Each process on a host of a lab
    #[arg(long)]
    lab: bool,
    /// The engine of the switch in a lab
    #[arg(long, value_enum, default_value_t = LabEngine::User, requires = "lab")]
    engine: LabEngine,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if !is_installed("etcd") {
        bail!("etcd is not installed: install Debian's package etcd-server");
    }
    if let Some(why) = args.engine.missing() {
        bail!("{why}");
    }
    let interrupted = end_flag()?;
    let time = args.duration.unwrap_or(Duration::from_millis(if args.how.quick { 500 } else { 3_000 }));
    let load = |ground| Load { ground, time, interrupted: &interrupted };
    let turns = if args.lab {
        let options = Options::new(format!("etcd{}", std::process::id()), Size::USUAL.hosts());
        let lab = Lab::up_unless(&options.xdp(args.engine == LabEngine::Kernel), &interrupted)?;
        let turns = measure(args, load(Ground::Lab(&lab, args.engine)));
        lab.down()?;
        turns
    } else {
        measure(args, load(Ground::Loopback))
    };
    if interrupted.load(Relaxed) {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Envelope::new("etcd", turns?.measures("", RATIOS)).print(args.how.json)?;
    Ok(ExitCode::SUCCESS)
}

fn measure(args: &Args, load: Load<'_>) -> Result<Turns> {
    let mut systems = vec![MIDFLIGHT, "etcd"];
    if is_installed("redis-server") {
        systems.push("redis");
    } else {
        eprintln!("SKIPPED: Redis, which needs the package redis-server");
    }
    let rounds = args.rounds.unwrap_or(if args.how.quick { 2 } else { 5 });
    Turns::run(&systems, rounds, |system| turn(system, load))
}

/// Starts the system, measures it and stops it.
fn turn(system: &str, load: Load<'_>) -> Result<Sample> {
    let Load { ground, interrupted, .. } = load;
    let (mut sample, writes) = match system {
        MIDFLIGHT => {
            let cluster = Cluster::start(ground, Size::USUAL)?;
            wait_until(interrupted, || cluster.is_well())?;
            let clients = midflight::connect(&cluster)?;
            let connect = |worker: usize| Ok(vec![&clients[worker]; load::CLIENTS_OF_WORKER]);
            (load.reads(connect)?, load.writes(connect)?)
        }
        "etcd" => {
            let etcd = nodes::Etcd::start(ground, interrupted)?;
            // What was fastest on two cores: reads spread over the nodes, writes to the leader, few connections.
            (load.reads(|worker| etcd.connect(worker))?, load.writes(|_| etcd.connect(nodes::LEADER))?)
        }
        _ => {
            let start = |options| Redis::start(ground, 1, options, interrupted);
            let (in_memory, durable) = (start(IN_MEMORY)?, start(DURABLE)?);
            (load.reads(|_| redis::connect(in_memory.address))?, load.writes(|_| redis::connect(durable.address))?)
        }
    };
    sample.extend(writes);
    Ok(sample)
}
