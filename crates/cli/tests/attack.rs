//! `midflight lab attack`, short. Needs root and iproute2; skips loudly without.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::machine::{kernel_works, labs_work};
use common::{assert_error, midflight, run, signal};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

/// What an attack process would leave behind.
fn traces(process: u32) -> Vec<String> {
    let lab = format!("attack{process}");
    let namespaces = std::fs::read_dir("/var/run/netns").into_iter().flatten();
    let namespaces = namespaces.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut traces: Vec<_> = namespaces.filter(|name| name.starts_with(&format!("mf-{lab}-"))).collect();
    let record = Path::new("/run/midflight/labs").join(&lab);
    traces.extend(record.exists().then(|| record.display().to_string()));
    traces
}

/// A second of each kind against each engine, which does no harm.
fn attack(engine: &str, ip: &str, kinds: &[&str]) {
    let args = ["--seconds", "1", "--tasks", "2000", "--rate", "5000", "--json"];
    let said =
        run(&[&["lab", "attack", "--engine", engine, "--ip", ip, "--kinds", &kinds.join(",")], &args[..]].concat());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let json: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let value = |name: &str| {
        let result = json["results"].as_array().unwrap().iter().find(|result| result["name"] == name);
        result.and_then(|result| result["value"].as_f64()).unwrap_or_else(|| panic!("no {name} in {json}"))
    };
    assert_eq!((value("attacks.tried"), value("attacks.harmful")), (kinds.len() as f64, 0.0), "{json}");
    // It is not the calm that was measured.
    assert!(value("attacks.slowdown") > 0.0);
    for kind in kinds.iter().filter(|&&kind| kind != "connections") {
        assert!(value(&format!("attacks.{kind}.{engine}.rate")) > 500.0, "{kind} in {json}");
    }
}

#[test]
fn t13_t14_a_stranger_harms_nobody() {
    if labs_work() {
        let kinds = [
            "malformed",
            "clients",
            "reset_all",
            "complete",
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
fn t13_t14_a_stranger_harms_nobody_over_ipv6() {
    if labs_work() {
        attack("user", "6", &["odd_sources", "slots", "reflection", "stolen_cookies", "misdirected", "absent"]);
    }
}

#[test]
fn t13_t14_a_stranger_harms_nobody_whose_switch_is_in_the_kernel() {
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
    let args = ["lab", "attack", "--engine", "user", "--tasks", "1000", "--kinds", "everything"];
    let mut attack = midflight(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(attack.stderr.take().unwrap());
    let mut said = String::new();
    stderr.read_line(&mut said).unwrap();
    assert!(said.starts_with("user: link: "), "{said}");
    assert!(!traces(attack.id()).is_empty());
    signal(&attack, Signal::INT);
    while stderr.read_line(&mut said).unwrap() > 0 {}
    assert_eq!(attack.wait().unwrap().code(), Some(130), "{said}");
    assert_eq!(traces(attack.id()), Vec::<String>::new(), "{said}");
}

#[test]
fn kinds_and_times_that_make_no_sense_are_refused() {
    assert_error(&run(&["lab", "attack", "--kinds", "charm"]), 2, &["no kind of attack \"charm\"", "--list"]);
    assert_error(&run(&["lab", "attack", "--seconds", "0"]), 2, &["such as 10 or 0.5"]);
    let list = run(&["lab", "attack", "--list"]);
    assert_eq!(list.code, Some(0));
    assert!(list.stdout.lines().count() >= 20, "{list:?}");
}
