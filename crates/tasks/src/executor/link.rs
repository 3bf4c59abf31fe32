//! The switch in use: which one of the list, its epoch, what is known of the way to it, and whether it is silent.

use super::ExecutorConfig;
use super::timers::RoundTrip;
use crate::mutants::planted;
use midflight_endpoint::Nanos;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// An executor that had to leave a better switch asks this often whether it answers again.
const LOOK_EVERY: Nanos = 1_000_000_000;

/// Where the counter starts: anywhere, so that nobody guesses it, and far from its end.
const COUNTERS: std::ops::Range<u64> = 1..1 << 62;

/// RESET and RELEASED repeat the counter of what they answer: one of so many packets, the last ones. A large executor has more
/// on their way, so it looks back further: in a round trip each of its slots speaks at most twice.
pub(super) const ANSWERABLE: u64 = 64;

/// Whether a silent switch lives: when it is asked next, how often it was, and which counter the first time came behind.
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
    /// 0 until a switch has told its own.
    epoch: u32,
    /// Of the last RETRIEVE, KEEPALIVE or RELEASE that was sent.
    counter: u64,
    /// Its value when the present epoch was entered: answers to packets before that one speak of the past.
    entered: u64,
    answerable: u64,
    /// The last one that this switch gave; 0: none yet.
    pub(super) cookie: u64,
    lease_assumed: Nanos,
    round_trip_assumed: Nanos,
    pub(super) lease: Nanos,
    pub(super) round_trip: RoundTrip,
    /// How long after NO_OP a slot asks again; `None` where the switch parks it.
    pub(super) poll: Option<Nanos>,
    heard: Nanos,
    /// Since when an answer is expected without a break.
    expecting: Option<Nanos>,
    /// Open from a lease of silence on, until it is heard.
    question: Option<Question>,
    question_min: Nanos,
    question_max: Nanos,
    /// When a better switch than this is looked for, which of them was looked for last, and by which counter.
    look: Nanos,
    looked_for: Option<(usize, u64)>,
    /// Other versions of the format that switches were found to speak: at most 255 for each.
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
            answerable: ANSWERABLE.max(2 * u64::from(config.slots)),
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
            look: now,
            looked_for: None,
            other_versions: BTreeSet::new(),
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.switches[self.current]
    }

    /// Whether a datagram came from the switch in use.
    pub(super) fn is_from_switch(&self, from: SocketAddr) -> bool {
        is_same(from, self.address())
    }

    /// What the next RETRIEVE, KEEPALIVE or RELEASE carries.
    pub(super) fn next_counter(&self) -> u64 {
        self.counter + 1
    }

    /// Counts such a packet, and says what it carries.
    pub(super) fn count(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// Whether the switch in use was not known to speak this version.
    pub(super) fn is_new_version(&mut self, version: u8) -> bool {
        self.other_versions.insert((self.current, version))
    }

    pub(super) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Whether this repeats the counter of a packet that was sent lately, so that the switch says it.
    pub(super) fn was_asked(&self, counter: u64) -> bool {
        counter <= self.counter && self.counter - counter < self.answerable
    }

    /// Whether this repeats the counter of a packet that was sent lately and in the present epoch.
    pub(super) fn was_asked_in_epoch(&self, counter: u64) -> bool {
        (planted(26) && self.answerable > ANSWERABLE) || (self.was_asked(counter) && counter > self.entered)
    }

    /// The switch's epoch is this one, from now on: it started anew, or its address is another switch's. It may have been there
    /// before.
    pub(super) fn enter(&mut self, epoch: u32) {
        (self.epoch, self.entered) = (epoch, self.counter);
    }

    pub(super) fn heard(&mut self, now: Nanos) {
        self.heard = self.heard.max(now);
        self.question = None;
    }

    /// Asks the switch in use whether it lives, until it is heard.
    pub(super) fn ask(&mut self, now: Nanos) {
        self.question = Some(Question { due: now, tries: 0, behind: self.counter });
    }

    /// Whether this repeats the counter of a packet that was sent since it is asked.
    pub(super) fn is_answer(&self, counter: u64) -> bool {
        self.question.is_some_and(|question| counter > question.behind) && self.was_asked(counter)
    }

    pub(super) fn is_asking(&self) -> bool {
        self.question.is_some()
    }

    pub(super) fn question_due(&self) -> Option<Nanos> {
        self.question.map(|question| question.due)
    }

    /// The counter by which it is asked now; the next time is later.
    pub(super) fn question(&mut self, now: Nanos) -> Option<u64> {
        let base = self.round_trip.twice(self.question_min);
        let question = self.question.as_mut().filter(|question| question.due <= now)?;
        question.due = now + (base << question.tries.min(15)).min(self.question_max);
        question.tries = question.tries.saturating_add(1);
        Some(self.count())
    }

    /// Keeps track of whether an answer is expected: silence counts from then on.
    pub(super) fn expect(&mut self, now: Nanos, expecting: bool) {
        self.expecting = expecting.then(|| self.expecting.unwrap_or(now));
        self.question = self.question.filter(|_| expecting);
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
        self.enter(0);
        self.cookie = 0;
        self.lease = self.lease_assumed;
        self.round_trip = RoundTrip::assumed(self.round_trip_assumed);
        self.poll = None;
        self.heard = now;
        self.expecting = None;
        self.question = None;
        self.look = now + LOOK_EVERY;
        self.looked_for = None;
    }

    /// When to look for a better switch, one that stands before this in the list: clients may be there, for all turn to the
    /// best that answers, and those who left it for another may otherwise never meet again.
    pub(super) fn look_due(&self) -> Option<Nanos> {
        (self.current > 0).then_some(self.look)
    }

    /// The better switch to ask now, and by which counter; the next one is asked later.
    pub(super) fn look(&mut self, now: Nanos) -> Option<(SocketAddr, u64)> {
        self.look_due().filter(|&due| due <= now)?;
        self.look = now + LOOK_EVERY;
        let next = self.looked_for.map_or(0, |(last, _)| (last + 1) % self.current);
        let counter = self.count();
        self.looked_for = Some((next, counter));
        Some((self.switches[next], counter))
    }

    /// A better switch has answered what it was asked last: it is the one in use from now on. Whether this was one.
    pub(super) fn found(&mut self, from: SocketAddr, counter: u64, now: Nanos) -> bool {
        let is_it = |&(switch, asked): &(usize, u64)| asked == counter && is_same(from, self.switches[switch]);
        let better = self.looked_for.filter(is_it);
        if let Some((switch, _)) = better {
            self.turn_to(switch, now);
        }
        better.is_some()
    }
}

/// Whether two addresses are one, however the driver's socket writes IPv4.
fn is_same(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port() && a.ip().to_canonical() == b.ip().to_canonical()
}
