//! The tasks program in the simulated world: what a caller sees when the network and the processes fail.
//! `MIDFLIGHT_SEEDS=500 cargo test -p midflight-sim --test tasks` tries that many seeds in each test.

#![allow(clippy::unwrap_used, reason = "a test ends where it cannot go on")]

use midflight_dataplane::{Stats, TasksConfig, Verdict};
use midflight_endpoint::MS;
use midflight_sim::tasks::check::RulesObserver;
use midflight_sim::tasks::{Command, History, TaskEnd, TaskEvent, nodes};
use midflight_sim::{Action, Faults, NodeId, World};
use midflight_tasks::client::{Argument, ClientConfig, Task};
use midflight_tasks::executor::ExecutorConfig;
use std::collections::{BTreeMap, BTreeSet, HashMap};

const JOB: u32 = 100;

/// Switches, executors of eight slots, and two clients that submit tasks in jobs of 100.
struct Cluster {
    world: World,
    switches: Vec<NodeId>,
    executors: Vec<NodeId>,
    clients: Vec<NodeId>,
    tasks: u32,
}

impl Cluster {
    fn new(seed: u64, faults: Faults, queue: u32) -> Self {
        Self::with(seed, faults, queue, 1, &[0; 4])
    }

    /// An executor for each mask of `resources`. Checks the switches' rules at every packet.
    fn with(seed: u64, faults: Faults, queue: u32, switches: usize, resources: &[u8]) -> Self {
        let mut world = World::new(seed, faults);
        let config = TasksConfig { queue, slots: 1024, clients: 8, ..TasksConfig::default() };
        world.set_observer(Box::<RulesObserver>::default());
        world.set_sink(Box::<History>::default());
        let switches: Vec<_> = (0..switches).map(|_| nodes::add_switch(&mut world, config).unwrap()).collect();
        let at: Vec<_> = switches.iter().map(|&switch| world.address(switch)).collect();
        let executor =
            |&mask: &u8| nodes::add_executor(&mut world, ExecutorConfig::new(0, 0, at.clone(), 8, mask)).unwrap();
        let executors = resources.iter().map(executor).collect();
        let clients =
            (0..2).map(|_| nodes::add_client(&mut world, ClientConfig::new(0, 0, at.clone())).unwrap()).collect();
        Self { world, switches, executors, clients, tasks: 0 }
    }

    fn submit(&mut self, task: impl Fn(u32) -> Task) {
        self.submit_jobs(20, 4 * MS, task);
    }

    fn submit_jobs(&mut self, jobs: u32, every: u64, task: impl Fn(u32) -> Task) {
        for jid in 0..jobs {
            let client = self.clients[jid as usize % 2];
            let tasks = (jid * JOB..(jid + 1) * JOB).map(&task).collect();
            self.world.at(MS + u64::from(jid) * every, Action::command(client, Command::Submit { jid, tasks }));
        }
        self.tasks = jobs * JOB;
    }

    fn stats(&self) -> Stats {
        nodes::switch(&self.world, self.switches[0]).unwrap()
    }

    /// Submits 2,000 tasks and calls `happens`; each task must complete once.
    fn completes(&mut self, happens: impl FnOnce(&mut Self)) {
        self.submit(task);
        happens(self);
        self.finish();
        self.assert_each_completed_once();
    }

    /// Runs until every task has ended; then a little longer, to see that none ends twice.
    fn finish(&mut self) {
        let tasks = self.tasks as usize;
        let all = self.world.run(60_000 * MS, |world| history(world).reported() == tasks);
        assert!(all, "{} of {tasks} ended within a minute", history(&self.world).reported());
        let until = self.world.now() + 3_000 * MS;
        self.world.run(until, |_| false);
        self.switches.iter().for_each(|&switch| nodes::check_switch(&self.world, switch).unwrap());
    }

    fn assert_each_completed_once(&self) {
        let mut numbers = HashMap::new();
        let mut told = BTreeSet::new();
        for (_, event) in history(&self.world).iter() {
            match event {
                TaskEvent::Submitted { client, jid, keys } => {
                    numbers.extend(keys.clone().zip(jid * JOB..).map(|(key, number)| ((*client, key), number)));
                }
                TaskEvent::Reported { client, key, end: TaskEnd::Completed { ok: true, result, .. } } => {
                    let number = numbers[&(*client, key.0)];
                    assert_eq!(result[8..12], number.to_be_bytes(), "the result of another task");
                    assert!(told.insert(number), "task {number} ended twice");
                }
                TaskEvent::Reported { end, .. } => panic!("{end:?}"),
                _ => {}
            }
        }
        assert_eq!(told.len(), self.tasks as usize);
    }

    /// By task.
    fn starts(&self) -> BTreeMap<u32, u32> {
        let mut starts = BTreeMap::new();
        for (_, event) in history(&self.world).iter() {
            if let TaskEvent::Started { jid, tid, .. } = event {
                *starts.entry(jid * JOB + tid % JOB).or_default() += 1;
            }
        }
        starts
    }
}

fn history(world: &World) -> &History {
    world.sink().unwrap()
}

/// This many seeds, or `MIDFLIGHT_SEEDS`.
fn seeds(count: u64) -> std::ops::Range<u64> {
    0..std::env::var("MIDFLIGHT_SEEDS").map_or(count, |text| text.parse().unwrap())
}

/// Task `number`, which runs for 0.3 to 1.8 ms and returns its number.
fn task(number: u32) -> Task {
    let run = 300_000 + u64::from(number * 7919 % 1500) * 1000;
    let mut argument = [0; 12];
    argument[..8].copy_from_slice(&run.to_be_bytes());
    argument[8..].copy_from_slice(&number.to_be_bytes());
    Task::new(1, Argument::inline(&argument).unwrap())
}

#[test]
fn t1_to_t6_hold_at_every_packet_of_a_network_without_faults() {
    for seed in seeds(3) {
        let mut cluster = Cluster::with(seed, Faults::NONE, 4096, 1, &[0b00, 0b01, 0b11, 0b11]);
        cluster.submit(|number| {
            let mut task = task(number);
            task.priority = 1 + (number % 3) as u8;
            task.resources = [0b00, 0b01, 0b10, 0b11][number as usize / 3 % 4];
            task
        });
        cluster.finish();
        cluster.assert_each_completed_once();
        assert!(cluster.starts().values().all(|&starts| starts == 1), "T2: one attempt each");
        let stats = cluster.stats();
        assert_eq!((stats.tasks.assigned, stats.tasks.expired, stats.tasks.returned), (u64::from(cluster.tasks), 0, 0));
    }
}

#[test]
fn every_task_completes_once_over_a_network_that_loses_duplicates_and_reorders() {
    for seed in seeds(20) {
        let faults = Faults::lossy([0.01, 0.03, 0.05][seed as usize % 3]);
        let mut cluster = Cluster::new(seed, faults, 4096);
        cluster.completes(|_| ());
        let network = cluster.world.network();
        assert!(network.lost > 0 && network.duplicated > 0 && network.held_back > 0);
    }
}

#[test]
fn t7_every_task_completes_through_a_queue_that_is_far_too_small() {
    for seed in seeds(4) {
        let mut cluster = Cluster::new(seed, Faults::lossy(0.02), 48);
        cluster.completes(|_| ());
        let full = cluster.stats().reasons[Verdict::Full as usize];
        assert!(full > 0, "the queue was full");
    }
}

#[test]
fn t9_a_switch_that_restarts_costs_no_task() {
    let mut recoveries = Vec::new();
    for seed in seeds(20) {
        let mut cluster = Cluster::new(seed, Faults::lossy(0.01), 4096);
        let back = (40 + seed % 40) * MS;
        cluster.completes(|Cluster { world, switches, .. }| {
            world.at(back - 20 * MS, Action::Crash(switches[0]));
            world.at(back, Action::Restart(switches[0]));
            world.at(back + 25 * MS, Action::Crash(switches[0]));
            world.at(back + 26 * MS, Action::Restart(switches[0]));
        });
        recoveries.push(first_start_after(&cluster, back) - back);
    }
    print_recovery("a switch restart, until the first task starts", &recoveries);
    assert!(recoveries.iter().all(|&recovery| recovery < 1_000 * MS));
}

fn first_start_after(cluster: &Cluster, time: u64) -> u64 {
    let history = history(&cluster.world);
    let started = |(at, event): &(u64, &TaskEvent)| *at > time && matches!(event, TaskEvent::Started { .. });
    history.iter().find(started).unwrap().0
}

#[test]
fn t10_executors_that_die_cost_no_task() {
    let mut recoveries = Vec::new();
    for seed in seeds(20) {
        let mut cluster = Cluster::new(seed, Faults::lossy(0.01), 4096);
        let crash = (15 + seed % 40) * MS;
        let [first, second, ..] = cluster.executors[..] else { unreachable!("four") };
        cluster.completes(|Cluster { world, .. }| {
            world.at(crash, Action::Crash(first));
            world.at(crash, Action::Crash(second));
            world.at(crash + 300 * MS, Action::Restart(second));
        });
        recoveries.push(last_rerun(&cluster, &[first, second], crash) - crash);
    }
    print_recovery("the death of two executors, until their last task starts elsewhere", &recoveries);
    // A lease of 1 s, after the last packet of the slot; or the client's probes, if the completion was lost.
    assert!(recoveries.iter().all(|&recovery| recovery < 2_500 * MS));
}

/// When the last task restarted that was running on one of these executors at their death.
fn last_rerun(cluster: &Cluster, dead: &[NodeId], death: u64) -> u64 {
    let mut held = BTreeMap::new();
    let mut last = death;
    for (at, event) in history(&cluster.world).iter() {
        match event {
            TaskEvent::Started { executor, run, jid, tid, .. } if at <= death && dead.contains(executor) => {
                held.insert((*executor, *run), (*jid, *tid));
            }
            TaskEvent::Ended { executor, run, .. } if at <= death => {
                held.remove(&(*executor, *run));
            }
            TaskEvent::Started { jid, tid, .. } if held.values().any(|task| *task == (*jid, *tid)) => last = at,
            _ => {}
        }
    }
    last
}

fn print_recovery(what: &str, recoveries: &[u64]) {
    let mut sorted = recoveries.to_vec();
    sorted.sort_unstable();
    let ms = |time: u64| time as f64 / MS as f64;
    let (median, max) = (sorted[sorted.len() / 2], sorted[sorted.len() - 1]);
    println!(
        "recovery from {what}: median {:.1} ms, max {:.1} ms (simulated, {} seeds)",
        ms(median),
        ms(max),
        sorted.len()
    );
}

#[test]
fn t9_t10_a_hundred_thousand_tasks_survive_the_switch_and_half_of_the_executors() {
    let mut cluster = Cluster::with(1, Faults::lossy(0.01), 131_072, 1, &[0; 16]);
    cluster.submit_jobs(1_000, MS, task);
    let (crash, back, death) = (400 * MS, 500 * MS, 700 * MS);
    cluster.world.at(crash, Action::Crash(cluster.switches[0]));
    cluster.world.at(back, Action::Restart(cluster.switches[0]));
    let dead = cluster.executors[..8].to_vec();
    dead.iter().for_each(|&executor| cluster.world.at(death, Action::Crash(executor)));
    cluster.finish();
    cluster.assert_each_completed_once();
    assert_eq!(cluster.tasks, 100_000);
    print_recovery("a switch restart with 100,000 tasks", &[first_start_after(&cluster, back) - back]);
    print_recovery("the death of 8 of 16 executors", &[last_rerun(&cluster, &dead, death) - death]);
}

#[test]
fn t9_all_turn_to_the_next_switch_when_the_first_dies_for_good() {
    for seed in seeds(5) {
        let mut cluster = Cluster::with(seed, Faults::lossy(0.02), 4096, 2, &[0; 4]);
        let crash = Action::Crash(cluster.switches[0]);
        cluster.completes(|cluster| cluster.world.at((20 + seed % 40) * MS, crash));
    }
}

#[test]
fn everything_at_once_costs_no_task() {
    for seed in seeds(20) {
        let at = |ms: u64| (ms + seed % 40) * MS;
        Cluster::new(seed, Faults::lossy(0.03), 96).completes(|Cluster { world, switches, executors, .. }| {
            world.at(at(10), Action::Crash(executors[0]));
            world.at(at(25), Action::Crash(switches[0]));
            world.at(at(30), Action::Restart(switches[0]));
            world.at(at(45), Action::Restart(executors[0]));
            world.at(at(50), Action::Crash(executors[1]));
            world.at(at(60), Action::command(executors[2], Command::Drain));
            world.at(at(70), Action::Crash(switches[0]));
            world.at(at(71), Action::Restart(switches[0]));
        });
    }
}

#[test]
fn a_client_that_dies_does_not_disturb_the_other() {
    let mut cluster = Cluster::new(1, Faults::lossy(0.01), 4096);
    cluster.submit(task);
    let [dead, alive] = cluster.clients[..] else { unreachable!("two") };
    cluster.world.at(30 * MS, Action::Crash(dead));
    let told = |world: &World, client: NodeId| {
        let ends =
            history(world).iter().filter(|(_, h)| matches!(h, TaskEvent::Reported { client: c, .. } if *c == client));
        ends.count()
    };
    assert!(cluster.world.run(20_000 * MS, |world| told(world, alive) == 1_000));
    // Its tasks ran, and their completions are given up in the end.
    let until = cluster.world.now() + 10_000 * MS;
    cluster.world.run(until, |_| false);
    for &executor in &cluster.executors {
        assert_eq!(nodes::executor(&cluster.world, executor).unwrap().unacknowledged(), 0);
    }
}

#[test]
fn a_drained_executor_leaves_nothing_behind() {
    for seed in seeds(5) {
        let mut cluster = Cluster::new(seed, Faults::lossy(0.01), 4096);
        cluster.completes(|Cluster { world, executors, .. }| {
            for (i, &executor) in executors[..3].iter().enumerate() {
                world.at((10 + 10 * i as u64) * MS, Action::command(executor, Command::Drain));
            }
        });
        let drained = history(&cluster.world).iter().filter(|(_, h)| matches!(h, TaskEvent::Drained { .. })).count();
        assert_eq!(drained, 3);
        assert_eq!(cluster.stats().tasks.expired, 0, "no lease had to run out");
        // An executor that drained before it knew its slots did not release them: they expire.
        let until = cluster.world.now() + TasksConfig::default().slot_idle_ns;
        cluster.world.run(until, |_| false);
        assert_eq!(cluster.stats().slots, 8, "seed {seed}");
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    let trace = |seed| {
        let mut cluster = Cluster::new(seed, Faults::lossy(0.03), 96);
        cluster.submit(task);
        cluster.world.at(20 * MS, Action::Crash(cluster.switches[0]));
        cluster.world.at(25 * MS, Action::Restart(cluster.switches[0]));
        cluster.finish();
        cluster.world.trace_hash()
    };
    assert_eq!(trace(7), trace(7));
    assert_ne!(trace(7), trace(8));
}
