//! `midflight bench falcon-8` and `bolt-11`, as small as they go. Need root and iproute2; skip loudly without.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::machine::{labs_work, skip};
use common::{Directory, Said, assert_error, midflight, run, signal};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};

/// Its results, by name.
fn results(said: &Said) -> serde_json::Map<String, serde_json::Value> {
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let json: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let results = json["results"].as_array().unwrap();
    results.iter().map(|result| (result["name"].as_str().unwrap().to_owned(), result["value"].clone())).collect()
}

/// Whether the kernel engine took part; otherwise the command has said why.
fn has_kernel(said: &Said) -> bool {
    let skipped = said.stderr.contains("SKIPPED: Midflight, kernel engine: ");
    if skipped {
        skip(said.stderr.lines().next().unwrap().trim_start_matches("SKIPPED: "));
    }
    !skipped
}

#[test]
fn delays_of_all_contenders_become_rows_and_a_plot() {
    if !labs_work() {
        return;
    }
    let directory = Directory::new("live");
    let svg = directory.path("delay.svg");
    let said = run(&["bench", "falcon-8", "--rounds", "1", "--duration", "50ms", "--json", "--svg", &svg]);
    let results = results(&said);
    let contenders = if has_kernel(&said) { &["kernel", "user", "sparrow"][..] } else { &["user", "sparrow"] };
    for contender in contenders {
        for load in [50, 65, 80, 95] {
            let delay = |what: &str| {
                let name = format!("live.falcon-8.{contender}.{load}.delay_{what}_us");
                results.get(&name).and_then(serde_json::Value::as_f64).unwrap_or_else(|| panic!("no {name}"))
            };
            assert!(delay("p50") > 1.0 && delay("p5") <= delay("p50") && delay("p50") <= delay("p95"));
        }
    }
    assert_eq!(results["live.falcon-8.user-median-95.paper"], 90.0);
    assert!(results["live.falcon-8.user-factor-median-95.ratio"].as_f64().unwrap() > 0.0);
    let rows = ["pass", "shape", "fail"].map(|what| results[&format!("live.falcon-8.{what}")].as_u64().unwrap());
    assert_eq!(rows.iter().sum::<u64>() as usize, 6 * contenders.len() - 3);
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("Sparrow") && svg.contains("user space"));
}

#[test]
fn decisions_of_all_contenders_become_rows() {
    if !labs_work() {
        return;
    }
    let said = run(&["bench", "bolt-11", "--rounds", "1", "--duration", "40ms", "--json"]);
    let results = results(&said);
    let contenders = if has_kernel(&said) { &["kernel", "user", "sparrow"][..] } else { &["user", "sparrow"] };
    for contender in contenders {
        for slots in [1, 4, 16, 60, 150, 300, 720] {
            let name = format!("live.bolt-11.{contender}.{slots}.decisions_per_s");
            assert!(results[&name].as_f64().unwrap() > 100.0, "{name}");
        }
    }
    assert_eq!(results["live.bolt-11.sparrow-peak.paper"], 500_000.0);
}

/// The namespaces that it has set up.
fn namespaces(bench: &Child) -> Vec<String> {
    let ours = format!("mf-live{}", bench.id());
    let all = std::fs::read_dir("/var/run/netns").into_iter().flatten();
    let names = all.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(&ours)).collect()
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    if !labs_work() {
        return;
    }
    let mut bench = midflight(&["bench", "bolt-11", "--quick"]);
    let mut bench = bench.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(bench.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("round 1 of 1") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended by itself");
    }
    assert!(!namespaces(&bench).is_empty());
    signal(&bench, Signal::INT);
    let mut rest = String::new();
    while stderr.read_line(&mut rest).unwrap() > 0 {}
    assert_eq!(bench.wait().unwrap().code(), Some(130), "{rest}");
    assert_eq!(namespaces(&bench), Vec::<String>::new(), "{rest}");
}

#[test]
fn wrong_usage_says_what_to_write() {
    assert_error(&run(&["bench", "falcon-8", "--duration", "1ms"]), 2, &["--duration 1ms", "10ms or more"]);
    assert_error(&run(&["bench", "bolt-11", "--rounds", "0"]), 2, &["--rounds"]);
}

#[test]
fn a_plot_that_cannot_be_written_is_said_before_anything_is_measured() {
    if labs_work() {
        let said = run(&["bench", "bolt-11", "--svg", "/nonexistent/plot.svg"]);
        assert_error(&said, 1, &["cannot write /nonexistent/plot.svg", "No such file"]);
    }
}

#[test]
fn who_is_not_root_is_told_so() {
    let mut command = midflight(&["bench", "falcon-8"]);
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    match command.output() {
        Ok(output) => assert_error(&output.into(), 1, &["a lab needs root", "sudo"]),
        // As nobody, where the directories of the build are root's.
        Err(error) => skip(&error.to_string()),
    }
}
