//! `midflight-lab bench peers` with scripts in place of systems; needs no Python, Go or network.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, run};
use std::path::Path;

const SETUP: &str = "\
case $1 in
    dask) echo 'peers: dask: looking for python3' >&2; echo 'error: no python3: install it' >&2
        echo 'error: nothing is installed' >&2; exit 1 ;;
esac";

/// Ray works and has two rows, HyperQueue fails, NATS prints nonsense.
const RUN: &str = r#"
row() {
    echo "{\"name\": \"$1\", \"version\": \"1.2\", \"interface\": \"made up\", \"tasks_per_s\": $2," \
        "\"rtt_p50_us\": 1000.0, \"rtt_p99_us\": 2000.0}"
}
case $1 in
    ray) row ray 1000; row ray-actors 2000 ;;
    hyperqueue) echo 'Traceback (most recent call last):' >&2; echo 'RuntimeError: tasks failed' >&2; exit 1 ;;
    nats) echo 'Server is ready' ;;
esac"#;

fn peers(directory: &Directory, setup: &str, run: &str) -> String {
    directory.script("setup", setup);
    directory.script("run", run);
    directory.path(".")
}

fn arguments<'a>(peers: &'a str, work: &'a str, only: &'a str) -> Vec<&'a str> {
    vec!["bench", "peers", "--peers-dir", peers, "--work-dir", work, "--only", only]
}

/// Whether the process with the id in this file has exited.
fn has_ended(pid_file: &str) -> bool {
    let pid = std::fs::read_to_string(pid_file).unwrap();
    !Path::new("/proc").join(pid.trim()).exists()
}

#[test]
fn a_broken_peer_is_named_and_the_others_go_on() {
    let directory = Directory::new("peers-broken");
    let (peers, work) = (peers(&directory, SETUP, RUN), directory.path("work"));
    let mut args = arguments(&peers, &work, "nats,hyperqueue,dask,ray");
    args.push("--json");
    let said = run(&args);
    assert_eq!(said.code, Some(1), "{said:?}");
    let results = said.results();
    assert_eq!((&results["bench"], &results["peers.ray.tasks_per_s"]), (&"peers".into(), &1000.into()));
    assert_eq!(results["peers.ray-actors.rtt_p50_us"], 1000.0);
    assert!(results["peers.ray.throughput_ratio"].is_null(), "Midflight was not measured");
    assert!(results["peers.nats.tasks_per_s"].is_null());
    for line in [
        "dask: looking for python3",
        "SKIPPED: dask: no python3: install it; its log is ",
        "FAILED: hyperqueue: RuntimeError: tasks failed; its log is ",
        "FAILED: nats: `run nats` printed what is no row: Server is ready",
        "ray-actors 1.2: 2,000 tasks/s, p50 1.00 ms, p99 2.00 ms",
    ] {
        assert!(said.stderr.lines().any(|said| said.contains(line)), "{line:?} is not in {said:?}");
    }
    let log = std::fs::read_to_string(directory.path("work/run-hyperqueue.log")).unwrap();
    assert!(log.starts_with("Traceback"), "{log}");
}

#[test]
fn a_peer_that_cannot_be_installed_is_skipped_and_no_failure() {
    let directory = Directory::new("peers-skipped");
    let (peers, work) = (peers(&directory, SETUP, RUN), directory.path("work"));
    let said = run(&arguments(&peers, &work, "ray,dask"));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("SKIPPED: dask: no python3"), "{said:?}");
    assert!(said.stdout.contains("ray: made up"), "{said:?}");
    let said = run(&arguments(&peers, &work, "dask"));
    assert_eq!(said.code, Some(1), "nothing was measured: {said:?}");
}

#[test]
fn what_a_peer_leaves_behind_is_ended() {
    let directory = Directory::new("peers-left");
    let (pid, scratch, work) = (directory.path("pid"), directory.path("scratch"), directory.path("work"));
    let daemon =
        format!("setsid sleep 300 >/dev/null 2>&1 &\necho $! >{pid}\ntouch $TMPDIR/x; echo $TMPDIR >{scratch}\n{RUN}");
    let said = run(&arguments(&peers(&directory, SETUP, &daemon), &work, "ray"));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("left behind"), "{said:?}");
    assert!(has_ended(&pid));
    let scratch = std::fs::read_to_string(scratch).unwrap();
    assert!(scratch.contains("mf-bench-") && !Path::new(scratch.trim()).exists(), "{scratch}");
}
