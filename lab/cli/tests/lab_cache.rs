//! A cache in a lab: its operator dies, its plan changes. Needs root and memcached; otherwise prints SKIPPED.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{kernel_works, labs_work, run, skip};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One measurement at a time. `None` if this machine cannot run them.
fn turn(engine: &str) -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    if Command::new("memcached").arg("--version").output().is_err() {
        skip("memcached is missing");
        return None;
    }
    let can = labs_work() && (engine == "user" || kernel_works());
    can.then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

fn results(arguments: &[&str]) -> impl Fn(&str) -> f64 + use<> {
    let said = run(&[&["bench"], arguments, &["--json"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let results = said.results();
    move |name| results[name].as_f64().unwrap_or_else(|| panic!("{name}: {results}"))
}

/// N6, N7: the operator that selects for all racks is killed under load and returns, so plans change too. All gets are answered; many are
/// retransmitted only near a death.
fn dies_and_comes_back(engine: &str) {
    let Some(_turn) = turn(engine) else { return };
    let of = results(&["failover", "--program", "cache", "--lab", "--engine", engine, "--quick", "--rate", "300"]);
    assert_eq!(of("live.lost"), 0.0);
    assert_eq!(of("live.wrong"), 0.0);
    assert!(of("live.plans") >= 4.0, "to the operator in the middle, and away, twice");
    assert!(of("live.late_of_deaths") >= 10.0, "nobody selects for a while");
    assert!(of("live.failover_max_ms") < 500.0, "it does not end");
    assert!(of("live.gets_per_s") > 250.0);
}

#[test]
fn n6_n7_a_killed_rsnode_and_new_plans_lose_nothing() {
    dies_and_comes_back("user");
}

#[test]
fn n6_n7_a_killed_rsnode_in_the_kernel_loses_nothing() {
    dies_and_comes_back("kernel");
}

/// The same gets, with selection in the kernel and in clients.
#[test]
fn a_choice_in_the_kernel_is_measured_beside_that_of_clients() {
    let Some(_turn) = turn("kernel") else { return };
    let arguments = ["cache", "--lab", "--engine", "kernel", "--quick", "--selectors", "power-of-two"];
    let of = results(&[&arguments[..], &["--clients", "4", "--rate", "200", "--pause", "0s"]].concat());
    assert!(of("live.power_of_two.switch_mean_us") > 0.0 && of("live.power_of_two.clients_mean_us") > 0.0);
    let share = of("live.power_of_two.switch_paused_share");
    assert!((0.05..0.8).contains(&share), "each of three backends has a part: {share}");
}
