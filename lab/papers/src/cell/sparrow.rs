//! A cell of Sparrow: its world.

use super::closed::Closed;
use super::testbed::{hardware, host};
use super::{Cell, CellError, CellResult, Jobs, Load, Meter, Sampling};
use crate::calibration::*;
use crate::schemes::sparrow::{Client, Scheduler, Shared, Thread, Worker, books};
use midflight_baselines::sparrow::{self, ClientConfig, RetryConfig, SchedulerConfig, WorkerConfig};
use midflight_sim::Actor;
use midflight_sim::Place;
use midflight_sim::{Faults, HostId, World};
use rand::RngExt;
use std::net::SocketAddr;
use std::rc::Rc;

/// Nothing is lost here: a late answer is waiting in a program.
const RETRY: RetryConfig = RetryConfig { first: 1_000_000_000, tries: 10 };
/// Poll interval of slots without probing, as for Bolt's executors.
const POLL_NS: u64 = 50_000;

/// Runs until idle or the cell's time is over; slots without probing poll forever.
pub(super) fn run_out(cell: &Cell, world: &mut World, is_open: impl Fn(&World) -> bool) {
    let (duration, deadline) = (cell.duration_ms * 1_000_000, (cell.duration_ms + cell.drain_ms) * 1_000_000);
    world.run(duration, |_| false);
    while is_open(world) && world.now() < deadline {
        let next = world.now() + 10_000_000;
        world.run(next.min(deadline), |_| false);
    }
}

struct Builder<'a> {
    cell: &'a Cell,
    sampling: &'a Sampling,
    costs: SparrowCosts,
    world: World,
    books: Shared,
}

pub(super) fn run(cell: &Cell, sampling: &Sampling, costs: &SparrowCosts) -> Result<CellResult, CellError> {
    if let Load::Sw2 = cell.load {
        return Err(CellError::Unfit { scheme: "sparrow", load: "sw2" });
    }
    let world = World::with_hardware(cell.seed, Faults::INSTANT, &hardware());
    let mut builder = Builder { cell, sampling, costs: *costs, world, books: books(Meter::new(cell)) };
    builder.build()?;
    let Builder { mut world, books, .. } = builder;
    run_out(cell, &mut world, |_| books.borrow().meter.open() > 0);
    let (events, network) = (world.events(), *world.network_counters());
    let mut books = books.borrow_mut();
    books.meter.count("datagrams", network.sent);
    books.meter.count("dropped", network.receive_buffer_full + network.switch_queue_full);
    Ok(books.meter.result(events))
}

impl Builder<'_> {
    fn build(&mut self) -> Result<(), CellError> {
        let clients: Vec<HostId> = (0..self.cell.load.clients()).map(|_| self.world.add_host(host())).collect();
        let mut schedulers = Vec::new();
        if !self.sampling.probing {
            schedulers = self.schedulers(&clients, &[])?;
        }
        let ask = schedulers.clone();
        let workers = self.workers(&ask)?;
        if self.sampling.probing {
            schedulers = self.schedulers(&clients, &workers)?;
        }
        let jobs = Jobs::new(self.cell)?;
        for (number, host) in clients.into_iter().enumerate() {
            self.client(number, host, &schedulers, &jobs)?;
        }
        Ok(())
    }

    fn workers(&mut self, ask: &[SocketAddr]) -> Result<Vec<(SocketAddr, u32)>, CellError> {
        let mut workers = Vec::new();
        for (group, g) in self.cell.cluster.groups.iter().enumerate() {
            for _ in 0..g.nodes {
                let host = self.world.add_host(host());
                // Each worker starts with another scheduler.
                let (mut ask, by) = (ask.to_vec(), workers.len());
                if !ask.is_empty() {
                    let first = by % ask.len();
                    ask.rotate_left(first);
                }
                let config =
                    WorkerConfig { ask, poll: POLL_NS, retry: RETRY, ..WorkerConfig::new(by as u64, g.executors) };
                sparrow::Worker::new(config.clone(), 0).map_err(bad)?;
                let (costs, books) = (self.costs, Rc::clone(&self.books));
                let node = self.world.add_actor(
                    Place::Host(host),
                    Box::new(move |birth| {
                        let endpoint = sparrow::Worker::new(config.clone(), birth.now).expect("checked above");
                        let runs = vec![None; config.slots as usize];
                        let worker = Worker { endpoint, costs, books: Rc::clone(&books), group, runs };
                        Box::new(Thread::new(worker)) as Box<dyn Actor>
                    }),
                );
                workers.push((self.world.address(node), g.executors));
            }
        }
        Ok(workers)
    }

    fn schedulers(&mut self, clients: &[HostId], workers: &[(SocketAddr, u32)]) -> Result<Vec<SocketAddr>, CellError> {
        let mut schedulers = Vec::new();
        for number in 0..self.sampling.schedulers as usize {
            let host =
                if self.sampling.on_clients { clients[number % clients.len()] } else { self.world.add_host(host()) };
            let Sampling { ratio, probing, .. } = *self.sampling;
            let config = SchedulerConfig { ratio, probing, retry: RETRY, ..SchedulerConfig::new(0, workers.to_vec()) };
            sparrow::Scheduler::new(config.clone()).map_err(bad)?;
            let (costs, books) = (self.costs, Rc::clone(&self.books));
            let node = self.world.add_actor(
                Place::Host(host),
                Box::new(move |birth| {
                    let config = SchedulerConfig { seed: birth.random.random(), ..config.clone() };
                    let endpoint = sparrow::Scheduler::new(config).expect("checked above");
                    Box::new(Thread::new(Scheduler { endpoint, costs, books: Rc::clone(&books) })) as Box<dyn Actor>
                }),
            );
            schedulers.push(self.world.address(node));
        }
        Ok(schedulers)
    }

    fn client(&mut self, number: usize, host: HostId, schedulers: &[SocketAddr], jobs: &Jobs) -> Result<(), CellError> {
        let mut schedulers = schedulers.to_vec();
        let first = number % schedulers.len();
        schedulers.rotate_left(first);
        if self.sampling.on_clients {
            schedulers.truncate(1); // its own
        }
        let config = ClientConfig { retry: RETRY, ..ClientConfig::new(number as u64 + 1, schedulers) };
        sparrow::Client::new(config.clone()).map_err(bad)?;
        let (books, jobs, closed) = (Rc::clone(&self.books), jobs.clone(), Closed::of(self.cell, 1));
        self.world.add_actor(
            Place::Host(host),
            Box::new(move |_| {
                let endpoint = sparrow::Client::new(config.clone()).expect("checked above");
                let (books, jobs) = (Rc::clone(&books), jobs.clone());
                let client = Client { endpoint, books, number: number as u32, jobs, next: None, closed };
                Box::new(Thread::new(client)) as Box<dyn Actor>
            }),
        );
        Ok(())
    }
}

fn bad(error: sparrow::ConfigError) -> CellError {
    CellError::Bad(format!("scheme: {error}"))
}
