//! `midflight-lab bench modes`. Needs root and iproute2; otherwise prints SKIPPED.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{assert_error, labs_work, run};

#[test]
fn a_mode_is_measured_with_each_workload() {
    if !labs_work() {
        return;
    }
    let args = ["bench", "modes", "--modes", "unreplicated", "--rounds", "2", "--share", "100", "--duration", "200ms"];
    let said = run(&[&args[..], &["--engine", "user", "--json"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let results = said.results();
    for workload in ["C", "C.zipf", "B", "B.zipf"] {
        let number = |what| results[format!("modes.{workload}.unreplicated_{what}")].as_f64().unwrap();
        assert!(number("per_s") > 100.0, "{results}");
        assert!((0.01..1.5).contains(&number("busy")), "one thread works, on one CPU: {results}");
    }
    assert!(results.get("modes.B.bound").is_none(), "flair was not measured: {results}");
}

#[test]
fn wrong_usage_is_refused() {
    assert_error(&run(&["bench", "modes", "--modes", "flare"]), 2, &["flare"]);
    assert_error(&run(&["bench", "modes", "--share", "5"]), 2, &["--share", "10..=100"]);
    assert_error(&run(&["bench", "modes", "--rounds", "1"]), 2, &["--rounds", "2..=100"]);
}
