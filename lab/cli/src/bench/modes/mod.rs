//! `midflight-lab bench modes`: what reads from followers gain. Runs the same store in each read mode, with so small a CPU share for each
//! replica that replicas are the bottleneck, as in a cluster.

mod costs;
mod load;
mod plan;
mod report;
mod samples;
mod share;
mod store;
mod validation;
mod workload;

use super::How;
use crate::engines::LabEngine;
use crate::lab_guard::LabGuard;
use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use costs::Costs;
use midflight_control::store::ReadMode;
use midflight_dataplane::store::Policy;
use midflight_terminal::envelope::Envelope;
use midflight_terminal::progress::Progress;
use midflight_terminal::usage;
use plan::{Part, Sweep};
use samples::{Sample, Samples};
use std::process::ExitCode;
use std::time::Duration;
use store::Store;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench modes                 all modes, as root; a quarter of an hour
  midflight-lab bench modes --quick         two short rounds
  midflight-lab bench modes --sweep clients --modes flair,follower-lease --simulate
  midflight-lab bench modes --json > modes.json

WORKLOADS
  10,000 keys of 24 bytes, values of 1 KB, 1,024 clients in a closed loop. C is all reads, B has
  5 % writes, A has 50 %; uniform keys, or Zipf's law (C.zipf, 0.99). C5 is C with 5 replicas
  instead of 3, in two of the modes. C.clients-N, B.clients-N, reads-PERCENT and B.zipf-EXPONENT are of sweeps;
  in C.slow and B.slow one follower has half of the others' share.

RESULTS (medians of the rounds; a ratio has its 95 % interval in .low and .high)
  modes.WORKLOAD.MODE_per_s             operations a second
  modes.WORKLOAD.MODE_p50_us, _p99_us   latency of reads
  modes.WORKLOAD.MODE_busy              the busiest replica's part of its share of the CPU: where
                                        it is far below 1, something else was scarce
  modes.WORKLOAD.flair_over_MODE        of flair and that mode, of the same rounds
  modes.WORKLOAD.POLICY_over_leader_avoidance   the same of policies, by --sweep balance
  modes.cost.*_us                       CPU time of a read, of a write at leader and follower, and
                                        of one without replicas; background: of a replica a second,
                                        without clients
  modes.B.bound                         flair_over_follower_lease, if flair lost nothing:
                                        N S / ((1-p) read + p (write_leader + (N-1) write_follower))
                                        of N replicas with the share S and p writes, by the
                                        follower-lease that was measured
  validation.WORKLOAD.MODE.throughput, .p50, .p99     with --simulate: live by simulated, where
  validation.WORKLOAD.flair_over_MODE                 the same store runs in the simulator with
                                        the measured costs: .ratio, .low, .high

EXIT CODES
  0 measured, 1 failed (no root, no control groups), 2 wrong usage, 130 interrupted";

#[derive(ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    how: How,
    /// What to measure
    #[arg(long, value_enum, default_value_t = Sweep::Workloads)]
    sweep: Sweep,
    /// Also run the same in the simulator, with the costs that were measured
    #[arg(long)]
    simulate: bool,
    /// Rounds, in each of which all modes are measured; default: 5, with --quick 2
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100))]
    rounds: Option<u32>,
    /// The share of a CPU that each replica gets, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(10..=100))]
    share: u32,
    /// Only these modes, such as flair,leader-lease
    #[arg(long, value_delimiter = ',', value_name = "MODE", default_values = ReadMode::ALL.map(ReadMode::name))]
    modes: Vec<ReadMode>,
    /// Which of the replicas that are up to date gets a read, in mode flair
    #[arg(long, value_name = "POLICY", default_value = Policy::LeaderAvoidance.name())]
    policy: Policy,
    /// How long each measurement takes, after a half of it to warm up; default: 2s, with --quick 500ms
    #[arg(long, value_name = "DURATION", value_parser = usage::duration)]
    duration: Option<Duration>,
    /// The switch as a process (user) or as programs in the kernel
    #[arg(long, value_enum, default_value_t = LabEngine::Kernel)]
    engine: LabEngine,
}

struct Study {
    guard: LabGuard,
    engine: LabEngine,
    share: f64,
    time: Duration,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if args.sweep == Sweep::Balance && (args.modes != ReadMode::ALL || args.policy != Policy::default()) {
        return Err(usage::error(
            "--sweep balance measures all policies of mode flair: leave out --modes and --policy",
        ));
    }
    midflight_net::available()?;
    if let Some(why) = args.engine.missing() {
        bail!("{why}; --engine user measures with the switch as a process");
    }
    let rounds = args.rounds.unwrap_or(if args.how.quick { 2 } else { 5 });
    let usual = Duration::from_millis(if args.how.quick { 500 } else { 2_000 });
    let study = Study {
        guard: LabGuard::new()?,
        engine: args.engine,
        share: f64::from(args.share) / 100.0,
        time: args.duration.unwrap_or(usual),
    };
    let parts: Vec<Part> = costs::parts().into_iter().chain(args.sweep.parts(&args.modes, args.policy)).collect();
    let samples = study.guard.unless_interrupted(study.rounds(rounds, &parts))?;
    let costs = Costs::measured(&samples);
    let mut measures = report::measures(&samples, &costs, study.share);
    let validated =
        if args.simulate { validation::measures(&samples, &parts, &costs, study.share) } else { Ok(Vec::new()) };
    // What was measured is not lost if the simulation fails.
    let outcome = validated.map(|validated| measures.extend(validated)).context("the stores cannot be simulated");
    Envelope::new("modes", measures).print(args.how.json)?;
    outcome.map(|()| ExitCode::SUCCESS)
}

impl Study {
    fn rounds(&self, rounds: u32, parts: &[Part]) -> Result<Samples> {
        let total = u64::from(rounds) * parts.len() as u64;
        let progress = Progress::counted(Some(total), "stores", "{bar:40} {human_pos}/{human_len} {msg}, {elapsed}");
        let mut samples = Samples::default();
        for round in 0..rounds as usize {
            // Each round starts with another store, so that drift affects all alike.
            for part in parts.iter().cycle().skip(round % parts.len()).take(parts.len()) {
                let what = || format!("{} with {} replicas", part.mode.name(), part.replicas);
                self.measure(part, &mut samples).with_context(what)?;
                progress.advance();
            }
        }
        progress.finish();
        Ok(samples)
    }

    fn measure(&self, part: &Part, samples: &mut Samples) -> Result<()> {
        let lab = store::lab(part, self.engine, &self.guard)?;
        let store = Store::start(part, self.share, self.engine, &lab, &self.guard)?;
        load::fill(&store)?;
        for mix in &part.mixes {
            let leader = store.leader()?;
            let (done, cpu) = load::run(&store, mix, (self.time / 2, self.time))?;
            samples.add(&mix.name, &part.name, Sample { done, cpu, leader });
        }
        Ok(())
    }
}
