//! Requests that await answers: retransmitted until answered or out of tries.

use midflight_endpoint::Nanos;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;

/// Retry policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryConfig {
    /// Nanoseconds until the first retransmission; the interval then doubles. Default 20 ms.
    pub first: Nanos,
    /// Maximum number of transmissions. Default 10, which takes 20 s.
    pub tries: u32,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self { first: 20_000_000, tries: 10 }
    }
}

impl RetryConfig {
    pub(super) fn check(&self) -> Result<(), super::ConfigError> {
        let out = |what, allowed| Err(super::ConfigError::OutOfBounds { what, allowed });
        match (self.first, self.tries) {
            (1_000..=60_000_000_000, 1..=20) => Ok(()),
            (1_000..=60_000_000_000, _) => out("tries", "1 to 20"),
            _ => out("first", "1 us to 60 s"),
        }
    }
}

#[derive(Debug)]
struct Pending<W> {
    to: SocketAddr,
    what: W,
    sent: u32,
    due: Nanos,
}

/// `W` is what is needed to write the packet.
#[derive(Debug)]
pub(super) struct Requests<W> {
    config: RetryConfig,
    pending: HashMap<u64, Pending<W>>,
    due: BTreeSet<(Nanos, u64)>,
    to_send: VecDeque<u64>,
    next: u64,
    pub(super) repeated: u64,
}

impl<W> Requests<W> {
    pub(super) fn new(config: RetryConfig, first: u64) -> Self {
        let (pending, due, to_send) = (HashMap::new(), BTreeSet::new(), VecDeque::new());
        Self { config, pending, due, to_send, next: first, repeated: 0 }
    }

    pub(super) fn ask(&mut self, to: SocketAddr, what: W) -> u64 {
        let number = self.next;
        self.next += 1;
        self.pending.insert(number, Pending { to, what, sent: 0, due: 0 });
        self.to_send.push_back(number);
        number
    }

    /// `from` must be the request's destination.
    pub(super) fn answered(&mut self, number: u64, from: SocketAddr) -> Option<W> {
        if self.pending.get(&number)?.to != from {
            return None;
        }
        self.forget(number)
    }

    pub(super) fn forget(&mut self, number: u64) -> Option<W> {
        let pending = self.pending.remove(&number)?;
        self.due.remove(&(pending.due, number));
        Some(pending.what)
    }

    pub(super) fn next_to_send(&mut self, now: Nanos) -> Option<(u64, SocketAddr, &W)> {
        loop {
            let number = self.to_send.pop_front()?;
            let Some(pending) = self.pending.get_mut(&number) else { continue };
            self.repeated += u64::from(pending.sent > 0);
            pending.due = now + (self.config.first << pending.sent.min(20));
            pending.sent += 1;
            self.due.insert((pending.due, number));
            break self.pending.get(&number).map(|pending| (number, pending.to, &pending.what));
        }
    }

    /// Queues due requests. Returns those out of tries, oldest deadline first.
    pub(super) fn expire(&mut self, now: Nanos) -> Vec<(u64, W)> {
        let mut given_up = Vec::new();
        while let Some(&(due, number)) = self.due.first()
            && due <= now
        {
            self.due.pop_first();
            let tries = self.config.tries;
            match self.pending.get(&number) {
                Some(pending) if pending.sent >= tries => {
                    given_up.extend(self.pending.remove(&number).map(|pending| (number, pending.what)));
                }
                _ => self.to_send.push_back(number),
            }
        }
        given_up
    }

    pub(super) fn next_due(&self) -> Option<Nanos> {
        self.due.first().map(|&(due, _)| due)
    }

    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }
}
