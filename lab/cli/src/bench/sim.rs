//! `midflight-lab bench sim`: the simulator's speed on one core.

use super::How;
use crate::median::median;
use anyhow::{Result, ensure};
use midflight_dataplane::TasksConfig;
use midflight_sim::tasks::{Submission, TaskEvent, nodes};
use midflight_sim::time::Heap;
use midflight_sim::{Faults, Happening, Hardware, HostConfig, LinkConfig, Place, Sink, SwitchConfig, Topology, World};
use midflight_tasks::client::{Argument, ClientConfig, Task};
use midflight_tasks::executor::ExecutorConfig;
use midflight_terminal::envelope::{Envelope, Measure};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::cell::Cell;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

/// Events in the bare heap.
const PENDING: u64 = 10_000;
/// The cluster: as many tasks as slots run for half a millisecond, four fifths of the time.
const EXECUTORS: u64 = 64;
const SLOTS: u32 = 8;
const CLIENTS: u64 = 4;
const TASKS_OF_A_JOB: u64 = 20;
const RUN_NS: u64 = 500_000;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench sim
  midflight-lab bench sim --quick            two seconds, less exact
  midflight-lab bench sim --json
  midflight-lab bench sim --against ../before/target/release/midflight-lab

RESULTS (medians of the runs; one core)
  sim.bare_events_per_s                  the heap of events alone, 10,000 of them pending
  sim.endpoint_events_per_s              the core, 64 executors of 8 slots and 4 clients on a star
  sim.events_per_task                    of those: datagrams' arrivals, timers, ends of tasks
  sim.tasks_per_s                        tasks from submission to result, simulated in a second

EXIT CODES
  0 measured, 1 failed, 2 wrong usage";

pub(super) fn run(how: &How) -> Result<ExitCode> {
    let (runs, bare_events, simulated_ms) = if how.quick { (1, 3_000_000, 300) } else { (5, 10_000_000, 1_000) };
    let (mut bare, mut endpoint, mut tasks, mut per_task) = (vec![], vec![], vec![], 0.0);
    for run in 1..=runs {
        eprintln!("run {run} of {runs}");
        bare.push(bare_events_per_s(bare_events));
        let cluster = cluster(simulated_ms)?;
        endpoint.push(cluster.events as f64 / cluster.seconds);
        tasks.push(cluster.tasks as f64 / cluster.seconds);
        per_task = cluster.events as f64 / cluster.tasks as f64;
    }
    let results = vec![
        Measure::quantity("sim.bare_events_per_s", median(bare), "1/s"),
        Measure::quantity("sim.endpoint_events_per_s", median(endpoint), "1/s"),
        Measure::quantity("sim.events_per_task", per_task, ""),
        Measure::quantity("sim.tasks_per_s", median(tasks), "1/s"),
    ];
    Envelope::new("sim", results).print(how.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Each event schedules another at a random time.
fn bare_events_per_s(events: u64) -> f64 {
    let mut random = Pcg64::seed_from_u64(1);
    let delays: Vec<u64> = (0..1 << 16).map(|_| random.random_range(0..1_000_000)).collect();
    let delay = |event: u64| delays[event as usize % delays.len()];
    let mut heap = Heap::default();
    (0..PENDING).for_each(|event| heap.push(delay(event), (event as u32, event)));
    let start = Instant::now();
    for event in 0..events {
        if let Some((at, what)) = heap.pop() {
            heap.push(at + delay(event), what);
        }
    }
    events as f64 / start.elapsed().as_secs_f64()
}

struct Run {
    events: u64,
    tasks: u64,
    seconds: f64,
}

#[derive(Clone, Default)]
struct Ends(Rc<Cell<u64>>);

impl Sink for Ends {
    fn happened(&mut self, _at: u64, happening: &Happening<'_>) {
        if let Some(TaskEvent::Reported { .. }) = happening.of() {
            self.0.set(self.0.get() + 1);
        }
    }
}

fn cluster(simulated_ms: u64) -> Result<Run> {
    let link = LinkConfig { latency: 500, bits_per_second: 100_000_000_000 };
    let switch = SwitchConfig { pass: 400, packets_per_second: 4_000_000_000, queue: 4096, recirculation: 400 };
    let mut world =
        World::with_hardware(1, Faults::INSTANT, &Hardware { topology: Topology::Star, link, trunk: link, switch });
    let ends = Ends::default();
    world.set_sink(Box::new(ends.clone()));
    let host = HostConfig { lanes: 4, send: 1_000, receive: 1_000, ..HostConfig::default() };
    let switch = nodes::add_switch_at(&mut world, Place::Switch(0), TasksConfig::default())?;
    let at = vec![world.address(switch)];
    for _ in 0..EXECUTORS {
        let place = Place::Host(world.add_host(host));
        nodes::add_executor_at(&mut world, place, ExecutorConfig::new(0, 0, at.clone(), SLOTS, 0), 0, 0)?;
    }
    let interval = RUN_NS * TASKS_OF_A_JOB * CLIENTS * 5 / (EXECUTORS * u64::from(SLOTS) * 4);
    let jobs = simulated_ms * 1_000_000 / interval;
    for client in 0..CLIENTS {
        let place = Place::Host(world.add_host(host));
        let begin = 1_000_000 + interval * client / CLIENTS;
        let job = move |jid| Submission { at: begin + jid * interval, jid: jid as u32, tasks: tasks() };
        nodes::add_client_at(&mut world, place, ClientConfig::new(0, 0, at.clone()), Box::new((0..jobs).map(job)))?;
    }
    let (start, all) = (Instant::now(), jobs * CLIENTS * TASKS_OF_A_JOB);
    let ended = world.run(2 * simulated_ms * 1_000_000, |_| ends.0.get() == all);
    let seconds = start.elapsed().as_secs_f64();
    let tasks = ends.0.get();
    ensure!(ended && tasks == all, "{tasks} of {all} tasks ended in the simulated cluster");
    Ok(Run { events: world.events(), tasks, seconds })
}

fn tasks() -> Vec<Task> {
    let argument = Argument::inline(&RUN_NS.to_be_bytes()).unwrap_or(Argument::NONE);
    vec![Task::new(1, argument); TASKS_OF_A_JOB as usize]
}
