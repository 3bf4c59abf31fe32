//! `midflight-lab check store`, as scripts see it.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::run;

fn check(arguments: &[&str]) -> common::CommandOutput {
    run(&[&["check", "store"], arguments].concat())
}

fn value(json: &str, name: &str) -> u64 {
    let object: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(object["bench"], "check store");
    let found = object["results"].as_array().unwrap().iter().find(|result| result["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {json}"))["value"].as_u64().unwrap()
}

#[test]
fn a_planted_error_is_found_and_told_step_by_step() {
    let said = check(&["--scope", "flush-before-fence", "--transcript", "--threads", "1"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for part in ["flush-before-fence", "R1 in 4 steps", "asks replica 0 for FLUSHDB", "check store ·"] {
        assert!(said.stdout.contains(part), "no {part} in {said:?}");
    }
}

#[test]
fn all_rules_hold_with_both_reply_checks() {
    let said = check(&["--scope", "flush", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let of = |name| value(&said.stdout, name);
    assert!(of("model.states") > 50_000 && of("model.depth") > 10, "{said:?}");
    assert_eq!(["model.violations", "model.planted", "model.refuted"].map(of), [0; 3]);
    let one = check(&["--scope", "flush", "--json", "--reply-check", "strict"]);
    assert!(value(&one.stdout, "model.states") < of("model.states"));
}
