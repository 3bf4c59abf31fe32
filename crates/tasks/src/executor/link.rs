//! The switch in use: which one of the list, its epoch, what is known of the way to it, and whether it is silent.

use super::ExecutorConfig;
use super::timers::RoundTrip;
use crate::Nanos;
use std::net::SocketAddr;

/// An executor that had to leave a better switch asks this often whether it answers again.
const LOOK_EVERY: Nanos = 1_000_000_000;

/// Epochs that have passed, remembered so that a late packet cannot bring one back.
const PASSED: usize = 8;

#[derive(Debug)]
pub(super) struct Link {
    switches: Vec<SocketAddr>,
    current: usize,
    /// 0 until a switch has told its own.
    epoch: u32,
    passed: [u32; PASSED],
    next_passed: usize,
    lease_assumed: Nanos,
    round_trip_assumed: Nanos,
    pub(super) lease: Nanos,
    pub(super) round_trip: RoundTrip,
    /// How long after NO_OP a slot asks again; `None` where the switch parks it.
    pub(super) poll: Option<Nanos>,
    heard: Nanos,
    /// Since when an answer is expected without a break.
    expecting: Option<Nanos>,
    /// When a better switch than this is looked for, and which of them was looked for last.
    look: Nanos,
    looked_for: Option<usize>,
}

impl Link {
    pub(super) fn new(config: &ExecutorConfig, now: Nanos) -> Self {
        Self {
            switches: config.switches.clone(),
            current: 0,
            epoch: 0,
            passed: [0; PASSED],
            next_passed: 0,
            lease_assumed: config.lease,
            round_trip_assumed: config.round_trip,
            lease: config.lease,
            round_trip: RoundTrip::assumed(config.round_trip),
            poll: None,
            heard: now,
            expecting: None,
            look: now,
            looked_for: None,
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.switches[self.current]
    }

    /// Whether a datagram came from the switch in use, however the driver's socket writes IPv4.
    pub(super) fn is_from_switch(&self, from: SocketAddr) -> bool {
        let switch = self.address();
        from.port() == switch.port() && from.ip().to_canonical() == switch.ip().to_canonical()
    }

    pub(super) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Whether a packet of this epoch is of the past.
    pub(super) fn has_passed(&self, epoch: u32) -> bool {
        epoch == 0 || self.passed.contains(&epoch)
    }

    /// The switch has (re)started: its epoch is this one.
    pub(super) fn enter(&mut self, epoch: u32) {
        if self.epoch != 0 {
            self.passed[self.next_passed] = self.epoch;
            self.next_passed = (self.next_passed + 1) % PASSED;
        }
        self.epoch = epoch;
    }

    pub(super) fn heard(&mut self, now: Nanos) {
        self.heard = self.heard.max(now);
    }

    /// Keeps track of whether an answer is expected: silence counts from then on.
    pub(super) fn expect(&mut self, now: Nanos, expecting: bool) {
        self.expecting = expecting.then(|| self.expecting.unwrap_or(now));
    }

    /// Since when the switch has been silent though an answer is expected.
    pub(super) fn silent_since(&self) -> Option<Nanos> {
        self.expecting.map(|since| since.max(self.heard))
    }

    pub(super) fn has_alternative(&self) -> bool {
        self.switches.len() > 1
    }

    /// Turns to the next switch of the list.
    pub(super) fn next_switch(&mut self, now: Nanos) {
        self.turn_to((self.current + 1) % self.switches.len(), now);
    }

    fn turn_to(&mut self, switch: usize, now: Nanos) {
        self.current = switch;
        // The epochs of another switch may come back with it.
        (self.epoch, self.passed) = (0, [0; PASSED]);
        self.lease = self.lease_assumed;
        self.round_trip = RoundTrip::assumed(self.round_trip_assumed);
        self.poll = None;
        self.heard = now;
        self.expecting = None;
        self.look = now + LOOK_EVERY;
        self.looked_for = None;
    }

    /// When to look for a better switch, one that stands before this in the list: clients may be there, for all turn to the
    /// best that answers, and those who left it for another may otherwise never meet again.
    pub(super) fn look_due(&self) -> Option<Nanos> {
        (self.current > 0).then_some(self.look)
    }

    /// The better switch to ask now; the next one is asked later.
    pub(super) fn look(&mut self, now: Nanos) -> Option<SocketAddr> {
        self.look_due().filter(|&due| due <= now)?;
        self.look = now + LOOK_EVERY;
        let next = self.looked_for.map_or(0, |last| (last + 1) % self.current);
        self.looked_for = Some(next);
        Some(self.switches[next])
    }

    /// A better switch that was looked for has answered: it is the one in use from now on. Whether this was one.
    pub(super) fn found(&mut self, from: SocketAddr, now: Nanos) -> bool {
        let is_it = |switch: &SocketAddr| {
            from.port() == switch.port() && from.ip().to_canonical() == switch.ip().to_canonical()
        };
        let better = self.looked_for.filter(|&switch| is_it(&self.switches[switch]));
        if let Some(switch) = better {
            self.turn_to(switch, now);
        }
        better.is_some()
    }
}
