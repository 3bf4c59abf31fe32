//! The executor of the tasks program, without I/O.
//!
//! It registers its slots at a switch, lets each wait for a task, hands what is assigned to its driver as
//! [`Event::Run`], takes the end by [`Executor::finish`], reports it to the client and lets the slot wait again.
//! `docs/internals/tasks.md` ("The executor") is the protocol.

mod config;
mod run;

pub use config::{ConfigError, ExecutorConfig, SLOTS_MAX};
pub use run::{Counters, End, Event, Output, Run, RunKey};

use crate::{Endpoint, Nanos};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// The executor's state machine; see the module.
#[derive(Debug)]
pub struct Executor {
    config: ExecutorConfig,
    counters: Counters,
    events: VecDeque<Event>,
    draining: bool,
}

impl Executor {
    /// An executor that begins to register at `now`.
    ///
    /// # Errors
    /// Where the configuration is out of bounds.
    pub fn new(config: ExecutorConfig, _now: Nanos) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self { config, counters: Counters::default(), events: VecDeque::new(), draining: false })
    }

    /// The task of `run` ended, or could not start ([`midflight_wire::Status::Unknown`],
    /// [`midflight_wire::Status::Abandoned`]). Its slot waits for the next one.
    pub fn finish(&mut self, _now: Nanos, _run: RunKey, _end: End) {
        self.counters.unknown_finishes += 1;
    }

    /// Takes nothing new, finishes what runs, leaves the switch; ends with [`Event::Drained`].
    pub fn drain(&mut self, _now: Nanos) {
        self.draining = true;
    }

    /// Whether a drain has ended.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.draining
    }

    /// Runs that have not ended.
    #[must_use]
    pub fn running(&self) -> u32 {
        0
    }

    /// The switch that is in use.
    #[must_use]
    pub fn switch(&self) -> SocketAddr {
        self.config.switches[0]
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl Endpoint for Executor {
    type Event = Event;

    fn handle(&mut self, _now: Nanos, _from: SocketAddr, datagram: &[u8]) {
        if midflight_wire::parse(datagram).is_err() {
            self.counters.rejected += 1;
        }
    }

    fn handle_timeout(&mut self, _now: Nanos) {}

    fn poll_transmit(&mut self, _now: Nanos, _buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        None
    }
}
