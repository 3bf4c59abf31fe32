//! The production client with workers: each begins its next operation when the last is answered.

use super::StoreEvent;
use super::late::{Late, Lateness, TOKENS};
use crate::{Actor, Context, Wake};
use midflight_endpoint::{Endpoint, Nanos};
use midflight_store::client::{
    Change, Client, Condition, Cursor, Event, Expiry, Operation, OperationKey, Step, Update,
};
use midflight_wire::store::scan_order;
use rand::RngExt;
use rand_pcg::Pcg64;
use std::any::Any;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;

/// Share of updates among writes.
const UPDATES: f64 = 0.3;
/// Share of transactions among writes.
const TRANSACTIONS: f64 = 0.05;
/// Two numbers that only transactions change, both alike.
pub(super) const PAIR: [&str; 2] = ["{pair}x", "{pair}y"];
const EXPIRES_AFTER_MS: std::ops::Range<u64> = 1..200;
const LARGE_EVERY: u64 = 10;
const LARGE_MIN: u64 = 1_200;

/// What workers do.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Number of workers.
    pub workers: u32,
    /// Operations of each, over the process's life.
    pub operations: u32,
    /// Longest pause after each operation.
    pub think: Nanos,
    /// Share of reads.
    pub reads: f64,
}

/// What a world's clients have in common.
#[derive(Debug)]
pub struct Load {
    /// The keys.
    pub keys: Vec<String>,
}

/// The endpoint and its workers.
pub struct ClientActor {
    client: Client,
    load: Rc<Load>,
    work: Work,
    random: Pcg64,
    left: Vec<u32>,
    workers: HashMap<OperationKey, usize>,
    values: u64,
    lateness: Lateness,
}

/// Requests to a client from its user.
#[derive(Debug)]
pub enum Ask {
    /// Another operation, now.
    Do(Operation),
    /// Its workers stop.
    Stop,
    /// Delays datagrams of one kind from now on; `None`: stops that.
    Late(Option<Late>),
}

impl std::fmt::Debug for ClientActor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientActor").field("work", &self.work).finish_non_exhaustive()
    }
}

impl ClientActor {
    /// A fresh client. `random` is of this life only.
    #[must_use]
    pub fn new(client: Client, load: Rc<Load>, work: Work, mut random: Pcg64) -> Self {
        let left = vec![work.operations; work.workers as usize];
        // Every process writes unique values, so that reads identify the write they have seen.
        let values = random.random::<u64>() & !0xffff;
        Self { client, load, work, random, left, workers: HashMap::new(), values, lateness: Lateness::default() }
    }

    /// The endpoint.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Number of open operations.
    #[must_use]
    pub fn open(&self) -> usize {
        self.workers.len()
    }

    /// Sometimes an update instead that does the same, mostly to a key that expires soon.
    fn draw(&mut self) -> Operation {
        let operation = self.draw_plain();
        let random = &mut self.random;
        if operation.is_write() && random.random_bool(TRANSACTIONS) {
            return transaction(random);
        }
        if !operation.is_write() || !random.random_bool(UPDATES) {
            return operation;
        }
        let expiry = match random.random_range(0..4) {
            0 => Expiry::Keep,
            1 => Expiry::Never,
            _ => Expiry::After(random.random_range(EXPIRES_AFTER_MS)),
        };
        let key = operation.key().to_vec();
        let (condition, change) = match operation {
            Operation::Put { value, .. } => (Condition::Always, Change::Set(value)),
            Operation::Cas { expected, new, .. } => (Condition::Equals(expected), Change::Set(new)),
            Operation::Create { value, .. } => (Condition::Absent, Change::Set(value)),
            // A counter that expires would be removed at a value that is unknown here.
            other => return other,
        };
        Operation::Update { key, update: Update { condition, change, expiry, returns: true } }
    }

    fn draw_plain(&mut self) -> Operation {
        let random = &mut self.random;
        let key = self.load.keys[random.random_range(0..self.load.keys.len())].clone().into_bytes();
        if random.random_bool(self.work.reads) {
            return match random.random_range(0..10) {
                0 => Operation::Exists { key },
                1 => Operation::Scan { from: Cursor::new(scan_order(&key), 0) },
                _ => Operation::Get { key },
            };
        }
        self.values += 1;
        // Every third key is a counter.
        if key.last().is_some_and(|last| last % 3 == 0) {
            return match random.random_range(0..10) {
                0 => Operation::Delete { key },
                _ => Operation::Incr { key, by: random.random_range(1..5) },
            };
        }
        let value = value_of(self.values);
        match random.random_range(0..10) {
            0 => Operation::Delete { key },
            1 | 2 => Operation::Cas { key, expected: value_of(self.values - 1), new: value },
            3 => Operation::Create { key, value },
            _ => Operation::Put { key, value },
        }
    }

    fn work(&mut self, context: &mut Context<'_>, worker: usize) {
        if self.left[worker] == 0 {
            return;
        }
        let operation = self.draw();
        if let Some(key) = self.submit(context, operation) {
            self.left[worker] -= 1;
            self.workers.insert(key, worker);
        } else {
            context.after(self.work.think + 1, worker as u64);
        }
    }

    fn submit(&mut self, context: &mut Context<'_>, operation: Operation) -> Option<OperationKey> {
        let key = self.client.submit(context.now(), operation.clone()).ok()?;
        super::record(context, StoreEvent::Begun { key, operation });
        Some(key)
    }

    fn drive(&mut self, context: &mut Context<'_>) {
        while let Some(event) = self.client.poll_event() {
            let Event::Done { key, outcome } = event else { continue };
            super::record(context, StoreEvent::Ended { key, outcome });
            if let Some(worker) = self.workers.remove(&key).filter(|&worker| worker < self.left.len()) {
                let pause = self.random.random_range(0..=self.work.think);
                context.after(pause, worker as u64);
            }
        }
        let mut buffer = Vec::new();
        while let Some(to) = self.client.poll_transmit(context.now(), &mut buffer) {
            self.lateness.send(context, to, &buffer);
        }
        match self.client.poll_timeout() {
            Some(due) => context.wake_at(due),
            None => context.sleep(),
        }
    }
}

/// Adds to both numbers; or must not, because of a condition.
fn transaction(random: &mut Pcg64) -> Operation {
    let change = Change::Add(random.random_range(1..5));
    let mut steps = PAIR.map(|key| Step::new(key, Update { change: change.clone(), ..Update::default() })).to_vec();
    if random.random_bool(0.2) {
        steps.push(Step::check("{pair}none", Condition::Present));
    }
    Operation::Transact { steps }
}

/// Some have more bytes than a packet.
fn value_of(number: u64) -> Vec<u8> {
    let mut value = format!("{number:x}").into_bytes();
    if number.is_multiple_of(LARGE_EVERY) {
        let length = LARGE_MIN * (1 + number / LARGE_EVERY % 3);
        value.resize(length as usize, b'-');
    }
    value
}

impl Actor for ClientActor {
    fn start(&mut self, context: &mut Context<'_>) {
        for worker in 0..self.left.len() {
            let pause = self.random.random_range(0..=self.work.think);
            context.after(pause, worker as u64);
        }
        self.drive(context);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        self.client.handle(context.now(), from, datagram);
        self.drive(context);
    }

    fn wake(&mut self, context: &mut Context<'_>, wake: Wake) {
        match wake {
            Wake::Time => self.client.handle_timeout(context.now()),
            Wake::Token(token) if token >= TOKENS => self.lateness.due(context, token),
            Wake::Token(worker) => self.work(context, worker as usize),
        }
        self.drive(context);
    }

    fn command(&mut self, context: &mut Context<'_>, command: Box<dyn Any>) {
        match command.downcast().map(|ask| *ask) {
            Ok(Ask::Do(operation)) => {
                if let Some(key) = self.submit(context, operation) {
                    self.workers.insert(key, usize::MAX);
                }
            }
            Ok(Ask::Stop) => self.left.fill(0),
            Ok(Ask::Late(late)) => self.lateness.present = late,
            Err(_) => return,
        }
        self.drive(context);
    }
}
