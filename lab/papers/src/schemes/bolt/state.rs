//! Executors, packets, the server, and events.

use super::queue::Queued;
use crate::calibration::{RECEIVE_JITTER_NS, SOCKET_DATAGRAMS};
use crate::cell::DrawnTask;
use midflight_endpoint::Nanos;
use midflight_sim::exponential;
use midflight_sim::time::Calendar;
use rand::RngExt;
use rand_pcg::Pcg64;

/// In this order within a nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// A client submits a job.
    Job,
    /// A closed loop's client submits a packet.
    Refill,
    /// A job_submission packet arrives.
    Packet,
    /// Its next task enters the queue.
    Enter,
    /// A poll of a previously busy executor arrives.
    Poll,
    /// A poll of an idle executor arrives (elided unless it matters).
    Cursor,
    /// A server has processed a poll.
    Served,
    /// A task reaches an executor.
    Task,
    /// A task ends.
    End,
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::Job,
        Self::Refill,
        Self::Packet,
        Self::Enter,
        Self::Poll,
        Self::Cursor,
        Self::Served,
        Self::Task,
        Self::End,
    ];

    /// Equal for both kinds of polls, so that executors' numbers decide.
    fn rank(self) -> u64 {
        if self == Self::Cursor { Self::Poll as u64 } else { self as u64 }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) at: Nanos,
    pub(super) kind: Kind,
    pub(super) index: u32,
}

/// Rank, number and kind share a word, which orders a nanosecond's events.
#[derive(Default)]
pub(super) struct Events {
    calendar: Calendar<()>,
    pushed: u64,
}

impl Events {
    pub(super) fn push(&mut self, at: Nanos, kind: Kind, index: u32) {
        self.pushed += 1;
        self.calendar.push(at, kind.rank() << 48 | u64::from(index) << 8 | kind as u64, ());
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        let (at, word, ()) = self.calendar.pop()?;
        Some(Event { at, kind: Kind::ALL[(word & 0xff) as usize], index: (word >> 8) as u32 })
    }

    pub(super) fn pushed(&self) -> u64 {
        self.pushed
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Executor {
    pub(super) group: u32,
    pub(super) resources: u8,
    /// Its next poll reports the end of a task.
    pub(super) completed: bool,
    pub(super) asked: Nanos,
    pub(super) taken: Nanos,
    pub(super) task: Queued,
}

impl Executor {
    pub(super) fn new(group: u32, resources: u8) -> Self {
        Self { group, resources, ..Self::default() }
    }
}

/// Tasks are taken from the end.
#[derive(Clone, Debug, Default)]
pub(super) struct Packet {
    pub(super) client: u32,
    pub(super) submitted: Nanos,
    pub(super) tasks: Vec<DrawnTask>,
}

impl Packet {
    pub(super) fn header(&self) -> Self {
        Self { client: self.client, submitted: self.submitted, tasks: Vec::new() }
    }
}

/// One thread with a socket buffer.
#[derive(Default)]
pub(super) struct Server {
    busy_until: Nanos,
    waiting: usize,
    pub(super) dropped: u64,
    pub(super) served: u64,
}

impl Server {
    /// When the request is done; `None` if the buffer is full.
    pub(super) fn take(&mut self, now: Nanos, cost: Nanos) -> Option<Nanos> {
        if self.waiting >= SOCKET_DATAGRAMS {
            self.dropped += 1;
            return None;
        }
        self.waiting += 1;
        self.busy_until = self.busy_until.max(now) + cost;
        self.served += 1;
        Some(self.busy_until)
    }

    pub(super) fn leave(&mut self) {
        self.waiting -= 1;
    }
}

pub(super) struct Jitter(Pcg64);

impl Jitter {
    pub(super) fn new(seed: u64) -> Self {
        Self(Pcg64::new(u128::from(seed), 0xB017))
    }

    pub(super) fn draw(&mut self) -> Nanos {
        exponential(&mut self.0, RECEIVE_JITTER_NS)
    }

    pub(super) fn below(&mut self, bound: Nanos) -> Nanos {
        self.0.random_range(0..bound)
    }
}
