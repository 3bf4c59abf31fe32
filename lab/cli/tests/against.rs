//! `midflight-lab bench … --against` a script.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{CommandOutput, Directory, run, signal, spawn_with, wait_until};
use rustix::process::Signal;
use std::path::Path;

fn build(directory: &Directory, text: &str) -> String {
    directory.script("midflight", text)
}

fn printing(results: &str) -> String {
    let machine = r#""machine": {"cpu": "x", "cores": 2, "kernel": "Linux"}"#;
    format!(r#"echo '{{"bench": "core", {machine}, "commit": "0123abcd", "results": [{results}]}}'"#)
}

/// Nanoseconds.
fn submit_ns(value: &str) -> String {
    printing(&format!(r#"{{"name": "core.submit_ns", "value": {value}, "unit": "ns"}}"#))
}

/// Two short rounds.
fn against(other: &str, more: &[&str]) -> CommandOutput {
    run(&[&["bench", "core", "--quick", "--against", other, "--rounds", "2"], more].concat())
}

#[test]
fn both_builds_run_in_turns_and_each_result_of_both_has_a_ratio_with_its_interval() {
    let directory = Directory::new("against-turns");
    let output = directory.path("output");
    let results = r#"{"name": "core.submit_ns", "value": 1000000, "unit": "ns"},
        {"name": "core.state_bytes", "value": 1, "unit": "kilobytes"},
        {"name": "core.gone_ns", "value": 5, "unit": "ns"}"#;
    let other = build(&directory, &format!("echo \"$@\" >>{output}\n{}", printing(results)));
    let said = against(&other, &["--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(std::fs::read_to_string(output).unwrap(), "bench core --json --quick\n".repeat(2));
    let turns = said.stderr.lines().map(|line| line.split_once(',').map_or(line, |(turn, _to_go)| turn));
    let expected = ["round 1 of 2: other", "round 1 of 2: this", "round 2 of 2: this", "round 2 of 2: other"];
    assert_eq!(turns.collect::<Vec<_>>(), expected);
    let results = said.results();
    assert_eq!((&results["bench"], &results["against.rounds"]), (&"against.core".into(), &2.into()));
    assert_eq!(results["against.commit"], "0123abcd");
    let [low, ratio, high] =
        ["low", "ratio", "high"].map(|end| results[format!("against.core.submit_ns.{end}")].as_f64().unwrap());
    assert!(low <= ratio && ratio <= high && ratio < 0.5, "{said:?}");
    assert_eq!(results["against.core.submit_ns.other"], 1_000_000.0);
    assert_eq!(results["against.core.gone_ns.not_compared"], "only in other");
    assert_eq!(results["against.core.retrieve_ns.not_compared"], "only in this");
    assert!(results["against.core.state_bytes.not_compared"].as_str().unwrap().contains("kilobytes"));
    assert!(results["against.core.retrieve_ns.ratio"].is_null());
}

#[test]
fn being_slower_than_allowed_fails_after_the_table_is_printed() {
    let directory = Directory::new("against-slower");
    let said = against(&build(&directory, &submit_ns("0.001")), &["--at-most", "1.10"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let complaint = said.stderr.lines().last().unwrap();
    assert!(complaint.starts_with("error: slower than --at-most 1.1: core.submit_ns at least "), "{said:?}");
    assert!(said.stdout.lines().any(|line| line.starts_with("core.submit_ns") && line.ends_with("slower")), "{said:?}");
    assert!(said.stdout.contains("core.retrieve_ns: only in this\n"), "{said:?}");
    assert!(said.stdout.contains("other: commit 0123abcd, ") && said.stdout.contains(" · 2 rounds"), "{said:?}");

    let said = against(&build(&directory, &submit_ns("1e9")), &["--at-most", "1.10"]);
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn what_is_only_perhaps_slower_than_allowed_is_named_and_no_failure() {
    let directory = Directory::new("against-undecided");
    let marker = directory.path("second");
    let (quick, slow) = (submit_ns("0.001"), submit_ns("1e9"));
    let other = format!("if [ -e {marker} ]; then {slow}; else {quick}; fi; touch {marker}");
    let said = against(&build(&directory, &other), &["--at-most", "2"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("undecided: core.submit_ns may be up to "), "{said:?}");
    assert!(said.stdout.lines().any(|line| line.starts_with("core.submit_ns") && line.ends_with("same")), "{said:?}");
}

#[test]
fn a_build_that_fails_is_named_with_its_command_line_and_what_it_said() {
    let directory = Directory::new("against-fails");
    for (text, parts) in [
        (
            "echo 'run 1 of 1' >&2; echo 'error: no room: make some' >&2; exit 3",
            &["exit status: 3", "no room: make"][..],
        ),
        ("echo 'run 1 of 1' >&2; kill -9 $$", &["signal: 9 (SIGKILL)", "it said: run 1 of 1"]),
        ("exit 1", &["exit status: 1", "it said nothing"]),
        ("echo 'submit 12 ns'", &["printed no results"]),
        ("echo \"thread 'main' panicked at a.rs:1:\" >&2; echo 'note: a hint' >&2; exit 101", &["panicked at a.rs:1"]),
    ] {
        let other = build(&directory, text);
        let said = against(&other, &[]);
        let command = format!("error: other failed: `{other} bench core --json --quick`: ");
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
        let complaint = said.stderr.lines().last().unwrap();
        assert!(complaint.starts_with(&command), "{command:?}: {said:?}");
        assert!(parts.iter().all(|part| complaint.contains(part)), "{parts:?}: {said:?}");
    }
    let other = directory.write("midflight", "#!/nonexistent/shell\n");
    let said = against(&other, &[]);
    assert!(said.code == Some(1) && said.stderr.contains("should interpret or load it is missing"), "{said:?}");
}

#[cfg(not(feature = "kernel"))]
#[test]
fn this_build_too_is_named_where_it_fails() {
    let directory = Directory::new("against-this");
    let said = run(&["bench", "xdp", "--against", &build(&directory, &submit_ns("1"))]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("error: this failed: `") && said.stderr.contains("bench xdp --json`"), "{said:?}");
    assert!(said.stderr.contains("without the kernel engine"), "{said:?}");
}

#[test]
fn a_build_that_changes_meanwhile_is_no_result() {
    let directory = Directory::new("against-changes");
    let said = against(&build(&directory, &format!("echo '# new' >>$0; {}", submit_ns("1"))), &[]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("other was built anew or replaced meanwhile"), "{said:?}");
}

#[test]
fn a_signal_ends_the_running_build_and_what_it_started() {
    let directory = Directory::new("against-signal");
    let pid = directory.path("pid");
    let other = build(&directory, &format!("setsid sleep 300 &\necho $! >{pid}.new; mv {pid}.new {pid}\nwait"));
    let child = spawn_with(&["bench", "loop", "--against", &other], "");
    wait_until("the other build runs", || Path::new(&pid).exists());
    signal(&child, Signal::INT);
    let said = CommandOutput::from(child.wait_with_output().unwrap());
    assert_eq!((said.code, said.stdout.as_str()), (Some(130), ""), "no table of half a run: {said:?}");
    let left = std::fs::read_to_string(pid).unwrap();
    assert!(!Path::new("/proc").join(left.trim()).exists(), "{left} was left");
}
