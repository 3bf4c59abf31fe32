//! `midflight plan`, with valid and invalid files.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, assert_error, run};

const NETWORK: &str = "\
core = [\"c0\", \"c1\"]
[[racks]]
id = \"r0\"
tor = \"t0\"
hosts = [\"h0\", \"h1\"]
[[racks]]
id = \"r1\"
tor = \"t1\"
hosts = [\"h2\"]
";

/// Two racks whose load together fits one core switch.
const TRAFFIC: &str = "\
[[groups]]
hosts = [\"h0\"]
requests_per_s = [30000, 0]
[[groups]]
hosts = [\"h1\"]
requests_per_s = [10000, 0]
[[groups]]
hosts = [\"h2\"]
requests_per_s = [50000, 1000]
";

#[test]
fn n5_a_plan_names_rsnodes_bound_and_reason() {
    let directory = Directory::new("plan");
    let (network, traffic) = (directory.write("net.toml", NETWORK), directory.write("traffic.toml", TRAFFIC));
    let said = run(&["plan", "--topology", &network, "--traffic", &traffic]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for part in ["1 RSNode for 3 of 3 groups; no plan has fewer", "one RSNode serves all", "2000/s of requests"] {
        assert!(said.stdout.contains(part), "no {part:?} in {said:?}");
    }
    let said = run(&["plan", "--topology", &network, "--traffic", &traffic, "--json", "--extra-hops", "0"]);
    let results = said.results();
    assert_eq!(results["plan.rsnodes"], 2);
    // First-fit also finds it, but cannot prove that one RSNode is too few.
    assert!(!cfg!(feature = "ilp") || results["plan.optimal"] == 1, "{results}");
    assert_eq!(results["plan.rsnode.h2"], "t1");
    assert_eq!(results["plan.extra_hops_requests_per_s"], 0.0);
    assert!(results["plan.why"].as_str().unwrap().contains("without their limit the plan would have 1"));
    let said = run(&["plan", "--topology", &network, "--traffic", &traffic, "--groups", "rack", "--json"]);
    assert_eq!(said.results()["plan.groups"], 2);
}

#[test]
fn n5_without_a_plan_the_exit_code_is_3_and_drs_leaves_groups_out() {
    let directory = Directory::new("plan-drs");
    let network = directory.write("net.toml", NETWORK);
    let traffic = directory.write("traffic.toml", &TRAFFIC.replace("50000", "500000"));
    let said = run(&["plan", "--topology", &network, "--traffic", &traffic]);
    assert_error_free_of_panic(&said, 3, &["no operator can take h2", "501000 packets/s", "100000", "--drs"]);
    let said = run(&["plan", "--topology", &network, "--traffic", &traffic, "--drs", "--json"]);
    let results = said.results();
    assert_eq!((&results["plan.drs"], &results["plan.drs_least"]), (&1.into(), &1.into()));
    assert_eq!(results["plan.rsnode.h2"], "drs");
}

#[track_caller]
fn assert_error_free_of_panic(said: &common::CommandOutput, code: i32, parts: &[&str]) {
    assert_eq!(said.code, Some(code), "{said:?}");
    parts.iter().for_each(|part| assert!(said.stderr.contains(part), "no {part:?} in {said:?}"));
}

#[test]
fn n6_failed_operators_are_in_no_plan() {
    let directory = Directory::new("plan-failed");
    let (network, traffic) = (directory.write("net.toml", NETWORK), directory.write("traffic.toml", TRAFFIC));
    let said = run(&["plan", "--topology", &network, "--traffic", &traffic, "--failed", "c0,c1", "--json"]);
    assert_eq!(said.results()["plan.rsnodes"], 2);
    let said = run(&["plan", "--topology", &network, "--traffic", &traffic, "--failed", "c7"]);
    assert_error(&said, 2, &["--failed c7", "no such operator"]);
}

#[test]
fn generated_traffic_is_planned() {
    let directory = Directory::new("plan-generated");
    let said = run(&["plan", "--topology", "fat-tree:4", "--generate", "uniform", "--seed", "7", "--load", "0.9"]);
    let traffic = directory.write("traffic.toml", &said.stdout);
    let said = run(&["plan", "--topology", "fat-tree:4", "--traffic", &traffic, "--json", "--first-fit"]);
    let results = said.results();
    assert_eq!((&results["plan.groups"], &results["plan.drs"]), (&8.into(), &0.into()), "{results}");
}

#[test]
fn n8_wrong_files_and_flags_are_named_with_what_to_do() {
    let directory = Directory::new("plan-wrong");
    let network = directory.write("net.toml", NETWORK);
    let traffic = directory.write("traffic.toml", &TRAFFIC.replace("h1", "h9"));
    assert_error(&run(&["plan", "--topology", &network, "--traffic", &traffic]), 2, &["traffic.toml", "no host `h9`"]);
    assert_error(&run(&["plan", "--topology", "/none", "--traffic", &traffic]), 2, &["/none", "or say fat-tree:16"]);
    assert_error(&run(&["plan", "--topology", "fat-tree:x", "--traffic", &traffic]), 2, &["write it like fat-tree:16"]);
    let zero = ["plan", "--topology", &network, "--traffic", &traffic, "--utilisation", "0"];
    assert_error(&run(&zero), 2, &["utilisation = 0", "above 0"]);
    assert_error(&run(&["plan", "--topology", &network]), 2, &["--traffic"]);
    assert_error(&run(&["plan", "--topology", &network, "--generate", "x"]), 2, &["uniform, skewed, paper"]);
}
