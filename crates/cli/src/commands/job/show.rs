use super::connect;
use super::list::{ago, as_json, took};
use super::select::{Select, select};
use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use midflight_jobs::connection::Connection;
use midflight_jobs::model::{EndedRow, How, JobRow};
use midflight_jobs::protocol::{Answer, Request};
use midflight_terminal::columns::aligned;
use midflight_terminal::stdout;
use midflight_terminal::units::{self, thousands};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Unsuccessful commands listed without --all.
const SHOWN: usize = 20;

const EXAMPLES: &str = "\
EXAMPLES
  midflight job show 7                  the job, and up to 20 commands that did not succeed
  midflight job show 7 --commands       all commands that have ended
  midflight job show last --json        the same, for scripts: ran_ns in nanoseconds

EXIT CODES
  0 shown, 1 failed, 2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Which jobs: numbers, ranges such as 2-4, last or all
    #[arg(value_name = "JOB", required = true, value_delimiter = ',')]
    jobs: Vec<Select>,
    /// All commands that have ended
    #[arg(long)]
    commands: bool,
    /// One JSON object, with all commands that have ended
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let mut connection = connect()?;
    let rows = select(&mut connection, &args.jobs)?;
    let mut shown = Vec::new();
    for row in &rows {
        if args.json {
            let mut job = as_json(row);
            let mut commands = Vec::new();
            each_ended(&mut connection, row.job, |place, ended| commands.push(command_json(row, place, ended)))?;
            job["ended"] = commands.into();
            shown.push(job);
        } else {
            stdout::print(&aligned(&about(row), "ll"))?;
            stdout::print(&aligned(&commands(&mut connection, row, args.commands)?, "rlrlrrl"))?;
        }
    }
    if args.json {
        stdout::print(&format!("{}\n", json!({ "jobs": shown })))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn each_ended(connection: &mut Connection, job: u64, mut take: impl FnMut(u32, &EndedRow)) -> Result<()> {
    let mut place = 0;
    loop {
        let Answer::Ended(rows) = connection.ask(&Request::Ended { job, place })? else {
            bail!("the submitter has answered something else than was asked for");
        };
        let Some(last) = rows.last() else { return Ok(()) };
        place = last.0 + 1;
        rows.iter().for_each(|(place, row)| take(*place, row));
    }
}

fn about(row: &JobRow) -> Vec<[String; 2]> {
    let counts = row.counts;
    let mut lines = vec![
        ["job".to_owned(), format!("{}, {}", row.job, row.spec.name.escape_debug())],
        ["state".to_owned(), row.state.word().to_owned()],
        [
            "commands".to_owned(),
            format!(
                "{}: {} succeeded, {} failed, {} lost, {} cancelled, {} begun and not ended",
                thousands(row.count().into()),
                counts.succeeded,
                counts.failed,
                counts.lost,
                counts.cancelled,
                row.open
            ),
        ],
        ["submitted".to_owned(), ago(row.submitted)],
    ];
    let after: Vec<_> = row.spec.after.iter().map(|after| format!("{} ({:?})", after.job, after.when)).collect();
    if !after.is_empty() {
        lines.push(["after".to_owned(), after.join(", ").to_lowercase()]);
    }
    lines.extend(took(row).map(|took| ["took".to_owned(), units::duration(took)]));
    if row.left_out > 0 {
        lines.push(["left out".to_owned(), format!("the outputs of {} commands: the store was full", row.left_out)]);
    }
    lines
}

/// Ended commands: all, or some of the unsuccessful ones.
fn commands(connection: &mut Connection, row: &JobRow, all: bool) -> Result<Vec<[String; 7]>> {
    let mut lines = Vec::new();
    each_ended(connection, row.job, |place, ended| {
        if all || (ended.how != How::Succeeded && lines.len() <= SHOWN) {
            lines.push(line(row, place, ended));
        }
    })?;
    if !lines.is_empty() {
        lines.insert(0, ["index", "end", "code", "host", "ran", "tries", ""].map(str::to_owned));
    }
    Ok(lines)
}

fn line(row: &JobRow, place: u32, ended: &EndedRow) -> [String; 7] {
    let end = match ended.how {
        How::Succeeded => "succeeded",
        How::Failed => "failed",
        How::TimedOut => "timed out",
        How::Lost => "lost",
        How::Cancelled => "cancelled",
    };
    [
        row.spec.index(place).map(|index| index.to_string()).unwrap_or_default(),
        end.to_owned(),
        ended.code.map(|code| code.to_string()).unwrap_or_default(),
        ended.host.clone(),
        if ended.ran.is_zero() { String::new() } else { units::duration(ended.ran) },
        (ended.tries + 1).to_string(),
        ended.why.clone(),
    ]
}

fn command_json(row: &JobRow, place: u32, ended: &EndedRow) -> Value {
    json!({
        "index": row.spec.index(place),
        "end": ended.how,
        "code": ended.code,
        "signal": ended.signal,
        "host": ended.host,
        "started_ms": ended.started,
        "ran_ns": u64::try_from(ended.ran.as_nanos()).unwrap_or(u64::MAX),
        "tries": ended.tries + 1,
        "stdout_bytes": ended.stdout,
        "stderr_bytes": ended.stderr,
        "outputs_kept": ended.kept,
        "why": ended.why,
    })
}
