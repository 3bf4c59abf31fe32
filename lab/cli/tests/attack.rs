//! `midflight-lab attack`, short. Needs root and iproute2; otherwise prints SKIPPED.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{interrupted, kernel_works, labs_work, run};
use midflight_net::testing::traces_of;

/// A second of each kind, which must do no harm.
fn attack(engine: &str, ip: &str, kinds: &[&str]) {
    let args = ["--seconds", "1", "--tasks", "2000", "--rate", "5000", "--json"];
    let said = run(&[&["attack", "--engine", engine, "--ip", ip, "--kinds", &kinds.join(",")], &args[..]].concat());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let results = said.results();
    let counts = (&results["attacks.tried"], &results["attacks.harmful"]);
    assert_eq!(counts, (&kinds.len().into(), &0.into()), "{results}");
    // The attack really ran.
    assert!(results["attacks.slowdown"].as_f64().unwrap() > 0.0);
    for kind in kinds.iter().filter(|&&kind| kind != "connections") {
        let rate = &results[format!("attacks.{kind}.{engine}.rate")];
        assert!(rate.as_f64().is_some_and(|rate| rate > 500.0), "{kind} in {results}");
    }
}

#[test]
fn t13_t14_an_attacker_harms_nobody() {
    if labs_work() {
        let kinds = [
            "malformed",
            "clients",
            "reset_all",
            "complete",
            "stop",
            "reflection",
            "stolen_cookies",
            "connections",
            "misdirected",
            "absent",
        ];
        attack("user", "4", &kinds);
    }
}

#[test]
fn t13_t14_an_attacker_harms_nobody_over_ipv6() {
    if labs_work() {
        attack("user", "6", &["odd_sources", "slots", "reflection", "stolen_cookies", "misdirected", "absent"]);
    }
}

#[test]
fn t13_t14_an_attacker_harms_nobody_whose_switch_is_in_the_kernel() {
    if labs_work() && kernel_works() {
        attack("kernel", "4", &["malformed", "clients", "reflection", "stolen_cookies"]);
        attack("kernel", "6", &["fragments", "odd_sources", "stolen_cookies"]);
    }
}

#[test]
fn an_interrupted_attack_leaves_nothing() {
    if !labs_work() {
        return;
    }
    let args = ["attack", "--engine", "user", "--tasks", "1000", "--kinds", "everything"];
    let mut lab = String::new();
    let said = interrupted(
        &args,
        |line| line.starts_with("user: link: "),
        |attack| {
            lab = format!("attack{}", attack.id());
            assert!(!traces_of(&lab).is_empty());
        },
    );
    assert_eq!(said.code, Some(130), "{said:?}");
    assert_eq!(traces_of(&lab), Vec::<String>::new(), "{said:?}");
}
