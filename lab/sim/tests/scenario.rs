//! Scenario files: those of the guide run, and an invalid one is refused with file, key and the valid range.

#![allow(clippy::unwrap_used, reason = "a test ends where it cannot go on")]

use midflight_sim::tasks::scenario::{Outcome, Scenario};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse(text, Path::new("s.toml")).map_err(|error| error.to_string())
}

/// Runs a scenario to its end. Returns outcome, trace hash and number of events.
fn play(scenario: &Scenario) -> (Outcome, u64, u64) {
    let mut run = scenario.start(Path::new("s.toml")).unwrap();
    while !run.advance(1_000) {}
    (run.outcome().clone(), run.world().trace_hash(), run.world().events())
}

fn documents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// A small cluster, with these additional lines.
fn small(more: &str) -> Scenario {
    parse(&format!(
        "duration = \"40ms\"\n[cluster]\nexecutors = 4\nslots = 4\n[workload]\nshape = \"equal\"\nmedian = \"500us\"\n{more}"
    ))
    .unwrap()
}

#[test]
fn the_scenarios_of_the_guide_run_to_their_end() {
    for name in ["restart", "lossy"] {
        let scenario = Scenario::load(&documents().join(format!("scenarios/{name}.toml"))).unwrap();
        let (outcome, ..) = play(&scenario);
        assert!(outcome.completed > 5_000, "{name}: {outcome:?}");
        assert_eq!((outcome.open(), outcome.lost), (0, 0), "{name}");
    }
    let million = Scenario::load(&documents().join("scenarios/million.toml")).unwrap();
    assert_eq!(million.cluster.all_slots(), 1_000_000);
    assert!(million.memory_bytes() < 12 << 30, "{}", million.memory_bytes());
}

#[test]
fn the_guide_prints_the_scenario_that_it_speaks_of() {
    let guide = std::fs::read_to_string(documents().join("simulator.md")).unwrap();
    let scenario = std::fs::read_to_string(documents().join("scenarios/restart.toml")).unwrap();
    assert!(guide.contains(&scenario), "docs/simulator.md shows docs/scenarios/restart.toml");
}

/// Every key, with its default; a key that is missing here is missing in the guide.
#[test]
fn the_guide_lists_every_key_with_its_default() {
    let guide = std::fs::read_to_string(documents().join("simulator.md")).unwrap();
    let (mut text, mut table, mut keys) = (String::new(), String::new(), 0);
    for line in guide.lines() {
        if let Some(name) = line.strip_prefix("### `[").and_then(|rest| rest.split_once(']')) {
            table = format!("[{}]\n", name.0);
        } else if line.starts_with("### ") {
            table = String::new();
        }
        // | `key` | default | what |
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        if let ["", key, default, _, ""] = cells[..]
            && let (Some(key), Some(default)) = (unquoted(key), unquoted(default))
        {
            text += &format!("{table}{key} = {default}\n");
            table = String::new();
            keys += 1;
        }
    }
    assert_eq!(parse(&text), Ok(Scenario::default()), "{text}");
    assert_eq!(keys, 41, "{text}");
    // Keys that the defaults do not contain.
    for key in
        ["trace", "format", "at", "lasts", "crash", "restart", "pause", "resume", "drain", "partition", "heal", "link"]
    {
        assert!(guide.contains(&format!("`{key}`")), "docs/simulator.md does not explain `{key}`");
    }
}

fn unquoted(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.strip_suffix('`')
}

#[test]
fn the_same_scenario_is_the_same_run_and_another_seed_another() {
    let scenario = small("[datagrams]\nloss = 0.01\njitter = \"5us\"");
    let (first, again) = (play(&scenario), play(&scenario));
    assert_eq!(format!("{first:?}"), format!("{again:?}"));
    let other = Scenario { seed: 2, ..scenario };
    assert_ne!(first.1, play(&other).1);
}

#[test]
fn the_network_does_not_change_what_is_submitted() {
    let of = |more: &str| play(&small(more)).0;
    let (good, bad) = (of(""), of("[datagrams]\nloss = 0.05\n"));
    assert_eq!((good.submitted, good.work_ns), (bad.submitted, bad.work_ns), "common random numbers");
    assert!(bad.delays.mean_ns() > good.delays.mean_ns());
}

#[test]
fn every_fault_does_what_it_says() {
    // Whether a fault changes the outcome of a run of 40 ms.
    let fault = |fault: &str| {
        let (outcome, trace, _) = play(&small(&format!("[[faults]]\nat = \"20ms\"\n{fault}")));
        assert_eq!(outcome.open() + outcome.lost, 0, "{fault}: {outcome:?}");
        (outcome, trace)
    };
    let longest = |outcome: &Outcome| outcome.delays.max_ns() / 1_000_000;
    let (none, usual) = fault("heal = true");
    assert!(longest(&none) < 5);
    let (crash, _) = fault("crash = \"switch 0\"\nlasts = \"15ms\"");
    assert!((14..40).contains(&longest(&crash)), "{} ms", longest(&crash));
    assert_eq!(crash.disturbances.len(), 2, "it and its end");
    assert!(crash.disturbances[0].next_start.unwrap() > 14_000_000, "nothing starts while the switch is down");
    let (died, _) = fault("crash = \"executor 1\"");
    assert!(died.again > 0, "what it ran was started elsewhere");
    let (client, _) = fault("crash = \"client 0\"");
    assert!(client.abandoned > 0 && client.completed + client.abandoned == client.submitted);
    for both in [true, false] {
        let apart =
            format!("partition = {{ from = [\"switches\"], to = [\"executors\"], both = {both} }}\nlasts = \"15ms\"");
        let (outcome, _) = fault(&apart);
        assert!((13..60).contains(&longest(&outcome)), "{} ms", longest(&outcome));
    }
    let (paused, _) = fault("pause = \"executors\"\nlasts = \"15ms\"");
    assert!((13..60).contains(&longest(&paused)), "{} ms", longest(&paused));
    for subtle in [
        "drain = \"executor 0\"",
        "drift = { node = \"clients\", ppm = 500, jump = \"2ms\" }",
        "datagrams = { loss = 0.1 }\nlasts = \"5ms\"",
        "link = { of = \"executor 0\", loss = 0.3, duplication = 0.1 }\nlasts = \"5ms\"",
        "restart = \"executor 2\"",
    ] {
        assert_ne!(fault(subtle).1, usual, "{subtle}");
    }
}

#[test]
fn more_than_a_client_may_have_open_waits_for_room() {
    // Ten times the slots' capacity: the queue is full, and clients hold the rest.
    let scenario = parse(
        "duration = \"20ms\"\n[cluster]\nexecutors = 1\nslots = 4\nclients = 1\n[queue]\ntasks = 64\n[workload]\n\
         shape = \"equal\"\nmedian = \"100us\"\nload = 10.0",
    );
    let (outcome, ..) = play(&scenario.unwrap());
    assert_eq!((outcome.completed, outcome.open()), (outcome.submitted, 0));
    assert!(outcome.delays.quantile_ns(0.5) > 20_000_000, "most waited");
}

#[test]
fn two_switches_share_the_work_and_one_takes_over() {
    let of = |failover: bool| {
        parse(&format!(
            "duration = \"1s\"\npatience = \"10s\"\n[cluster]\nswitches = 2\nexecutors = 4\nslots = 4\nfailover = {failover}\n\
             [workload]\nshape = \"equal\"\nload = 0.3\n[[faults]]\nat = \"100ms\"\ncrash = \"switch 1\""
        ))
    };
    let (alone, ..) = play(&of(false).unwrap());
    assert!(alone.open() > 0, "half of the clients have lost their switch");
    let (together, ..) = play(&of(true).unwrap());
    assert_eq!(together.open(), 0);
}

#[test]
fn t5_tasks_that_ask_for_resources_run_where_they_are() {
    let of = |share: f64| {
        let text = format!(
            "duration = \"200ms\"\n[cluster]\nexecutors = 6\nslots = 4\nclients = 3\n[workload]\nshape = \"equal\"\nload = 0.5\n\
             [[workload.demands]]\nshare = {share}\nresources = [0, 2]\n\
             [[cluster.groups]]\nexecutors = 1\nresources = [0, 1, 2]\n[[cluster.groups]]\nexecutors = 1\nslots = 4\nresources = [1]"
        );
        let scenario = parse(&text).unwrap();
        assert_eq!((scenario.cluster.all_executors(), scenario.cluster.all_slots()), (8, 32));
        play(&scenario).0
    };
    // The one executor that has both is an eighth of the cluster: a tenth of the half load fits, all of it does not.
    let (few, all) = (of(0.1), of(1.0));
    assert_eq!((few.open(), all.open()), (0, 0));
    assert!(few.delays.quantile_ns(0.5) < 500_000, "{}", few.delays.quantile_ns(0.5));
    assert!(all.delays.quantile_ns(0.5) > 100_000_000, "{}", all.delays.quantile_ns(0.5));
}

#[test]
fn a_server_on_a_host_is_slower_than_a_program_of_the_switch() {
    let median = |place: &str| {
        let text = format!(
            "duration = \"40ms\"\n[cluster]\nplace = \"{place}\"\nexecutors = 4\n[workload]\nshape = \"equal\"\nload = 0.2"
        );
        play(&parse(&text).unwrap()).0.delays.quantile_ns(0.5)
    };
    let (inside, outside) = (median("switch"), median("server"));
    assert!(outside > inside + 4_000, "{inside} ns in the switch, {outside} ns on a host");
}

#[test]
fn what_is_no_scenario_is_refused_with_its_line_and_what_is_allowed() {
    for (text, part) in [
        ("[cluster]\nexecutor = 1", "s.toml:2: unknown field `executor`, expected one of `switches`"),
        ("[cluster]\nengine = \"server\"", "s.toml:2: key `engine`: where switches run is `place = \"server\"`"),
        (
            "duration = \"long\"",
            "s.toml:1: key `duration`: invalid value: string \"long\", expected a time of at least 0",
        ),
        (
            "[[faults]]\nat = \"1ms\"\ncrash = \"rack 1\"",
            "s.toml:3: key `crash`: invalid value: string \"rack 1\", expected",
        ),
        ("seed = ", "s.toml:1: key `seed`: "),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.starts_with(part), "{text}\n{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_key_and_what_is_allowed() {
    let fault = |rest: &str| format!("[[faults]]\nat = \"1ms\"\n{rest}");
    for (text, error) in [
        ("[datagrams]\nloss = 1.5".into(), "datagrams.loss = 1.5: must be 0 to 1"),
        ("[network]\ngbit_per_s = -1.0".into(), "network.gbit_per_s = -1: must be 0.00001 to 8000, or 0 for no limit"),
        ("[asic]\nqueue = 100".into(), "asic.queue = 100: must be a power of two"),
        ("[asic]\npoll = \"1500ns\"".into(), "asic.poll = 1us 500ns: must be whole microseconds"),
        (
            "[cluster]\nengine = \"asic-safe\"\nplace = \"server\"".into(),
            "cluster.engine = \"asic-safe\": is a pipeline, and runs where cluster.place = \"switch\"",
        ),
        (
            "[cluster]\nengine = \"asic-published\"\n[asic]\nlevels = 2\n[workload]\npriorities = true".into(),
            "asic.levels = 2: must be 4 where workload.priorities is true",
        ),
        (
            "[cluster]\nexecutors = 100000\nslots = 16".into(),
            "cluster: 1600000 slots at one switch, which takes 1048576: more switches, or fewer executors or slots",
        ),
        (
            "[[cluster.groups]]\nexecutors = 1\nresources = [8]".into(),
            "cluster.groups[0].resources = 8: must be 0 to 7",
        ),
        (
            "[[workload.demands]]\nshare = 0.5\nresources = [3]".into(),
            "workload.demands[0].resources: no executor of cluster.groups offers all of them",
        ),
        (
            "[[workload.demands]]\nshare = 0.5\nresources = []\n[[workload.demands]]\nshare = 0.6\nresources = []"
                .into(),
            "workload.demands: the sum of all shares = 1.1: must be 0 to 1",
        ),
        ("[workload]\nload = 0.0".into(), "workload.load = 0: must be 0.001 to 1000"),
        (
            "[workload]\nformat = \"tr\"".into(),
            "workload.format without workload.trace: name the trace, or leave the format out",
        ),
        (
            "duration = \"1day\"".into(),
            "workload: about 7.1e8 tasks, at most 3.4e7 are simulated: a shorter duration, a lower load or a longer median",
        ),
        (fault("crash = \"executor 8\""), "faults[0].crash = \"executor 8\": must be \"executor 0\" to \"executor 7\""),
        (fault("drain = \"client 0\""), "faults[0].drain: only executors drain"),
        (
            fault("link = { of = \"executor 9\" }"),
            "faults[0].link.of = \"executor 9\": must be \"executor 0\" to \"executor 7\"",
        ),
        (
            fault("heal = true\nlasts = \"1ms\""),
            "faults[0].lasts: only `crash`, `pause`, `partition`, `datagrams` and `link` end by themselves",
        ),
        (
            fault(""),
            "faults[0] says 0 things: it has `at` and one of `crash`, `restart`, `pause`, `resume`, `drain`, `partition`, \
             `heal`, `drift`, `datagrams`, `link`",
        ),
    ] {
        assert_eq!(parse(&text).unwrap_err(), format!("s.toml: {error}"), "{text}");
    }
}

#[test]
fn a_trace_that_is_missing_is_named() {
    let error = parse("[workload]\ntrace = \"none.tr\"").unwrap().start(Path::new("/nowhere/s.toml")).unwrap_err();
    let error = error.to_string();
    assert!(error.starts_with("/nowhere/s.toml: workload.trace: /nowhere/none.tr"), "{error}");
    let error = Scenario::load(Path::new("/nowhere/s.toml")).unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/s.toml: No such file"), "{error}");
}

#[test]
fn a_trace_is_found_beside_the_scenario_and_scaled() {
    let directory = std::env::temp_dir().join(format!("midflight-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    // arrival, tasks, mean, durations
    let lines: String = (0..200).map(|job| format!("{} 2 1.5 1 2\n", job * 3)).collect();
    std::fs::write(directory.join("t.tr"), lines).unwrap();
    let text = "duration = \"1s\"\n[workload]\ntrace = \"t.tr\"\nmedian = \"2ms\"\nload = 0.5\n[cluster]\nexecutors = 2\nslots = 2";
    let mut run = parse(text).unwrap().start(&directory.join("s.toml")).unwrap();
    while !run.advance(10_000) {}
    std::fs::remove_dir_all(&directory).unwrap();
    // A second of work at load 0.5 on 4 slots: 2 s of tasks of 1.5 ms on average (the median of 1 and 2 s becomes 2
    // ms).
    let outcome = run.outcome();
    let work_s = outcome.work_ns as f64 / 1e9;
    assert!((1.9..2.1).contains(&work_s), "{work_s} s of work");
    assert_eq!(outcome.open(), 0);
}

/// Small clusters of all kinds, with faults that end.
fn scenarios() -> impl Strategy<Value = String> {
    let kinds = vec![("server", "soft"), ("switch", "soft"), ("switch", "asic-safe"), ("switch", "asic-published")];
    let cluster = (1u32..4, prop::sample::select(kinds), any::<bool>(), 1u32..6, 1u32..5, 1u32..4);
    let network = (0u64..50, prop::sample::select(vec!["0.0", "1.0", "100.0"]), 0u64..3, 1u32..4);
    let misfortune = (0u32..4, 0u32..4, 0u32..4);
    let faults = prop::collection::vec((0u64..30, 0usize..6, 1u64..20), 0..4);
    (cluster, network, misfortune, faults, any::<u32>(), prop::sample::select(vec!["mixed", "equal"])).prop_map(
        |((switches, (place, engine), failover, executors, slots, clients), (latency, rate, limit, lanes), bad, faults, seed, shape)| {
            let mut text = format!(
                "seed = {seed}\nduration = \"20ms\"\npatience = \"100s\"\n[cluster]\nswitches = {switches}\n\
                 place = \"{place}\"\nengine = \"{engine}\"\nfailover = {failover}\nexecutors = {}\nslots = {slots}\nclients = {clients}\n\
                 [asic]\npoll = \"20ms\"\n[network]\nlatency = \"{latency}us\"\ngbit_per_s = {rate}\npackets_per_s = {}\n[host]\nlanes = {lanes}\n\
                 [datagrams]\nloss = 0.0{}\nduplication = 0.0{}\nreordering = 0.0{}\nreordering_delay = \"1ms\"\n\
                 [workload]\nshape = \"{shape}\"\nmedian = \"300us\"\nload = 0.5\n",
                switches * executors,
                limit * 300_000,
                bad.0,
                bad.1,
                bad.2
            );
            for (at, kind, lasts) in faults {
                let fault = [
                    "crash = \"switches\"",
                    "crash = \"executor 0\"",
                    "pause = \"executors\"",
                    "pause = \"switch 0\"",
                    "partition = { from = [\"clients\"], to = [\"switches\"], both = false }",
                    "datagrams = { loss = 0.5 }",
                ];
                text += &format!("[[faults]]\nat = \"{at}ms\"\nlasts = \"{lasts}ms\"\n{}\n", fault[kind]);
            }
            text
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// T1, T9, T10: after all faults have ended, every task ends, and two runs are equal.
    #[test]
    fn every_task_of_every_scenario_ends(text in scenarios()) {
        let scenario = parse(&text).unwrap();
        let (outcome, trace, _) = play(&scenario);
        prop_assert_eq!((outcome.completed, outcome.lost), (outcome.submitted, 0), "{:?}", outcome);
        prop_assert_eq!(trace, play(&scenario).1);
    }
}
