//! `midflight-lab sim run`, as scripts see it.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, assert_error, run};

/// Four slots, busy for 30 ms.
const SMALL: &str = "duration = \"30ms\"\n[cluster]\nexecutors = 2\nslots = 2\n[workload]\nshape = \"equal\"\n";

#[test]
fn two_runs_print_the_same_bytes_and_another_seed_prints_others() {
    let directory = Directory::new("sim-run");
    let file = directory.write("s.toml", &format!("{SMALL}[datagrams]\nloss = 0.01"));
    for more in [&["--json"][..], &[]] {
        let said = |seed| run(&[&["sim", "run", &file, "--seed", seed], more].concat());
        let (first, again, other) = (said("1"), said("1"), said("2"));
        assert_eq!((first.code, &first.stdout), (Some(0), &again.stdout), "{}", first.stderr);
        assert_ne!(first.stdout, other.stdout);
    }
}

#[test]
fn the_engine_can_be_another_and_a_pipeline_tells_its_passes() {
    let directory = Directory::new("sim-run-engine");
    let file = directory.write("s.toml", SMALL);
    let said = |engine: &str| run(&["sim", "run", &file, "--engine", engine]);
    let (soft, safe) = (said("soft"), said("asic-safe"));
    assert!(!soft.stdout.contains("passes: ") && safe.stdout.contains("passes: "), "{}", safe.stdout);
    let json = run(&["sim", "run", &file, "--engine", "asic-published", "--json"]);
    assert!(json.stdout.contains("\"run.asic.passes\"") && json.stdout.contains("\"run.asic.dropped.pass_limit\""));
    assert_error(&said("asic"), 2, &["'asic'", "asic-safe, asic-published"]);
}

#[test]
fn tasks_that_do_not_end_are_a_failure() {
    let directory = Directory::new("sim-run-open");
    let text = format!("patience = \"50ms\"\n{SMALL}[[faults]]\nat = \"20ms\"\ncrash = \"switches\"");
    let said = run(&["sim", "run", &directory.write("s.toml", &text)]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stdout.contains("PARTIAL: patience ended"), "{}", said.stdout);
}

/// No completion reaches a client.
#[test]
fn slots_are_never_busier_than_all_the_time() {
    let directory = Directory::new("sim-run-idle");
    let text = "patience = \"1s\"\nduration = \"30ms\"\n[[faults]]\nat = \"11ms\"\n\
                partition = { from = [\"executors\"], to = [\"clients\"] }";
    let said = run(&["sim", "run", &directory.write("s.toml", text), "--json"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let share = said.results()["run.utilisation"].as_f64().unwrap();
    assert!(0.0 < share && share <= 1.0, "{share}");
}
