//! `midflight status`: the state of a switch, as text or JSON.

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use midflight_control::config::DEFAULT_HTTP_PORT;
use midflight_control::store::SetStatus;
use midflight_control::tasks::quantile_us;
use midflight_control::{CacheStatus, EngineStatus, Snapshot, StoreStatus, TasksStatus};
use midflight_terminal::columns::plain;
use midflight_terminal::units::{short_time, time};
use midflight_terminal::{stdout, switches, usage};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
EXAMPLES
  midflight status                            the switch of this machine
  midflight status --http switch.example:7701
  midflight status --json | jq .queued        tasks queued, by level

EXIT CODES
  0 shown, 1 no answer, 2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// HTTP address of the switch
    #[arg(long, value_name = "HOST:PORT", default_value_t = format!("127.0.0.1:{DEFAULT_HTTP_PORT}"))]
    http: String,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    usage::resolve(&args.http)?;
    let text = switches::status(&args.http)?;
    let not_of_it = || format!("{} is not a switch of this version", args.http);
    if args.json {
        // Print only valid JSON, without control codes for the terminal.
        let _: serde::de::IgnoredAny = serde_json::from_str(&text).with_context(not_of_it)?;
        stdout::print(&format!("{text}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let snapshot: Snapshot<OfProgram> = serde_json::from_str(&text).with_context(not_of_it)?;
    stdout::print(&for_people(&snapshot))?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum OfProgram {
    Tasks(TasksStatus),
    Store(StoreStatus),
    Cache(CacheStatus),
}

/// Name and value of each line.
type Lines = Vec<(String, String)>;

pub(super) fn for_people(s: &Snapshot<OfProgram>) -> String {
    let uptime = humantime::format_duration(Duration::from_secs(s.uptime_ms / 1000));
    let about = format!("{}, epoch {}, up {uptime}, version {}", s.listen, s.epoch, s.version);
    let mut lines = Lines::from([("switch".into(), about), ("engine".into(), engine(&s.engine))]);
    match &s.program {
        OfProgram::Tasks(tasks) => lines.extend(of_tasks(tasks)),
        OfProgram::Store(store) => lines.extend(store.sets.iter().flat_map(of_set)),
        OfProgram::Cache(cache) => lines.extend(of_cache(cache)),
    }
    for (name, counts) in [("packets", &s.packets), ("drops", &s.drops), ("shell", &s.shell)] {
        lines.push((name.into(), nonzero(counts)));
    }
    lines.iter().fold(String::new(), |mut text, (name, value)| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:9} {}", plain(value));
        text
    })
}

fn of_tasks(p: &TasksStatus) -> Lines {
    let t = &p.tasks;
    let levels = p.queued.iter().enumerate().filter(|&(_, &n)| n > 0);
    let levels: Vec<_> = levels.map(|(i, n)| format!("level {}: {n}", i + 1)).collect();
    let queued: u32 = p.queued.iter().sum();
    let queue =
        if levels.is_empty() { format!("{queued} tasks") } else { format!("{queued} tasks ({})", levels.join(", ")) };
    let tasks = format!(
        "{} submitted, {} assigned, {} completed, {} expired, {} returned, {} cancelled, {} dropped, {} purged",
        t.submitted, t.assigned, t.completed, t.expired, t.returned, t.cancelled, t.dropped, t.purged
    );
    let slots = format!("{} registered: {} busy, {} parked", p.slots, p.busy, p.parked);
    let lines = [
        ("slots", slots),
        ("clients", p.clients.to_string()),
        ("queue", queue),
        ("tasks", tasks),
        ("waiting", times(&p.wait_us, p.wait_sum_us, "nothing assigned yet")),
        ("running", times(&p.run_us, p.run_sum_us, "nothing completed yet")),
    ];
    let mut lines: Lines = lines.map(|(name, value)| (name.into(), value)).into();
    if p.places != 0 {
        let waits = format!("{} wait for theirs", p.for_place);
        let ends = format!("{} tasks at theirs, {} waited in vain", t.at_place, t.out_of_patience);
        lines.push(("places".into(), format!("{}: {ends}, {waits}", p.places)));
    }
    lines
}

fn of_set(s: &SetStatus) -> Lines {
    let reads = format!(
        "{} to followers, {} to the leader, {} leader-only; {} may be answered directly; {} turned back, {} outdated",
        s.reads_to_followers,
        s.reads_to_leader,
        s.reads_leader_only,
        s.reads_direct,
        s.reads_turned_back,
        s.replies_outdated
    );
    let groups = format!("{} sessions, {} writes, {} closed; {} unstable", s.sessions, s.writes, s.closed, s.unstable);
    let mut lines = vec![(format!("set {}", s.set), groups), ("  reads".into(), reads)];
    if s.requests_unserved > 0 {
        let clients = format!("{} requests of clients that no switch served", s.requests_unserved);
        lines.push(("  refused".into(), clients));
    }
    lines
}

fn of_cache(s: &CacheStatus) -> Lines {
    let requests = format!(
        "{} towards an RSNode, {} degraded, {} of an unknown RSNode; {} selected here",
        s.labelled, s.degraded, s.without_rsnode, s.selected
    );
    let answers = format!("{} delivered, {} copied, {} without a copy", s.delivered, s.copied, s.not_copied);
    vec![("requests".into(), requests), ("answers".into(), answers)]
}

fn engine(EngineStatus { kind, mode, interfaces }: &EngineStatus) -> String {
    match mode {
        Some(mode) => format!("{kind}, {mode} XDP on {}", interfaces.join(", ")),
        None => kind.clone(),
    }
}

fn times(buckets_us: &[u64], sum_us: u64, none: &str) -> String {
    let count: u64 = buckets_us.iter().sum();
    let (Some(p50), Some(p99)) = (quantile_us(buckets_us, 0.5), quantile_us(buckets_us, 0.99)) else {
        return none.into();
    };
    let [p50, p99] = [p50, p99].map(|us| short_time(us as f64 * 1e3));
    let mean_us = sum_us as f64 / count as f64;
    format!("median below {p50}, p99 below {p99}, mean {}", time((mean_us * 1e3).round() as u64))
}

fn nonzero(counts: &BTreeMap<String, u64>) -> String {
    let counts: Vec<_> = counts.iter().filter(|&(_, &n)| n > 0).map(|(name, n)| format!("{n} {name}")).collect();
    if counts.is_empty() { "none".into() } else { counts.join(", ") }
}
