//! Sparrow as processes.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Running, run, signal};
use rustix::process::Signal;

fn worker(more: &[&str]) -> (Running, String) {
    started(&[&["baseline", "sparrow", "worker", "--listen", "127.0.0.1:0"], more].concat())
}

fn scheduler(more: &[&str]) -> (Running, String) {
    started(&[&["baseline", "sparrow", "scheduler", "--listen", "127.0.0.1:0"], more].concat())
}

fn started(args: &[&str]) -> (Running, String) {
    let running = Running::start(args);
    let address = running.first_line.trim().rsplit(' ').next().unwrap().to_owned();
    (running, address)
}

/// Results by name.
fn submit(args: &[&str]) -> serde_json::Value {
    let said = run(&[&["baseline", "sparrow", "submit", "--json"], args].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    said.results()
}

#[test]
fn jobs_run_on_workers_by_reservations() {
    let (first, second) = (worker(&["--slots", "2"]), worker(&["--slots", "2"]));
    let workers = format!("{}/2,{}/2", first.1, second.1);
    let (scheduler, address) = scheduler(&["--worker", &workers]);
    let results = submit(&["noop", "-n", "500", "--scheduler", &address]);
    assert_eq!(results["sparrow.ok"], 500);
    let results = submit(&["sleep", "20ms", "-n", "12", "--job", "4", "--scheduler", &address]);
    assert_eq!(results["sparrow.ok"], 12);
    assert!(results["sparrow.latency_p50_us"].as_u64().unwrap() >= 20_000, "{results}");
    let results = submit(&["spin", "1ms", "-n", "4", "--scheduler", &address]);
    assert_eq!(results["sparrow.ok"], 4);

    let said = run(&["baseline", "sparrow", "submit", "frobnicate", "--scheduler", &address]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("no such function") && said.stderr.contains("0 ok, 1 failed"), "{said:?}");

    signal(&scheduler.child, Signal::INT);
    let (code, output) = scheduler.end();
    assert_eq!(code, Some(0));
    assert!(output.contains("517 tasks given") && output.contains("1034 reservations"), "{output}");
}

#[test]
fn without_probing_workers_come_by_themselves() {
    let (_scheduler, address) = scheduler(&["--no-probing"]);
    let _worker = worker(&["--slots", "2", "--ask", &address, "--poll", "1ms"]);
    assert_eq!(submit(&["noop", "-n", "200", "--scheduler", &address])["sparrow.ok"], 200);
}

#[test]
fn a_worker_says_when_it_started_what() {
    let (worker, address) = worker(&["--slots", "2", "--starts"]);
    let (_scheduler, address) = scheduler(&["--worker", &format!("{address}/2")]);
    submit(&["sleep", "20ms", "-n", "4", "--job", "4", "--scheduler", &address]);
    signal(&worker.child, Signal::TERM);
    let (code, output) = worker.end();
    assert_eq!(code, Some(0));
    let numbers = |line: &str| line.split(' ').map(str::parse::<u64>).collect::<Result<Vec<_>, _>>().ok();
    let starts: Vec<_> = output.lines().map_while(numbers).collect();
    assert!(starts.iter().all(|start| start.len() == 4 && start[..2] == starts[0][..2]), "{output}");
    let mut tasks: Vec<_> = starts.iter().map(|start| start[2]).collect();
    tasks.sort_unstable();
    assert_eq!(tasks, [0, 1, 2, 3], "{output}");
    let (first, last) = (starts[0][3], starts[3][3]);
    assert!((20_000_000..10_000_000_000).contains(&(last - first)), "two slots take turns: {output}");
    assert!(output.lines().last().unwrap().contains("4 tasks run"), "{output}");
}
