//! `midflight-lab bench python` with scripts in place of systems; needs no Python.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, run};

const SETUP: &str = "\
case $1 in
    dask) echo 'python: dask: looking for a registry' >&2; echo 'error: pip cannot install distributed' >&2; exit 1 ;;
esac";

/// joblib is half as fast as Midflight, and Ray computes something else.
const RUN: &str = r#"
turn() {
    echo "{\"system\": \"$1\", \"version\": \"1.2\", \"interface\": \"made up\", \"answers\": {\"grid_long\": \"$3\"}," \
        "\"values\": {\"submit_per_s\": $2, \"map_per_s\": $2, \"rtt_p50_us\": 100, \"grid_long_s\": 1, \"grid_long_task_ms\": 20}}"
}
case $1 in
    midflight) [ -x "$MIDFLIGHT" ] || exit 9; turn midflight 40000 7 ;;
    joblib) turn joblib 20000 7 ;;
    ray) turn ray 1000 8 ;;
    serial) turn serial 1 7 ;;
esac"#;

fn scripts(directory: &Directory, setup: &str, run: &str) -> String {
    directory.script("setup", setup);
    directory.script("run", run);
    directory.path(".")
}

fn arguments<'a>(scripts: &'a str, work: &'a str, only: &'a str) -> Vec<&'a str> {
    vec!["bench", "python", "--quick", "--scripts-dir", scripts, "--work-dir", work, "--only", only]
}

#[test]
fn systems_take_turns_and_are_compared() {
    let directory = Directory::new("python-turns");
    let (scripts, work) = (scripts(&directory, SETUP, RUN), directory.path("work"));
    let said = run(&[&arguments(&scripts, &work, "midflight,joblib,dask")[..], &["--json"]].concat());
    assert_eq!(said.code, Some(0), "who cannot be installed is no failure: {said:?}");
    let results = said.results();
    assert_eq!((&results["python.tasks_per_s"], &results["python.joblib_ratio"]), (&40_000.0.into(), &2.0.into()));
    assert_eq!(results["python.tasks_per_s.verdict"], "pass");
    assert_eq!(results["python.grid_long_joblib_ratio.verdict"], "pass");
    assert_eq!(results["python.joblib.version"], "1.2");
    assert!(results["python.dask_ratio"].is_null(), "it is absent");
    let lines: Vec<&str> = said.stderr.lines().filter(|line| line.starts_with("turn ")).collect();
    let order = ["turn 1 of 2: joblib", "turn 1 of 2: midflight", "turn 2 of 2: midflight", "turn 2 of 2: joblib"];
    assert!(lines.iter().zip(order).all(|(line, turn)| line.starts_with(turn)) && lines.len() == 4, "{lines:?}");
    for line in ["dask: looking for a registry", "SKIPPED: dask: pip cannot install distributed; its log is "] {
        assert!(said.stderr.lines().any(|said| said.contains(line)), "{line:?} is not in {said:?}");
    }
}

#[test]
fn who_computes_something_else_has_failed() {
    let directory = Directory::new("python-answers");
    let (scripts, work) = (scripts(&directory, SETUP, RUN), directory.path("work"));
    let said = run(&arguments(&scripts, &work, "midflight,ray"));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stdout.contains("FAILED: ray: grid_long computed \"8\" instead of \"7\""), "{said:?}");
    assert!(said.stdout.contains("python.tasks_per_s      40,000"), "{said:?}");
    assert!(!said.stdout.contains("ray_ratio"), "{said:?}");
}
