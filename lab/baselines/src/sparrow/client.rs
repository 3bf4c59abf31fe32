//! The client: submits jobs and reports how their tasks ended.

use super::retry::Requests;
use super::wire::{self, Ended, JOB_MAX, Operation, Packet, Part, RECORDS_MAX};
use super::{ConfigError, RetryConfig};
use midflight_endpoint::{Endpoint, Nanos};
use midflight_wire::tasks::{Status, TaskInfo};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// A client's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The client's identity: random, different for each process.
    pub identity: u64,
    /// The schedulers, used round robin.
    pub schedulers: Vec<SocketAddr>,
    /// Retry policy.
    pub retry: RetryConfig,
}

impl ClientConfig {
    /// Uses the default retry policy.
    #[must_use]
    pub fn new(identity: u64, schedulers: Vec<SocketAddr>) -> Self {
        Self { identity, schedulers, retry: RetryConfig::default() }
    }
}

/// An event of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A task has ended. Reported once per task.
    Ended {
        /// Its job.
        job: u32,
        /// The task's number in the job.
        tid: u32,
        /// How it ended.
        status: Status,
    },
    /// No scheduler accepted the whole job. No event of the job follows.
    Failed {
        /// The job.
        job: u32,
        /// Tasks whose end was not reported.
        open: u32,
    },
}

/// Why a job was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The job is empty.
    #[error("a job has at least one task")]
    NoTasks,
    /// The job exceeds [`JOB_MAX`].
    #[error("a job of {0} tasks: at most {JOB_MAX}; submit several")]
    TooMany(usize),
}

#[derive(Debug)]
struct Job {
    open: Vec<bool>,
    left: u32,
    parts: Vec<u64>,
}

#[derive(Debug)]
struct Ask {
    job: u32,
    first: u32,
    total: u32,
    tasks: Vec<TaskInfo>,
}

/// The client's state machine.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    jobs: HashMap<u32, Job>,
    next_job: u32,
    requests: Requests<Ask>,
    acks: VecDeque<(SocketAddr, u64)>,
    events: VecDeque<Event>,
    rejected: u64,
}

impl Client {
    /// Creates a client without jobs.
    ///
    /// # Errors
    /// If there is no scheduler.
    pub fn new(config: ClientConfig) -> Result<Self, ConfigError> {
        config.retry.check()?;
        if config.schedulers.is_empty() {
            return Err(ConfigError::OutOfBounds { what: "the number of schedulers", allowed: "at least 1" });
        }
        Ok(Self {
            requests: Requests::new(config.retry, 1),
            config,
            jobs: HashMap::new(),
            next_job: 0,
            acks: VecDeque::new(),
            events: VecDeque::new(),
            rejected: 0,
        })
    }

    /// Submits a job and returns its number. A task's number is its index; `tid` is ignored.
    ///
    /// # Errors
    /// If the job is empty or too large.
    pub fn submit(&mut self, tasks: &[TaskInfo]) -> Result<u32, SubmitError> {
        if tasks.is_empty() {
            return Err(SubmitError::NoTasks);
        }
        let total = u32::try_from(tasks.len()).ok().filter(|&total| total <= JOB_MAX);
        let total = total.ok_or(SubmitError::TooMany(tasks.len()))?;
        let job = self.next_job;
        self.next_job = self.next_job.wrapping_add(1);
        let scheduler = self.config.schedulers[job as usize % self.config.schedulers.len()];
        let mut parts = Vec::with_capacity(tasks.len().div_ceil(RECORDS_MAX));
        for (part, tasks) in tasks.chunks(RECORDS_MAX).enumerate() {
            let first = (part * RECORDS_MAX) as u32;
            let numbered = tasks.iter().zip(first..).map(|(task, tid)| TaskInfo { tid: tid.into(), ..*task });
            parts.push(self.requests.ask(scheduler, Ask { job, first, total, tasks: numbered.collect() }));
        }
        self.jobs.insert(job, Job { open: vec![true; tasks.len()], left: total, parts });
        Ok(job)
    }

    /// Requests retransmitted.
    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.requests.repeated
    }

    /// Datagrams rejected: malformed, or not for a client.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    fn on_ended(&mut self, from: SocketAddr, request: u64, ends: &[Ended]) {
        self.acks.push_back((from, request));
        for end in ends {
            let (number, tid) = (end.job.get(), end.tid.get());
            let Some(job) = self.jobs.get_mut(&number) else { continue };
            let Some(open) = job.open.get_mut(tid as usize) else { continue };
            if std::mem::take(open) {
                job.left -= 1;
                let status = Status::from_number(end.status).unwrap_or(Status::Failed);
                self.events.push_back(Event::Ended { job: number, tid, status });
                if job.left == 0 {
                    self.jobs.remove(&number);
                }
            }
        }
    }

    fn failed(&mut self, number: u32) {
        let Some(job) = self.jobs.remove(&number) else { return };
        job.parts.iter().for_each(|&part| {
            self.requests.forget(part);
        });
        self.events.push_back(Event::Failed { job: number, open: job.left });
    }
}

impl Endpoint for Client {
    type Event = Event;

    fn handle(&mut self, _now: Nanos, from: SocketAddr, datagram: &[u8]) {
        match wire::parse(datagram) {
            Ok((request, Packet::Ack(Operation::SubmitAck))) => {
                self.requests.answered(request, from);
            }
            Ok((request, Packet::Ended(ends))) => self.on_ended(from, request, ends),
            _ => self.rejected += 1,
        }
    }

    fn handle_timeout(&mut self, now: Nanos) {
        for (_, ask) in self.requests.expire(now) {
            self.failed(ask.job);
        }
    }

    fn poll_transmit(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        if let Some((to, request)) = self.acks.pop_front() {
            wire::write(buffer, Operation::EndedAck, request);
            return Some(to);
        }
        let (request, to, ask) = self.requests.next_to_send(now)?;
        wire::write(buffer, Operation::Submit, request);
        let client = self.config.identity.into();
        let part = Part { client, job: ask.job.into(), first: ask.first.into(), total: ask.total.into() };
        wire::write_fixed(buffer, &part);
        ask.tasks.iter().for_each(|task| wire::write_record(buffer, task));
        Some(to)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.requests.next_due()
    }
}
