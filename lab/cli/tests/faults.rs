//! `midflight-lab faults`: some faults of a store in a lab, without leftovers. Needs root and iproute2; otherwise prints SKIPPED.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, interrupted, labs_work, run};
use midflight_net::testing::traces_of;

/// R1, R2, R5: one fault of each sort; `make lab-store` has more.
#[test]
fn r1_what_clients_see_while_a_store_in_a_lab_fails_is_linearizable() {
    if !labs_work() {
        return;
    }
    let out = Directory::new("lab-store");
    let kinds = "leader-killed,switch-stopped,leader-cut,leader-not-to-switch,follower-disk-full,disorder";
    let said = run(&["faults", "--runs", "1", "--kinds", kinds, "--out", &out.path(""), "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let results = said.results();
    let wrong = ["violations", "unchecked", "stuck"].map(|name| results[format!("faults.{name}")].as_u64());
    assert_eq!(wrong, [Some(0); 3], "{results}");
    assert!(results["faults.leader-cut.user.operations"].as_u64() > Some(100), "{results}");
    assert!(results["faults.leader-killed.user.outage_max_ms"].as_f64() > Some(50.0), "somebody noticed: {results}");
}

#[test]
fn an_interrupted_campaign_leaves_nothing() {
    if !labs_work() {
        return;
    }
    let out = Directory::new("lab-store-interrupted");
    let out = out.path("");
    let args = ["faults", "--engine", "user", "--kinds", "leader-disk-full", "--runs", "1000", "--out", &out];
    let mut lab = String::new();
    let is_at_work = |line: &str| line.contains("leader-disk-full");
    let said = interrupted(&args, is_at_work, |child| lab = format!("store{}", child.id()));
    assert_eq!(said.code, Some(130), "{said:?}");
    assert_eq!(traces_of(&lab), Vec::<String>::new());
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let directory = format!("midflight-store-{}-", lab.trim_start_matches("store"));
    assert!(!mounts.contains(&directory), "{mounts}");
    let left = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    assert_eq!(left.filter(|file| file.file_name().to_string_lossy().starts_with(&directory)).count(), 0);
}
