//! The client of a linearizable store: operations in, answers out.
//!
//! [`Client`] is the state machine. `transmit` writes packets, `answers` handles replies, `outcome` interprets them, `clock` handles
//! timers. `large` reads and writes values that fit no packet. Data: `requests` (open ones), `lanes` (client ids), `switches`, `direct` (direct replies). Protocol:
//! `docs/internals/store.md`.

mod answers;
mod clock;
mod config;
mod counters;
mod direct;
mod events;
mod lanes;
mod large;
mod operation;
mod outcome;
mod pieces;
mod requests;
mod switches;
mod transmit;

pub use crate::transaction::Step;
pub use crate::update::{Change, Condition, Expiry, Update, Updated};
pub use config::{ClientConfig, ConfigError};
pub use counters::Counters;
pub use events::{Answer, Event, Reached, StoreError};
pub use midflight_wire::store::{Cursor, Page, PlaceInValue, ValuePiece};
pub use operation::{Operation, OperationKey, SubmitError};

use answers::Reply;
use direct::Direct;
use lanes::Lanes;
use large::Large;
use midflight_endpoint::requests::Requests;
use midflight_endpoint::{Backoff, Endpoint, Nanos, Queue, RoundTrip};
use midflight_wire::Reject;
use midflight_wire::store::{Packet, parse};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use requests::{Body, Kind};
use std::collections::VecDeque;
use std::net::SocketAddr;
use switches::Switches;

/// Sends operations to the store and matches their answers. Drive it as [`Endpoint`] says.
pub struct Client {
    config: ClientConfig,
    counters: Counters,
    rng: Pcg32,
    /// A cipher generates all numbers on the wire, so that they reveal neither the seed nor later numbers.
    secrets: StdRng,
    requests: Requests<Body>,
    reads: Queue,
    /// Writes that have no lane yet.
    writes: VecDeque<u64>,
    lanes: Lanes,
    large: Large,
    /// If the store has no room for client ids and some lane has one, no other is requested before this time.
    may_open_from: Nanos,
    switches: Switches,
    direct: Direct,
    read_trip: RoundTrip,
    /// Separate, because writes take longer.
    write_trip: RoundTrip,
    events: VecDeque<Event>,
}

impl Client {
    /// A client that has sent nothing yet.
    ///
    /// # Errors
    /// A [`ConfigError`] that names the field to change.
    pub fn new(config: ClientConfig, _now: Nanos) -> Result<Self, ConfigError> {
        config.check()?;
        let trip = RoundTrip::new(config.rto_initial, config.rto_min..=config.rto_max);
        Ok(Self {
            counters: Counters::default(),
            rng: Pcg32::seed_from_u64(config.seed),
            secrets: StdRng::seed_from_u64(config.seed),
            requests: Requests::default(),
            reads: Queue::new(config.reads_max),
            writes: VecDeque::new(),
            lanes: Lanes::new(config.lanes),
            large: Large::default(),
            may_open_from: 0,
            switches: Switches::new(&config.switches, Backoff::new(config.inactive_min..=config.inactive_max)),
            direct: Direct::new(),
            read_trip: trip.clone(),
            write_trip: trip,
            events: VecDeque::new(),
            config,
        })
    }

    /// Submits an operation; [`Event::Done`] reports its outcome. Concurrent operations may run in any order.
    ///
    /// # Errors
    /// A [`SubmitError`]; nothing was submitted.
    pub fn submit(&mut self, now: Nanos, operation: Operation) -> Result<OperationKey, SubmitError> {
        operation.check()?;
        let queued = (self.reads.waiting() + self.writes.len()).saturating_sub(self.large.parts()) + self.large.open();
        if queued >= self.config.queued_max {
            return Err(SubmitError::QueueFull(queued));
        }
        self.counters.submitted += 1;
        if !operation.is_large() {
            return Ok(OperationKey(self.enqueue(now, operation)));
        }
        let number = self.secrets.next_u64();
        self.large.begin(number, operation, now.saturating_add(self.config.timeout));
        Ok(OperationKey(number))
    }

    fn enqueue(&mut self, now: Nanos, operation: Operation) -> u64 {
        let (is_write, hash) = (operation.is_write(), operation.hash());
        let body = Body { kind: Kind::Operation(operation), hash, ..Body::default() };
        let number = self.requests.insert(now.saturating_add(self.config.timeout), body, &mut self.secrets);
        if is_write {
            self.writes.push_back(number)
        } else {
            self.reads.push(number)
        }
        number
    }

    /// Open operations and openings of client ids.
    #[must_use]
    pub fn open(&self) -> usize {
        self.requests.open() + self.large.open()
    }

    /// The switch in use.
    #[must_use]
    pub fn switch(&self) -> SocketAddr {
        self.switches.current().1
    }

    /// Smoothed round trips of reads and of writes; `None` before the first measurement.
    #[must_use]
    pub fn round_trips(&self) -> [Option<Nanos>; 2] {
        [self.read_trip.smoothed(), self.write_trip.smoothed()]
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn handle_version(&mut self, now: Nanos, from: SocketAddr, version: u8) {
        self.counters.other_version += 1;
        self.switches.heard_garbage(from, now);
        if version == midflight_wire::VERSION {
            return;
        }
        if let Some(switch) = self.switches.answers_with(from, version) {
            self.events.push_back(Event::OtherVersion { switch, version });
        }
    }
}

impl Endpoint for Client {
    type Event = Event;

    fn handle(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8]) {
        match parse(datagram) {
            Ok(Packet::Version(said)) => self.handle_version(now, from, said.version),
            Err(Reject::BadVersion(version)) => self.handle_version(now, from, version),
            Err(_) => {
                self.counters.malformed += 1;
                self.switches.heard_garbage(from, now);
            }
            Ok(Packet::ReadReply(request, status, key, value)) => {
                self.handle_reply(now, from, &Reply { request, status, key: Some(key), value });
            }
            Ok(Packet::WriteReply(request, status, value)) => {
                self.handle_reply(now, from, &Reply { request, status, key: None, value });
            }
            Ok(_) => self.counters.not_for_client += 1,
        }
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.expire(now);
    }

    fn poll_transmit(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        self.transmit(now, buffer)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.next_timeout()
    }
}
