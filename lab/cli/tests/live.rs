//! `midflight-lab bench falcon-8` and `bolt-11` at their smallest. Need root and iproute2; otherwise print SKIPPED.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{CommandOutput, interrupted, labs_work, run, skip};
use midflight_net::testing::traces_of;

/// Without the kernel engine, the command said why.
fn contenders(said: &CommandOutput) -> &'static [&'static str] {
    if !said.stderr.contains("SKIPPED: Midflight, kernel engine: ") {
        return &["kernel", "user", "sparrow"];
    }
    skip(said.stderr.lines().next().unwrap().trim_start_matches("SKIPPED: "));
    &["user", "sparrow"]
}

#[test]
fn delays_of_all_contenders_become_rows() {
    if !labs_work() {
        return;
    }
    let said = run(&["bench", "falcon-8", "--rounds", "1", "--duration", "50ms", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let (results, contenders) = (said.results(), contenders(&said));
    for contender in contenders {
        for load in [50, 65, 80, 95] {
            let delay = |what: &str| {
                let name = format!("live.falcon-8.{contender}.{load}.delay_{what}_us");
                results[&name].as_f64().unwrap_or_else(|| panic!("no {name}"))
            };
            assert!(delay("p50") > 1.0 && delay("p5") <= delay("p50") && delay("p50") <= delay("p95"));
        }
    }
    assert_eq!(results["live.falcon-8.user-median-95.paper"], 90.0);
    assert!(results["live.falcon-8.user-factor-median-95.ratio"].as_f64().unwrap() > 0.0);
    let rows =
        ["pass", "unsure", "shape", "fail"].map(|what| results[format!("live.falcon-8.{what}")].as_u64().unwrap());
    assert_eq!(rows.iter().sum::<u64>() as usize, 6 * contenders.len() - 3);
}

#[test]
fn decisions_of_all_contenders_become_rows() {
    if !labs_work() {
        return;
    }
    let said = run(&["bench", "bolt-11", "--rounds", "1", "--duration", "40ms", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let (results, contenders) = (said.results(), contenders(&said));
    for contender in contenders {
        for slots in [1, 4, 16, 60, 150, 300, 720] {
            let name = format!("live.bolt-11.{contender}.{slots}.decisions_per_s");
            assert!(results[&name].as_f64().unwrap() > 0.0, "{name}");
        }
    }
    assert_eq!(results["live.bolt-11.sparrow-peak.paper"], 500_000.0);
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    if !labs_work() {
        return;
    }
    // The second lab has XDP at its hosts.
    let mut labs = [String::new(), String::new()];
    let said = interrupted(
        &["bench", "bolt-11", "--quick"],
        |line| line.starts_with("round 1 of 1"),
        |bench| {
            labs = [format!("live{}", bench.id()), format!("live{}x", bench.id())];
            assert!(!traces_of(&labs[0]).is_empty());
        },
    );
    assert_eq!(said.code, Some(130), "{said:?}");
    assert_eq!(labs.map(|lab| traces_of(&lab)).concat(), Vec::<String>::new(), "{said:?}");
}
