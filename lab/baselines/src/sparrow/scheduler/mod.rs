//! The scheduler: places reservations and gives each task to the reservation that asks first.

mod config;
mod job;

pub use config::SchedulerConfig;

use super::ConfigError;
use super::retry::Requests;
use super::sampling::{Sampler, reservations};
use super::wire::{self, Done, Ended, Given, JOB_MAX, Number, Operation, Packet, Part, RECORDS_MAX};
use job::{EndedJobs, Job, Reservation};
use midflight_endpoint::{Endpoint, Nanos};
use midflight_wire::tasks::TaskInfo;
use rand::RngExt;
use rand_pcg::Pcg64;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;

/// Maximum unfinished tasks, over all jobs. Jobs beyond are not acknowledged, so their clients retry.
pub const TASKS_MAX: usize = 4 << 20;
/// Clients whose ended jobs are remembered.
const CLIENTS_MAX: usize = 65_536;
/// An incomplete job is dropped after this time: its client has given up or died.
pub const INCOMPLETE_NS: Nanos = 60_000_000_000;
/// A task's number is its job's, shifted by this many bits, plus its index.
const PLACE_BITS: u32 = JOB_MAX.trailing_zeros();

/// An event of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A job has arrived completely and its reservations are being placed.
    Placed {
        /// The client's identity.
        client: u64,
        /// The client's number for the job.
        job: u32,
        /// Number of tasks.
        tasks: u32,
    },
}

/// A scheduler's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Jobs that arrived completely.
    pub jobs: u64,
    /// Reservations placed.
    pub reservations: u64,
    /// Tasks given to workers.
    pub given: u64,
    /// Requests answered with "no task".
    pub refused: u64,
    /// Reservations cancelled.
    pub cancelled: u64,
    /// Reservations never acknowledged by a worker.
    pub unreachable: u64,
    /// Datagrams rejected: malformed, or not for a scheduler.
    pub rejected: u64,
    /// Requests retransmitted.
    pub repeated: u64,
}

#[derive(Debug)]
enum Ask {
    Reserve(u64),
    Cancel(Vec<u64>),
    Ended(Vec<Ended>),
}

#[derive(Debug)]
enum Answer {
    Ack(Operation),
    Task(Option<u64>),
}

/// The scheduler's state machine.
#[derive(Debug)]
pub struct Scheduler {
    config: SchedulerConfig,
    executors: Vec<u32>,
    sampler: Sampler,
    random: Pcg64,
    jobs: HashMap<u64, Job>,
    by_client: HashMap<(u64, u32), u64>,
    ended: HashMap<u64, EndedJobs>,
    clients: VecDeque<u64>,
    next_job: u64,
    /// In the order of the jobs' first packets.
    incomplete: VecDeque<(Nanos, u64)>,
    reservations: HashMap<u64, Reservation>,
    next_reservation: u64,
    /// Without probing: jobs with unassigned tasks, and the task given to each request.
    waiting: VecDeque<u64>,
    unbound: HashMap<(SocketAddr, u64), u64>,
    unbound_of: HashMap<u64, (SocketAddr, u64)>,
    open_tasks: usize,
    requests: Requests<Ask>,
    answers: VecDeque<(SocketAddr, u64, Answer)>,
    to_tell: BTreeMap<SocketAddr, Vec<Ended>>,
    events: VecDeque<Event>,
    counters: Counters,
}

impl Scheduler {
    /// Creates a scheduler without jobs.
    ///
    /// # Errors
    /// If the configuration is out of bounds.
    pub fn new(config: SchedulerConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let mut random = Pcg64::new(u128::from(config.seed), 0x5350);
        let workers = config.workers.iter().enumerate();
        let executors: Vec<u32> =
            workers.flat_map(|(worker, &(_, slots))| (0..slots).map(move |_| worker as u32)).collect();
        // Starts at a random number, so that a restarted scheduler does not recognize its predecessor's numbers. A job's number has 44 bits
        // without the task index.
        let first = u64::from(random.random::<u32>()) << 11 | 1;
        Ok(Self {
            sampler: Sampler::new(executors.len()),
            executors,
            random,
            jobs: HashMap::new(),
            by_client: HashMap::new(),
            ended: HashMap::new(),
            clients: VecDeque::new(),
            next_job: first,
            incomplete: VecDeque::new(),
            reservations: HashMap::new(),
            next_reservation: first,
            waiting: VecDeque::new(),
            unbound: HashMap::new(),
            unbound_of: HashMap::new(),
            open_tasks: 0,
            requests: Requests::new(config.retry, first),
            answers: VecDeque::new(),
            to_tell: BTreeMap::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            config,
        })
    }

    /// The counters so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { repeated: self.requests.repeated, ..self.counters }
    }

    /// Tasks not yet ended.
    #[must_use]
    pub fn open_tasks(&self) -> usize {
        self.open_tasks
    }

    /// Requests awaiting an answer.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        self.requests.len()
    }

    fn on_submit(&mut self, now: Nanos, from: SocketAddr, request: u64, part: &Part, tasks: &[TaskInfo]) {
        let name = (part.client.get(), part.job.get());
        if !self.ended.get(&name.0).is_some_and(|ended| ended.contains(name.1)) {
            let total = part.total.get() as usize;
            let Some(key) = self.job(now, name, from, total) else { return };
            let Some(job) = self.jobs.get_mut(&key) else { return };
            if job.tasks.len() != total {
                self.counters.rejected += 1; // another job with the same name
                return;
            }
            for (place, task) in (part.first.get() as usize..).zip(tasks) {
                if job.tasks[place].is_none() {
                    job.tasks[place] = Some(*task);
                    job.missing -= 1;
                    if job.missing == 0 {
                        if self.incomplete.back().is_some_and(|&(_, last)| last == key) {
                            self.incomplete.pop_back(); // like most jobs, it came in one packet
                        }
                        self.place(key);
                        break;
                    }
                }
            }
        }
        self.answers.push_back((from, request, Answer::Ack(Operation::SubmitAck)));
    }

    /// `None` if there is no room.
    fn job(&mut self, now: Nanos, name: (u64, u32), address: SocketAddr, total: usize) -> Option<u64> {
        if let Some(&key) = self.by_client.get(&name) {
            return Some(key);
        }
        if self.open_tasks + total > TASKS_MAX {
            return None;
        }
        let key = self.next_job;
        self.next_job += 1;
        self.open_tasks += total;
        let (client, job) = name;
        let new = Job {
            client,
            address,
            job,
            tasks: vec![None; total],
            missing: total,
            next: 0,
            done: vec![false; total],
            open: total,
            reservations: Vec::new(),
        };
        self.jobs.insert(key, new);
        self.by_client.insert(name, key);
        self.incomplete.push_back((now + INCOMPLETE_NS, key));
        Some(key)
    }

    fn forget_incomplete(&mut self, now: Nanos) {
        while let Some(&(due, key)) = self.incomplete.front()
            && due <= now
        {
            self.incomplete.pop_front();
            if self.jobs.get(&key).is_some_and(|job| job.missing > 0)
                && let Some(job) = self.jobs.remove(&key)
            {
                self.open_tasks -= job.open;
                self.by_client.remove(&(job.client, job.job));
            }
        }
    }

    fn place(&mut self, key: u64) {
        let Some(job) = self.jobs.get(&key) else { return };
        let tasks = job.tasks.len();
        self.counters.jobs += 1;
        self.events.push_back(Event::Placed { client: job.client, job: job.job, tasks: tasks as u32 });
        if self.config.probing {
            self.reserve(key, reservations(tasks, self.config.ratio));
        } else {
            self.waiting.push_back(key);
        }
    }

    fn reserve(&mut self, key: u64, count: usize) {
        let Self { sampler, random, executors, config, reservations, requests, jobs, next_reservation, .. } = self;
        let Some(job) = jobs.get_mut(&key) else { return };
        sampler.draw(count, random, |executor| {
            let (number, worker) = (*next_reservation, executors[executor as usize]);
            *next_reservation += 1;
            let placing = Some(requests.ask(config.workers[worker as usize].0, Ask::Reserve(number)));
            reservations.insert(number, Reservation { job: key, worker, placing, asked: None });
            job.reservations.push(number);
        });
        self.counters.reservations += count as u64;
    }

    /// A repeated request gets the same answer.
    fn on_get_task(&mut self, from: SocketAddr, request: u64, number: u64) {
        let task = if number == 0 { self.any_task(from, request) } else { self.task_of(from, request, number) };
        self.answers.push_back((from, request, Answer::Task(task)));
    }

    fn task_of(&mut self, from: SocketAddr, request: u64, number: u64) -> Option<u64> {
        let reservation = self.reservations.get_mut(&number)?;
        if self.config.workers[reservation.worker as usize].0 != from {
            return None;
        }
        if let Some(placing) = reservation.placing.take() {
            self.requests.forget(placing); // GET_TASK also acknowledges the reservation
        }
        if let Some((by, task)) = reservation.asked {
            return task.filter(|_| by == request);
        }
        let key = reservation.job;
        let job = self.jobs.get_mut(&key)?;
        let task = (job.unassigned() > 0).then_some(key << PLACE_BITS | job.next as u64);
        reservation.asked = Some((request, task));
        self.give(key, task);
        task
    }

    /// Without probing: the oldest task of any job.
    fn any_task(&mut self, from: SocketAddr, request: u64) -> Option<u64> {
        if let Some(&task) = self.unbound.get(&(from, request)) {
            return Some(task);
        }
        let Some(&key) = self.waiting.front() else {
            self.give(0, None);
            return None;
        };
        let task = key << PLACE_BITS | self.jobs.get(&key)?.next as u64;
        self.unbound.insert((from, request), task);
        self.unbound_of.insert(task, (from, request));
        self.give(key, Some(task));
        Some(task)
    }

    fn give(&mut self, key: u64, task: Option<u64>) {
        let (Some(_), Some(job)) = (task, self.jobs.get_mut(&key)) else {
            self.counters.refused += 1;
            return;
        };
        self.counters.given += 1;
        job.next += 1;
        if job.unassigned() == 0 {
            if !self.config.probing {
                self.waiting.pop_front();
            }
            self.cancel_rest(key);
        }
    }

    /// Proactive cancellation.
    fn cancel_rest(&mut self, key: u64) {
        let Some(job) = self.jobs.get(&key) else { return };
        let mut by_worker: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for &number in &job.reservations {
            if let Some(reservation) = self.reservations.get_mut(&number)
                && reservation.asked.is_none()
            {
                reservation.asked = Some((0, None));
                if let Some(placing) = reservation.placing.take() {
                    self.requests.forget(placing);
                }
                by_worker.entry(reservation.worker).or_default().push(number);
                self.counters.cancelled += 1;
            }
        }
        for (worker, numbers) in by_worker {
            for numbers in numbers.chunks(RECORDS_MAX) {
                self.requests.ask(self.config.workers[worker as usize].0, Ask::Cancel(numbers.to_vec()));
            }
        }
    }

    fn on_done(&mut self, from: SocketAddr, request: u64, ends: &[Done]) {
        for end in ends {
            self.task_ended(end.task.get(), end.status);
        }
        self.answers.push_back((from, request, Answer::Ack(Operation::DoneAck)));
    }

    fn task_ended(&mut self, task: u64, status: u8) {
        let (key, place) = (task >> PLACE_BITS, (task & (u64::from(JOB_MAX) - 1)) as usize);
        let Some(job) = self.jobs.get_mut(&key) else { return };
        if place >= job.next || std::mem::replace(&mut job.done[place], true) {
            return;
        }
        let ended = Ended { job: job.job.into(), tid: (place as u32).into(), status, reserved: [0; 3] };
        self.to_tell.entry(job.address).or_default().push(ended);
        job.open -= 1;
        self.open_tasks -= 1;
        if let Some(asked) = self.unbound_of.remove(&task) {
            self.unbound.remove(&asked);
        }
        if job.open == 0 {
            self.job_ended(key);
        }
    }

    fn job_ended(&mut self, key: u64) {
        let Some(job) = self.jobs.remove(&key) else { return };
        for number in &job.reservations {
            if let Some(Reservation { placing: Some(placing), .. }) = self.reservations.remove(number) {
                self.requests.forget(placing);
            }
        }
        self.by_client.remove(&(job.client, job.job));
        if !self.ended.contains_key(&job.client) {
            self.clients.push_back(job.client);
            if self.clients.len() > CLIENTS_MAX
                && let Some(oldest) = self.clients.pop_front()
            {
                self.ended.remove(&oldest);
            }
        }
        self.ended.entry(job.client).or_default().insert(job.job);
    }

    fn on_ack(&mut self, from: SocketAddr, request: u64) {
        if let Some(Ask::Reserve(number)) = self.requests.answered(request, from)
            && let Some(reservation) = self.reservations.get_mut(&number)
        {
            reservation.placing = None;
        }
    }

    fn given_up(&mut self, ask: Ask) {
        let Ask::Reserve(number) = ask else { return };
        self.counters.unreachable += 1;
        let Some(reservation) = self.reservations.remove(&number) else { return };
        if self.jobs.get(&reservation.job).is_some_and(|job| job.unassigned() > 0) {
            self.reserve(reservation.job, 1);
        }
    }

    fn report_to_clients(&mut self) {
        while let Some((client, ended)) = self.to_tell.pop_first() {
            for ended in ended.chunks(RECORDS_MAX) {
                self.requests.ask(client, Ask::Ended(ended.to_vec()));
            }
        }
    }

    fn write_task(&self, request: u64, task: Option<u64>, buffer: &mut Vec<u8>) {
        wire::write(buffer, Operation::Task, request);
        let Some(number) = task else { return };
        let (key, place) = (number >> PLACE_BITS, (number & (u64::from(JOB_MAX) - 1)) as usize);
        if let Some(job) = self.jobs.get(&key)
            && let Some(Some(info)) = job.tasks.get(place)
        {
            let given = Given { task: number.into(), client: job.client.into(), job: job.job.into() };
            wire::write_fixed(buffer, &given);
            wire::write_record(buffer, info);
        }
    }
}

impl Endpoint for Scheduler {
    type Event = Event;

    fn handle(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8]) {
        match wire::parse(datagram) {
            Ok((request, Packet::Submit(part, tasks))) => self.on_submit(now, from, request, part, tasks),
            Ok((request, Packet::GetTask(number))) => self.on_get_task(from, request, number),
            Ok((request, Packet::Done(ends))) => self.on_done(from, request, ends),
            Ok((request, Packet::Ack(_))) => self.on_ack(from, request),
            _ => self.counters.rejected += 1,
        }
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.forget_incomplete(now);
        for (_, ask) in self.requests.expire(now) {
            self.given_up(ask);
        }
    }

    fn poll_transmit(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        if let Some((to, request, answer)) = self.answers.pop_front() {
            match answer {
                Answer::Ack(operation) => wire::write(buffer, operation, request),
                Answer::Task(task) => self.write_task(request, task, buffer),
            }
            return Some(to);
        }
        self.report_to_clients();
        let (number, to, ask) = self.requests.next_to_send(now)?;
        match ask {
            Ask::Reserve(reservation) => {
                wire::write(buffer, Operation::Reserve, number);
                wire::write_record(buffer, &Number { number: (*reservation).into() });
            }
            Ask::Cancel(reservations) => {
                wire::write(buffer, Operation::Cancel, number);
                for &reservation in reservations {
                    wire::write_record(buffer, &Number { number: reservation.into() });
                }
            }
            Ask::Ended(ends) => {
                wire::write(buffer, Operation::Ended, number);
                ends.iter().for_each(|end| wire::write_record(buffer, end));
            }
        }
        Some(to)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        let incomplete = self.incomplete.front().map(|&(due, _)| due);
        [self.requests.next_due(), incomplete].into_iter().flatten().min()
    }
}
