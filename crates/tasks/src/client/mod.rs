//! The client: submits tasks to a switch, and matches the completions that executors send.

mod config;
mod counters;
mod events;
mod task;

pub use config::{ClientConfig, ConfigError};
pub use counters::Counters;
pub use events::{Event, LostWhy, Outcome, Timing};
pub use task::{Argument, SubmitError, Task, TaskKey};

use crate::{Endpoint, Nanos};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;

/// Submits tasks and matches their completions. Drive it as [`Endpoint`] says.
pub struct Client {
    config: ClientConfig,
    counters: Counters,
    events: VecDeque<Event>,
    next_key: u64,
    open: usize,
}

impl Client {
    /// A client that has sent nothing yet. It begins by asking the first switch for its epoch.
    ///
    /// # Errors
    /// A [`ConfigError`] that says which field to change.
    pub fn new(config: ClientConfig, _now: Nanos) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self { config, counters: Counters::default(), events: VecDeque::new(), next_key: 0, open: 0 })
    }

    /// All tasks of one job, or more of them: their keys are consecutive.
    ///
    /// # Errors
    /// A [`SubmitError`]: then none was taken.
    pub fn submit(&mut self, _now: Nanos, _jid: u32, tasks: &[Task]) -> Result<Range<u64>, SubmitError> {
        for (index, task) in tasks.iter().enumerate() {
            task.check(index)?;
        }
        if self.open + tasks.len() > self.config.max_open {
            return Err(SubmitError::TooManyOpen {
                open: self.open,
                asked: tasks.len(),
                max_open: self.config.max_open,
            });
        }
        let first = self.next_key;
        self.next_key += tasks.len() as u64;
        self.open += tasks.len();
        Ok(first..self.next_key)
    }

    /// Asks for these tasks not to be run. Each that is still open ends in [`Event::Cancelled`], or is answered by
    /// [`Event::NotCancelled`] or its end; keys of tasks that have ended are ignored.
    pub fn cancel(&mut self, _now: Nanos, _keys: &[TaskKey]) {}

    /// The driver has (`ok`), or failed to get, the bytes of a result by reference.
    pub fn fetched(&mut self, _now: Nanos, _key: TaskKey, _ok: bool) {}

    /// Tasks that have not ended.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open
    }

    /// The switch that is asked at present, and its epoch (0 before its first answer).
    #[must_use]
    pub fn switch(&self) -> (SocketAddr, u32) {
        (self.config.switches[0], 0)
    }

    /// The smoothed round trip to the switch; `None` before the first was measured.
    #[must_use]
    pub fn round_trip(&self) -> Option<Nanos> {
        None
    }

    /// What has been counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl Endpoint for Client {
    type Event = Event;

    fn handle(&mut self, _now: Nanos, _from: SocketAddr, datagram: &[u8]) {
        if midflight_wire::parse(datagram).is_err() {
            self.counters.malformed += 1;
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

/// Whether two addresses are the same place, however IPv4 is written.
fn same_host_and_port(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port() && a.ip().to_canonical() == b.ip().to_canonical()
}
