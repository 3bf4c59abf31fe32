use super::kinds::{KINDS, Kind};
use super::{Plan, hold, outcome};
use crate::engines::{LabEngine, LabEngines, Named};
use anyhow::{Result, anyhow, bail};
use clap::Args as ClapArgs;
use midflight_terminal::columns::aligned;
use midflight_terminal::envelope::Envelope;
use midflight_terminal::signals::end_flag;
use midflight_terminal::{stdout, usage};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;

const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab faults                        every kind 20 times, both engines: 50 minutes, as root
  midflight-lab faults --engine user --runs 1 --json
  midflight-lab faults --kinds leader-killed,switch-cut --runs 100
  midflight-lab faults --list                 the kinds

Replicas, the switch, one that stands by, and three clients run on hosts of their own. Six threads
read, write, compare and count on six keys; meanwhile something fails, for 0.8 s. What they saw
must be linearizable; then all replicas must catch up, and old and new clients be served. If not, a
line begins with WRONG, and history and logs are written to files.

RESULTS (KIND: see --list; ENGINE: user or kernel)
  faults.runs, .operations, .violations, .stuck     of all kinds
  faults.unchecked                                  histories too hard for the checker
  faults.KIND.ENGINE.runs, .operations, .violations, .stuck
  faults.KIND.ENGINE.outage_median_ms, _max_ms      the longest time without any answer in a run

EXIT CODES
  0 all was as it should be, 1 something was not, or it could not be held (no root, no kernel
  engine), 2 wrong usage, 130 interrupted";

/// What the command line says.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The first switch's engine; the one that stands by is a process
    #[arg(long, value_enum, default_value_t = LabEngines::Both)]
    engine: LabEngines,
    /// Faults of each kind, with each engine
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: u32,
    /// Replicas: 3, 5 or 7
    #[arg(long, value_name = "N", default_value = "3", value_parser = ["3", "5", "7"])]
    replicas: String,
    /// Only these kinds, separated by commas
    #[arg(long, value_name = "KIND,...", value_delimiter = ',')]
    kinds: Vec<String>,
    /// Directory for the histories and logs of what was wrong
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    out: PathBuf,
    /// List the kinds of faults
    #[arg(long)]
    list: bool,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.list {
        let lines: Vec<_> = KINDS.iter().map(|kind| [kind.name, kind.what].map(str::to_owned)).collect();
        stdout::print(&aligned(&lines, "ll"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let kinds = kinds(&args.kinds)?;
    midflight_net::available()?;
    let replicas = args.replicas.parse()?;
    let plan =
        Plan { kinds, engines: engines(args.engine)?, runs: args.runs as usize, replicas, out: args.out.clone() };
    std::fs::create_dir_all(&plan.out)?;
    let interrupted = end_flag()?;
    let outcomes = hold(&plan, &interrupted)?;
    let envelope = Envelope::new("faults", outcome::measures(&outcomes));
    if args.json {
        envelope.print(true)?;
    } else {
        stdout::print(&format!("{}\n{}", outcome::table(&outcomes), envelope.footer()))?;
    }
    Ok(match outcome::all_good(&outcomes) {
        _ if interrupted.load(Relaxed) => ExitCode::from(usage::INTERRUPTED),
        true => ExitCode::SUCCESS,
        false => ExitCode::from(usage::FAILURE),
    })
}

/// The engines that this machine can run. Fails if a named one cannot.
fn engines(asked: LabEngines) -> Result<Vec<LabEngine>> {
    let mut engines = Vec::new();
    for &engine in asked.all() {
        match engine.missing() {
            Some(why) if asked == LabEngines::Both => eprintln!("engine {} is left out: {why}", engine.name()),
            Some(why) => bail!("{why}"),
            None => engines.push(engine),
        }
    }
    Ok(engines)
}

/// All kinds, if none is named.
fn kinds(names: &[String]) -> Result<Vec<&'static Kind>> {
    if names.is_empty() {
        return Ok(KINDS.iter().collect());
    }
    let unknown =
        |name| usage::error(anyhow!("there is no kind of fault {name:?}: `midflight-lab faults --list` has them"));
    names.iter().map(|name| Kind::named(name).ok_or_else(|| unknown(name))).collect()
}
