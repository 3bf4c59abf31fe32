//! The client of a replicated cache: reads in, one event for each out.
//!
//! It sends reads to the operator of its rack, where the network selects a replica, or ([`Client::direct`]) selects itself, with any
//! selector of [`crate::select`]. Protocol: `docs/internals/cache.md`.
//!
//! - `events`: reads and their outcomes;
//! - `requests`: what it keeps of an open read;
//! - `transmit`, `answers`: packets out and in;
//! - `direct`: the client's own selector, and its attempts.

mod answers;
mod config;
mod counters;
mod direct;
mod events;
mod requests;
mod transmit;

pub use config::{ClientConfig, ConfigError};
pub use counters::Counters;
pub use events::{ANSWERED_MAX, ASKED_MAX, Answer, Event, Failure, Read, ReadKey, SubmitError};

use crate::rsnode::GroupError;
use crate::select::Selector;
use direct::Direct;
use midflight_endpoint::mutants::planted;
use midflight_endpoint::requests::{Expiry, Requests, State};
use midflight_endpoint::{Endpoint, Nanos, Queue, RoundTrip};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use requests::Body;
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

const VERSIONS_TOLD: usize = 64;

enum Way {
    /// The network, through this operator with its cookie (0: none yet).
    Operator(SocketAddr, u64),
    Direct(Box<Direct>),
}

/// Sends reads, and matches their answers. Drive it as [`Endpoint`] says.
pub struct Client {
    config: ClientConfig,
    counters: Counters,
    random: Pcg32,
    /// A cipher generates all numbers on the wire, so that they reveal neither the seed nor later numbers.
    secrets: StdRng,
    way: Way,
    requests: Requests<Body>,
    queue: Queue,
    round_trip: RoundTrip,
    told_versions: BTreeSet<(SocketAddr, u8)>,
    events: VecDeque<Event>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("counters", &self.counters).finish_non_exhaustive()
    }
}

impl Client {
    /// A client for which the network selects, through the operator of its rack.
    ///
    /// # Errors
    /// A [`ConfigError`] that names the field to change.
    pub fn new(config: ClientConfig, operator: SocketAddr) -> Result<Self, ConfigError> {
        Self::with(config, |_, _| Way::Operator(operator, 0))
    }

    /// A client that selects itself. `servers` lists all servers; it knows no replica groups yet.
    ///
    /// # Errors
    /// A [`ConfigError`] that names the field to change, or that there are more than 65,535 servers.
    pub fn direct(
        config: ClientConfig,
        servers: &[SocketAddr],
        selector: impl FnOnce(u16) -> Box<dyn Selector + Send>,
    ) -> Result<Self, ConfigError> {
        let many = ConfigError { name: "servers", value: servers.len() as u64, range: "at most 65,535" };
        let count = u16::try_from(servers.len()).map_err(|_| many)?;
        Self::with(config, |config, secrets| {
            Way::Direct(Box::new(Direct::new(config, servers, secrets.next_u32() as u16, selector(count))))
        })
    }

    fn with(config: ClientConfig, way: impl FnOnce(&ClientConfig, &mut StdRng) -> Way) -> Result<Self, ConfigError> {
        config.check()?;
        let mut secrets = StdRng::seed_from_u64(config.seed);
        Ok(Self {
            counters: Counters::default(),
            // Pauses are observable, and must not reveal the seed.
            random: Pcg32::seed_from_u64(secrets.next_u64()),
            way: way(&config, &mut secrets),
            secrets,
            requests: Requests::default(),
            queue: Queue::new(config.under_way_max),
            round_trip: RoundTrip::new(config.rto_initial, config.rto_min..=config.rto_max),
            told_versions: BTreeSet::new(),
            events: VecDeque::new(),
            config,
        })
    }

    /// Adds a replica group, which only direct mode needs. An existing group is not changed.
    ///
    /// # Errors
    /// If a server is unknown, the servers are not valid candidates, or the group exists with others.
    pub fn set_group(&mut self, group: u32, servers: &[SocketAddr]) -> Result<(), GroupError> {
        match &mut self.way {
            Way::Direct(direct) => direct.set_group(group, servers),
            Way::Operator(..) => Ok(()),
        }
    }

    /// Submits a read; [`Event::Done`] reports its outcome.
    ///
    /// # Errors
    /// A [`SubmitError`]; nothing was submitted.
    pub fn submit(&mut self, now: Nanos, read: Read) -> Result<ReadKey, SubmitError> {
        read.check()?;
        let queued = self.queue.waiting();
        if queued >= self.config.queued_max {
            return Err(SubmitError::QueueFull(queued));
        }
        let deadline = now.saturating_add(self.config.timeout);
        let number = self.requests.insert(deadline, Body::new(read), &mut self.secrets);
        self.queue.push(number);
        self.begin_reads();
        self.counters.submitted += 1;
        Ok(ReadKey(number))
    }

    fn begin_reads(&mut self) {
        while let Some(number) = self.queue.admit(|number| self.requests.is_open(number)) {
            self.requests.make_ready(number);
        }
    }

    /// Open reads.
    #[must_use]
    pub fn open(&self) -> usize {
        self.requests.open()
    }

    /// Direct mode: outstanding attempts.
    #[must_use]
    pub fn under_way(&self) -> usize {
        if let Way::Direct(direct) = &self.way { direct.under_way() } else { 0 }
    }

    /// Direct mode: its selector.
    #[must_use]
    pub fn selector(&self) -> Option<&dyn Selector> {
        if let Way::Direct(direct) = &self.way { Some(direct.selector()) } else { None }
    }

    /// The smoothed round trip; `None` before the first measurement.
    #[must_use]
    pub fn round_trip(&self) -> Option<Nanos> {
        self.round_trip.smoothed()
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn end(&mut self, number: u64, outcome: Result<Answer, Failure>) {
        let Some(request) = self.requests.remove(number) else { return };
        match request.state() {
            State::Waiting => self.queue.drop_ended(|number| self.requests.is_open(number)),
            State::Paused if planted(245) => {}
            _ => self.queue.release(),
        }
        self.begin_reads();
        match &outcome {
            Ok(_) => self.counters.answered += 1,
            Err(failure) => {
                self.counters.failed += 1;
                match failure {
                    Failure::TimedOut => self.counters.timed_out += 1,
                    Failure::Refused => self.counters.refused_to_the_end += 1,
                }
            }
        }
        self.events.push_back(Event::Done { key: ReadKey(number), outcome });
    }

    fn expire(&mut self, now: Nanos) {
        if let Way::Direct(direct) = &mut self.way {
            self.counters.expired += direct.expire(now);
        }
    }
}

impl Endpoint for Client {
    type Event = Event;

    fn handle(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8]) {
        self.expire(now);
        self.answer(now, from, datagram);
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.expire(now);
        while let Some((number, expired)) = self.requests.expire(now) {
            if expired == Expiry::Deadline {
                self.end(number, Err(Failure::TimedOut));
            } else if let Some(request) = self.requests.get_mut(number) {
                request.body.repeats_last = false;
                self.counters.unanswered += u64::from(expired == Expiry::Unanswered);
            }
        }
    }

    fn poll_transmit(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        self.transmit(now, buffer)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        let expiry = if let Way::Direct(direct) = &self.way { direct.next_expiry() } else { None };
        [self.requests.next_due(), expiry].into_iter().flatten().min()
    }
}
