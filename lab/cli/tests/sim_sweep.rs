//! `midflight-lab sim sweep` and `sim cell`: results do not depend on the number of processes, and finished cells do not run again.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, run, run_with, signal, spawn_with, wait_until};
use rustix::process::Signal;
use std::path::Path;
use std::process::Child;

/// Six short cells.
const SPEC: &str = r#"
seeds = 3
[cell]
warmup_ms = 10
duration_ms = 200
scheme = { name = "bolt" }
cluster = { groups = [{ nodes = 4, executors = 2 }] }
load = { name = "sw1", utilisation = 0.5, work = "sleep" }
[grid]
"load.utilisation" = [0.5, 0.9]
"#;

fn results(directory: &str) -> [Vec<u8>; 2] {
    ["results.csv", "results.jsonl"].map(|name| std::fs::read(Path::new(directory).join(name)).unwrap())
}

/// Cells with a file of their own, not packed yet.
fn cells(directory: &str) -> usize {
    let names = std::fs::read_dir(Path::new(directory).join("cells")).into_iter().flatten().flatten();
    names.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "json")).count()
}

#[test]
fn one_process_and_two_give_the_same_bytes() {
    let directory = Directory::new("sweep-bytes");
    let spec = directory.write("s.toml", SPEC);
    let [one, two] = ["1", "2"].map(|jobs| {
        let out = directory.path(jobs);
        let said = run(&["sim", "sweep", &spec, "-j", jobs, "--out", &out]);
        assert_eq!(said.code, Some(0), "{said:?}");
        results(&out)
    });
    assert!(one == two, "the results differ");
    let csv = String::from_utf8(one[0].clone()).unwrap();
    assert_eq!(csv.lines().count(), 7);
    assert!(csv.starts_with("load.utilisation,seed,submitted,"), "{csv}");
}

#[test]
fn what_has_been_run_is_not_run_again() {
    let directory = Directory::new("sweep-again");
    let (spec, out) = (directory.write("s.toml", SPEC), directory.path("out"));
    let sweep = || run(&["sim", "sweep", &spec, "--out", &out, "--json"]);
    let first = sweep();
    assert_eq!(first.code, Some(0), "{first:?}");
    let found = results(&out);
    assert_eq!(cells(&out), 0, "they are in a pack");
    let pack = Path::new(&out).join("cells/bolt.jsonl");
    let lines = std::fs::read_to_string(&pack).unwrap();
    std::fs::write(&pack, lines.replacen("result", "damaged", 1)).unwrap();
    let second = sweep();
    assert!(second.stderr.contains("5 of 6 cells have been run before"), "{second:?}");
    assert!(results(&out) == found, "the results differ");
    let results = second.results();
    assert_eq!((&results["bench"], &results["sweep.cells"]), (&"sweep".into(), &6.into()));
}

/// Starts a sweep of cells long enough to be interrupted, and waits until one is done.
fn at_work(directory: &Directory, out: &str) -> (String, Child) {
    let slow = SPEC.replace("duration_ms = 200", "duration_ms = 20000").replace("nodes = 4", "nodes = 100");
    let spec = directory.write("s.toml", &slow);
    let sweep = spawn_with(&["sim", "sweep", &spec, "-j", "1", "--out", out], "");
    wait_until("a cell is done", || cells(out) > 0);
    (spec, sweep)
}

#[test]
fn a_sweep_that_was_killed_goes_on_from_there_and_leaves_no_process() {
    let directory = Directory::new("sweep-killed");
    let out = directory.path("out");
    let (spec, mut sweep) = at_work(&directory, &out);
    signal(&sweep, Signal::KILL);
    sweep.wait().unwrap();
    let children = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = all.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
        lines.filter(|line| line.contains(&out) && line.contains("--with-parent")).count()
    };
    wait_until("its children end too", || children() == 0);
    let again = run(&["sim", "sweep", &spec, "-j", "2", "--out", &out]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.stderr.contains("of 6 cells have been run before"), "{again:?}");
}

#[test]
fn a_cell_is_json_in_and_json_out() {
    let directory = Directory::new("sweep-cell");
    let spec = directory.write("s.toml", SPEC);
    let list = run(&["sim", "sweep", &spec, "--list"]);
    let first = list.stdout.lines().next().unwrap();
    assert_eq!(list.stdout.lines().count(), 6);
    let said = run_with(&["sim", "cell"], first);
    let kept: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(kept["cell"], serde_json::from_str::<serde_json::Value>(first).unwrap());
    assert_eq!(kept["result"]["wall_ms"], 0.0, "what differs from run to run is not in the result");
    assert!(kept["result"]["ended"].as_u64().unwrap() > 0);
    assert!(kept["cost"]["peak_mib"].as_f64().unwrap() > 0.0);
}
