//! `midflight store status`: replicas, by their operator's sockets or over HTTP.

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use midflight_control::store::{AskError, ReplicaAnswer, ReplicaRequest, ReplicaStatus, SetTable};
use midflight_control::tasks::quantile_us;
use midflight_terminal::columns::aligned;
use midflight_terminal::store::WhichSet;
use midflight_terminal::units::short_time;
use midflight_terminal::{stdout, switches};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A script may ask right after it started the replicas.
const START_PATIENCE: Duration = Duration::from_secs(2);

const EXAMPLES: &str = "\
EXAMPLES
  midflight store status --config store.toml           the replicas on this machine
  midflight store status --http a:7712,b:7712          those that serve HTTP there
  midflight store status --times                       how long their syncs and operations take
  midflight store status --json | jq .[].role

EXIT CODES
  0 shown, 1 no replica answers, 2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    set: WhichSet,
    /// HTTP addresses of replicas (their --http) instead
    #[arg(long, value_name = "HOST:PORT,..", value_delimiter = ',')]
    http: Vec<String>,
    /// Also how long syncs of the disks and operations take: median and 99th percentile
    #[arg(long)]
    times: bool,
    /// A list in JSON, with all times
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let found = if args.http.is_empty() { on_this_machine(&args.set.table()?) } else { over_http(&args.http)? };
    if found.is_empty() {
        bail!(
            "no replica of the store can be asked on this machine: start one (midflight replica), run this as root or as the \
             user who started it, or give --http"
        );
    }
    if args.json {
        stdout::print(&format!("{}\n", serde_json::to_string(&found)?))?;
    } else {
        let times = if args.times { times(&found) } else { String::new() };
        stdout::print(&(for_people(&found) + &times))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Retries until `START_PATIENCE`.
pub(super) fn on_this_machine(set: &SetTable) -> Vec<ReplicaStatus> {
    let until = Instant::now() + START_PATIENCE;
    loop {
        match ask_all(set) {
            None if Instant::now() < until => std::thread::sleep(START_PATIENCE / 40),
            found => return found.unwrap_or_default(),
        }
    }
}

/// `None` if no replica listens. Prints the errors of those that listen.
fn ask_all(set: &SetTable) -> Option<Vec<ReplicaStatus>> {
    let asked = set.replicas.iter().map(|replica| set.ask(replica.id, ReplicaRequest::Status));
    let listening: Vec<_> = asked.filter(|answer| !matches!(answer, Err(AskError::Absent(_)))).collect();
    let of_answer = |answer| match answer {
        Ok(ReplicaAnswer::Status(status)) => Some(*status),
        Ok(_) => None,
        Err(error) => {
            eprintln!("{error}");
            None
        }
    };
    (!listening.is_empty()).then(|| listening.into_iter().filter_map(of_answer).collect())
}

fn over_http(addresses: &[String]) -> Result<Vec<ReplicaStatus>> {
    let read = |address: &String| {
        serde_json::from_str(&switches::status(address)?)
            .with_context(|| format!("{address} is not a replica of this version"))
    };
    addresses.iter().map(read).collect()
}

fn for_people(found: &[ReplicaStatus]) -> String {
    let head = [
        "replica", "role", "mode", "term", "log", "applied", "keys", "reads", "refused", "unstable", "disk", "session",
    ]
    .map(str::to_owned);
    let row = |s: &ReplicaStatus| {
        let count = |name: &str| s.counters.get(name).copied().unwrap_or(0).to_string();
        let session = match &s.session {
            Some(session) if s.has_lease => format!("at {}", session.switch),
            Some(session) => format!("at {}, without a lease", session.switch),
            None => "-".into(),
        };
        [
            s.replica.to_string(),
            s.role.clone(),
            s.reads.clone(),
            s.term.to_string(),
            s.last_index.to_string(),
            s.applied.to_string(),
            s.keys.to_string(),
            count("reads_served"),
            count("reads_refused"),
            if s.role == "leader" { s.kgroups_unstable.to_string() } else { "-".into() },
            disk(s),
            session,
        ]
    };
    let rows: Vec<_> = std::iter::once(head).chain(found.iter().map(row)).collect();
    let leaderless = if found.iter().any(|s| s.leader.is_some()) {
        ""
    } else {
        "no leader is known: the replicas elect one now, or no majority of them runs\n"
    };
    aligned(&rows, "rllrrrrrrrll") + leaderless
}

fn disk(status: &ReplicaStatus) -> String {
    match status.disk_full {
        true if status.role == "leader" && !status.has_room => "full: refuses writes".into(),
        true => "full".into(),
        false if status.role == "leader" && !status.has_room => "the others' are full: refuses writes".into(),
        false => "ok".into(),
    }
}

fn times(found: &[ReplicaStatus]) -> String {
    const NAMES: [&str; 9] = ["fsync", "apply", "read", "put", "delete", "cas", "create", "incr", "open"];
    let cell = |s: &ReplicaStatus, name: &str| {
        let quantile = |q| quantile_us(&s.times.get(name)?.us, q).map(|us| short_time(us as f64 * 1e3));
        quantile(0.5).zip(quantile(0.99)).map_or("-".into(), |(median, high)| format!("{median} / {high}"))
    };
    let head = std::iter::once("median / p99".to_owned()).chain(NAMES.map(str::to_owned));
    let row =
        |s: &ReplicaStatus| std::iter::once(s.replica.to_string()).chain(NAMES.map(|name| cell(s, name))).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head.collect()).chain(found.iter().map(row)).collect();
    let rows: Vec<[String; NAMES.len() + 1]> = rows.into_iter().filter_map(|row| row.try_into().ok()).collect();
    format!("\n{}", aligned(&rows, "rrrrrrrrrr"))
}
