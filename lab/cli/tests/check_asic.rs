//! `midflight-lab check asic`, as scripts see it.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{assert_error, interrupted, run};

fn check(arguments: &[&str]) -> common::Said {
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
fn people_get_a_table_and_the_way_if_they_want_it() {
    let said = check(&["--instance", "lost-swap", "--transcript"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for part in ["published", "32,768", "a lost SWAP loses its task", "T1 in 3 steps", "holds task 1", "check asic ·"]
    {
        assert!(said.stdout.contains(part), "no {part} in {said:?}");
    }
    let limited = check(&["--instance", "crossing-small", "--limit", "100"]);
    assert_eq!(limited.code, Some(0), "{limited:?}");
    assert!(limited.stdout.contains("nothing so far"), "{limited:?}");
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
fn a_planted_defect_shows_its_steps() {
    let said = check(&["--planted", "late-credit"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for part in ["ordered-small", "T1 in 6 steps", "T1: task 3 is lost", "   6  REST", "1 of 1 defects", "check asic ·"]
    {
        assert!(said.stdout.contains(part), "no {part} in {said:?}");
    }
}

/// Planted bugs exist for the check only.
#[test]
fn no_switch_runs_a_planted_defect() {
    for engine in ["late-credit", "asic-planted", "asic-safe-late-credit"] {
        assert_error(&run(&["pipeline", "--engine", engine]), 2, &["--engine", "asic-safe"]);
    }
}

#[test]
fn wrong_usage_is_named() {
    assert_error(&check(&["--planted", "late-credits"]), 2, &["--planted", "late-credit,", "full-in-silence"]);
    assert_error(&check(&["--planted", "--full"]), 2, &["--full"]);
    assert_error(&check(&["--instance", "hazard-99"]), 2, &["--instance", "hazard-9", "batches", "lost-rest"]);
    assert_error(&check(&["--instance", "kept", "--full"]), 2, &["--full"]);
    assert_error(&check(&["--limit", "0"]), 2, &["--limit"]);
    assert_error(&check(&["--threads", "0"]), 2, &["--threads"]);
    assert_error(&run(&["check", "writes"]), 2, &["writes"]);
}

#[test]
fn ctrl_c_ends_a_search() {
    // By its first line of progress it handles signals.
    let is_at_work = |line: &str| line.starts_with("batches: ") && line.ends_with(" states\n");
    let said = interrupted(&["check", "asic", "--instance", "batches"], is_at_work, |_| ());
    assert_eq!(said.code, Some(130), "{said:?}");
    assert!(said.stdout.contains("nothing so far"), "what was found so far: {said:?}");
}
