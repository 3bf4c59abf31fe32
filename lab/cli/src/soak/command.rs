//! `midflight-lab soak`: a cluster in a lab under load and disturbance.

use crate::engines::{LabEngine, Named};
use crate::soak::{self, Plan};
use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use midflight_net::Loss;
use midflight_terminal::envelope::Envelope;
use midflight_terminal::signals::end_flag;
use midflight_terminal::usage;
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab soak                          two minutes, as root
  midflight-lab soak --minutes 30 --json
  midflight-lab soak --engine user --loss 1%
  midflight-lab soak --seed 17                the same events again, as far as time allows

Four hosts, five executors, two clients that stay: jobs of all sizes, priorities and resources,
no-op, sleeping, computing and running commands, single tasks, cancelled ones. Meanwhile executors
leave and are killed, clients come, go and are killed, and the switch is stopped and killed, its
queue kept or not. From time to time all comes to rest. Then every task must have ended once, with
the right result; the counters of clients, core and shells must add up; no process may have grown;
and at the end nothing may be left of the switch in the kernel.

EXIT CODES
  0 all was as it should be, 1 something was not (each on a line that begins with WRONG), or it
  could not be held (no root, no kernel engine), 2 wrong usage, 130 interrupted";

const MINUTES_MAX: f64 = 525_600.0;

/// What the command line says.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Duration in minutes, such as 30 or 0.5
    #[arg(long, value_name = "N", default_value = "2", value_parser = minutes)]
    minutes: Duration,
    /// The switch's engine
    #[arg(long, value_enum, default_value_t = LabEngine::Kernel)]
    engine: LabEngine,
    /// Lose this part of the packets at random, on each link in each direction
    #[arg(long, value_name = "RATE", default_value = "0.1%")]
    loss: Loss,
    /// Seed of all random choices; default: a new one each time, which is printed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    midflight_net::available()?;
    if let Some(why) = args.engine.missing() {
        bail!("{why}");
    }
    let interrupted = end_flag()?;
    let seed = args.seed.unwrap_or_else(rand::random);
    let plan = Plan { time: args.minutes, engine: args.engine, loss: args.loss, seed };
    eprintln!("engine {}, {} loss on each link, seed {seed}", plan.engine.name(), plan.loss);
    let report = soak::run(&plan, &interrupted)?;
    Envelope::new("soak", report.measures).print(args.json)?;
    for what in &report.findings {
        eprintln!("WRONG: {what}");
    }
    Ok(if report.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(usage::FAILURE) })
}

fn minutes(text: &str) -> Result<Duration, String> {
    let minutes = text.parse().ok().filter(|minutes| (0.0..=MINUTES_MAX).contains(minutes) && *minutes > 0.0);
    let minutes: f64 = minutes.ok_or("a number of minutes, such as 30 or 0.5")?;
    Ok(Duration::from_secs_f64(minutes * 60.0))
}
