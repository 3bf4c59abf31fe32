//! Client, scheduler and workers over a network that loses, duplicates and delays packets.

use super::client::Event as ClientEvent;
use super::worker::Event as Work;
use super::*;
use midflight_endpoint::{Endpoint, Nanos};
use midflight_wire::tasks::{Status, TaskInfo};
use proptest::prelude::*;
use rand::RngExt;
use rand_pcg::Pcg64;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::SocketAddr;

const MS: Nanos = 1_000_000;

fn address(index: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 1_000 + index as u16))
}

enum Party {
    Scheduler(Box<Scheduler>),
    Worker(Box<Worker>),
    Client(Box<Client>),
    Dead,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrive { from: usize, to: usize, datagram: Vec<u8> },
    Finish { worker: usize, run: worker::RunKey },
    Wake { party: usize },
}

/// Parties in this order: scheduler 0 (and 1), workers, a client.
struct World {
    parties: Vec<Party>,
    heap: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    order: u64,
    now: Nanos,
    random: Pcg64,
    trouble: f64,
    /// Runs of each task, by job and number.
    ran: HashMap<(u32, u32), u32>,
    reported: HashMap<(u32, u32), u32>,
    failed: Vec<(u32, u32)>,
    most_running: usize,
}

struct Shape {
    workers: usize,
    slots: u32,
    ratio: f64,
    probing: bool,
    trouble: f64,
    seed: u64,
}

const CALM: Shape = Shape { workers: 4, slots: 2, ratio: 2.0, probing: true, trouble: 0.0, seed: 1 };

impl World {
    fn new(shape: &Shape) -> Self {
        let workers: Vec<_> = (0..shape.workers).map(|worker| (address(1 + worker), shape.slots)).collect();
        let config =
            SchedulerConfig { ratio: shape.ratio, probing: shape.probing, ..SchedulerConfig::new(shape.seed, workers) };
        let mut parties = vec![Party::Scheduler(Box::new(Scheduler::new(config).unwrap()))];
        for worker in 0..shape.workers {
            let ask = if shape.probing { Vec::new() } else { vec![address(0)] };
            let config = WorkerConfig { ask, ..WorkerConfig::new(worker as u64, shape.slots) };
            parties.push(Party::Worker(Box::new(Worker::new(config, 0).unwrap())));
        }
        parties.push(Party::Client(Box::new(Client::new(ClientConfig::new(9, vec![address(0)])).unwrap())));
        let random = Pcg64::new(u128::from(shape.seed), 2);
        let (ran, reported, failed) = (HashMap::new(), HashMap::new(), Vec::new());
        let (heap, trouble) = (BinaryHeap::new(), shape.trouble);
        let mut world =
            Self { parties, heap, order: 0, now: 0, random, trouble, ran, reported, failed, most_running: 0 };
        (0..world.parties.len()).for_each(|party| world.drive(party));
        world
    }

    fn submit(&mut self, tasks: usize, run_ns: u64) -> u32 {
        let client = self.parties.len() - 1;
        let mut argument = [0; 16];
        argument[..8].copy_from_slice(&run_ns.to_be_bytes());
        let task = TaskInfo { function: 1.into(), argument_length: 8, argument, ..TaskInfo::PLAIN };
        let Party::Client(endpoint) = &mut self.parties[client] else { unreachable!() };
        let job = endpoint.submit(&vec![task; tasks]).unwrap();
        self.drive(client);
        job
    }

    fn push(&mut self, at: Nanos, event: Event) {
        self.order += 1;
        self.heap.push(Reverse((at, self.order, event)));
    }

    fn drive(&mut self, party: usize) {
        let (now, mut buffer) = (self.now, Vec::new());
        let mut runs = Vec::new();
        match &mut self.parties[party] {
            Party::Worker(worker) => {
                while let Some(Work::Run(run)) = worker.poll_event() {
                    runs.push(run);
                }
                self.most_running = self.most_running.max(worker.running());
            }
            Party::Client(client) => {
                while let Some(event) = client.poll_event() {
                    match event {
                        ClientEvent::Ended { job, tid, .. } => *self.reported.entry((job, tid)).or_default() += 1,
                        ClientEvent::Failed { job, open } => self.failed.push((job, open)),
                    }
                }
            }
            _ => {}
        }
        for run in runs {
            *self.ran.entry((run.job, run.task.tid.get())).or_default() += 1;
            let ns = u64::from_be_bytes(run.task.argument[..8].try_into().unwrap());
            self.push(now + ns, Event::Finish { worker: party, run: run.key });
        }
        loop {
            let to = match &mut self.parties[party] {
                Party::Scheduler(it) => it.poll_transmit(now, &mut buffer),
                Party::Worker(it) => it.poll_transmit(now, &mut buffer),
                Party::Client(it) => it.poll_transmit(now, &mut buffer),
                Party::Dead => None,
            };
            let Some(to) = to else { break };
            self.send(party, usize::from(to.port()) - 1_000, &buffer);
        }
        let due = match &self.parties[party] {
            Party::Scheduler(it) => it.poll_timeout(),
            Party::Worker(it) => it.poll_timeout(),
            Party::Client(it) => it.poll_timeout(),
            Party::Dead => None,
        };
        if let Some(due) = due {
            self.push(due.max(now), Event::Wake { party });
        }
    }

    fn send(&mut self, from: usize, to: usize, datagram: &[u8]) {
        let copies =
            usize::from(!self.random.random_bool(self.trouble)) + usize::from(self.random.random_bool(self.trouble));
        for _ in 0..copies {
            let held = if self.random.random_bool(self.trouble) { self.random.random_range(0..60 * MS) } else { 0 };
            let at = self.now + 20_000 + self.random.random_range(0..1_000) + held;
            self.push(at, Event::Arrive { from, to, datagram: datagram.to_vec() });
        }
    }

    /// Runs until idle or `until`. Slots without probing poll forever.
    fn run(&mut self, until: Nanos) {
        while let Some(Reverse((at, _, event))) = self.heap.pop() {
            if at > until {
                self.heap.push(Reverse((at, 0, event)));
                break;
            }
            self.now = at;
            let party = match event {
                Event::Arrive { from, to, datagram } => {
                    let from = address(from);
                    match &mut self.parties[to] {
                        Party::Scheduler(it) => it.handle(at, from, &datagram),
                        Party::Worker(it) => it.handle(at, from, &datagram),
                        Party::Client(it) => it.handle(at, from, &datagram),
                        Party::Dead => {}
                    }
                    to
                }
                Event::Finish { worker, run } => {
                    if let Party::Worker(it) = &mut self.parties[worker] {
                        it.finish(at, run, Status::Ok);
                    }
                    worker
                }
                Event::Wake { party } => {
                    match &mut self.parties[party] {
                        Party::Scheduler(it) if it.poll_timeout().is_some_and(|due| due <= at) => it.handle_timeout(at),
                        Party::Worker(it) if it.poll_timeout().is_some_and(|due| due <= at) => it.handle_timeout(at),
                        Party::Client(it) if it.poll_timeout().is_some_and(|due| due <= at) => it.handle_timeout(at),
                        _ => continue,
                    }
                    party
                }
            };
            self.drive(party);
        }
    }

    fn scheduler(&self) -> &Scheduler {
        let Party::Scheduler(scheduler) = &self.parties[0] else { unreachable!() };
        scheduler
    }

    fn worker(&self, index: usize) -> &Worker {
        let Party::Worker(worker) = &self.parties[1 + index] else { unreachable!() };
        worker
    }

    /// Each task ran once and was reported once, and no record is left.
    fn assert_all_once(&self, jobs: &[(u32, usize)], workers: usize) {
        for &(job, tasks) in jobs {
            for tid in 0..tasks as u32 {
                assert_eq!(self.ran.get(&(job, tid)), Some(&1), "runs of {job}/{tid}");
                assert_eq!(self.reported.get(&(job, tid)), Some(&1), "reports of {job}/{tid}");
            }
        }
        assert_eq!((self.scheduler().open_tasks(), self.scheduler().unanswered()), (0, 0));
        for worker in (0..workers).map(|index| self.worker(index)) {
            assert_eq!((worker.waiting(), worker.running(), worker.unanswered()), (0, 0, 0));
        }
    }
}

#[test]
fn a_job_runs_once_and_what_is_left_over_is_cancelled() {
    let mut world = World::new(&CALM);
    let job = world.submit(100, 5 * MS);
    world.run(60_000 * MS);
    world.assert_all_once(&[(job, 100)], 4);
    let counters = world.scheduler().counters();
    assert_eq!((counters.reservations, counters.given, counters.repeated), (200, 100, 0));
    assert_eq!(counters.refused + counters.cancelled, 100);
    assert!(counters.cancelled > 50, "cancellation works: {counters:?}");
    let taken_back: u64 = (0..4).map(|index| world.worker(index).counters().cancelled).sum();
    assert!(taken_back > 50, "and reaches the queues: {taken_back}");
    assert_eq!(world.most_running, 2);
    // 100 tasks of 5 ms on 8 slots, then a last retry timer that does nothing.
    assert!((62..95).contains(&(world.now / MS)), "{} ms", world.now / MS);
}

#[test]
fn late_binding_gives_tasks_to_those_who_are_free() {
    let shape = Shape { workers: 2, slots: 1, ..CALM };
    let mut world = World::new(&shape);
    let long = world.submit(1, 1_000 * MS);
    world.run(MS);
    let short = world.submit(3, MS);
    world.run(60 * MS);
    for tid in 0..3 {
        assert_eq!(world.reported.get(&(short, tid)), Some(&1), "none waits behind the long one");
    }
    world.run(60_000 * MS);
    world.assert_all_once(&[(long, 1), (short, 3)], 2);
}

#[test]
fn without_probing_slots_ask_by_themselves() {
    let mut world = World::new(&Shape { probing: false, ..CALM });
    let job = world.submit(50, MS);
    world.run(100 * MS);
    assert!((0..50).all(|tid| world.reported.get(&(job, tid)) == Some(&1)));
    assert_eq!(world.scheduler().counters().reservations, 0);
}

#[test]
fn a_dead_workers_reservations_go_elsewhere() {
    let mut world = World::new(&CALM);
    for worker in [1, 2, 3] {
        world.parties[worker] = Party::Dead;
    }
    let job = world.submit(20, MS);
    world.run(200_000 * MS);
    assert!((0..20).all(|tid| world.reported.get(&(job, tid)) == Some(&1)));
    assert!(world.scheduler().counters().unreachable > 0);
}

#[test]
fn a_job_that_no_scheduler_takes_fails() {
    let mut world = World::new(&CALM);
    world.parties[0] = Party::Dead;
    let job = world.submit(70, MS);
    world.run(60_000 * MS);
    assert_eq!(world.failed, [(job, 70)]);
}

#[test]
fn a_job_that_never_comes_whole_is_forgotten() {
    let mut world = World::new(&CALM);
    let (client, mut buffer) = (world.parties.len() - 1, Vec::new());
    world.trouble = 1.0; // the network loses everything; this test delivers packets itself
    world.submit(70, MS);
    let Party::Client(endpoint) = &mut world.parties[client] else { unreachable!() };
    endpoint.handle_timeout(20 * MS);
    assert!(endpoint.poll_transmit(20 * MS, &mut buffer).is_some());
    let Party::Scheduler(scheduler) = &mut world.parties[0] else { unreachable!() };
    scheduler.handle(20 * MS, address(client), &buffer);
    assert_eq!(scheduler.open_tasks(), 70);
    let due = scheduler.poll_timeout().unwrap();
    assert_eq!(due, 20 * MS + scheduler::INCOMPLETE_NS);
    scheduler.handle_timeout(due);
    assert_eq!((scheduler.open_tasks(), scheduler.poll_timeout()), (0, None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn whatever_the_network_does_each_task_runs_once_and_is_reported_once(
        workers in 1usize..5, slots in 1u32..4, ratio in prop_oneof![Just(1.05), Just(2.0), Just(3.0)],
        trouble in 0.0f64..0.3, seed: u64, jobs in proptest::collection::vec(1usize..70, 1..5),
    ) {
        let mut world = World::new(&Shape { workers, slots, ratio, probing: true, trouble, seed });
        let submitted: Vec<_> = jobs.iter().map(|&tasks| {
            let job = world.submit(tasks, 2 * MS);
            world.run(world.now + 3 * MS);
            (job, tasks)
        }).collect();
        world.run(600_000 * MS);
        world.assert_all_once(&submitted, workers);
        prop_assert!(world.most_running <= slots as usize);
    }
}

#[test]
fn configurations_out_of_bounds_say_what_is_allowed() {
    let scheduler = |config| Scheduler::new(config).unwrap_err().to_string();
    let workers = vec![(address(1), 4)];
    assert!(scheduler(SchedulerConfig::new(1, Vec::new())).contains("at least one slot"));
    assert!(scheduler(SchedulerConfig { ratio: 0.5, ..SchedulerConfig::new(1, workers) }).contains("1 to 64"));
    assert!(Worker::new(WorkerConfig::new(1, 0), 0).unwrap_err().to_string().contains("65,536"));
    assert!(Client::new(ClientConfig::new(1, Vec::new())).unwrap_err().to_string().contains("at least 1"));
    let mut client = Client::new(ClientConfig::new(1, vec![address(0)])).unwrap();
    assert!(client.submit(&[]).is_err());
}
