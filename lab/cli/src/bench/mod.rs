//! `midflight-lab bench`: one file per benchmark.

mod against;
mod cache;
mod cache_packets;
mod child;
mod core;
mod core_cache;
mod core_store;
mod etcd;
mod failover;
mod foreign;
mod gateway;
mod keeper;
mod lab;
mod live;
mod load;
mod r#loop;
mod map;
mod modes;
mod peers;
mod python;
mod ratio;
mod redis;
mod select;
mod store_load;
mod store_packets;
mod turns;
mod workload;
mod xdp;
mod xdp_cache;
mod xdp_store;

use against::{Against, Benchmark};
use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use std::process::ExitCode;

/// What the command line says.
#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// A program's core alone: nanoseconds a decision
    #[command(after_help = against::help(core::EXAMPLES))]
    Core(OfProgram),
    /// The same in the kernel, as BPF: of tasks the core, of the store a whole frame, of the cache both
    #[command(after_help = against::help(xdp::EXAMPLES))]
    Xdp(OfProgram),
    /// Client, switch and executor as three processes on loopback: round trip, throughput, idle cost
    #[command(after_help = against::help(r#loop::EXAMPLES))]
    Loop(Comparable),
    /// The same as processes on hosts of a lab, and reads of a store: the switch in user space, and in the kernel
    #[command(after_help = against::help(lab::EXAMPLES))]
    Lab(lab::Args),
    /// Command lines by map, xargs, GNU parallel and a bare loop: commands a second; memory for endless input
    #[command(after_help = map::EXAMPLES)]
    Map(How),
    /// The papers' figure live, in a lab: scheduling delay against load, beside Sparrow
    #[command(name = "falcon-8", after_help = live::FALCON_8_EXAMPLES)]
    Falcon8(live::Falcon8Args),
    /// The papers' figure live, in a lab: decisions a second against executors, beside Sparrow
    #[command(name = "bolt-11", after_help = live::BOLT_11_EXAMPLES)]
    Bolt11(live::Args),
    /// The selectors of a cache: nanoseconds a choice
    #[command(after_help = against::help(select::EXAMPLES))]
    Select(Comparable),
    /// Deaths of leader, follower and switch of a store, or of a cache's operator: how long clients wait
    #[command(after_help = failover::EXAMPLES)]
    Failover(failover::Args),
    /// Unrelated packets through operators in the kernel: what operators cost them
    #[command(after_help = foreign::EXAMPLES)]
    Foreign(foreign::Args),
    /// The read modes of a store side by side: operations a second with small replicas, and what follower reads are worth
    #[command(after_help = modes::EXAMPLES)]
    Modes(modes::Args),
    /// A cache of three memcached, one of which stands still now and then: gets whose replica the switch selects, or each client
    #[command(after_help = cache::EXAMPLES)]
    Cache(cache::Args),
    /// The same no-op tasks on Ray, Dask, HyperQueue, NATS and Midflight: installs them, measures each, prints a table
    #[command(after_help = peers::EXAMPLES)]
    Peers(peers::Args),
    /// The store, etcd and Redis under the same load, in turns: operations a second, latencies, ratios
    #[command(after_help = etcd::EXAMPLES)]
    Etcd(etcd::Args),
    /// redis-benchmark against redis-server and against the store's gateway, in turns: ratios
    #[command(after_help = gateway::EXAMPLES)]
    Gateway(gateway::Args),
    /// Calls of Python functions, and programs, on Midflight, joblib's loky, Dask and Ray in turns: calls a second, ratios
    #[command(after_help = python::EXAMPLES)]
    Python(python::Args),
}

/// Options of all benchmarks.
#[derive(ClapArgs)]
struct How {
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
    /// Fewer and shorter runs
    #[arg(long)]
    quick: bool,
}

/// Options of those that can be compared with another build's.
#[derive(ClapArgs)]
struct Comparable {
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    against: Against,
}

impl Comparable {
    /// `alone` runs it without a baseline; `flags` are its own options.
    fn run(&self, name: &str, flags: &[&str], alone: impl FnOnce(&How) -> Result<ExitCode>) -> Result<ExitCode> {
        let Some(other) = &self.against.other else { return alone(&self.how) };
        let quick: &[&str] = if self.how.quick { &["--quick"] } else { &[] };
        let flags = [quick, flags].concat();
        against::run(&self.against, other, Benchmark { name, flags: &flags }, self.how.json)
    }
}

/// Options of those that measure one program of the switch.
#[derive(ClapArgs)]
struct OfProgram {
    #[command(flatten)]
    comparable: Comparable,
    /// Which program
    #[arg(long, value_enum, default_value_t = Program::Tasks)]
    program: Program,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Program {
    /// The cluster's task queue
    Tasks,
    /// Reads from replicas that are up to date
    Store,
    /// The operator that sends each read to a replica
    Cache,
}

impl OfProgram {
    /// As [`Comparable::run`], for the selected program.
    fn run(&self, name: &str, [tasks, store, cache]: [Alone; 3]) -> Result<ExitCode> {
        match self.program {
            Program::Tasks => self.comparable.run(name, &[], tasks),
            Program::Store => self.comparable.run(name, &["--program", "store"], store),
            Program::Cache => self.comparable.run(name, &["--program", "cache"], cache),
        }
    }
}

type Alone = fn(&How) -> Result<ExitCode>;

impl Args {
    /// Whether a closed pipe (`| head`) ends the process at once. A benchmark with children ends them first.
    pub(crate) fn ends_with_its_reader(&self) -> bool {
        match &self.bench {
            Bench::Core(args) | Bench::Xdp(args) => args.comparable.against.other.is_none(),
            Bench::Loop(args) | Bench::Select(args) => args.against.other.is_none(),
            Bench::Lab(_)
            | Bench::Falcon8(_)
            | Bench::Bolt11(_)
            | Bench::Map(_)
            | Bench::Foreign(_)
            | Bench::Failover(_)
            | Bench::Modes(_)
            | Bench::Cache(_)
            | Bench::Peers(_)
            | Bench::Etcd(_)
            | Bench::Gateway(_)
            | Bench::Python(_) => false,
        }
    }
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    match args.bench {
        Bench::Core(args) => args.run("core", [core::run, core_store::run, core_cache::run]),
        Bench::Xdp(args) => args.run("xdp", [xdp::run, xdp_store::run, xdp_cache::run]),
        Bench::Loop(args) => args.run("loop", &[], r#loop::run),
        Bench::Lab(args) => lab::run(&args),
        Bench::Map(how) => map::run(&how),
        Bench::Falcon8(args) => live::run_falcon_8(&args),
        Bench::Bolt11(args) => live::run(&live::BOLT_11, &args, false),
        Bench::Select(args) => args.run("select", &[], select::run),
        Bench::Failover(args) => failover::run(&args),
        Bench::Foreign(args) => foreign::run(&args),
        Bench::Modes(args) => modes::run(&args),
        Bench::Cache(args) => cache::run(&args),
        Bench::Peers(args) => peers::run(&args),
        Bench::Etcd(args) => etcd::run(&args),
        Bench::Gateway(args) => gateway::run(&args),
        Bench::Python(args) => python::run(&args),
    }
}
