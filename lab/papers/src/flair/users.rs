//! Clients in a closed loop, as many on a machine as share its production client.

use super::cell::Cell;
use midflight_endpoint::{Endpoint, Nanos};
use midflight_sim::{Actor, Context, Wake};
use midflight_store::client::{Client, Event, Operation, OperationKey};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};
use rand_pcg::Pcg64;
use std::any::Any;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;

/// Both papers: keys of 24 bytes, values of 1 KB.
pub(super) const VALUE_BYTES: usize = 1_000;

fn key(number: u32) -> Vec<u8> {
    format!("user{number:020}").into_bytes()
}

/// What each client of a cell does.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    reads: f64,
    keys: u32,
    zipf: Option<Zipf<f64>>,
    seed: u64,
}

impl Workload {
    pub(super) fn of(cell: &Cell) -> Self {
        let zipf = (cell.zipf > 0.0).then(|| Zipf::new(f64::from(cell.keys), cell.zipf));
        let zipf = zipf.map(|zipf| zipf.expect("`Cell::check` bounds both"));
        Self { reads: cell.reads, keys: cell.keys, zipf, seed: cell.seed }
    }

    fn draw(&self, random: &mut Pcg64) -> Operation {
        let number = match &self.zipf {
            // Ranks from 1. Frequent keys are not neighbours: the store hashes keys.
            Some(zipf) => zipf.sample(random) as u32 - 1,
            None => random.random_range(0..self.keys),
        };
        let key = key(number);
        if random.random_bool(self.reads) {
            Operation::Get { key }
        } else {
            Operation::Put { key, value: vec![7; VALUE_BYTES] }
        }
    }
}

/// Orders to a machine.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// Its clients begin.
    Begin,
}

/// Records of a machine.
#[derive(Clone, Copy, Debug)]
pub(super) enum Record {
    /// It has written its keys.
    Loaded,
    /// An operation has ended.
    Ended { is_read: bool, took: Nanos, failed: bool },
}

struct Open {
    worker: usize,
    began: Nanos,
    is_read: bool,
}

/// A machine with clients.
pub(super) struct Users {
    client: Client,
    workload: Workload,
    /// Random numbers of each client.
    clients: Vec<Pcg64>,
    open: HashMap<OperationKey, Open>,
    /// Keys to write before the run; every `step`-th.
    load: Range<u32>,
    step: u32,
    is_loading: bool,
    /// A key could not be written.
    is_short: bool,
}

impl Users {
    /// Machine `place` of `machines`.
    pub(super) fn new(client: Client, workload: Workload, clients: Range<u32>, place: u32, machines: u32) -> Self {
        let random = |number| Pcg64::seed_from_u64(workload.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
        let clients = clients.map(|number| random(u64::from(number))).collect();
        let load = place..workload.keys;
        Self {
            client,
            workload,
            clients,
            open: HashMap::new(),
            load,
            step: machines,
            is_loading: true,
            is_short: false,
        }
    }

    fn submit(&mut self, now: Nanos, worker: usize, operation: Operation) {
        let is_read = matches!(operation, Operation::Get { .. });
        let key = self.client.submit(now, operation).expect("a client has an operation for each of its users");
        self.open.insert(key, Open { worker, began: now, is_read });
    }

    fn load(&mut self, now: Nanos, worker: usize) {
        let number = self.load.start;
        if number < self.load.end {
            self.load.start = number.saturating_add(self.step);
            self.submit(now, worker, Operation::Put { key: key(number), value: vec![7; VALUE_BYTES] });
        }
    }

    fn work(&mut self, now: Nanos, worker: usize) {
        let operation = self.workload.draw(&mut self.clients[worker]);
        self.submit(now, worker, operation);
    }

    fn drive(&mut self, context: &mut Context<'_>) {
        let now = context.now();
        while let Some(event) = self.client.poll_event() {
            let Event::Done { key, outcome } = event else { continue };
            let Some(Open { worker, began, is_read }) = self.open.remove(&key) else { continue };
            if !self.is_loading {
                context.record(&Record::Ended { is_read, took: now - began, failed: outcome.is_err() });
                self.work(now, worker);
                continue;
            }
            // A store that lacks a key is not loaded.
            self.is_short |= outcome.is_err();
            self.load(now, worker);
            if self.open.is_empty() && !self.is_short {
                context.record(&Record::Loaded);
            }
        }
        context.drive(&mut self.client);
    }
}

impl Actor for Users {
    fn start(&mut self, context: &mut Context<'_>) {
        for worker in 0..self.clients.len() {
            self.load(context.now(), worker);
        }
        if self.open.is_empty() {
            context.record(&Record::Loaded);
        }
        self.drive(context);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        self.client.handle(context.now(), from, datagram);
        self.drive(context);
    }

    fn wake(&mut self, context: &mut Context<'_>, _wake: Wake) {
        self.client.handle_timeout(context.now());
        self.drive(context);
    }

    fn command(&mut self, context: &mut Context<'_>, command: Box<dyn Any>) {
        if let Ok(Order::Begin) = command.downcast().map(|order| *order) {
            self.is_loading = false;
            (0..self.clients.len()).for_each(|worker| self.work(context.now(), worker));
            self.drive(context);
        }
    }
}
