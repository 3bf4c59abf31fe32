//! `midflight map`: what it prints, in which order, and its exit code.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, Running, Said, run, run_with, signal, spawn_with, wait_until};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read, read_to_string};
use std::path::Path;
use std::process::Child;

#[test]
fn output_comes_in_the_order_of_the_input() {
    // The later, the sooner it ends.
    let lines: String = (0..8).map(|i| format!("sleep 0.0{}; echo out {i}; echo err {i} >&2\n", 8 - i)).collect();
    let said = run_with(&["map", "--jobs", "8"], &lines);
    let expected = |name: &str| (0..8).map(|i| format!("{name} {i}\n")).collect::<String>();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!((said.stdout, said.stderr), (expected("out"), expected("err")));
}

#[test]
fn a_template_takes_the_line_as_one_word() {
    let said = run_with(&["map", "--", "printf", "'<%s>\\n'", "{}", "x"], "a b\nit's\n$HOME\n");
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "<a b>\n<x>\n<it's>\n<x>\n<$HOME>\n<x>\n"),
        "{}",
        said.stderr
    );
}

#[test]
fn lines_come_from_a_file_too_and_empty_ones_are_skipped() {
    let directory = Directory::new("map-file");
    let file = directory.write("commands", "echo 1\n\necho 2");
    let said = run(&["map", "-f", &file]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "1\n2\n"));
    assert_eq!(run_with(&["map"], "").code, Some(0));
}

#[test]
fn the_exit_code_counts_failures_up_to_101() {
    let said = run_with(&["map"], "exit 3\ntrue\nkill -9 $$\n/nonexistent/command\n");
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.stderr.ends_with("midflight: 1 finished, 3 failed (lines 1, 3-4)\n"), "{said:?}");
    let said = run_with(&["map", "--jobs", "16"], &"false\n".repeat(150));
    assert_eq!(said.code, Some(101));
}

#[test]
fn what_failed_runs_again_as_often_as_allowed() {
    let directory = Directory::new("map-retries");
    let log = directory.path("runs");
    // Succeeds in the third run.
    let command = format!("echo run >> {log}; [ $(wc -l < {log}) -ge 3 ]\n");
    assert_eq!(run_with(&["map", "--retries", "1"], &command).code, Some(1));
    assert_eq!(run_with(&["map", "--retries", "1"], &command).code, Some(0));
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "run\n".repeat(3));
}

#[test]
fn a_run_that_takes_too_long_is_ended() {
    let said = run_with(&["map", "--timeout", "100ms", "--jobs", "2"], "sleep 60 | cat\necho fast\n");
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), "fast\n"), "{said:?}");
    assert!(said.stderr.starts_with("midflight: timed out after 100ms\n"), "{said:?}");
}

#[test]
fn large_arguments_and_outputs_come_through() {
    let long = "x".repeat(100_000);
    let said = run_with(&["map", "--", "printf", "%s", "{}"], &format!("{long}\n"));
    assert_eq!((said.code, said.stdout.len()), (Some(0), 100_000), "{}", said.stderr);
    let said = run_with(&["map"], "head -c 3000000 /dev/zero | tr '\\0' y\n");
    assert_eq!((said.code, said.stdout.len()), (Some(0), 3_000_000), "{}", said.stderr);
}

#[test]
fn t5_commands_run_where_their_resources_are() {
    let directory = Directory::new("map-resources");
    let config = directory.write("m.toml", "[tasks.resources]\ngpu = 0\nssd = 1\n");
    let switch = Running::switch("127.0.0.1:0", &[]);
    let address = switch.address();
    let _plain = Running::executor(address, 4, &[]);
    let rich = Running::executor(address, 1, &["--config", &config, "--resources", "gpu,ssd"]);
    let map = ["map", "--switch", &address.to_string(), "--config", &config, "--resources", "gpu"];
    let said = run_with(&map, &"ps -o ppid= -p $$ | tr -d ' '\n".repeat(6));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.stdout, format!("{}\n", rich.child.id()).repeat(6));
}

/// Starts 50 commands on one slot, the first of which ends when the file `go` appears, and waits until it runs.
fn blocked(directory: &Directory) -> Child {
    let (started, go) = (directory.path("started"), directory.path("go"));
    let first = format!("touch {started}; while [ ! -e {go} ]; do sleep 0.01; done; echo first\n");
    let map = spawn_with(&["map", "--jobs", "1"], &format!("{first}{}", "echo never\n".repeat(49)));
    wait_until("the first command runs", || Path::new(&started).exists());
    map
}

/// Interrupts it and waits until it has said so; what else it says comes by what is returned.
fn interrupt(map: &mut Child) -> impl Read + use<> {
    let mut stderr = BufReader::new(map.stderr.take().unwrap());
    signal(map, Signal::INT);
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("interrupted: cancelling what has not started"), "{line}");
    stderr
}

#[test]
fn ctrl_c_cancels_what_has_not_started_and_says_what_was() {
    let directory = Directory::new("map-ctrl-c");
    let mut map = blocked(&directory);
    let stderr = interrupt(&mut map);
    directory.write("go", "");
    let said = Said { stderr: read_to_string(stderr).unwrap(), ..map.wait_with_output().unwrap().into() };
    assert_eq!((said.code, said.stdout.as_str()), (Some(130), "first\n"), "{said:?}");
    let summary = "midflight: interrupted: 1 finished, 49 cancelled before they started (lines 2-50)\n";
    assert!(said.stderr.ends_with(summary), "{said:?}");
}

#[test]
fn t17_a_second_ctrl_c_kills_what_runs() {
    let directory = Directory::new("map-ctrl-c-twice");
    let mut map = blocked(&directory);
    let stderr = interrupt(&mut map);
    signal(&map, Signal::INT);
    let said = Said { stderr: read_to_string(stderr).unwrap(), ..map.wait_with_output().unwrap().into() };
    assert_eq!((said.code, said.stdout.as_str()), (Some(130), ""), "{said:?}");
    assert!(said.stderr.contains("line 1: stopped"), "{said:?}");
}
