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

Two clients on four hosts submit jobs of all sizes, priorities and resources to five executors, and
cancel some. Executors leave and are killed, further clients come, go and are killed, and the switch
is stopped and killed, with its queue kept or lost. From time to time the load pauses. Then each task
must have ended once, with the right result; the counters of clients, core and processes must agree;
and no process may have grown. At the end the kernel must hold nothing of the switch.

RESULTS
  soak.tasks, .ok, .cancelled, .lost         tasks submitted, and how they ended
  soak.wrong                                 findings; each is a line that begins with WRONG
  soak.rests, .seconds                       pauses that were audited; duration
  soak.again, .expired, .resubmitted         tasks of a later attempt; taken from silent executors;
                                             submitted again because the switch had lost them
  soak.retransmitted                         packets that clients repeated
  soak.executors_left, .executors_killed, .clients_served, .clients_killed, .switch_kept,
  .switch_emptied                            disturbances
  soak.rtt_p50_us, .rtt_max_us               round trips of single tasks
  soak.PROCESS_rss_first_kib, .PROCESS_rss_last_kib, .bpf_NAME   memory; objects left in the kernel

EXIT CODES
  0 nothing was wrong, 1 something was (lines that begin with WRONG), or the test could not run
  (no root, no kernel engine), 2 wrong usage, 130 interrupted";

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
