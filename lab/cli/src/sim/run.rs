//! `midflight-lab sim run`: runs a scenario from a file.

use super::SMALLER;
use crate::memory;
use anyhow::Result;
use clap::Args as ClapArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use midflight_sim::NetworkCounters;
use midflight_sim::tasks::asic::Passes;
use midflight_sim::tasks::scenario::{Delays, Run, Scenario, ScenarioEngine};
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::progress::{LINE_EVERY, Progress};
use midflight_terminal::signals::interrupted_flag;
use midflight_terminal::units;
use midflight_terminal::{stdout, usage};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab sim run docs/scenarios/restart.toml
  midflight-lab sim run docs/scenarios/restart.toml --seed 7
  midflight-lab sim run docs/scenarios/asic.toml --engine asic-published
  midflight-lab sim run docs/scenarios/million.toml --json | jq .results

docs/simulator.md explains every key of a scenario and every line of the result. The same scenario
and seed print the same, byte for byte.

EXIT CODES
  0 all tasks ended, 1 tasks were lost or did not end in time, 2 wrong usage or a scenario that
  cannot be run, 130 interrupted";

/// Events between two checks of clock and signals.
const TURN: u64 = 1 << 17;

#[derive(ClapArgs)]
pub(super) struct Args {
    /// The scenario (TOML)
    scenario: PathBuf,
    /// Instead of the scenario's own seed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The engine of the switches, instead of the scenario's own
    #[arg(long, value_name = "ENGINE", value_parser = engines())]
    engine: Option<ScenarioEngine>,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
    /// Start even if memory seems too small
    #[arg(long)]
    force: bool,
}

fn engines() -> impl TypedValueParser<Value = ScenarioEngine> {
    PossibleValuesParser::new(ScenarioEngine::NAMES)
        .try_map(|name| ScenarioEngine::named(&name).ok_or("no such engine"))
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let file = &args.scenario;
    let mut scenario = Scenario::load(file).map_err(usage::error)?;
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    scenario.cluster.engine = args.engine.unwrap_or(scenario.cluster.engine);
    if !args.force {
        memory::check(scenario.memory_bytes(), SMALLER).map_err(usage::error)?;
    }
    let stop = interrupted_flag()?;
    let mut run = scenario.start(file).map_err(usage::error)?;
    let malformed = run.notes().malformed;
    if malformed > 0 {
        eprintln!("workload.trace: {malformed} malformed lines left out");
    }
    let finished = play(&mut run, &stop);
    let outcome = run.outcome();
    if args.json {
        Envelope::new("sim run", measures(&scenario, &run)).print(true)?;
    } else {
        stdout::print(&table(&scenario, &run, finished))?;
    }
    Ok(match outcome.open() + outcome.lost {
        _ if !finished => ExitCode::from(usage::INTERRUPTED),
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Whether the run came to its end.
fn play(run: &mut Run, stop: &AtomicBool) -> bool {
    let (start, progress) = (Instant::now(), Progress::spinner(LINE_EVERY));
    while !run.advance(TURN) {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        progress.tell(|| {
            let (at, outcome) = (run.world().now(), run.outcome());
            format!("{} simulated, {} of {} tasks ended", units::time(at), outcome.completed, outcome.submitted)
        });
    }
    progress.finish();
    // Not among the results, which are reproducible.
    let seconds = start.elapsed().as_secs_f64();
    let events = run.world().events();
    eprintln!("{events} events in {seconds:.1} s, {:.1} million a second", events as f64 / seconds / 1e6);
    true
}

/// Share of the slots' time spent on tasks, until the last task ended, or until now.
fn utilisation(scenario: &Scenario, run: &Run) -> f64 {
    let (slots, outcome) = (scenario.cluster.all_slots() as f64, run.outcome());
    let until = if outcome.open() == 0 { outcome.last_end } else { run.world().now() };
    outcome.work_ns as f64 / (slots * (until as f64).max(1.0))
}

const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

fn measures(scenario: &Scenario, run: &Run) -> Vec<Measure> {
    let (outcome, world) = (run.outcome(), run.world());
    let tasks = |name: &str, count: u64| Measure::count(&format!("run.{name}"), count, "tasks");
    let mut list = vec![
        Measure::count("run.seed", scenario.seed, ""),
        tasks("submitted", outcome.submitted),
        tasks("completed", outcome.completed),
        tasks("lost", outcome.lost),
        tasks("abandoned", outcome.abandoned),
        tasks("open", outcome.open()),
        tasks("started", outcome.starts),
        tasks("started_again", outcome.again),
        tasks("started_far", outcome.far),
        Measure::quantity("run.simulated_s", world.now() as f64 / 1e9, "s"),
        Measure::quantity("run.utilisation", utilisation(scenario, run), ""),
        Measure::count("run.events", world.events(), ""),
    ];
    let mut delays = |prefix: &str, delays: &Delays| {
        let us = |name: &str, ns: f64| Measure::quantity(&format!("{prefix}_{name}_us"), ns / 1e3, "us");
        list.push(us("mean", delays.mean_ns()));
        list.extend(QUANTILES.map(|(name, quantile)| us(name, delays.quantile_ns(quantile) as f64)));
        list.push(us("max", delays.max_ns() as f64));
    };
    delays("run.delay", &outcome.delays);
    if outcome.levels.len() > 1 {
        outcome.levels.iter().for_each(|(level, of)| delays(&format!("run.level{level}.delay"), of));
    }
    list.extend(
        counters(world.network_counters()).map(|(name, count)| Measure::count(&format!("run.{name}"), count, "")),
    );
    if let Some(passes) = run.passes() {
        list.extend(pass_counters(&passes).map(|(name, count)| Measure::count(&format!("run.asic.{name}"), count, "")));
        let each = pass_means(&passes).map(|(name, each)| Measure::quantity(&format!("run.asic.{name}"), each, ""));
        list.extend(each);
    }
    for (number, disturbance) in outcome.disturbances.iter().enumerate() {
        let us = disturbance.next_start.map_or(f64::NAN, |ns| ns as f64 / 1e3);
        list.push(Measure::quantity(&format!("run.fault{number}.next_start_us"), us, "us"));
    }
    list.push(Measure::text("run.trace", &format!("{:016x}", world.trace_hash())));
    list
}

fn counters(network: &NetworkCounters) -> [(&'static str, u64); 8] {
    [
        ("datagrams.sent", network.sent),
        ("datagrams.lost", network.lost),
        ("datagrams.duplicated", network.duplicated),
        ("datagrams.held_back", network.held_back),
        ("datagrams.partitioned", network.partitioned),
        ("datagrams.unreachable", network.unreachable),
        ("datagrams.receive_buffer_full", network.receive_buffer_full),
        ("datagrams.switch_queue_full", network.switch_queue_full),
    ]
}

fn pass_counters(passes: &Passes) -> [(&'static str, u64); 11] {
    [
        ("passes", passes.passes),
        ("rounds", passes.rounds),
        ("submitted", passes.submitted),
        ("assigned", passes.assigned),
        ("retrieve_most", passes.most.into()),
        ("no_ops", passes.no_ops),
        ("returned", passes.returned),
        ("dropped.recirculating", passes.dropped_recirculating),
        ("dropped.pass_limit", passes.dropped_passes),
        ("dropped.queue", passes.dropped_queue),
        ("dropped.program", passes.dropped_program),
    ]
}

/// Passes per task, in and out; NaN without tasks.
fn pass_means(passes: &Passes) -> [(&'static str, f64); 2] {
    [
        ("submit_passes_per_task", passes.submit as f64 / passes.submitted as f64),
        ("retrieve_passes_per_task", passes.retrieve as f64 / passes.assigned as f64),
    ]
}

/// Writing to a String cannot fail.
fn passes_lines(passes: &Passes) -> String {
    let [(_, submit), (_, retrieve)] = pass_means(passes);
    let mut text = format!(
        "passes: {}, of which {} rounds; {submit:.2} a task in, {retrieve:.2} a task out, {} at most; {} times no task\n",
        passes.passes, passes.rounds, passes.most, passes.no_ops
    );
    let counted = pass_counters(passes).into_iter().filter_map(|(name, count)| {
        let name = name.strip_prefix("dropped.").filter(|_| count > 0)?;
        Some(format!("{count} {}", name.replace('_', " ")))
    });
    let counted: Vec<String> = counted.collect();
    if !counted.is_empty() {
        let _ = writeln!(text, "dropped in the pipeline: {}", counted.join(", "));
    }
    if passes.returned > 0 {
        let _ = writeln!(text, "{} tasks given back by searches", passes.returned);
    }
    text
}

/// Writing to a String cannot fail.
fn table(scenario: &Scenario, run: &Run, finished: bool) -> String {
    let (outcome, world) = (run.outcome(), run.world());
    let mut text = format!("{:<12} {:>10}", "", "tasks");
    for name in ["mean", "p50", "p95", "p99", "p99.9", "max"] {
        let _ = write!(text, " {name:>9}");
    }
    let mut row = |name: &str, delays: &Delays| {
        let _ = write!(text, "\n{name:<12} {:>10} {:>9}", delays.count(), units::time(delays.mean_ns() as u64));
        for (_, quantile) in QUANTILES {
            let _ = write!(text, " {:>9}", units::time(delays.quantile_ns(quantile)));
        }
        let _ = write!(text, " {:>9}", units::time(delays.max_ns()));
    };
    row("delay", &outcome.delays);
    if outcome.levels.len() > 1 {
        outcome.levels.iter().for_each(|(level, delays)| row(&format!("  level {level}"), delays));
    }
    let _ = writeln!(
        text,
        "\n\n{} of {} tasks completed, {} lost, {} abandoned by clients that died, {} open; {} started again",
        outcome.completed,
        outcome.submitted,
        outcome.lost,
        outcome.abandoned,
        outcome.open(),
        outcome.again
    );
    if scenario.workload.places.count > 0 {
        let _ = writeln!(text, "{} of {} runs far from their data", outcome.far, outcome.starts);
    }
    let _ = writeln!(
        text,
        "{} simulated, utilisation {:.1} %, {} events, seed {}, trace {:016x}",
        units::time(world.now()),
        100.0 * utilisation(scenario, run),
        world.events(),
        scenario.seed,
        world.trace_hash()
    );
    let counted = counters(world.network_counters()).into_iter().filter(|(_, count)| *count > 0);
    let counted: Vec<_> =
        counted.map(|(name, count)| format!("{count} {}", name["datagrams.".len()..].replace('_', " "))).collect();
    let _ = writeln!(text, "datagrams: {}", counted.join(", "));
    text.push_str(&run.passes().as_ref().map(passes_lines).unwrap_or_default());
    for disturbance in &outcome.disturbances {
        let next = disturbance.next_start.map_or("none".into(), units::time);
        let _ = writeln!(text, "at {:>8}  {}: next start after {next}", units::time(disturbance.at), disturbance.what);
    }
    if !finished {
        text.push_str("PARTIAL: interrupted\n");
    } else if outcome.open() > 0 {
        text.push_str("PARTIAL: patience ended before all tasks had\n");
    }
    text
}
