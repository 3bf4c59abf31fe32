//! The NetRS side of a backend: queues requests (`jobs`), passes them to the application when a slot is free, and adds a status for
//! selectors to the answers. Direct requests need a cookie (`cookies`). Protocol: `docs/internals/cache.md`.

mod config;
mod cookies;
mod counters;
mod jobs;

pub use config::{ConfigError, ServerConfig, ServiceTime};
pub use counters::Counters;

use crate::client::ANSWERED_MAX;
use cookies::Cookies;
use jobs::{Job, Jobs};
use midflight_endpoint::mutants::planted;
use midflight_endpoint::{Endpoint, Nanos};
use midflight_wire::cache::{
    Ends, Kind, NETRS_XOR, Netrs, NetrsRequest, NetrsResponse, Packet, Reject, ServerStatus, parse,
};
use std::collections::VecDeque;
use std::net::SocketAddr;
use thiserror::Error;
use zerocopy::{FromZeros, IntoBytes};

/// Identifies a request being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServeKey(pub u64);

/// What the application is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Answer this with [`Server::answer`], or give it up. Once for each request that is served.
    Serve {
        /// The request.
        key: ServeKey,
        /// Its replica group.
        group: u32,
        /// The application's question.
        asked: Vec<u8>,
    },
    /// The application did not answer in time; the slot is free for other requests.
    TooLong {
        /// The request.
        key: ServeKey,
    },
}

/// Why an answer is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AnswerError {
    /// The request was answered, given up, or timed out.
    #[error("this request is not being served")]
    NotServed,
    /// The answer does not fit a datagram. The request is still being served.
    #[error("the answer has {0} bytes: it may have {ANSWERED_MAX}")]
    TooLong(usize),
}

/// Serves requests through the application. Drive it as [`Endpoint`] says.
pub struct Server {
    config: ServerConfig,
    cookies: Cookies,
    jobs: Jobs,
    mean: Option<Nanos>,
    sequence: u16,
    ready: VecDeque<(SocketAddr, Vec<u8>)>,
    events: VecDeque<Event>,
    counters: Counters,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("counters", &self.counters).finish_non_exhaustive()
    }
}

impl Server {
    /// A server without requests.
    ///
    /// # Errors
    /// A [`ConfigError`] that names the field to change.
    pub fn new(config: ServerConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            cookies: Cookies::new(config.secret, config.cookie),
            jobs: Jobs::default(),
            mean: None,
            sequence: 0,
            ready: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            config,
        })
    }

    /// Answers a request.
    ///
    /// # Errors
    /// If the request is not being served, or the answer is too long.
    pub fn answer(&mut self, now: Nanos, key: ServeKey, bytes: &[u8]) -> Result<(), AnswerError> {
        if bytes.len() > ANSWERED_MAX {
            return Err(AnswerError::TooLong(bytes.len()));
        }
        let Some(job) = self.jobs.end(key) else {
            self.counters.late_answers += 1;
            return Err(AnswerError::NotServed);
        };
        self.counters.answered += 1;
        // First, so that the reported queue excludes the request that takes the free slot (as in the C3 simulator, which the paper used).
        self.serve_next(now);
        let status = self.status(now.saturating_sub(job.since));
        self.send(&job, job.kind, status.as_bytes(), bytes);
        Ok(())
    }

    /// Refuses a request that the application cannot answer.
    ///
    /// # Errors
    /// If the request is not being served.
    pub fn give_up(&mut self, now: Nanos, key: ServeKey) -> Result<(), AnswerError> {
        let Some(job) = self.jobs.end(key) else {
            self.counters.late_answers += 1;
            return Err(AnswerError::NotServed);
        };
        self.counters.given_up += 1;
        self.refuse(&job);
        self.serve_next(now);
        Ok(())
    }

    /// Requests queued, and being served.
    #[must_use]
    pub fn load(&self) -> (usize, usize) {
        (self.jobs.waiting(), self.jobs.served())
    }

    /// Mean service time, with weight 1/8 for the newest; `None` before the first answer.
    #[must_use]
    pub fn service_time(&self) -> Option<Nanos> {
        self.mean
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn status(&mut self, took: Nanos) -> ServerStatus {
        let mean = self.mean.map_or(took, |mean| mean - mean / 8 + took / 8);
        self.mean = Some(mean);
        self.sequence = self.sequence.wrapping_add(1);
        let service = match self.config.service_time {
            ServiceTime::Present => took,
            ServiceTime::Mean => mean,
        };
        // 0 means unknown.
        let service_us = u32::try_from(service.div_ceil(1_000)).unwrap_or(u32::MAX).max(1);
        let queue = u16::try_from(self.jobs.waiting()).unwrap_or(u16::MAX);
        ServerStatus { queue: queue.into(), sequence: self.sequence.into(), service_us: service_us.into() }
    }

    fn take(&mut self, now: Nanos, from: SocketAddr, kind: Kind, parts: (&NetrsRequest, &Ends, &[u8])) {
        let (&request, &ends, asked) = parts;
        let is_known = self.config.senders.as_ref().is_none_or(|senders| senders.contains(&from.ip().to_canonical()));
        if kind != Kind::Direct && !is_known && !planted(252) {
            self.counters.foreign += 1;
            return;
        }
        if SocketAddr::from(ends.server) != self.config.address {
            self.counters.other_server += 1;
            return;
        }
        if kind == Kind::Direct && !self.has_cookie(now, from, &ends) {
            self.counters.cookies += 1;
            let mut answer = Ends { request: ends.request, ..Ends::new_zeroed() };
            answer.client.ip[..8].copy_from_slice(&self.cookies.give(now, from).to_be_bytes());
            let bytes = [Netrs::new(Kind::Cookie).as_bytes(), answer.as_bytes()].concat();
            return self.ready.push_back((from, bytes));
        }
        let job = Job { from, kind, request, ends, asked: asked.to_vec(), since: now };
        self.refuse_old(now);
        if self.jobs.served() >= self.config.slots && self.jobs.waiting() >= self.config.queue_max {
            self.counters.queue_full += 1;
            return self.refuse(&job);
        }
        self.counters.taken += 1;
        self.jobs.wait(job);
        self.serve_next(now);
    }

    fn has_cookie(&self, now: Nanos, from: SocketAddr, ends: &Ends) -> bool {
        let said = u64::from_be_bytes(ends.client.ip[..8].try_into().unwrap_or_default());
        self.cookies.takes(now, from, said) || (planted(253) && said != 0)
    }

    fn serve_next(&mut self, now: Nanos) {
        while self.jobs.served() < self.config.slots {
            let Some(job) = self.jobs.next() else { return };
            let (group, asked) = (job.request.group(), job.asked.clone());
            let key = self.jobs.serve(now, job);
            self.events.push_back(Event::Serve { key, group, asked });
        }
    }

    fn serve_max(&self) -> Nanos {
        if planted(254) { Nanos::MAX } else { self.config.serve_max }
    }

    /// Refuses requests that were queued for too long, or that the application did not answer in time.
    fn refuse_old(&mut self, now: Nanos) {
        while let Some((key, job)) = now.checked_sub(self.serve_max()).and_then(|until| self.jobs.end_since(until)) {
            self.counters.served_too_long += 1;
            self.events.push_back(Event::TooLong { key });
            self.refuse(&job);
        }
        while let Some(job) = now.checked_sub(self.config.wait_max).and_then(|until| self.jobs.next_since(until)) {
            self.counters.waited_too_long += 1;
            self.refuse(&job);
        }
    }

    /// No selector gets a copy, because it would count it as a fast answer.
    fn refuse(&mut self, job: &Job) {
        let is_direct = job.kind == Kind::Direct;
        let kind = if is_direct || planted(251) { job.kind } else { Kind::Monitored };
        self.send(job, kind, &[], &[]);
    }

    fn send(&mut self, job: &Job, kind: Kind, status: &[u8], bytes: &[u8]) {
        let start = Netrs { kind: kind as u8 & !NETRS_XOR, ..job.request.start };
        let response = NetrsResponse { start, marker: 0.into(), status_length: (status.len() as u16).into() };
        let to = if job.kind == Kind::Direct { job.from } else { self.config.operator };
        self.ready.push_back((to, [response.as_bytes(), status, job.ends.as_bytes(), bytes].concat()));
    }
}

impl Endpoint for Server {
    type Event = Event;

    fn handle(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8]) {
        match parse(datagram) {
            Ok(Packet::ForServer(kind, request, ends, asked)) => self.take(now, from, kind, (request, ends, asked)),
            Err(Reject::BadVersion(_)) => {
                self.counters.other_version += 1;
                self.ready.push_back((from, Netrs::new(Kind::Version).as_bytes().to_vec()));
            }
            Err(_) => self.counters.malformed += 1,
            Ok(_) => self.counters.not_for_server += 1,
        }
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.refuse_old(now);
        self.serve_next(now);
    }

    fn poll_transmit(&mut self, _now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        let (to, bytes) = self.ready.pop_front()?;
        buffer.clear();
        buffer.extend_from_slice(&bytes);
        Some(to)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        let [waits, serves] = self.jobs.oldest();
        let waits = waits.map(|since| since.saturating_add(self.config.wait_max));
        let serves = serves.map(|since| since.saturating_add(self.serve_max()));
        [waits, serves].into_iter().flatten().min()
    }
}
