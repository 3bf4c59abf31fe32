//! `midflight-lab check asic`, as scripts see it.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{interrupted, run};

fn check(arguments: &[&str]) -> common::CommandOutput {
    run(&[&["check", "asic"], arguments].concat())
}

#[test]
fn a_documented_error_of_the_published_program_is_found() {
    let said = check(&["--instance", "hazard-9", "--json", "--transcript"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let results = said.results();
    assert_eq!(results["bench"], "check asic");
    assert_eq!((&results["asic.published.counterexamples"], &results["asic.safe.states"]), (&1.into(), &0.into()));
    assert!(said.stderr.contains("T1: task 1 is lost") && said.stderr.contains("client 2 submits 3"), "{said:?}");
}

#[test]
fn the_safe_program_is_sound_and_fits() {
    let said = check(&["--instance", "kept-small", "--json", "--threads", "2"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    let results = said.results();
    let value = |name: &str| results[name].as_f64().unwrap_or_else(|| panic!("no {name} in {results}"));
    for (name, expected) in [
        ("asic.published.counterexamples", 0.0),
        ("asic.safe.violations", 0.0),
        ("asic.safe.stages_ingress", 12.0),
        ("asic.safe.stages_egress", 0.0),
        ("asic.safe.entries_per_level", 32768.0),
        ("asic.published.passes_per_task", 1.0),
    ] {
        assert_eq!(value(name), expected, "{name}");
    }
    assert!(value("asic.safe.states") > 500.0 && value("asic.safe.depth") > 5.0);
    assert!((1.0..1.1).contains(&value("asic.safe.passes_per_task")));
}

#[test]
fn planted_defects_are_caught_and_counted() {
    let said = check(&["--planted", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let results = said.results();
    assert_eq!(results["asic.safe.planted"], results["asic.safe.planted_caught"]);
    assert!(results["asic.safe.planted"].as_u64() >= Some(12), "{results}");
}

#[test]
fn ctrl_c_ends_a_search() {
    // By its first line of progress it handles signals.
    let is_at_work = |line: &str| line.starts_with("batches: ") && line.ends_with(" states\n");
    let said = interrupted(&["check", "asic", "--instance", "batches"], is_at_work, |_| ());
    assert_eq!(said.code, Some(130), "{said:?}");
    assert!(said.stdout.contains("nothing so far"), "what was found so far: {said:?}");
}
