//! `midflight-lab bench lab`: the whole path between hosts, of a task and of a read, through network namespaces connected by veth links.

use super::load::{self, Effort, SLOTS};
use super::store_load::Reads;
use super::{Comparable, How};
use crate::engines::{LabEngine, LabEngines, Named, at};
use crate::lab_guard::LabGuard;
use crate::processes::{executor, switch};
use crate::store::cluster::{Cluster, Ground, Size};
use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use midflight_control::config::DEFAULT_PORT;
use midflight_dataplane::store::ReplyCheck;
use midflight_host::Client;
use midflight_net::{Options, Place, SWITCH_IPV4};
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::switches::connect;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench lab                        both engines, as root
  midflight-lab bench lab --engine kernel --quick
  midflight-lab bench lab --json
  midflight-lab bench lab --against ../before/target/release/midflight-lab

RESULTS (medians of the runs; ENGINE is user or kernel)
  lab.ENGINE.rtt_p50_us, lab.ENGINE.rtt_p99_us
                              one no-op task at a time, from the submit call to its result
  lab.ENGINE.tasks_per_s      no-op tasks, one client, one executor process with 64 slots
  lab.ENGINE.cpu_us_per_task  time that all CPUs of this machine were busy during the throughput
                              run, by task: let nothing else run
  lab.store.rtt_p50_us, lab.store.rtt_p99_us
                              one read of a store at a time, kernel engine: client, switch, one of
                              three replicas, switch, client
  lab.store.reads_per_s, lab.store.cpu_us_per_read
                              one client with 64 reads under way
  lab.store.direct.…          the same, but the replica answers the client directly
                              (reply check direct)
  lab.store.user.…            all of these with the switch in user space

Client, switch, executor and replicas run in a network namespace each, joined by veth links. They
are gone when it ends, also after Ctrl-C. Where the kernel engine cannot run, a line says why, and
the other is measured.

EXIT CODES
  0 measured, 1 failed (no root; no kernel engine, and --engine kernel), 2 wrong usage,
  130 interrupted";

const CLIENT: Place = Place::Host(0);
const EXECUTOR: Place = Place::Host(1);
const HOSTS: usize = 2;
/// Stores that one client reads from, and the infixes of their results' names.
const STORES: [(&str, ReplyCheck); 2] = [("", ReplyCheck::Strict), (".direct", ReplyCheck::Direct)];
/// USER_HZ, the unit of `/proc/stat`; the same on every Linux with this ABI.
const TICKS_PER_S: u64 = 100;

#[derive(ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    common: Comparable,
    /// The switch as a process (user), as programs in the kernel, or one after the other
    #[arg(long, value_enum, default_value_t = LabEngines::Both)]
    engine: LabEngines,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    args.common.run("lab", &["--engine", &args.engine.name()], |how| alone(how, args.engine))
}

fn alone(how: &How, which: LabEngines) -> Result<ExitCode> {
    midflight_net::available()?;
    let guard = LabGuard::new()?;
    let effort = Effort::of(how.quick);
    let mut results = Vec::new();
    for &engine in which.all() {
        match engine.missing() {
            Some(why) if which == LabEngines::Both => eprintln!("engine {} is left out: {why}", engine.name()),
            Some(why) => bail!("{why}"),
            None => {
                let measure = || Ok([tasks(engine, &effort, &guard)?, store(engine, &effort, &guard)?].concat());
                results.extend(guard.unless_interrupted(measure())?);
            }
        }
    }
    Envelope::new("lab", results).print(how.json)?;
    Ok(ExitCode::SUCCESS)
}

fn tasks(engine: LabEngine, effort: &Effort, guard: &LabGuard) -> Result<Vec<Measure>> {
    // The kernel engine's responses need XDP at the hosts; it would slow the user-space switch.
    let options = Options::new(format!("bench{}", std::process::id()), HOSTS).xdp(engine == LabEngine::Kernel);
    let lab = guard.up(&options)?;
    eprintln!("engine {}", engine.name());
    let listen = SocketAddr::from((SWITCH_IPV4, DEFAULT_PORT)).to_string();
    let (_switch, address) = switch(engine.switch(&lab)?.args(["--listen", &listen, "--http", "off"]))?;
    let _executor = executor(at(&lab, EXECUTOR)?, address, SLOTS)?;
    let client = || load::runs(&connect(vec![address])?, effort, busy_time);
    let runs = lab.within(CLIENT, client)??;
    let mut measures = load::measures::<Client>(&format!("lab.{}", engine.name()), &runs);
    let cpu_us = load::median_of(&runs, |run| run.cpu_us);
    measures.push(Measure::quantity(&format!("lab.{}.cpu_us_per_task", engine.name()), cpu_us, "us"));
    Ok(measures)
}

fn store(engine: LabEngine, effort: &Effort, guard: &LabGuard) -> Result<Vec<Measure>> {
    let options = Options::new(format!("store{}", std::process::id()), Size::USUAL.hosts());
    let lab = guard.up(&options.xdp(engine == LabEngine::Kernel))?;
    let prefix = match engine {
        LabEngine::Kernel => "lab.store".to_owned(),
        LabEngine::User => format!("lab.store.{}", engine.name()),
    };
    let mut measures = Vec::new();
    for (name, reply_check) in STORES {
        eprintln!("engine {}, reads, reply check {}", engine.name(), reply_check.name());
        let store = Cluster::start(Ground::Lab(&lab, engine), Size { reply_check, ..Size::USUAL })?;
        guard.remove_too(store.directory());
        store.wait_until_well()?;
        measures.extend(reads_of(&store, &format!("{prefix}{name}"), effort)?);
    }
    Ok(measures)
}

fn reads_of(store: &Cluster<'_>, prefix: &str, effort: &Effort) -> Result<Vec<Measure>> {
    let load = Reads::new(store.client(0, |client| client)?)?;
    let runs = load::runs(&load, effort, busy_time)?;
    let mut measures = load::measures::<Reads>(prefix, &runs);
    let cpu_us = load::median_of(&runs, |run| run.cpu_us);
    measures.push(Measure::quantity(&format!("{prefix}.cpu_us_per_read"), cpu_us, "us"));
    Ok(measures)
}

/// Busy time of this machine's CPUs, in processes, system calls and interrupts.
fn busy_time() -> Result<Duration> {
    let text = std::fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    let words = text.lines().next().unwrap_or("").split_whitespace();
    let ticks: Vec<u64> = words.skip(1).map(str::parse).collect::<Result<_, _>>().context("cannot read /proc/stat")?;
    // Leaves out idle, iowait and steal: see man 5 proc_stat.
    let &[user, nice, system, _, _, irq, softirq, ..] = ticks.as_slice() else {
        bail!("/proc/stat has too few numbers")
    };
    Ok(Duration::from_millis((user + nice + system + irq + softirq) * 1000 / TICKS_PER_S))
}
