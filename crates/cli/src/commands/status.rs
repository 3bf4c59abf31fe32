//! `midflight status`: what a switch is doing, for people and scripts.

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use midflight_control::config::DEFAULT_HTTP_PORT;
use midflight_control::{EngineStatus, Snapshot, TasksStatus};
use midflight_terminal::{stdout, switches};
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
    let text = switches::status(&args.http)?;
    if args.json {
        stdout::print(&format!("{text}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let snapshot: Snapshot =
        serde_json::from_str(&text).with_context(|| format!("{} is not a switch of this version", args.http))?;
    stdout::print(&for_people(&snapshot))?;
    Ok(ExitCode::SUCCESS)
}

fn for_people(s: &Snapshot) -> String {
    let p = &s.program;
    let t = &p.tasks;
    let levels = p.queued.iter().enumerate().filter(|&(_, &n)| n > 0);
    let levels: Vec<_> = levels.map(|(i, n)| format!("level {}: {n}", i + 1)).collect();
    let queued: u32 = p.queued.iter().sum();
    let uptime = humantime::format_duration(Duration::from_secs(s.uptime_ms / 1000));
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:9} {value}");
    };
    line("switch", format!("{}, epoch {}, up {uptime}, version {}", s.listen, s.epoch, s.version));
    line("engine", engine(s));
    line("slots", format!("{} registered: {} busy, {} parked", p.slots, p.busy, p.parked));
    line("clients", p.clients.to_string());
    line(
        "queue",
        if levels.is_empty() { format!("{queued} tasks") } else { format!("{queued} tasks ({})", levels.join(", ")) },
    );
    line(
        "tasks",
        format!(
            "{} submitted, {} assigned, {} completed, {} expired, {} returned, {} cancelled, {} dropped, {} purged",
            t.submitted, t.assigned, t.completed, t.expired, t.returned, t.cancelled, t.dropped, t.purged
        ),
    );
    line("waiting", waits(p));
    line("packets", nonzero(&s.packets));
    line("drops", nonzero(&s.drops));
    line("shell", nonzero(&s.shell));
    text
}

fn engine(s: &Snapshot) -> String {
    let EngineStatus { kind, mode, interfaces } = &s.engine;
    match mode {
        Some(mode) => format!("{kind}, {mode} XDP on {}", interfaces.join(", ")),
        None => kind.clone(),
    }
}

fn waits(p: &TasksStatus) -> String {
    let count: u64 = p.wait_us.iter().sum();
    let (Some(p50), Some(p99)) = (p.wait_quantile_us(0.5), p.wait_quantile_us(0.99)) else {
        return "nothing assigned yet".into();
    };
    format!("half below {p50} us, 99 % below {p99} us, mean {:.1} us", p.wait_sum_us as f64 / count as f64)
}

fn nonzero(counts: &BTreeMap<String, u64>) -> String {
    let counts: Vec<_> = counts.iter().filter(|&(_, &n)| n > 0).map(|(name, n)| format!("{n} {name}")).collect();
    if counts.is_empty() { "none".into() } else { counts.join(", ") }
}
