//! `midflight-lab pipeline`: a store through a model of a pipeline. Tasks through one are in `lab/cli/src/pipeline/tests.rs`.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Running, Store, load, run};

#[test]
fn r1_r3_what_clients_of_a_store_saw_through_a_pipeline_is_linearizable() {
    let mut store = Store::new("pipeline-store", 1);
    let listen = store.addresses[0].to_string();
    let pipeline = ["pipeline", "--config", &store.config, "--listen", &listen, "--http", "127.0.0.1:0"];
    let switch = Running::start(&pipeline);
    assert!(switch.first_line.contains(", engine asic-safe"), "{}", switch.first_line);
    store.switches[0] = Some(switch);
    (1..=3).for_each(|id| store.start_replica(id));
    store.leader();
    let history = store.directory.path("history.jsonl");
    let loaded: common::CommandOutput = load(&store, "2", &history).wait_with_output().unwrap().into();
    assert_eq!(loaded.code, Some(0), "{loaded:?}");
    assert!(loaded.results()["load.reads_per_s"].as_f64().unwrap() > 10.0, "{loaded:?}");
    let checked = run(&["check", "history", &history]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let served =
        |status: &&serde_json::Value| status["counters"]["reads_served"].as_u64().is_some_and(|reads| reads > 0);
    assert!(store.statuses().iter().filter(served).count() > 1, "followers serve reads: {:?}", store.statuses());
}
