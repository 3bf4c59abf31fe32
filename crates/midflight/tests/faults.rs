//! Processes die midway: every task completes, its caller sees one result, and the time to recover is printed
//! (`cargo test -p midflight --test faults -- --nocapture`).

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, Running, free_address};
use midflight::{Client, ClientOptions, Completions, Job, functions};
use std::time::{Duration, Instant};

const TASKS: usize = 4_000;
/// A task: 2 ms of sleep.
const TASK_NS: u64 = 2_000_000;
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
    let client = Client::connect(ClientOptions::new(vec![address])).unwrap();
    World { directory, switch, executors, client }
}

fn start_switch(directory: &Directory, address: &str) -> Running {
    Running::switch(address, &["--config", &directory.path("m.toml")])
}

/// Outcomes so far: each task at most once.
struct Seen {
    completions: Completions,
    tasks: Vec<bool>,
    /// When the last result of a further attempt came.
    last_again: Option<Instant>,
    again: usize,
}

impl Seen {
    fn new(client: &Client) -> Self {
        let job = Job::builder(functions::SLEEP).attempts(10).repeat(TASKS, TASK_NS.to_be_bytes()).build();
        let completions = client.submit(job).unwrap().completions();
        Self { completions, tasks: vec![false; TASKS], last_again: None, again: 0 }
    }

    /// Takes `count` more.
    fn take(&mut self, count: usize) {
        for _ in 0..count {
            assert!(self.take_within(common::PATIENCE), "no result in time");
        }
    }

    /// Takes one more, if one comes in time.
    fn take_within(&mut self, time: Duration) -> bool {
        let Some((index, outcome)) = self.completions.next_timeout(time) else { return false };
        let result = outcome.unwrap();
        assert!(!std::mem::replace(&mut self.tasks[index], true), "task {index} ended twice");
        if result.attempt > 1 {
            self.last_again = Some(Instant::now());
            self.again += 1;
        }
        true
    }

    fn all(mut self) -> (usize, Option<Instant>) {
        self.take(self.completions.left());
        assert!(self.tasks.iter().all(|&ended| ended));
        assert!(self.completions.next_timeout(Duration::from_millis(50)).is_none(), "more results than tasks");
        (self.again, self.last_again)
    }
}

#[test]
fn t10_half_of_the_executors_are_killed_and_every_task_completes_once() {
    let mut world = world("kill-executors");
    let mut seen = Seen::new(&world.client);
    seen.take(TASKS / 4);
    let killed = Instant::now();
    for mut executor in world.executors.drain(..EXECUTORS / 2) {
        executor.child.kill().unwrap();
    }
    let (again, last_again) = seen.all();
    assert!(again > 0, "no task was running on the executors that died");
    let recovery = last_again.unwrap() - killed;
    println!(
        "half of the executors killed: {again} tasks ran again, the last result {} ms later",
        recovery.as_millis()
    );
    assert!(recovery < Duration::from_secs(5), "{recovery:?}");
}

#[test]
fn t9_the_switch_is_killed_and_restarted_and_every_task_completes_once() {
    let mut world = world("restart-switch");
    let address = world.switch.address().to_string();
    let mut seen = Seen::new(&world.client);
    seen.take(TASKS / 4);
    world.switch.child.kill().unwrap();
    world.switch.child.wait().unwrap();
    // What was with the executors when the switch died still comes.
    while seen.take_within(Duration::from_millis(50)) {}
    let dead = Instant::now();
    world.switch = start_switch(&world.directory, &address);
    seen.take(1);
    let recovery = dead.elapsed();
    let (again, _) = seen.all();
    println!("switch restarted: the next result {} ms later, {again} tasks were submitted again", recovery.as_millis());
    assert!(recovery < Duration::from_secs(5), "{recovery:?}");
    assert_eq!(world.client.switch().0.to_string(), address);
}
