//! Completions for clients. Each is kept until acknowledged or given up; its slot is already free. Completions for one client
//! that are ready together share a packet.

use super::hash::Keyed;
use super::run::Report;
use super::timers::{RoundTrip, Timers};
use super::{Event, ExecutorConfig, Output, RunKey};
use crate::proof::Token;
use midflight_endpoint::Nanos;
use midflight_wire::Builder;
use midflight_wire::tasks::{AckState, Complete, Completed, Completion, Status};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// Idle destinations are removed above this number, when more than half are idle.
const IDLE_DESTINATIONS: usize = 1024;

/// A COMPLETE carries completions of one client and one epoch of assignments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Recipient {
    pub(super) address: SocketAddr,
    pub(super) epoch: u32,
}

/// Expected content of a COMPLETE_ACK; looking it up verifies the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Name {
    proof: u64,
    /// Submission, index, attempt and state.
    said: u64,
}

impl Name {
    fn expected(token: Token, of: &Completion, state: AckState) -> Self {
        let Completion { submission, index, attempt, .. } = *of;
        let completed = Completed { proof: 0.into(), submission, index, attempt, state: state as u8, reserved: 0 };
        Self::from(&Completed { proof: token.acknowledgement_proof(&completed).into(), ..completed })
    }
}

impl From<&Completed> for Name {
    fn from(c: &Completed) -> Self {
        let task = u64::from(c.submission.get()) << 16 | u64::from(c.index) << 8 | u64::from(c.attempt);
        Self { proof: c.proof.get(), said: task << 8 | u64::from(c.state) }
    }
}

#[derive(Debug)]
struct Destination {
    recipient: Recipient,
    /// Completions to send, by number and stamp. Skips those acknowledged since.
    unsent: VecDeque<(u32, u32)>,
    /// Whether it is in `Completions::sendable`.
    queued: bool,
    kept: u32,
    round_trip: RoundTrip,
}

#[derive(Debug)]
struct Kept {
    /// Acknowledgement that ends it.
    done: Name,
    /// Only for a result by reference.
    fetching: Option<Name>,
    completion: Completion,
    result: Output,
    run: RunKey,
    destination: u32,
    /// Distinguishes it from earlier completions with the same number.
    stamp: u32,
    tries: u32,
    first_sent: Nanos,
    step: u8,
}

#[derive(Debug)]
pub(super) struct Completions {
    public_name: u64,
    tries_max: u32,
    kept_max: usize,
    delay_min: Nanos,
    delay_max: Nanos,
    round_trip: RoundTrip,
    kept: Vec<Option<Kept>>,
    vacant: Vec<u32>,
    /// By expected acknowledgement.
    names: HashMap<Name, u32, Keyed>,
    destinations: Vec<Option<Destination>>,
    vacant_destinations: Vec<u32>,
    recipients: HashMap<Recipient, u32, Keyed>,
    /// Cache of the last destination: consecutive tasks often share a client.
    recent: u32,
    sendable: VecDeque<u32>,
    timers: Timers,
    next_stamp: u32,
}

impl Completions {
    pub(super) fn new(config: &ExecutorConfig) -> Self {
        Self {
            public_name: config.public_name,
            tries_max: config.complete_tries,
            kept_max: config.completions,
            delay_min: config.repeat_min,
            delay_max: config.complete_max,
            round_trip: RoundTrip::assumed(config.round_trip),
            kept: Vec::new(),
            vacant: Vec::new(),
            names: HashMap::with_hasher(Keyed(config.seed)),
            destinations: Vec::new(),
            vacant_destinations: Vec::new(),
            recipients: HashMap::with_hasher(Keyed(config.seed)),
            recent: 0,
            sendable: VecDeque::new(),
            timers: Timers::new(),
            next_stamp: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.kept.len() - self.vacant.len()
    }

    pub(super) fn next_timeout(&self) -> Option<Nanos> {
        self.timers.next()
    }

    pub(super) fn add(
        &mut self,
        recipient: Recipient,
        token: Token,
        mut completion: Completion,
        mut result: Output,
        run: RunKey,
        report: &mut Report,
    ) {
        prove(token, self.public_name, &mut completion, &mut result);
        let is_part = completion.status == Status::Part as u8;
        let done = Name::expected(token, &completion, if is_part { AckState::Part } else { AckState::Done });
        let is_fetched = !is_part && matches!(result, Output::ByReference(_));
        let fetching = is_fetched.then(|| Name::expected(token, &completion, AckState::Fetching));
        if let Some(&same) = self.names.get(&done) {
            self.give_up(same, report); // the same attempt ran here before: the new result replaces it
        }
        if self.len() >= self.kept_max
            && let Some(furthest) = self.timers.pop_furthest()
        {
            self.give_up(furthest, report);
        }
        let destination = self.destination(recipient);
        self.next_stamp = self.next_stamp.wrapping_add(1);
        let stamp = self.next_stamp;
        let kept =
            Kept { done, fetching, completion, result, run, destination, stamp, tries: 0, first_sent: 0, step: 0 };
        if self.len() >= self.kept_max {
            settle(&kept, false, report);
            return;
        }
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.kept.push(None);
            self.kept.len() as u32 - 1
        });
        self.kept[number as usize] = Some(kept);
        self.names.insert(done, number);
        self.names.extend(fetching.map(|name| (name, number)));
        if let Some(to) = &mut self.destinations[destination as usize] {
            to.kept += 1;
        }
        self.enqueue(destination, number, stamp);
    }

    /// Handles an acknowledgement: the client has the completion, or is fetching its result.
    pub(super) fn acknowledge(&mut self, now: Nanos, completed: &Completed, report: &mut Report) {
        let found = self.names.get(&completed.into()).copied();
        let Some((number, kept)) = found.and_then(|n| Some((n, self.kept[n as usize].as_mut()?))) else {
            report.counters.unknown_acks += 1;
            return;
        };
        if kept.tries > 0
            && let Some(to) = &mut self.destinations[kept.destination as usize]
        {
            to.round_trip.sample(now.saturating_sub(kept.first_sent));
            self.round_trip = to.round_trip;
        }
        if completed.state == AckState::Fetching as u8 {
            // The client knows of the result: repeat at the slowest pace while it answers.
            (kept.tries, kept.step, kept.first_sent) = (0, u8::MAX, now);
            self.timers.arm(number, now, kept.step, self.delay_max, self.delay_max);
        } else if let Some(kept) = self.forget(number) {
            settle(&kept, true, report);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Nanos, report: &mut Report) {
        while let Some(number) = self.timers.pop(now) {
            let Some(kept) = &self.kept[number as usize] else { continue };
            if kept.tries >= self.tries_max {
                self.give_up(number, report);
            } else {
                report.counters.complete_repeats += 1;
                let (destination, stamp) = (kept.destination, kept.stamp);
                self.enqueue(destination, number, stamp);
            }
        }
    }

    pub(super) fn poll_transmit(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        while let Some(&number) = self.sendable.front() {
            let sent = self.write(now, number, buffer);
            match &mut self.destinations[number as usize] {
                Some(to) if !to.unsent.is_empty() => {}
                to => {
                    self.sendable.pop_front();
                    if let Some(to) = to {
                        to.queued = false;
                    }
                }
            }
            if sent.is_some() {
                return sent;
            }
        }
        None
    }

    /// Writes as many completions for one destination as fit; `None` if none is left.
    fn write(&mut self, now: Nanos, destination: u32, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        let to = self.destinations[destination as usize].as_mut()?;
        let fixed = Complete { executor: self.public_name.into(), ..Complete::new(to.recipient.epoch, 0) };
        let mut packet = Builder::new(buffer, &fixed);
        let base = to.round_trip.twice(self.delay_min);
        while let Some(&(number, stamp)) = to.unsent.front() {
            if let Some(kept) = self.kept[number as usize].as_mut().filter(|kept| kept.stamp == stamp) {
                if !packet.push_completion(&kept.completion, kept.result.as_bytes()) {
                    break;
                }
                if kept.tries == 0 {
                    kept.first_sent = now;
                }
                self.timers.arm(number, now, kept.step, base, self.delay_max);
                kept.tries += 1;
                kept.step = kept.step.saturating_add(1);
            }
            to.unsent.pop_front();
        }
        (packet.count() > 0).then_some(to.recipient.address)
    }

    fn enqueue(&mut self, destination: u32, number: u32, stamp: u32) {
        if let Some(to) = &mut self.destinations[destination as usize] {
            to.unsent.push_back((number, stamp));
            if !to.queued {
                to.queued = true;
                self.sendable.push_back(destination);
            }
        }
    }

    fn give_up(&mut self, number: u32, report: &mut Report) {
        if let Some(kept) = self.forget(number) {
            settle(&kept, false, report);
        }
    }

    fn forget(&mut self, number: u32) -> Option<Kept> {
        let kept = self.kept[number as usize].take()?;
        self.timers.disarm(number);
        self.names.remove(&kept.done);
        if let Some(fetching) = &kept.fetching {
            self.names.remove(fetching);
        }
        self.vacant.push(number);
        if let Some(to) = &mut self.destinations[kept.destination as usize] {
            to.kept -= 1;
        }
        Some(kept)
    }

    fn destination(&mut self, recipient: Recipient) -> u32 {
        if let Some(Some(to)) = self.destinations.get(self.recent as usize)
            && to.recipient == recipient
        {
            return self.recent;
        }
        self.recent = match self.recipients.get(&recipient) {
            Some(&known) => known,
            None => self.new_destination(recipient),
        };
        self.recent
    }

    fn new_destination(&mut self, recipient: Recipient) -> u32 {
        if self.recipients.len() > IDLE_DESTINATIONS.max(2 * self.len()) {
            self.forget_idle_destinations();
        }
        let number = self.vacant_destinations.pop().unwrap_or_else(|| {
            self.destinations.push(None);
            self.destinations.len() as u32 - 1
        });
        self.destinations[number as usize] = Some(Destination {
            recipient,
            unsent: VecDeque::new(),
            queued: false,
            kept: 0,
            round_trip: self.round_trip,
        });
        self.recipients.insert(recipient, number);
        number
    }

    fn forget_idle_destinations(&mut self) {
        for (number, slot) in self.destinations.iter_mut().enumerate() {
            if let Some(idle) = slot.take_if(|to| to.kept == 0 && !to.queued) {
                self.recipients.remove(&idle.recipient);
                self.vacant_destinations.push(number as u32);
            }
        }
    }
}

/// Proves a completion to the client, and encrypts the id of a result by reference.
fn prove(token: Token, public_name: u64, completion: &mut Completion, result: &mut Output) {
    let proof = token.completion_proof(public_name, completion, result.as_bytes());
    completion.proof = proof.into();
    if let Output::ByReference(blob) = result {
        *blob = token.hide(proof, blob);
    }
}

fn settle(kept: &Kept, delivered: bool, report: &mut Report) {
    let counter = if delivered { &mut report.counters.delivered } else { &mut report.counters.given_up };
    *counter += 1;
    if kept.completion.status != Status::Part as u8 && matches!(kept.result, Output::ByReference(_)) {
        report.events.push_back(Event::Settled { run: kept.run, delivered });
    }
}
