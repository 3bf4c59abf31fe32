//! Scenarios whose switch is a pipeline: packets recirculate, executors poll, and it keeps no record of assigned tasks.

#![allow(clippy::unwrap_used, reason = "a test ends where it cannot go on")]

use midflight_sim::tasks::asic::Passes;
use midflight_sim::tasks::scenario::{Outcome, Scenario, ScenarioEngine};
use std::path::Path;

const PIPELINES: [&str; 2] = ["asic-safe", "asic-published"];

/// A small cluster of two kinds of executors; half of the tasks may run only on one of them.
fn mixed(engine: &str, more: &str) -> Scenario {
    let text = format!(
        "duration = \"40ms\"\n[cluster]\nengine = \"{engine}\"\nexecutors = 2\nslots = 4\n\
         [[cluster.groups]]\nexecutors = 2\nresources = [0]\n\
         [workload]\nshape = \"equal\"\nmedian = \"500us\"\ntasks = 5\nload = 0.7\n\
         [[workload.demands]]\nshare = 0.4\nresources = [0]\n{more}"
    );
    Scenario::parse(&text, Path::new("s.toml")).unwrap()
}

struct Played {
    outcome: Outcome,
    passes: Option<Passes>,
    trace: u64,
}

fn play(scenario: &Scenario) -> Played {
    let mut run = scenario.start(Path::new("s.toml")).unwrap();
    while !run.advance(1_000) {}
    Played { outcome: run.outcome().clone(), passes: run.passes(), trace: run.world().trace_hash() }
}

/// Runs until every task has ended.
fn ended(scenario: &Scenario) -> (Outcome, Passes) {
    let Played { outcome, passes, .. } = play(scenario);
    assert_eq!((outcome.completed, outcome.open()), (outcome.submitted, 0), "{outcome:?} {passes:?}");
    (outcome, passes.unwrap())
}

fn dropped(passes: &Passes) -> [u64; 4] {
    [passes.dropped_recirculating, passes.dropped_passes, passes.dropped_queue, passes.dropped_program]
}

#[test]
fn every_task_ends_at_every_engine_and_takes_as_long() {
    let soft = play(&mixed("soft", ""));
    assert_eq!((soft.outcome.completed, soft.passes), (soft.outcome.submitted, None));
    for engine in PIPELINES {
        let (outcome, passes) = ended(&mixed(engine, ""));
        assert_eq!(outcome.submitted, soft.outcome.submitted, "the same jobs");
        assert_eq!(
            outcome.work_ns - soft.outcome.work_ns,
            500_000 * u128::from(outcome.again),
            "{engine}: their times"
        );
        assert!(passes.rounds > passes.submitted && passes.retrieve > passes.assigned, "searches go round: {passes:?}");
        assert!(passes.no_ops > 1_000, "who has no work polls: {passes:?}");
        assert_eq!(dropped(&passes), [0; 4], "{engine}");
    }
}

#[test]
fn the_same_run_twice_is_the_same() {
    for engine in PIPELINES {
        let scenario = mixed(engine, "[datagrams]\nloss = 0.002\njitter = \"5us\"\n[asic]\npoll = \"1ms\"");
        let (first, again) = (play(&scenario), play(&scenario));
        assert_eq!(first.trace, again.trace);
        assert_eq!(first.passes, again.passes);
        assert_eq!(format!("{:?}", first.outcome), format!("{:?}", again.outcome));
    }
}

/// T10 is the clients' time-out: a switch that has lost tasks does not know.
#[test]
fn t10_what_a_pass_limit_drops_is_counted_and_submitted_again() {
    for engine in PIPELINES {
        let (outcome, passes) = ended(&mixed(engine, "[asic]\npasses = 6\npoll = \"1ms\"\nrecirculation = \"2us\""));
        assert!(passes.dropped_passes > 0 && passes.most <= 6, "{engine}: {passes:?}");
        assert!(outcome.delays.max_ns() < 10_000_000_000, "first attempts: {outcome:?}");
        assert!(outcome.again > 0 || outcome.last_end > 10_000_000_000, "{engine}: what was lost took its time");
    }
}

#[test]
fn what_finds_no_place_on_the_way_round_is_counted() {
    let (_, passes) = ended(&mixed("asic-safe", "[asic]\nrecirculating = 1\npoll = \"1ms\"\nrecirculation = \"5us\""));
    assert!(passes.dropped_recirculating > 0, "{passes:?}");
}

#[test]
fn a_pipeline_that_is_slow_makes_packets_wait_and_drops_what_its_queue_does_not_hold() {
    let delay = |rate: u64, queue: u32| {
        let more = format!("[asic]\npasses_per_s = {rate}\n[network]\nswitch_queue = {queue}");
        let (outcome, passes) = ended(&mixed("asic-safe", &more));
        (outcome.delays.quantile_ns(0.5), passes.dropped_queue)
    };
    let ((fast, none), (slow, few)) = (delay(0, 4_096), delay(400_000, 4_096));
    assert!(slow > fast + 5_000, "{fast} ns without a limit, {slow} ns with it");
    assert_eq!((none, few), (0, 0));
    assert!(delay(400_000, 1).1 > 0);
}

#[test]
fn a_round_takes_its_time() {
    let shortest = |recirculation: &str| {
        let (outcome, _) = ended(&mixed("asic-safe", &format!("[asic]\nrecirculation = \"{recirculation}\"")));
        outcome.delays.quantile_ns(0.5)
    };
    assert!(shortest("20us") > shortest("650ns") + 30_000);
}

#[test]
fn a_pipeline_that_starts_anew_is_empty_and_has_another_epoch() {
    for engine in PIPELINES {
        let crash = "[[faults]]\nat = \"20ms\"\ncrash = \"switch 0\"\nlasts = \"5ms\"";
        let (outcome, passes) = ended(&mixed(engine, crash));
        assert!(outcome.again > 0 || outcome.disturbances[1].next_start.is_some(), "{engine}");
        assert!(passes.assigned >= outcome.submitted, "{engine}: both lives are counted");
    }
}

#[test]
fn the_scenario_of_the_guide_runs_at_every_engine() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios/asic.toml");
    let mut scenario = Scenario::load(&file).unwrap();
    for engine in [ScenarioEngine::Soft, ScenarioEngine::AsicSafe, ScenarioEngine::AsicPublished] {
        scenario.cluster.engine = engine;
        let outcome = play(&scenario).outcome;
        assert_eq!((outcome.completed, outcome.open()), (outcome.submitted, 0), "{}", engine.name());
    }
}
