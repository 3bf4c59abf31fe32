//! The client: submits tasks to a switch and matches executors' completions.
//!
//! [`Client`] is the state machine. `transmit` writes packets; `answers` and `cookie` handle the switch's packets,
//! `completions` the executors', and `token` checks proofs. `clock` has the timers; `transitions` changes tasks' states;
//! `durable` resumes tasks. The data is in `table`, `in_flight`, `probe`, `switches` and `acks`.
//! `docs/internals/tasks.md` ("The client") explains the protocol.

mod acks;
mod answers;
mod clock;
mod completions;
mod config;
mod cookie;
mod counters;
mod durable;
mod events;
mod in_flight;
mod probe;
mod stopping;
mod switches;
mod table;
mod task;
mod token;
mod transitions;
mod transmit;

#[cfg(test)]
mod tests;

pub use config::{ClientConfig, ConfigError};
pub use counters::Counters;
pub use durable::{Resumption, Saved, SavedCounters, SavedName, SavedState};
pub use events::{CancelledHow, Event, LostWhy, Outcome, TaskTiming};
pub use task::{Argument, SubmitError, Task, TaskKey};

use acks::{Acks, Report};
use in_flight::{Cancellation, Flights};
use midflight_endpoint::{Backoff, Deadlines, Endpoint, Nanos, RoundTrip};
use midflight_wire::Reject;
use midflight_wire::tasks::{AckState, BY_REFERENCE, BlobRef, Packet, parse};
use probe::Probe;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use stopping::Stopping;
use switches::Switches;
use table::{Cancel, Record, State, Table};
use token::Tokens;
use zerocopy::IntoBytes;

/// A packet is too long for the path if it times out this often while the switch answers others. That takes about 8 s, as the
/// timeout grows and the others are mostly PROBEs, one in 100 ms.
const PASSED_OVER: u32 = 10;

/// Submits tasks and matches their completions. Drive it as [`Endpoint`] describes.
pub struct Client {
    config: ClientConfig,
    counters: Counters,
    rng: Pcg32,
    next_key: u64,
    tokens: Tokens,
    table: Table,
    flights: Flights,
    round_trip: RoundTrip,
    backoff: Backoff,
    switches: Switches,
    probe: Probe,
    cancellations: VecDeque<Cancellation>,
    /// Tasks that the switch no longer has, and when their completion is overdue.
    gone: VecDeque<(Nanos, Cancellation)>,
    stopping: Stopping,
    deadlines: Deadlines,
    fetches: HashMap<u64, Report>,
    acks: Acks,
    events: VecDeque<Event>,
    seen_as: Option<SocketAddr>,
    /// The driver asked whether a switch answers.
    is_asking: bool,
    unsaved: bool,
}

impl Client {
    /// Creates a client. It asks the switches in turn for their epoch until one answers: [`Event::SwitchChanged`].
    ///
    /// # Errors
    /// A [`ConfigError`] that names the field to change.
    pub fn new(config: ClientConfig, now: Nanos) -> Result<Self, ConfigError> {
        config.check()?;
        let mut rng = Pcg32::seed_from_u64(config.seed);
        Ok(Self {
            counters: Counters::default(),
            next_key: 0,
            tokens: Tokens::new(config.secret),
            table: Table::new(),
            flights: Flights::new(rng.next_u32(), config.window_max),
            round_trip: RoundTrip::new(config.rto_initial, config.rto_min..=config.rto_max),
            backoff: Backoff::new(config.backoff_min..=config.backoff_max),
            switches: Switches::new(&config.switches, now),
            probe: Probe::new(now, 0),
            cancellations: VecDeque::new(),
            gone: VecDeque::new(),
            stopping: Stopping::default(),
            deadlines: Deadlines::default(),
            fetches: HashMap::new(),
            acks: Acks::default(),
            events: VecDeque::new(),
            seen_as: None,
            is_asking: false,
            unsaved: false,
            rng,
            config,
        })
    }

    /// Submits tasks of one job, with consecutive keys. A job may need several calls; tasks submitted before the next
    /// `poll_transmit` share packets.
    ///
    /// # Errors
    /// A [`SubmitError`]; no task was accepted.
    pub fn submit(&mut self, now: Nanos, jid: u32, tasks: &[Task]) -> Result<Range<u64>, SubmitError> {
        for (index, task) in tasks.iter().enumerate() {
            task.check(index, self.config.durable)?;
        }
        let (open, asked, max_open) = (self.open(), tasks.len(), self.config.max_open);
        if asked > max_open - open {
            return Err(SubmitError::TooManyOpen { open, asked, max_open });
        }
        self.begin_to_watch(now);
        let first = self.next_key;
        for task in tasks {
            let key = self.next_key;
            self.next_key += 1;
            // Tasks of one job need distinct numbers across calls.
            let mut record = Record::new(key, jid, task.info(key as u32), now);
            record.attempts_left = task.attempts.saturating_sub(1);
            record.retry_failed = task.retry_failed;
            record.prefer = task.prefer;
            if let Argument::Appended(bytes) = &task.argument {
                record.appended = Some(Arc::clone(bytes));
            }
            record.timeout = task.timeout.unwrap_or(Nanos::MAX);
            let at = self.table.insert(record);
            self.start_clock(now, at);
        }
        self.counters.submitted += asked as u64;
        Ok(first..self.next_key)
    }

    /// Cancels tasks, and stops them if they run. Each open task ends in [`Event::Cancelled`], or with its result if that comes
    /// first. At a switch that keeps no record, [`Event::NotCancelled`] follows. Ignores keys of ended tasks.
    pub fn cancel(&mut self, now: Nanos, keys: &[TaskKey]) {
        self.cancel_as(now, keys, Cancel::Stop);
    }

    /// Cancels only tasks that do not run yet. The others get [`Event::NotCancelled`] and their results; if their executor dies,
    /// they do not run again.
    pub fn cancel_queued(&mut self, now: Nanos, keys: &[TaskKey]) {
        self.cancel_as(now, keys, Cancel::Queued);
    }

    fn cancel_as(&mut self, _now: Nanos, keys: &[TaskKey], how: Cancel) {
        for &key in keys {
            let Some(at) = self.table.by_key(key.0) else { continue };
            let record = self.table.get_mut(at);
            if record.cancel == how || record.cancel == Cancel::Stop {
                continue;
            }
            record.cancel = how;
            match record.state {
                State::Waiting => self.end_cancelled(at),
                // A CANCEL could overtake the SUBMIT, so it waits for the response.
                State::Sent => {}
                State::Open => {
                    self.cancellations.extend(record.name().map(|name| Cancellation { key: key.0, name }));
                }
                State::Fetching => self.events.push_back(Event::NotCancelled { key }),
            }
        }
    }

    /// Whether executors may still run cancelled or late attempts without having confirmed the stop. A driver should wait briefly
    /// for it before it exits.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        !self.cancellations.is_empty() || !self.stopping.is_empty() || self.flights.has_cancel()
    }

    /// The driver has fetched a result by reference (`ok`) or failed to, or has saved the result of a durable client.
    pub fn fetched(&mut self, now: Nanos, key: TaskKey, ok: bool) {
        let Some(report) = self.fetches.remove(&key.0) else { return };
        self.acks.push(report, AckState::Done);
        let Some(at) = self.table.by_key(key.0) else { return };
        if ok {
            self.counters.completed += 1;
            self.table.remove(at);
        } else {
            self.retry_or_lose(now, at, report.attempt, LostWhy::FetchFailed);
        }
    }

    /// The driver serves a task's argument, which the switch does not take, or has no room for it (`None`): then
    /// [`Event::NeedsReference`] comes again later.
    pub fn refer(&mut self, now: Nanos, key: TaskKey, blob: Option<BlobRef>) {
        let Some(at) = self.table.by_key(key.0) else { return };
        let record = self.table.get_mut(at);
        if record.appended.is_none() {
            return;
        }
        if let Some(blob) = blob {
            record.appended = None;
            record.info.argument_length = BY_REFERENCE;
            record.info.argument.copy_from_slice(blob.as_bytes());
        } else if now >= self.backoff.until() {
            self.backoff.full(now, now, &mut self.rng);
        }
        self.submit_again(at);
    }

    /// Number of tasks that have not ended.
    #[must_use]
    pub fn open(&self) -> usize {
        self.table.len()
    }

    /// The current switch and its last known epoch (0 before its first response).
    #[must_use]
    pub fn switch(&self) -> (SocketAddr, u32) {
        (self.switches.address(), self.switches.epoch())
    }

    /// Time of a switch's last response; `None` before the first.
    #[must_use]
    pub fn answered(&self) -> Option<Nanos> {
        self.switches.contact().0
    }

    /// Since when no switch has answered a request; `None` if no request is outstanding.
    #[must_use]
    pub fn unanswered_since(&self) -> Option<Nanos> {
        self.is_watching().then(|| self.switches.contact().1)
    }

    /// Length of a packet that the switch never answers while it answers others: too long for the path (T15). `None`: there is no
    /// such packet.
    #[must_use]
    pub fn unanswered_length(&self) -> Option<usize> {
        self.flights.passed_over(PASSED_OVER).map(<[u8]>::len)
    }

    /// Probes until a switch answers, even without another request.
    pub fn ask_switch(&mut self, now: Nanos) {
        if !self.is_watching() {
            self.begin_to_watch(now);
            self.probe.restart(now);
            self.is_asking = true;
        }
    }

    /// Smoothed round trip to the switch; `None` before the first sample.
    #[must_use]
    pub fn round_trip(&self) -> Option<Nanos> {
        self.round_trip.smoothed()
    }

    /// Counters since the start.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl Endpoint for Client {
    type Event = Event;

    fn handle(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8]) {
        match parse(datagram) {
            Ok(Packet::Version(said)) => self.handle_version(from, said.version),
            Err(Reject::BadVersion(version)) => self.handle_version(from, version),
            Err(_) => self.counters.malformed += 1,
            Ok(Packet::Complete(fixed, completions)) => self.handle_complete(now, from, fixed, completions),
            Ok(Packet::SubmitAck(ack)) => self.handle_submit_ack(now, from, ack),
            Ok(Packet::CancelAck(ack, holders)) => self.handle_cancel_ack(now, from, ack, holders),
            Ok(Packet::ProbeAck(ack)) => self.handle_probe_ack(now, from, ack),
            Ok(Packet::Cookie(cookie)) => self.handle_cookie(now, from, cookie),
            Ok(_) => self.counters.not_for_client += 1,
        }
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.flights.expire(now, self.switches.contact().0, &mut self.round_trip);
        self.resubmit_overdue(now);
        self.resubmit_too_long(now);
        self.end_late_attempts(now);
        self.stop_overdue(now);
        self.watch_switch(now);
        self.schedule_probe(now);
    }

    fn poll_transmit(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        let to = self.transmit(now, buffer)?;
        self.counters.sent += 1;
        Some(to)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.next_timeout()
    }
}
