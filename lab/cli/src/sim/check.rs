//! `midflight-lab sim check`: the fault campaign: random clusters with faults of all kinds, checked against the rules.

use anyhow::Result;
use clap::{Args as ClapArgs, ValueEnum};
use midflight_sim::cache::check::CacheSubject;
use midflight_sim::check::{Campaign, Outcome, Rule, Subject, Totals, Trial, run_traced, shrink};
use midflight_sim::store::check::StoreSubject;
use midflight_sim::tasks::check::TasksSubject;
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::files;
use midflight_terminal::machine::cores;
use midflight_terminal::signals::interrupted_flag;
use midflight_terminal::{stdout, usage};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Instant;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab sim check tasks                          200 seeds, some seconds
  midflight-lab sim check tasks --seeds 10000 -j 2       a campaign
  midflight-lab sim check tasks --seed 4711              that one again, the same in every detail
  midflight-lab sim check tasks --seed 4711 --trace all.txt
  midflight-lab sim check tasks --seed 4711 --shrink     what is left of it still breaks the rule
  midflight-lab sim check tasks --trial trial-4711.toml  a trial from a file
  midflight-lab sim check store                          the same for the linearizable store
  midflight-lab sim check cache                          the same for a cache

RESULTS
  check.seeds                  that were tried: all, or those up to the first violation
  check.violations             0, or 1: the first one ends the campaign
  check.simulated_hours        virtual time of all runs
  check.faults                 crashes, pauses, partitions, ... that befell them

A violation is printed with its seed, its rule, and the last events before it. docs/checking.md
explains the rules and what a trial is. The same seeds have the same result, whatever -j is. Ctrl-C
while --shrink looks for smaller trials keeps the smallest so far.

EXIT CODES
  0 no rule was broken, 1 one was, 2 wrong usage, 130 interrupted";

const LINES: usize = 60;
const SEEDS: u64 = 200;

#[derive(ClapArgs)]
pub(super) struct Args {
    /// The program whose rules are checked
    program: Program,
    /// Try this many seeds, from 0 or from --seed on [default: 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..1 << 40))]
    seeds: Option<u64>,
    /// Try this seed; with --seeds, begin with it
    #[arg(long, value_name = "SEED", value_parser = clap::value_parser!(u64).range(..1 << 62))]
    seed: Option<u64>,
    /// Run the trial in this file (TOML, as --shrink writes it)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "seed"])]
    trial: Option<PathBuf>,
    /// Shrink the first trial that breaks a rule, and write it to trial-SEED.toml
    #[arg(long)]
    shrink: bool,
    /// The file that --shrink writes, instead of trial-SEED.toml
    #[arg(long, value_name = "FILE", requires = "shrink")]
    out: Option<PathBuf>,
    /// Write all events of a single trial to this file
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Trials at a time [default: the number of cores]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

/// What can be checked.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Program {
    /// The task queue: T1 to T19
    Tasks,
    /// The linearizable store: R1 to R7
    Store,
    /// A cache: N1 to N9
    Cache,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    match args.program {
        Program::Tasks => check::<TasksSubject>(args),
        Program::Store => check::<StoreSubject>(args),
        Program::Cache => check::<CacheSubject>(args),
    }
}

fn check<S: Subject>(args: &Args) -> Result<ExitCode> {
    for (flag, path) in [("--out", &args.out), ("--trace", &args.trace)] {
        path.as_ref().map_or(Ok(()), |path| files::check_output(flag, path))?;
    }
    let single = match (&args.trial, args.seed, args.seeds) {
        (Some(file), ..) => Some((S::Trial::read(file).map_err(usage::error)?, replay_file::<S>(file))),
        (None, Some(seed), None) => Some((S::draw(seed), replay_seed::<S>(seed))),
        _ => None,
    };
    match single {
        Some((trial, replay)) => check_one::<S>(args, &trial, &replay),
        None if args.trace.is_some() => Err(usage::error("--trace is for one trial: give --seed or --trial")),
        None => campaign::<S>(args),
    }
}

fn replay_seed<S: Subject>(seed: u64) -> String {
    format!("midflight-lab sim check {} --seed {seed}", S::NAME)
}

fn replay_file<S: Subject>(file: &Path) -> String {
    format!("midflight-lab sim check {} --trial {}", S::NAME, file.display())
}

fn campaign<S: Subject>(args: &Args) -> Result<ExitCode> {
    let first = args.seed.unwrap_or(0);
    let seeds = first..first + args.seeds.unwrap_or(SEEDS);
    let stop = interrupted_flag()?;
    let progress = super::campaign(Some(seeds.end - seeds.start), "seeds");
    let campaign = Campaign { seeds, threads: threads(args.jobs), mutant: 0 };
    let started = Instant::now();
    let totals = campaign.run::<S>(&|_| {
        progress.advance();
        !stop.load(Ordering::Relaxed)
    });
    progress.finish();
    if stop.load(Ordering::Relaxed) && totals.first.is_none() {
        eprintln!("interrupted");
        return Ok(ExitCode::from(usage::INTERRUPTED));
    }
    // Not among the results, which are reproducible.
    eprintln!("{} events in {:.1} s", totals.events, started.elapsed().as_secs_f64());
    if let Some((seed, _)) = totals.first {
        report::<S>(args, &S::draw(seed), &replay_seed::<S>(seed))?;
    }
    print::<S>(args, &totals)
}

fn check_one<S: Subject>(args: &Args, trial: &S::Trial, replay: &str) -> Result<ExitCode> {
    let outcome = report::<S>(args, trial, replay)?;
    let Outcome { simulated, faults, events, .. } = outcome;
    let first = outcome.violation.is_some().then_some((trial.seed(), outcome));
    print::<S>(args, &Totals { seeds: 1, simulated_ns: simulated.into(), faults, events, first })
}

fn print<S: Subject>(args: &Args, totals: &Totals) -> Result<ExitCode> {
    let violations = u64::from(totals.first.is_some());
    let hours = totals.simulated_ns as f64 / 3.6e12;
    let results = vec![
        Measure::count("check.seeds", totals.seeds, "seeds"),
        Measure::count("check.violations", violations, "violations"),
        Measure::quantity("check.simulated_hours", hours, "h"),
        Measure::count("check.faults", totals.faults, "faults"),
    ];
    Envelope::new(&format!("sim check {}", S::NAME), results).print(args.json)?;
    Ok(if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Replays and prints a trial; shrinks it on request.
fn report<S: Subject>(args: &Args, trial: &S::Trial, replay: &str) -> Result<Outcome> {
    let (outcome, lines) = run_traced::<S>(trial);
    if let Some(file) = &args.trace {
        files::write(file, &(lines.join("\n") + "\n"))?;
        eprintln!("{} lines are in {}", lines.len(), file.display());
    }
    let Some(violation) = &outcome.violation else { return Ok(outcome) };
    stdout::print_beside(args.json, &story(&outcome, &lines, replay))?;
    if args.shrink {
        let file = args.out.clone().unwrap_or_else(|| format!("trial-{}.toml", trial.seed()).into());
        let small = make_small::<S>(trial, violation.broken.rule)?;
        files::write(&file, &small.to_toml()?)?;
        let (outcome, lines) = run_traced::<S>(&small);
        stdout::print_beside(args.json, &story(&outcome, &lines, &replay_file::<S>(&file)))?;
    }
    Ok(outcome)
}

/// The last events, the broken rule, and the command that replays them.
fn story(outcome: &Outcome, lines: &[String], replay: &str) -> String {
    let Some(violation) = &outcome.violation else { return String::new() };
    let mut text = String::new();
    for line in &lines[lines.len().saturating_sub(LINES)..] {
        text += line;
        text += "\n";
    }
    let ms = violation.at as f64 / 1e6;
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\nat {ms:.3} ms {} is broken: {}", violation.broken.rule, violation.broken.what);
    let _ = writeln!(text, "again: {replay}\n");
    text
}

/// Ctrl-C stops with the smallest trial so far.
fn make_small<S: Subject>(trial: &S::Trial, rule: Rule) -> Result<S::Trial> {
    let stop = interrupted_flag()?;
    let progress = super::campaign(None, "smaller trials");
    let small = shrink::<S>(trial, rule, |_| {
        progress.advance();
        !stop.load(Ordering::Relaxed)
    });
    progress.finish();
    if stop.load(Ordering::Relaxed) {
        eprintln!("interrupted: the smallest so far");
    }
    eprintln!("left: {}; were: {}", small.size(), trial.size());
    Ok(small)
}

/// Number of threads: as requested, or one per core.
pub(super) fn threads(jobs: Option<u16>) -> usize {
    jobs.map_or(cores() as usize, usize::from)
}
