//! `midflight-lab bench modes`: what reads from followers gain. Runs the same store in each read mode, with so small a CPU share for each
//! replica that replicas are the bottleneck, as in a cluster.

mod bound;
mod load;
mod report;
mod samples;
mod share;
mod store;
mod workload;

use super::How;
use crate::engines::LabEngine;
use crate::lab_guard::LabGuard;
use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use midflight_control::store::ReadMode;
use midflight_dataplane::store::Policy;
use midflight_terminal::envelope::Envelope;
use midflight_terminal::progress::Progress;
use midflight_terminal::usage;
use samples::{Sample, Samples};
use std::process::ExitCode;
use std::time::Duration;
use store::{Like, Store};
use workload::{Keys, Mix};

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench modes                 all modes, as root; a quarter of an hour
  midflight-lab bench modes --quick         two short rounds
  midflight-lab bench modes --json > modes.json

WORKLOADS
  C is all reads, B is 5 % writes; keys alike, and by Zipf's law (C.zipf, B.zipf). 10,000 keys,
  values of 100 bytes. C5 is C with 5 replicas instead of 3, in two of the modes.

RESULTS (medians of the rounds; a ratio has its 95 % interval in .low and .high)
  modes.WORKLOAD.MODE_per_s             operations a second
  modes.WORKLOAD.MODE_busy              the busiest replica's part of its share of the CPU: where
                                        it is far below 1, something else was scarce
  modes.WORKLOAD.flair_over_MODE        of flair and that mode, of the same rounds
  modes.cost.*_us                       CPU time of a read, and of a write at leader and follower
  modes.B.bound                         flair_over_follower_lease, if flair lost nothing:
                                        N S / ((1-p) read + p (write_leader + (N-1) write_follower))
                                        of N replicas with the share S and p writes, by the
                                        follower-lease that was measured

EXIT CODES
  0 measured, 1 failed (no root, no control groups), 2 wrong usage, 130 interrupted";

/// Replicas of a set, and of the larger one.
const REPLICAS: usize = 3;
const MORE_REPLICAS: usize = 5;

#[derive(ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    how: How,
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
    keys: Keys,
    engine: LabEngine,
    share: f64,
    policy: Policy,
    time: Duration,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    midflight_net::available()?;
    if let Some(why) = args.engine.missing() {
        bail!("{why}; --engine user measures with the switch as a process");
    }
    let rounds = args.rounds.unwrap_or(if args.how.quick { 2 } else { 5 });
    let usual = Duration::from_millis(if args.how.quick { 500 } else { 2_000 });
    let study = Study {
        guard: LabGuard::new()?,
        keys: Keys::new()?,
        engine: args.engine,
        share: f64::from(args.share) / 100.0,
        policy: args.policy,
        time: args.duration.unwrap_or(usual),
    };
    let samples = study.guard.unless_interrupted(study.rounds(rounds, &plan(&args.modes)))?;
    Envelope::new("modes", report::measures(&samples, study.share)).print(args.how.json)?;
    Ok(ExitCode::SUCCESS)
}

/// A mode, the number of replicas, and the workloads to measure it with.
type Part = (ReadMode, usize, Vec<Mix>);

fn plan(modes: &[ReadMode]) -> Vec<Part> {
    let all = vec![Mix::C, Mix::C_ZIPF, Mix::B, Mix::B_ZIPF];
    let mixes = |mode| if mode == ReadMode::Flair { [all.clone(), vec![Mix::WRITES]].concat() } else { all.clone() };
    let replicas = |mode| if mode == ReadMode::Unreplicated { 1 } else { REPLICAS };
    let usual = modes.iter().map(|&mode| (mode, replicas(mode), mixes(mode)));
    let larger = modes.iter().filter(|mode| matches!(mode, ReadMode::Flair | ReadMode::LeaderLease));
    usual.chain(larger.map(|&mode| (mode, MORE_REPLICAS, vec![Mix::C]))).collect()
}

impl Study {
    fn rounds(&self, rounds: u32, plan: &[Part]) -> Result<Samples> {
        let total = u64::from(rounds) * plan.len() as u64;
        let progress = Progress::counted(Some(total), "stores", "{bar:40} {human_pos}/{human_len} {msg}, {elapsed}");
        let mut samples = Samples::default();
        for round in 0..rounds as usize {
            // Each round starts with another mode, so that drift affects all modes alike.
            for (mode, replicas, mixes) in plan.iter().cycle().skip(round % plan.len()).take(plan.len()) {
                let like = self.like(*mode, *replicas);
                let what = || format!("{} with {replicas} replicas", mode.name());
                self.measure(&like, mixes, &mut samples).with_context(what)?;
                progress.advance();
            }
        }
        progress.finish();
        Ok(samples)
    }

    fn like(&self, mode: ReadMode, replicas: usize) -> Like {
        Like { mode, policy: self.policy, engine: self.engine, replicas, share: self.share }
    }

    fn measure(&self, like: &Like, mixes: &[Mix], samples: &mut Samples) -> Result<()> {
        let lab = like.lab(&self.guard)?;
        let store = Store::start(like, &lab, &self.guard)?;
        load::fill(&store, &self.keys)?;
        for mix in mixes {
            let leader = store.leader()?;
            let (done, cpu) = load::run(&store, &self.keys, *mix, (self.time / 2, self.time))?;
            samples.add(like, mix, Sample { done, cpu, leader });
        }
        Ok(())
    }
}
