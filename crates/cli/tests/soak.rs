//! `midflight lab soak`, short, by the best engine that this machine has. Needs root and iproute2; skips loudly without.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::machine::{kernel_works, labs_work};
use common::{midflight, run, signal};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

/// The engine to soak, if there can be labs.
fn engine() -> Option<&'static str> {
    labs_work().then(|| if kernel_works() { "kernel" } else { "user" })
}

/// What a soak process would leave behind.
fn traces(soak: &Child) -> Vec<String> {
    let (lab, port) = (format!("soak{}", soak.id()), (20_000 + soak.id() % 20_000).to_string());
    let namespaces = std::fs::read_dir("/var/run/netns").into_iter().flatten();
    let namespaces = namespaces.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut traces: Vec<_> = namespaces.filter(|name| name.starts_with(&format!("mf-{lab}-"))).collect();
    let files = [Path::new("/run/midflight/labs").join(&lab), Path::new("/sys/fs/bpf/midflight").join(&port)];
    traces.extend(files.iter().filter(|path| path.exists()).map(|path| path.display().to_string()));
    traces
}

#[test]
fn t1_t9_nothing_is_lost_whoever_comes_goes_and_dies() {
    let Some(engine) = engine() else { return };
    let said = run(&["lab", "soak", "--minutes", "0.4", "--engine", engine, "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let json: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let value = |name: &str| {
        let results = json["results"].as_array().unwrap();
        let result = results.iter().find(|result| result["name"] == format!("soak.{name}"));
        result.and_then(|result| result["value"].as_f64()).unwrap_or_else(|| panic!("no {name} in {json}"))
    };
    for name in ["lost", "wrong"] {
        assert_eq!(value(name), 0.0, "{name} in {json}\n{}", said.stderr);
    }
    assert_eq!(value("tasks"), value("ok") + value("cancelled"), "{json}");
    // It is not the calm that was measured.
    for (name, least) in [("tasks", 1_000.0), ("rests", 2.0), ("retransmitted", 1.0), ("again", 1.0)] {
        assert!(value(name) >= least, "{name} in {json}");
    }
    assert!(value("executors_left") + value("executors_killed") >= 3.0, "{json}");
    println!("{}", said.stderr);
}

#[test]
fn an_interrupted_soak_leaves_nothing() {
    let Some(engine) = engine() else { return };
    let mut soak = midflight(&["lab", "soak", "--engine", engine]).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(soak.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(" tasks, ") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended by itself");
    }
    assert!(!traces(&soak).is_empty());
    signal(&soak, Signal::INT);
    let mut rest = String::new();
    while stderr.read_line(&mut rest).unwrap() > 0 {}
    assert_eq!(soak.wait().unwrap().code(), Some(130), "{rest}");
    assert_eq!(traces(&soak), Vec::<String>::new(), "{rest}");
}

#[test]
fn times_and_rates_that_make_no_sense_are_refused() {
    for (args, part) in [
        (["--minutes", "0"], "such as 30 or 0.5"),
        (["--minutes", "x"], "such as 30"),
        (["--loss", "2"], "rate of loss"),
    ] {
        let said = run(&[&["lab", "soak"], &args[..]].concat());
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(part) && said.stderr.lines().count() == 1, "{said:?}");
    }
}
