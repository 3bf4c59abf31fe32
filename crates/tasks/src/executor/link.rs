//! The current switch: its epoch, round trip, and silence.

use super::ExecutorConfig;
use super::timers::RoundTrip;
use crate::mutants::planted;
use midflight_endpoint::Nanos;
use midflight_endpoint::config::is_same_address;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Interval at which an executor that failed over probes its preferred switches.
const FAILBACK_EVERY: Nanos = 1_000_000_000;

/// Range of the counter's random start: hard to guess, and far from overflow.
const COUNTERS: std::ops::Range<u64> = 1..1 << 62;

/// RESET and RELEASED must repeat the counter of one of this many last packets. A large executor accepts older ones: it has up to
/// two packets per slot in flight.
pub(super) const ANSWERABLE: u64 = 64;

/// Probes of a silent switch: the next time, their number, and the counter before the first.
#[derive(Clone, Copy, Debug)]
struct Question {
    due: Nanos,
    tries: u32,
    behind: u64,
}

#[derive(Debug)]
pub(super) struct Link {
    switches: Vec<SocketAddr>,
    current: usize,
    /// 0 until a switch answers.
    epoch: u32,
    /// Counter of the last RETRIEVE, KEEPALIVE or RELEASE.
    counter: u64,
    /// Its value at the start of the current epoch; responses to earlier packets are stale.
    entered: u64,
    answerable: u64,
    /// Last cookie of this switch; 0: none yet.
    pub(super) cookie: u64,
    lease_assumed: Nanos,
    round_trip_assumed: Nanos,
    pub(super) lease: Nanos,
    pub(super) round_trip: RoundTrip,
    /// Interval between NO_OP and the next poll; `None` if the switch parks slots.
    pub(super) poll: Option<Nanos>,
    heard: Nanos,
    /// Since when a response is expected without interruption.
    expecting: Option<Nanos>,
    /// `Some` after a lease of silence, until the switch answers.
    question: Option<Question>,
    question_min: Nanos,
    question_max: Nanos,
    /// Time of the next probe of a preferred switch; below, index and counter of the last.
    failback_at: Nanos,
    failback_probe: Option<(usize, u64)>,
    /// Other versions that switches reported: at most 255 each.
    other_versions: BTreeSet<(usize, u8)>,
}

impl Link {
    pub(super) fn new(config: &ExecutorConfig, now: Nanos, random: &mut Pcg64Mcg) -> Self {
        let counter = random.random_range(COUNTERS);
        Self {
            switches: config.switches.clone(),
            current: 0,
            epoch: 0,
            counter,
            entered: counter,
            answerable: ANSWERABLE.max(2 * u64::from(config.slots + config.ahead)),
            cookie: 0,
            lease_assumed: config.lease,
            round_trip_assumed: config.round_trip,
            lease: config.lease,
            round_trip: RoundTrip::assumed(config.round_trip),
            poll: None,
            heard: now,
            expecting: None,
            question: None,
            question_min: config.repeat_min,
            question_max: config.register_max,
            failback_at: now,
            failback_probe: None,
            other_versions: BTreeSet::new(),
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.switches[self.current]
    }

    pub(super) fn is_from_switch(&self, from: SocketAddr) -> bool {
        is_same_address(from, self.address())
    }

    pub(super) fn next_counter(&self) -> u64 {
        self.counter + 1
    }

    pub(super) fn count(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// Returns whether the version is new.
    pub(super) fn is_new_version(&mut self, version: u8) -> bool {
        self.other_versions.insert((self.current, version))
    }

    pub(super) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Whether this is the counter of a recent packet, which only the switch can know.
    pub(super) fn was_asked(&self, counter: u64) -> bool {
        counter <= self.counter && self.counter - counter < self.answerable
    }

    /// The same, for packets of the current epoch.
    pub(super) fn was_asked_in_epoch(&self, counter: u64) -> bool {
        (planted(26) && self.answerable > ANSWERABLE) || (self.was_asked(counter) && counter > self.entered)
    }

    /// The switch restarted, or another one has its address. An earlier epoch may return.
    pub(super) fn enter(&mut self, epoch: u32) {
        (self.epoch, self.entered) = (epoch, self.counter);
    }

    pub(super) fn heard(&mut self, now: Nanos) {
        self.heard = self.heard.max(now);
        self.question = None;
    }

    /// Probes the current switch until it answers.
    pub(super) fn ask(&mut self, now: Nanos) {
        self.question = Some(Question { due: now, tries: 0, behind: self.counter });
    }

    /// Whether this is the counter of a recent packet, sent since [`Self::ask`].
    pub(super) fn is_answer(&self, counter: u64) -> bool {
        self.question.is_some_and(|question| counter > question.behind) && self.was_asked(counter)
    }

    pub(super) fn is_asking(&self) -> bool {
        self.question.is_some()
    }

    pub(super) fn question_due(&self) -> Option<Nanos> {
        self.question.map(|question| question.due)
    }

    /// Counter of the probe to send now; schedules the next.
    pub(super) fn question(&mut self, now: Nanos) -> Option<u64> {
        let base = self.round_trip.twice(self.question_min);
        let question = self.question.as_mut().filter(|question| question.due <= now)?;
        question.due = now + (base << question.tries.min(15)).min(self.question_max);
        question.tries = question.tries.saturating_add(1);
        Some(self.count())
    }

    /// Sets whether a response is expected; silence counts from then on.
    pub(super) fn expect(&mut self, now: Nanos, expecting: bool) {
        self.expecting = expecting.then(|| self.expecting.unwrap_or(now));
        self.question = self.question.filter(|_| expecting);
    }

    pub(super) fn silent_since(&self) -> Option<Nanos> {
        self.expecting.map(|since| since.max(self.heard))
    }

    pub(super) fn has_alternative(&self) -> bool {
        self.switches.len() > 1
    }

    pub(super) fn next_switch(&mut self, now: Nanos) {
        self.turn_to((self.current + 1) % self.switches.len(), now);
    }

    fn turn_to(&mut self, switch: usize, now: Nanos) {
        self.current = switch;
        self.enter(0);
        self.cookie = 0;
        self.lease = self.lease_assumed;
        self.round_trip = RoundTrip::assumed(self.round_trip_assumed);
        self.poll = None;
        self.heard = now;
        self.expecting = None;
        self.question = None;
        self.failback_at = now + FAILBACK_EVERY;
        self.failback_probe = None;
    }

    /// When to probe a switch before the current in the list. Clients do so too; otherwise parties might never meet at one switch
    /// again.
    pub(super) fn failback_due(&self) -> Option<Nanos> {
        (self.current > 0).then_some(self.failback_at)
    }

    /// The preferred switches take turns.
    pub(super) fn failback_probe(&mut self, now: Nanos) -> Option<(SocketAddr, u64)> {
        self.failback_due().filter(|&due| due <= now)?;
        self.failback_at = now + FAILBACK_EVERY;
        let next = self.failback_probe.map_or(0, |(last, _)| (last + 1) % self.current);
        let counter = self.count();
        self.failback_probe = Some((next, counter));
        Some((self.switches[next], counter))
    }

    /// If this answers the failback probe, makes that switch current and returns true.
    pub(super) fn found(&mut self, from: SocketAddr, counter: u64, now: Nanos) -> bool {
        let is_it = |&(switch, asked): &(usize, u64)| asked == counter && is_same_address(from, self.switches[switch]);
        let better = self.failback_probe.filter(is_it);
        if let Some((switch, _)) = better {
            self.turn_to(switch, now);
        }
        better.is_some()
    }
}
