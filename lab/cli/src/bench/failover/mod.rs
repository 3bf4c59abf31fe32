//! `midflight-lab bench failover`: how long clients wait when a process dies.

mod cache;
mod slow_disk;
mod store;
mod watched;

use super::How;
use crate::engines::LabEngine;
use anyhow::{Result, bail};
use clap::{Args as ClapArgs, ValueEnum};
use midflight_terminal::signals::end_flag;
use midflight_terminal::usage;
use std::process::ExitCode;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench failover              three replicas, two switches on loopback; 20 failures each
  midflight-lab bench failover --quick      3 each
  midflight-lab bench failover --lab        the same, each process on a host of a lab, as root
  midflight-lab bench failover --lab --engine kernel --json
  midflight-lab bench failover --slow-disk --lab       the leader's disk becomes slow instead
  midflight-lab bench failover --program cache --lab --engine kernel

A process is killed (SIGKILL), and started again when its failure is over.

Of a store: the time is the longest one between two successful operations of a client that never
stops trying: INCR and GET in turn.

With --slow-disk nothing dies: each sync of the leader takes 100 ms more for 4 s. Eight threads
write and two read.

Of a cache (--program cache), in a lab: two racks with clients and one with three memcached; the
operator in the middle selects for both racks. It dies under load; the controller lets the operators
of the racks pass gets on without a selector, then makes a new plan, and the old one again when the
dead operator is back. The time is that from the death until at least half of the gets of each 5 ms
are answered at the first attempt. Clients repeat after 20 ms at least.

RESULTS of a store (KIND: leader, follower, switch)
  failover.KIND.median_ms, failover.KIND.max_ms
  failover.calm_max_ms                  the same without a failure: what this machine does by itself

RESULTS of --slow-disk
  slow_disk.writes_before_per_s         writes a second before
  slow_disk.writes_share                of these, in the first 2 s
  slow_disk.writes_share_later          and in the next 2 s
  slow_disk.reads_p99_ms                99 % of all reads in the 4 s took no longer
  slow_disk.reads_p99_before_ms         the same before
  slow_disk.longest_gap_ms              the longest time without a write that succeeded, in the 4 s
  slow_disk.handed_over                 runs in which another replica led afterwards
  slow_disk.runs

RESULTS of a cache
  live.failover_ms, .failover_max_ms    median and longest of the deaths
  live.lost                             gets that were never answered, in the whole run
  live.wrong                            answered with another value than was set, or with none
  live.late_of_deaths, .late_of_plans   gets that took more than 20 ms,
                                        within 500 ms of a death, and of a change of the plan
  live.late_else                        at all other times: what this machine does by itself
  live.plans                            changes of the plan under load
  live.gets_per_s

EXIT CODES
  0 measured, 1 failed, 2 wrong usage, 130 interrupted";

#[derive(ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    how: How,
    /// Whose processes die
    #[arg(long, value_enum, default_value_t = Program::Store)]
    program: Program,
    /// Each process on a host of a lab
    #[arg(long)]
    lab: bool,
    /// The leader's disk becomes slow; nothing dies
    #[arg(long)]
    slow_disk: bool,
    /// The engine, in a lab: of the first switch of a store (the one that stands by is a process), of all operators of a cache
    #[arg(long, value_enum, default_value_t = LabEngine::User, requires = "lab")]
    engine: LabEngine,
    /// Gets a second, of all clients of a cache
    #[arg(long, value_name = "PER_SECOND", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,
}

/// What can fail over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Program {
    /// A store
    Store,
    /// A replicated cache
    Cache,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(why) = args.engine.missing() {
        bail!("{why}");
    }
    if args.program == Program::Cache && !args.lab {
        return Err(usage::error("--program cache: the cache is in a lab, so say --lab too"));
    }
    if args.slow_disk && args.program == Program::Cache {
        return Err(usage::error("--slow-disk: a cache has no disk; leave out --program"));
    }
    let interrupted = end_flag()?;
    match args.program {
        Program::Store => store::run(args, &interrupted),
        Program::Cache => cache::run(args, &interrupted),
    }
}
