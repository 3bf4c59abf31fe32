//! The worker: one queue of reservations for all its slots.

use super::retry::Requests;
use super::wire::{self, Done, Given, Number, Operation, Packet, RECORDS_MAX};
use super::{ConfigError, RetryConfig};
use midflight_endpoint::{Endpoint, Nanos};
use midflight_wire::tasks::{Status, TaskInfo};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;

/// Maximum waiting reservations; those beyond are not acknowledged.
pub const RESERVATIONS_MAX: usize = 1 << 20;

/// A worker's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerConfig {
    /// Tasks run at once: 1 to 65,536.
    pub slots: u32,
    /// Without probing: the schedulers that slots poll, round robin. Empty with probing.
    pub ask: Vec<SocketAddr>,
    /// Without probing: nanoseconds from a "no task" answer to the next request. Default 50 µs.
    pub poll: Nanos,
    /// A random seed; it distinguishes the requests of a restarted worker.
    pub seed: u64,
    /// Retry policy.
    pub retry: RetryConfig,
}

impl WorkerConfig {
    /// Uses probing.
    #[must_use]
    pub fn new(seed: u64, slots: u32) -> Self {
        Self { slots, ask: Vec::new(), poll: 50_000, seed, retry: RetryConfig::default() }
    }
}

/// Identifies a run on this worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunKey {
    /// Slot, from 0.
    pub slot: u32,
    /// Number of the run on this slot, from 1.
    pub run: u32,
}

/// A task to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// Key for [`Worker::finish`].
    pub key: RunKey,
    /// The task as the client described it.
    pub task: TaskInfo,
    /// The client's identity.
    pub client: u64,
    /// The client's number for the job.
    pub job: u32,
    /// When its reservation arrived, by the driver's clock; without probing, equals `asked`.
    pub reserved: Nanos,
    /// When its slot asked for the task.
    pub asked: Nanos,
}

/// An event of a worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// Run this task.
    Run(Run),
}

/// A worker's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reservations received.
    pub reservations: u64,
    /// Reservations cancelled before they asked.
    pub cancelled: u64,
    /// Tasks run.
    pub runs: u64,
    /// "No task" answers.
    pub nothing: u64,
    /// Requests and reports no scheduler answered.
    pub unreachable: u64,
    /// Datagrams rejected: malformed, or not for a worker.
    pub rejected: u64,
    /// Requests retransmitted.
    pub repeated: u64,
}

#[derive(Clone, Copy, Debug)]
enum Slot {
    Free,
    Asking,
    Running { scheduler: SocketAddr, task: u64 },
}

#[derive(Debug)]
enum Ask {
    Task { slot: u32, number: u64, reserved: Nanos, asked: Nanos },
    Done(Vec<Done>),
}

/// The worker's state machine.
#[derive(Debug)]
pub struct Worker {
    config: WorkerConfig,
    slots: Vec<(Slot, u32)>,
    free: Vec<u32>,
    /// Includes cancelled reservations; `waiting` does not.
    queue: VecDeque<(SocketAddr, u64)>,
    waiting: HashMap<(SocketAddr, u64), Nanos>,
    /// Without probing: slots waiting to poll.
    sleeping: BTreeSet<(Nanos, u32)>,
    turn: usize,
    requests: Requests<Ask>,
    acks: VecDeque<(SocketAddr, u64, Operation)>,
    to_tell: BTreeMap<SocketAddr, Vec<Done>>,
    events: VecDeque<Event>,
    counters: Counters,
}

impl Worker {
    /// Creates a worker with all slots free.
    ///
    /// # Errors
    /// If the configuration is out of bounds.
    pub fn new(config: WorkerConfig, now: Nanos) -> Result<Self, ConfigError> {
        config.retry.check()?;
        if !(1..=65_536).contains(&config.slots) {
            return Err(ConfigError::OutOfBounds { what: "slots", allowed: "1 to 65,536" });
        }
        if config.poll < 1_000 {
            return Err(ConfigError::OutOfBounds { what: "poll", allowed: "1 us or more" });
        }
        let mut worker = Self {
            slots: vec![(Slot::Free, 0); config.slots as usize],
            free: (0..config.slots).rev().collect(),
            queue: VecDeque::new(),
            waiting: HashMap::new(),
            sleeping: BTreeSet::new(),
            turn: 0,
            requests: Requests::new(config.retry, config.seed << 32 | 1),
            acks: VecDeque::new(),
            to_tell: BTreeMap::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            config,
        };
        worker.fill(now);
        Ok(worker)
    }

    /// Ends a run; its slot takes the next task.
    pub fn finish(&mut self, now: Nanos, run: RunKey, status: Status) {
        let Some((slot, number)) = self.slots.get_mut(run.slot as usize) else { return };
        let (Slot::Running { scheduler, task }, true) = (*slot, *number == run.run) else { return };
        *slot = Slot::Free;
        let done = Done { task: task.into(), status: status as u8, reserved: [0; 3] };
        self.to_tell.entry(scheduler).or_default().push(done);
        self.free.push(run.slot);
        self.fill(now);
    }

    /// The counters so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { repeated: self.requests.repeated, ..self.counters }
    }

    /// Number of slots.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Waiting reservations.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Running tasks.
    #[must_use]
    pub fn running(&self) -> usize {
        self.slots.iter().filter(|(slot, _)| matches!(slot, Slot::Running { .. })).count()
    }

    /// Requests awaiting an answer.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        self.requests.len()
    }

    fn on_reserve(&mut self, now: Nanos, from: SocketAddr, request: u64, number: u64) {
        if number == 0 || self.waiting.len() >= RESERVATIONS_MAX {
            self.counters.rejected += 1;
            return;
        }
        self.acks.push_back((from, request, Operation::ReserveAck));
        if let std::collections::hash_map::Entry::Vacant(place) = self.waiting.entry((from, number)) {
            place.insert(now);
            self.queue.push_back((from, number));
            self.counters.reservations += 1;
            self.fill(now);
        }
    }

    fn on_cancel(&mut self, from: SocketAddr, request: u64, numbers: &[Number]) {
        for number in numbers {
            if self.waiting.remove(&(from, number.number.get())).is_some() {
                self.counters.cancelled += 1;
            }
        }
        self.acks.push_back((from, request, Operation::CancelAck));
    }

    fn fill(&mut self, now: Nanos) {
        while let Some(&slot) = self.free.last() {
            let (scheduler, number, reserved) = if self.config.ask.is_empty() {
                let Some(next) = self.queue.pop_front() else { return };
                let Some(reserved) = self.waiting.remove(&next) else { continue };
                (next.0, next.1, reserved)
            } else {
                self.turn += 1;
                (self.config.ask[self.turn % self.config.ask.len()], 0, now)
            };
            self.free.pop();
            self.slots[slot as usize].0 = Slot::Asking;
            self.requests.ask(scheduler, Ask::Task { slot, number, reserved, asked: now });
        }
    }

    fn on_task(&mut self, now: Nanos, from: SocketAddr, request: u64, given: Option<(&Given, &TaskInfo)>) {
        let Some(Ask::Task { slot, reserved, asked, .. }) = self.requests.answered(request, from) else { return };
        let Some((given, task)) = given else {
            self.counters.nothing += 1;
            return self.nothing(now, slot);
        };
        self.counters.runs += 1;
        let (state, run) = &mut self.slots[slot as usize];
        *state = Slot::Running { scheduler: from, task: given.task.get() };
        *run += 1;
        let (key, client, job) = (RunKey { slot, run: *run }, given.client.get(), given.job.get());
        self.events.push_back(Event::Run(Run { key, task: *task, client, job, reserved, asked }));
    }

    fn nothing(&mut self, now: Nanos, slot: u32) {
        self.slots[slot as usize].0 = Slot::Free;
        if self.config.ask.is_empty() {
            self.free.push(slot);
            self.fill(now);
        } else {
            self.sleeping.insert((now + self.config.poll, slot));
        }
    }

    fn report_to_schedulers(&mut self) {
        while let Some((scheduler, done)) = self.to_tell.pop_first() {
            for done in done.chunks(RECORDS_MAX) {
                self.requests.ask(scheduler, Ask::Done(done.to_vec()));
            }
        }
    }
}

impl Endpoint for Worker {
    type Event = Event;

    fn handle(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8]) {
        match wire::parse(datagram) {
            Ok((request, Packet::Reserve(number))) => self.on_reserve(now, from, request, number),
            Ok((request, Packet::Task(given))) => self.on_task(now, from, request, given),
            Ok((request, Packet::Cancel(numbers))) => self.on_cancel(from, request, numbers),
            Ok((request, Packet::Ack(_))) => {
                self.requests.answered(request, from);
            }
            _ => self.counters.rejected += 1,
        }
    }

    fn handle_timeout(&mut self, now: Nanos) {
        for (_, ask) in self.requests.expire(now) {
            self.counters.unreachable += 1;
            if let Ask::Task { slot, .. } = ask {
                self.nothing(now, slot);
            }
        }
        while let Some(&(due, slot)) = self.sleeping.first()
            && due <= now
        {
            self.sleeping.pop_first();
            self.free.push(slot);
        }
        self.fill(now);
    }

    fn poll_transmit(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        if let Some((to, request, operation)) = self.acks.pop_front() {
            wire::write(buffer, operation, request);
            return Some(to);
        }
        self.report_to_schedulers();
        let (request, to, ask) = self.requests.next_to_send(now)?;
        match ask {
            Ask::Task { number, .. } => {
                wire::write(buffer, Operation::GetTask, request);
                wire::write_record(buffer, &Number { number: (*number).into() });
            }
            Ask::Done(ends) => {
                wire::write(buffer, Operation::Done, request);
                ends.iter().for_each(|end| wire::write_record(buffer, end));
            }
        }
        Some(to)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        let asks = self.sleeping.first().map(|&(due, _)| due);
        [self.requests.next_due(), asks].into_iter().flatten().min()
    }
}
