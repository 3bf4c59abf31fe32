//! `midflight-lab attack`: everything that an off-path host can send to a cluster.

use crate::attack::{self, Attack, Family, KINDS, Plan};
use crate::engines::LabEngines;
use anyhow::{Result, anyhow, bail};
use clap::Args as ClapArgs;
use midflight_terminal::columns::aligned;
use midflight_terminal::envelope::Envelope;
use midflight_terminal::signals::end_flag;
use midflight_terminal::{stdout, usage};
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab attack                      all kinds, both engines: about half an hour, as root
  midflight-lab attack --engine user --seconds 2 --json
  midflight-lab attack --engine kernel --ip 6     over IPv6
  midflight-lab attack --kinds reset_all,complete
  midflight-lab attack --list                     the kinds

One host runs a client with 100,000 no-op tasks, two run executors, and one attacks. The attacker
sees no packets of others, knows all addresses, ports and the format, and sends from any address.
Each task must end once, with its result; a client and an executor that start during the attack must
be served; and after the attack the same tasks must end again. Slowdown is the time of the tasks
under attack, divided by their time before and after it. Kind `link` is the same flood to a host
outside the cluster: it shows what the shared machine costs.

RESULTS
  attacks.tried, .harmful                  attacks; with a finding (lines that begin with WRONG)
  attacks.slowdown                         the worst, without `link`
  attacks.KIND.slowdown, .harmful          of both engines
  attacks.KIND.ENGINE.slowdown, .rate, .attacker_cpu
                                           packets/s that the attacker sent, and cores that it used

EXIT CODES
  0 no attack did harm, 1 one did, or the test could not run (no root, no kernel engine), 2 wrong
  usage, 130 interrupted";

const SECONDS_MAX: f64 = 86_400.0;

/// What the command line says.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The switch's engine
    #[arg(long, value_enum, default_value_t = LabEngines::Both)]
    engine: LabEngines,
    /// The version of IP
    #[arg(long, value_enum, default_value_t = Family::V4)]
    ip: Family,
    /// Packets a second of the attacker
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rate: u64,
    /// How long each attack lasts at least
    #[arg(long, value_name = "N", default_value = "10", value_parser = seconds)]
    seconds: Duration,
    /// Tasks of each run of the client
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    tasks: u32,
    /// Only these kinds of attack, separated by commas
    #[arg(long, value_name = "KIND,...", value_delimiter = ',')]
    kinds: Vec<String>,
    /// List the kinds of attack
    #[arg(long)]
    list: bool,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.list { list() } else { hold(args) }
}

fn list() -> Result<ExitCode> {
    let lines: Vec<_> = KINDS.iter().map(|attack| [attack.name, attack.what].map(str::to_owned)).collect();
    stdout::print(&aligned(&lines, "ll"))?;
    Ok(ExitCode::SUCCESS)
}

fn hold(args: &Args) -> Result<ExitCode> {
    let kinds = kinds(&args.kinds)?;
    midflight_net::available()?;
    let engines = args.engine.all().to_vec();
    if let Some(why) = engines.iter().find_map(|engine| engine.missing()) {
        bail!("{why}");
    }
    let interrupted = end_flag()?;
    let plan =
        Plan { kinds, engines, family: args.ip, rate: args.rate, time: args.seconds, tasks: args.tasks as usize };
    let report = attack::run(&plan, &interrupted)?;
    let envelope = Envelope::new("attacks", report.measures());
    if args.json {
        envelope.print(true)?;
    } else {
        stdout::print(&format!("{}\n{}", report.table(), envelope.footer()))?;
    }
    for what in report.findings() {
        eprintln!("WRONG: {what}");
    }
    Ok(if report.harmful() == 0 { ExitCode::SUCCESS } else { ExitCode::from(usage::FAILURE) })
}

/// All kinds, if none is named.
fn kinds(names: &[String]) -> Result<Vec<&'static Attack>> {
    if names.is_empty() {
        return Ok(KINDS.iter().collect());
    }
    let unknown =
        |name| usage::error(anyhow!("there is no kind of attack {name:?}: `midflight-lab attack --list` has them"));
    names.iter().map(|name| attack::named(name).ok_or_else(|| unknown(name))).collect()
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=SECONDS_MAX).contains(seconds) && *seconds > 0.0);
    let seconds: f64 = seconds.ok_or("a number of seconds, such as 10 or 0.5")?;
    Ok(Duration::from_secs_f64(seconds))
}
