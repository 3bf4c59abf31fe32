//! `midflight top` without a terminal.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Running, assert_error, free_address, run, wait_until};
use rustix::process::Signal;
use serde_json::Value;

fn view(http: &str) -> Value {
    let said = run(&["top", "--http", http, "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.stdout).unwrap()
}

fn executors(view: &Value, state: &str) -> Vec<Value> {
    let all = view["detail"]["executors"]["shown"].as_array().unwrap();
    all.iter().filter(|executor| executor["state"] == state).cloned().collect()
}

#[test]
fn a_view_has_executors_clients_jobs_rates_and_run_times() {
    let switch = Running::switch("127.0.0.1:0", &[]);
    let (http, address) = (switch.http(), switch.address());
    let _executor = Running::executor(address, 2, &[]);
    wait_until("the executor is registered", || executors(&view(&http), "alive").len() == 1);
    let to = address.to_string();
    let mut job = common::spawn_with(&["map", "--switch", &to, "--", "sleep {}"], "0\n60\n60\n60\n");
    wait_until("three tasks are left", || {
        let view = view(&http);
        let jobs = view["detail"]["jobs"]["shown"].as_array().unwrap().clone();
        jobs.len() == 1 && jobs[0]["running"] == 2 && jobs[0]["queued"] == 1
    });
    let view = view(&http);
    assert_eq!((&view["program"], &view["viewers"]), (&"tasks".into(), &1.into()));
    assert!(view["period_ms"].as_u64().unwrap() >= 200, "{view}");
    let executor = &executors(&view, "alive")[0];
    assert_eq!((&executor["busy"], &executor["parked"]), (&2.into(), &0.into()), "{executor}");
    assert!(executor["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{executor}");
    let client = &view["detail"]["clients"]["shown"][0];
    assert_eq!((&client["open"], &client["uid"]), (&3.into(), &rustix::process::geteuid().as_raw().into()), "{client}");
    let runs: u64 = view["status"]["run_us"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!((runs, &view["status"]["tasks"]["completed"]), (1, &1.into()));
    let text = run(&["top", "--http", &http]);
    for part in ["2 busy, 0 parked", "Executors\n", "alive", "Jobs\n", "Clients\n"] {
        assert!(text.stdout.contains(part), "no {part:?} in {text:?}");
    }
    // `purge` takes this id. It is not the random number that the client drew, which only the switch knows.
    let (port, id) = (address.port().to_string(), client["id"].as_str().unwrap());
    assert_eq!(view["detail"]["jobs"]["shown"][0]["client"], id);
    assert_error(&run(&["purge", "--port", &port, "--client", "0123456789abcdef"]), 1, &["midflight top --json"]);
    let purged = run(&["purge", "--port", &port, "--client", id]);
    assert_eq!((purged.code, purged.stdout.as_str()), (Some(0), "1 task taken out\n"), "{purged:?}");
    job.kill().unwrap();
    job.wait().unwrap();
}

#[test]
fn t10_an_executor_that_is_killed_is_lost() {
    let switch = Running::switch("127.0.0.1:0", &[]);
    let executor = Running::executor(switch.address(), 2, &[]);
    let http = switch.http();
    wait_until("the executor is registered", || executors(&view(&http), "alive").len() == 1);
    common::signal(&executor.child, Signal::KILL);
    wait_until("it is lost", || executors(&view(&http), "lost").len() == 1);
}

#[test]
fn a_switch_that_does_not_answer_is_named() {
    let nobody = free_address().to_string();
    assert_error(&run(&["top", "--http", &nobody]), 1, &[&nobody, "midflight up", "--http HOST:PORT"]);
    assert_error(&run(&["top", "--http", "nonsense"]), 2, &["nonsense"]);
}
