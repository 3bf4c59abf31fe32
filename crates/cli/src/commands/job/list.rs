use super::{all, connect, status_after_asking};
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_jobs::model::{JobRow, JobState};
use midflight_jobs::protocol::Status;
use midflight_terminal::columns::aligned;
use midflight_terminal::stdout;
use midflight_terminal::units::{self, bytes, thousands};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
EXAMPLES
  midflight job list
  midflight job list --active           only those that have not ended
  midflight job list --json | jq '.jobs[] | select(.state == \"failed\") | .job'

EXIT CODES
  0 listed, 1 failed, 2 wrong usage";

const STATUS_EXAMPLES: &str = "\
EXAMPLES
  midflight job status                  the submitter's process, its switch, the store's size

EXIT CODES
  0 shown, 1 failed, 2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Only jobs that have not ended
    #[arg(long)]
    active: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(ClapArgs)]
#[command(after_help = STATUS_EXAMPLES)]
pub(super) struct StatusArgs {
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let mut jobs = all(&mut connect()?)?;
    jobs.retain(|row| !args.active || !row.state.has_ended());
    if args.json {
        let jobs: Vec<Value> = jobs.iter().map(as_json).collect();
        stdout::print(&format!("{}\n", json!({ "jobs": jobs })))?;
        return Ok(ExitCode::SUCCESS);
    }
    let heads = ["job", "name", "state", "commands", "succeeded", "failed", "lost", "cancelled", "submitted", "took"];
    let mut lines = vec![heads.map(str::to_owned)];
    lines.extend(jobs.iter().map(line));
    stdout::print(&aligned(&lines, "rllrrrrrrr"))?;
    Ok(ExitCode::SUCCESS)
}

fn line(row: &JobRow) -> [String; 10] {
    let count = |number: u32| thousands(number.into());
    let name: String = row.spec.name.chars().take(40).collect();
    [
        row.job.to_string(),
        name,
        row.state.word().to_owned(),
        count(row.count()),
        count(row.counts.succeeded),
        count(row.counts.failed),
        count(row.counts.lost),
        count(row.counts.cancelled),
        ago(row.submitted),
        took(row).map(units::duration).unwrap_or_default(),
    ]
}

/// From the job's first start to its end, or to now.
pub(super) fn took(row: &JobRow) -> Option<Duration> {
    let end = row.ended.unwrap_or_else(now_ms);
    row.begun.filter(|_| row.state != JobState::Skipped).map(|begun| Duration::from_millis(end.saturating_sub(begun)))
}

/// Formats a past time, in milliseconds since 1970.
pub(super) fn ago(ms: u64) -> String {
    let seconds = now_ms().saturating_sub(ms) / 1_000;
    let rounded = match seconds {
        0..120 => seconds,
        120..7_200 => seconds / 60 * 60,
        7_200..172_800 => seconds / 3_600 * 3_600,
        172_800.. => seconds / 86_400 * 86_400,
    };
    if rounded == 0 {
        "now".into()
    } else {
        format!("{} ago", humantime::format_duration(Duration::from_secs(rounded)))
    }
}

fn now_ms() -> u64 {
    u64::try_from(midflight_host::clock::unix().as_millis()).unwrap_or(u64::MAX)
}

/// Times are in milliseconds since 1970.
pub(super) fn as_json(row: &JobRow) -> Value {
    json!({
        "job": row.job,
        "name": row.spec.name,
        "state": row.state,
        "commands": row.count(),
        "open": row.open,
        "succeeded": row.counts.succeeded,
        "failed": row.counts.failed,
        "lost": row.counts.lost,
        "cancelled": row.counts.cancelled,
        "submitted_ms": row.submitted,
        "begun_ms": row.begun,
        "ended_ms": row.ended,
        "bytes": row.bytes,
        "outputs_left_out": row.left_out,
        "after": row.spec.after.iter().map(|after| after.job).collect::<Vec<_>>(),
    })
}

/// When a switch last answered; empty if none ever did.
pub(super) fn last_answer(status: &Status) -> String {
    let ago = status.answered.map(|ago| humantime::format_duration(Duration::from_secs(ago.as_secs())));
    ago.map_or_else(String::new, |ago| format!(" (the last answer came {ago} ago)"))
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn status(args: &StatusArgs) -> Result<ExitCode> {
    let (status, is_connected) = status_after_asking(&mut connect()?)?;
    let switches: Vec<String> = status.switches.iter().map(ToString::to_string).collect();
    if args.json {
        let shown = json!({
            "pid": status.pid, "switches": switches, "connected": is_connected, "open": status.open,
            "answered_ms_ago": status.answered.map(ms), "unanswered_ms": status.unanswered.map(ms),
            "bytes": status.bytes, "bytes_max": status.bytes_max, "trouble": status.trouble,
        });
        stdout::print(&format!("{shown}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let switch = match (switches.is_empty(), is_connected) {
        (true, _) => "none before the first job".to_owned(),
        (false, true) => switches.join(","),
        (false, false) => format!("{}: no answer{}", switches.join(","), last_answer(&status)),
    };
    let mut lines = vec![
        ["process".to_owned(), status.pid.to_string()],
        ["switch".to_owned(), switch],
        ["open".to_owned(), format!("{} commands", thousands(status.open.into()))],
        ["store".to_owned(), format!("{} of {}", bytes(status.bytes), bytes(status.bytes_max))],
    ];
    lines.extend(status.trouble.map(|trouble| ["trouble".to_owned(), trouble]));
    stdout::print(&aligned(&lines, "ll"))?;
    Ok(ExitCode::SUCCESS)
}
