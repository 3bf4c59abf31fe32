//! `midflight-lab bench etcd` and `bench gateway`. Need etcd and Redis; otherwise print SKIPPED.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{assert_error, midflight, run, skip};
use std::process::Command;

fn are_installed(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| Command::new(program).arg("--version").output().is_err());
    missing.inspect(|program| skip(format!("{program} is not installed"))).is_none()
}

/// Whether the interval of a ratio is around it.
fn has_ratio(results: &serde_json::Value, name: &str) -> bool {
    let of = |end: &str| results[format!("{name}{end}")].as_f64().unwrap();
    // Of two short rounds, so its low end may be printed as 0.000.
    0.0 < of("") && of(".low") <= of("") && of("") <= of(".high")
}

#[test]
fn the_store_is_compared_with_etcd_and_redis() {
    if !are_installed(&["etcd", "redis-server"]) {
        return;
    }
    let said = run(&["bench", "etcd", "--rounds", "2", "--duration", "1s", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let results = said.results();
    for name in ["etcd.reads", "etcd.writes", "etcd.p50", "etcd.p99", "redis.get", "redis.set"] {
        assert!(has_ratio(&results, &format!("{name}_ratio")), "{name}: {results}");
    }
    for system in ["midflight", "etcd", "redis"] {
        let number = |what| results[format!("{system}.{what}")].as_f64().unwrap();
        assert!(number("reads_per_s") > 10.0 && number("writes_per_s") > 10.0, "{results}");
        assert!(number("p50_us") <= number("p99_us"), "{results}");
    }
}

#[test]
fn the_gateway_is_compared_with_redis() {
    if !are_installed(&["redis-server", "redis-benchmark"]) {
        return;
    }
    let said = run(&["bench", "gateway", "--rounds", "2", "--requests", "500", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let results = said.results();
    for name in ["get", "set", "durable_set"] {
        for prefix in ["", "pipelined_"] {
            assert!(has_ratio(&results, &format!("gateway.{prefix}{name}_ratio")), "{prefix}{name}: {results}");
        }
    }
}

#[test]
fn the_package_to_install_is_named() {
    for (bench, package) in [("etcd", "etcd-server"), ("gateway", "redis-server and redis-tools")] {
        let said = midflight(&["bench", bench]).env("PATH", "").output().unwrap();
        assert_error(&said.into(), 1, &["not installed", package]);
    }
    assert_error(&run(&["bench", "etcd", "--rounds", "1"]), 2, &["--rounds", "2..=100"]);
    assert_error(&run(&["bench", "etcd", "--engine", "kernel"]), 2, &["--lab"]);
}
