//! `midflight-lab sim check` and `sim mutants`, as scripts see them.

#![allow(clippy::unwrap_used, reason = "tests may")]
// In a build with planted bugs the campaign may find some, and `sim mutants` runs.
#![cfg(not(feature = "mutants"))]

mod common;

use common::{Directory, assert_error, interrupted, run};

/// An executor dies while it runs.
const TRIAL: &str = "\
seed = 1
heal_ms = 100
network = { delay_min_us = 20, delay_max_us = 20, loss = 0.0, duplication = 0.0, reordering = 0.0, reordering_us = 0 }
switches = [{ queue = 10, slots = 8, clients = 4, levels = 1, lease_ms = 100, slot_idle_ms = 200, client_idle_ms = 1000, cookie_ms = 50 }]
executors = [{ slots = 2, resources = 0 }]
clients = [{ window = 4 }]
jobs = [{ at_us = 1000, client = 0, tasks = [{ run_us = 30000, priority = 1, resources = 0 }] }]
faults = [{ at_ms = 10, for_ms = 20, what = { crash = { executor = 0 } } }]
";

/// The results of a run that broke no rule.
fn results(args: &[&str]) -> serde_json::Value {
    let said = run(&[&["sim", "check", "tasks", "--json"], args].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    said.results()
}

#[test]
fn a_campaign_prints_the_same_results_whatever_j_is() {
    let campaign = |jobs| results(&["--seeds", "40", "--seed", "3", "-j", jobs]);
    let one = campaign("1");
    assert_eq!(one, campaign("2"));
    assert_eq!(one["bench"], "sim check tasks");
    assert_eq!((&one["check.seeds"], &one["check.violations"]), (&40.into(), &0.into()));
}

#[test]
fn a_seed_is_the_same_run_in_every_detail() {
    let directory = Directory::new("sim-check-seed");
    let trace = |seed: &str, name: &str| {
        let file = directory.path(name);
        let said = run(&["sim", "check", "tasks", "--seed", seed, "--trace", &file]);
        assert_eq!(said.code, Some(0), "{said:?}");
        std::fs::read_to_string(file).unwrap()
    };
    let (first, again, other) = (trace("7", "1"), trace("7", "2"), trace("8", "3"));
    assert_eq!(first, again);
    assert_ne!(first, other);
    for word in ["REGISTER", "SUBMIT", "ASSIGN", "starts task", "reports the end"] {
        assert!(first.contains(word), "no {word} in {first}");
    }
}

#[test]
fn a_trial_from_a_file_is_run_as_it_says() {
    let directory = Directory::new("sim-check-trial");
    let (file, trace) = (directory.write("t.toml", TRIAL), directory.path("trace"));
    assert_eq!(results(&["--trial", &file, "--trace", &trace])["check.faults"], 1);
    let trace = std::fs::read_to_string(trace).unwrap();
    assert!(trace.contains("executor 0 dies") && trace.contains("attempt 2"), "{trace}");
}

#[test]
fn a_trial_that_makes_no_sense_is_named_with_what_would() {
    let directory = Directory::new("sim-check-bad");
    for (from, to, parts) in [
        ("window = 4", "window = 0", &["window of 0", "1 to 32"][..]),
        ("window = 4", "widnow = 4", &["`widnow`", "`window`"]),
        ("at_us = 1000", "at_us = 9223372036854775807", &["job 0", "at_us", "3600000000"]),
        ("for_ms = 20", "for_ms = 9223372036854775807", &["for_ms", "3600000"]),
        ("crash = { executor = 0 }", "crash = { executor = 1 }", &["fault at 10 ms", "Executor(1)"]),
        ("slots = 2", "slots = 4294967295", &["4294967295 slots", "1 to 256"]),
        ("client_idle_ms = 1000", "client_idle_ms = 9223372036854775807", &["client_idle_ms", "3600000"]),
    ] {
        assert!(TRIAL.contains(from));
        let file = directory.write("t.toml", &TRIAL.replacen(from, to, 1));
        assert_error(&run(&["sim", "check", "tasks", "--trial", &file]), 2, &[parts, &["t.toml"]].concat());
    }
    assert_error(&run(&["sim", "check", "tasks", "--trial", "/nonexistent"]), 2, &["/nonexistent", "No such file"]);
    assert_error(&run(&["sim", "check", "tasks", "--trial", "/dev/zero"]), 2, &["/dev/zero", "MiB"]);
}

#[test]
fn ctrl_c_ends_a_campaign() {
    let args = ["sim", "check", "tasks", "--seeds", "1000000", "--json"];
    // By its first line of progress it handles signals.
    let said = interrupted(&args, |line| line.contains("/1000000 seeds"), |_| ());
    assert_eq!((said.code, said.stdout.as_str()), (Some(130), ""), "{said:?}");
}
