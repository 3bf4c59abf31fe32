//! `midflight-lab soak`, short. Needs root and iproute2; otherwise prints SKIPPED.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{interrupted, kernel_works, labs_work, run};
use midflight_net::testing::traces_of;
use std::path::Path;

/// The best one; `None` without labs.
fn engine() -> Option<&'static str> {
    labs_work().then(|| if kernel_works() { "kernel" } else { "user" })
}

fn traces(process: u32) -> Vec<String> {
    let queue = format!("/sys/fs/bpf/midflight/{}", 20_000 + process % 20_000);
    let mut traces = traces_of(&format!("soak{process}"));
    traces.extend(Some(queue).filter(|queue| Path::new(queue).exists()));
    traces
}

#[test]
fn t1_t9_nothing_is_lost_whoever_comes_goes_and_dies() {
    let Some(engine) = engine() else { return };
    // With this seed many events, including the first, are deaths of executors.
    let said = run(&["soak", "--minutes", "0.4", "--engine", engine, "--seed", "1", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let results = said.results();
    let value = |name: &str| results[format!("soak.{name}")].as_u64().unwrap_or_else(|| panic!("no {name}: {results}"));
    for name in ["lost", "wrong"] {
        assert_eq!(value(name), 0, "{name} in {results}\n{}", said.stderr);
    }
    assert_eq!(value("tasks"), value("ok") + value("cancelled"), "{results}");
    // Load and disturbances really ran.
    for (name, least) in [("tasks", 1_000), ("rests", 2), ("retransmitted", 1), ("again", 1)] {
        assert!(value(name) >= least, "{name} in {results}");
    }
    assert!(value("executors_left") + value("executors_killed") >= 3, "{results}");
    println!("{}", said.stderr);
}

#[test]
fn an_interrupted_soak_leaves_nothing() {
    let Some(engine) = engine() else { return };
    let mut process = 0;
    let said = interrupted(
        &["soak", "--engine", engine],
        |line| line.contains(" tasks, "),
        |soak| {
            process = soak.id();
            assert!(!traces(process).is_empty());
        },
    );
    assert_eq!(said.code, Some(130), "{said:?}");
    assert_eq!(traces(process), Vec::<String>::new(), "{said:?}");
}
