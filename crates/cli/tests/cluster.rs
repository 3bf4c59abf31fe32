//! Switch, executors and clients as processes: a new user's first steps, and shutdown.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, Running, run, run_with, signal, status, wait_until};
use rustix::process::Signal;
use std::path::Path;

fn get(http: &str, path: &str) -> String {
    let mut response = ureq::get(format!("http://{http}{path}")).call().unwrap();
    response.body_mut().read_to_string().unwrap()
}

#[test]
fn up_then_submit_map_and_status() {
    let up = Running::start(&["up", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--slots", "4"]);
    let switch = up.first_line.split([' ', ',']).nth(2).unwrap().to_owned();
    let said = run(&["submit", "noop", "-n", "5000", "--switch", &switch, "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains(r#"{"name":"submit.ok","value":5000,"unit":"tasks"}"#), "{said:?}");
    let said = run(&["submit", "exec", "echo hello", "-n", "2", "--switch", &switch]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "hello\nhello\n"), "{said:?}");
    let said = run_with(&["map", "--switch", &switch, "--", "echo {}"], "1\n2\n3\n");
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "1\n2\n3\n"), "{said:?}");
    signal(&up.child, Signal::INT);
    let (code, output) = up.end();
    assert_eq!(code, Some(0));
    for next in ["midflight submit noop", "midflight map --switch", "midflight status --http"] {
        assert!(output.contains(next), "{next} is not in {output}");
    }
}

#[test]
fn status_metrics_and_health_say_what_happened() {
    let switch = Running::switch("127.0.0.1:0", &[]);
    let address = switch.address();
    let _executor = Running::executor(address, 4, &[]);
    assert_eq!(run(&["submit", "noop", "-n", "100", "--switch", &address.to_string()]).code, Some(0));
    wait_until("100 tasks are counted as completed", || status(&switch.http())["tasks"]["completed"] == 100);
    wait_until("all slots are parked", || status(&switch.http())["parked"] == 4);
    // An executor that prefetches has more slots, which never park.
    let people = run(&["status", "--http", &switch.http()]).stdout;
    assert!(people.contains(" registered: 0 busy, 4 parked") && people.contains("100 completed"), "{people}");
    let metrics = get(&switch.http(), "/metrics");
    for line in [
        "midflight_tasks_submitted_total 100",
        "midflight_tasks_slots_parked 4",
        "midflight_tasks_wait_seconds_count 100",
    ] {
        assert!(metrics.lines().any(|l| l == line), "no line {line} in\n{metrics}");
    }
    assert_eq!(get(&switch.http(), "/healthz"), "ok\n");
}

#[test]
fn t7_a_small_queue_refuses_tasks_and_none_is_lost() {
    let directory = Directory::new("bounds");
    let file = directory.write("m.toml", "[tasks]\nqueue = 16\nlevels = 2\n");
    let switch = Running::switch("127.0.0.1:0", &["--config", &file]);
    let address = switch.address();
    let _executor = Running::executor(address, 2, &[]);
    // More tasks than the client's share (T14): FULL or SHARE makes it send the rest again; no task is lost.
    let said = run(&["submit", "noop", "-n", "200", "--priority", "2", "--switch", &address.to_string()]);
    assert_eq!(said.code, Some(0), "{said:?}");
    wait_until("all are completed", || status(&switch.http())["tasks"]["completed"] == 200);
    let now = status(&switch.http());
    assert!(now["drops"]["queue_share"].as_u64().unwrap() > 0, "{now}");
    assert_eq!(now["queued"].as_array().unwrap().len(), 2);
}

#[test]
fn sigterm_lets_the_executor_finish_and_take_nothing_new() {
    let directory = Directory::new("drain");
    let (started, go) = (directory.path("started"), directory.path("go"));
    let switch = Running::switch("127.0.0.1:0", &[]);
    let address = switch.address().to_string();
    let first = Running::executor(switch.address(), 1, &[]);
    let command = format!("touch {started}; while [ ! -e {go} ]; do sleep 0.01; done; echo first\n");
    let map = common::spawn_with(&["map", "--switch", &address], &format!("{command}echo second\n"));
    wait_until("the first command runs", || Path::new(&started).exists());
    signal(&first.child, Signal::TERM);
    let _second = Running::executor(switch.address(), 1, &[]);
    directory.write("go", "");
    assert_eq!(first.end(), (Some(0), "drained\n".to_owned()));
    let said = common::CommandOutput::from(map.wait_with_output().unwrap());
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "first\nsecond\n"), "{said:?}");
    wait_until("both are completed", || status(&switch.http())["tasks"]["completed"] == 2);
    let tasks = status(&switch.http())["tasks"].clone();
    assert_eq!((tasks["expired"].as_u64(), tasks["assigned"].as_u64()), (Some(0), Some(2)), "{tasks}");
}

#[test]
fn ctrl_c_cancels_what_submit_has_not_started() {
    let switch = Running::switch("127.0.0.1:0", &[]);
    let _executor = Running::executor(switch.address(), 1, &[]);
    let address = switch.address().to_string();
    let submit = common::spawn_with(&["submit", "sleep", "2s", "-n", "100", "--switch", &address], "");
    wait_until("all are there, one runs", || {
        let now = status(&switch.http());
        now["tasks"]["submitted"] == 100 && now["busy"] == 1
    });
    signal(&submit, Signal::INT);
    let said = common::CommandOutput::from(submit.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{said:?}");
    assert!(said.stderr.contains("1 ok, 0 failed, 0 lost, 99 cancelled"), "{said:?}");
}

#[test]
fn a_status_has_what_was_counted_until_it_was_asked() {
    let switch = Running::switch("127.0.0.1:0", &[]);
    let address = switch.address();
    let _executor = Running::executor(address, 1, &[]);
    for asked in 1..=3 {
        assert_eq!(run(&["submit", "noop", "--switch", &address.to_string()]).code, Some(0));
        assert_eq!(status(&switch.http())["tasks"]["submitted"], asked);
    }
}

#[test]
fn t17_a_second_ctrl_c_of_submit_and_a_timeout_end_commands() {
    let switch = Running::switch("127.0.0.1:0", &[]);
    let _executor = Running::executor(switch.address(), 1, &[]);
    let address = switch.address().to_string();
    let busy = || status(&switch.http())["busy"] == 1;
    let submit = common::spawn_with(&["submit", "exec", "sleep 100", "-n", "3", "--switch", &address], "");
    wait_until("one runs", busy);
    signal(&submit, Signal::INT);
    wait_until("the others are out", || status(&switch.http())["tasks"]["cancelled"] == 2);
    signal(&submit, Signal::INT);
    let said = common::CommandOutput::from(submit.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{said:?}");
    assert!(said.stderr.contains("0 ok, 0 failed, 0 lost, 3 cancelled"), "{said:?}");
    wait_until("its slot is free", || !busy());

    let said = common::CommandOutput::from(
        common::spawn_with(&["submit", "exec", "sleep 100", "--timeout", "500ms", "--switch", &address], "")
            .wait_with_output()
            .unwrap(),
    );
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("timed out"), "{said:?}");
    wait_until("its slot is free again", || !busy());
}

#[test]
fn a_switch_ends_cleanly_on_both_signals() {
    for way in [Signal::INT, Signal::TERM] {
        let switch = Running::switch("127.0.0.1:0", &[]);
        signal(&switch.child, way);
        assert_eq!(switch.end(), (Some(0), String::new()));
    }
}
