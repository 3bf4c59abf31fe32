//! T18: each task gets its own GPU, or none.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, Running, run, run_with};
use std::collections::{BTreeMap, BTreeSet};

/// Prints its GPU, and its start and end.
const USE_IT: &str =
    "from=$(date +%s%N); sleep 0.05; echo \"$CUDA_VISIBLE_DEVICES $MIDFLIGHT_GPU $from $(date +%s%N)\"";

#[test]
fn t18_two_gpus_serve_four_slots_and_no_two_tasks_at_once() {
    let directory = Directory::new("counted");
    let config = directory.path("midflight.toml");
    std::fs::write(&config, "[tasks.resources]\ngpu = 2\n").unwrap();
    let config = config.as_str();
    let switch = Running::switch("127.0.0.1:0", &[]);
    let address = switch.address().to_string();
    let executor = Running::executor(switch.address(), 4, &["--config", config, "--count", "gpu=[4,6]"]);
    assert!(executor.first_line.contains("4 slots (counts 2 gpu)"), "{}", executor.first_line);
    let lines = "x\n".repeat(12);
    let map = ["map", "--switch", &address, "--config", config];
    let said = run_with(&[&map[..], &["--resources", "gpu", "--", &format!("{USE_IT} {{}}")]].concat(), &lines);
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut uses: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for line in said.stdout.lines() {
        let words: Vec<_> = line.split(' ').collect();
        assert_eq!(words[0], words[1]);
        uses.entry(words[0]).or_default().push((words[2].parse().unwrap(), words[3].parse().unwrap()));
    }
    assert_eq!(uses.keys().copied().collect::<BTreeSet<_>>(), ["4", "6"].into());
    assert_eq!(uses.values().map(Vec::len).sum::<usize>(), 12);
    for (gpu, times) in &mut uses {
        times.sort_unstable();
        assert!(times.windows(2).all(|two| two[0].1 <= two[1].0), "two tasks have {gpu}: {times:?}");
    }
    // Tasks without a GPU need no free one: four of them run at once.
    let together = "touch $TOGETHER.{}; for i in $(seq 200); do \
                    [ $(ls $TOGETHER.* | wc -l) = 4 ] && echo \"all${CUDA_VISIBLE_DEVICES}\" && exit 0; sleep 0.02; done; exit 1";
    let together = together.replace("$TOGETHER", &directory.path("t"));
    let said = run_with(&[&map[..], &["--", &together]].concat(), "1\n2\n3\n4\n");
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "all\nall\nall\nall\n"), "{said:?}");
}

#[test]
fn a_wrong_count_option_is_refused_before_anything_starts() {
    let refused = |arguments: &[&str], why: &str| {
        let said = run(&[&["executor", "--switch", "127.0.0.1:9"], arguments].concat());
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(why), "{said:?}");
    };
    refused(&["--count", "gpu=2"], "unknown resource `gpu`: known are r0 to r7");
    refused(&["--count", "r0=2", "--count", "r0=1"], "counted twice");
    refused(&["--count", "r0"], "write it like gpu=2");
    let said = run(&["up", "--executors", "2", "--count", "r0=2"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("--count is of one executor"), "{said:?}");
}

#[test]
fn an_executor_tells_prometheus_its_bundles_and_how_long_functions_run() {
    let switch = Running::switch("127.0.0.1:0", &[]);
    let address = switch.address().to_string();
    let executor = Running::executor(switch.address(), 2, &["--count", "r1=3", "--http", "127.0.0.1:0"]);
    let get = |path: &str| {
        let mut response = ureq::get(format!("http://{}{path}", executor.http())).call().unwrap();
        response.body_mut().read_to_string().unwrap()
    };
    assert_eq!(get("/healthz"), "ok\n");
    let said = run(&["submit", "sleep", "3ms", "-n", "10", "--switch", &address]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let metrics = get("/metrics");
    for line in [
        "midflight_executor_bundles{resource=\"r1\",state=\"offered\"} 2",
        "midflight_executor_bundles{resource=\"r1\",state=\"free\"} 1",
        "midflight_executor_slots{state=\"registered\"} 2",
        "midflight_executor_run_seconds_count{function=\"sleep\"} 10",
        "midflight_executor_run_seconds_bucket{le=\"0.002048\",function=\"sleep\"} 0",
    ] {
        assert!(metrics.lines().any(|l| l == line), "no line {line} in\n{metrics}");
    }
    let status: serde_json::Value = serde_json::from_str(&get("/status")).unwrap();
    assert_eq!((&status["counters"]["runs"], &status["switch"]), (&10.into(), &address.into()));
}
