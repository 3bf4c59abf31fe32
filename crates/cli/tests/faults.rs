//! Processes die during a job: every task completes, its caller sees one result. Prints the recovery time (`cargo test -p midflight-cli
//! --test faults -- --nocapture`).

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, Running, Seen, free_address, status, wait_until};
use midflight::Client;
use std::time::{Duration, Instant};

const TASKS: usize = 4_000;
const SHORT: Duration = Duration::from_millis(2);
const SLOTS: u32 = 8;
const EXECUTORS: usize = 4;

struct World {
    directory: Directory,
    switch: Running,
    executors: Vec<Running>,
    client: Client,
}

fn world(name: &str) -> World {
    let directory = Directory::new(name);
    directory.write("m.toml", "[tasks]\nlease = \"300ms\"\n");
    let address = free_address();
    let switch = start_switch(&directory, &address.to_string());
    let executors = (0..EXECUTORS).map(|_| Running::executor(address, SLOTS, &[])).collect();
    let client = Client::builder().switch(address).connect().unwrap();
    World { directory, switch, executors, client }
}

fn start_switch(directory: &Directory, address: &str) -> Running {
    Running::switch(address, &["--config", &directory.path("m.toml")])
}

#[test]
fn t10_half_of_the_executors_are_killed_and_every_task_completes_once() {
    let mut world = world("kill-executors");
    let slots = EXECUTORS * SLOTS as usize;
    let mut seen = Seen::new(&world.client, &[(TASKS / 4, SHORT), (slots, Duration::from_secs(2)), (TASKS, SHORT)]);
    seen.take(TASKS / 4);
    wait_until("every slot has a long one", || status(&world.switch.http())["busy"] == slots);
    let killed = Instant::now();
    for mut executor in world.executors.drain(..EXECUTORS / 2) {
        executor.child.kill().unwrap();
    }
    seen.take_all();
    let again = seen.again;
    assert!(again >= slots / 2, "{again} tasks ran again");
    let recovery = seen.last_again.unwrap() - killed;
    println!(
        "half of the executors killed: {again} tasks ran again, the last result {} ms later",
        recovery.as_millis()
    );
    assert!(recovery < common::PATIENCE, "{recovery:?}");
}

#[test]
fn t9_the_switch_is_killed_and_restarted_and_every_task_completes_once() {
    let mut world = world("restart-switch");
    let address = world.switch.address().to_string();
    let mut seen = Seen::new(&world.client, &[(TASKS, SHORT)]);
    seen.take(TASKS / 4);
    world.switch.child.kill().unwrap();
    world.switch.child.wait().unwrap();
    // Results of tasks that were at executors when the switch died still arrive.
    while seen.take_within(Duration::from_millis(50)) {}
    let dead = Instant::now();
    world.switch = start_switch(&world.directory, &address);
    seen.take(1);
    let recovery = dead.elapsed();
    seen.take_all();
    let (recovery_ms, again) = (recovery.as_millis(), seen.again);
    println!("switch restarted: the next result {recovery_ms} ms later, {again} tasks were submitted again");
    assert!(recovery < common::PATIENCE, "{recovery:?}");
    assert_eq!(world.client.switch().to_string(), address);
}
