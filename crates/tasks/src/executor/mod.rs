//! The executor of the tasks program, without I/O.
//!
//! It registers slots at a switch and waits with each for a task. [`Event::Run`] hands an assigned task to the driver, and
//! [`Executor::finish`] reports its end to the client and lets the slot wait again. `docs/internals/tasks.md` ("The executor")
//! specifies the protocol.
//!
//! | file | subject |
//! |---|---|
//! | `received` | packets from the switch (ASSIGN and others) and from clients |
//! | `slots` | the state of each slot; in `slots/transmit`: RETRIEVE, KEEPALIVE, RELEASE; in `slots/ahead`: prefetched tasks |
//! | `slots/bundles` | counted resources: the bundles of each slot |
//! | `ahead` | when to prefetch, and how many tasks |
//! | `offers` | when to withdraw waits that could offer more of the counted resources |
//! | `lending` | the workers of prefetched runs and of runs that wait for other tasks |
//! | `register` | slots to register; REGISTER |
//! | `completions` | results on their way to clients; COMPLETE |
//! | `link` | the current switch, its epoch, cookie and silence; the counter of packets to it |
//! | `timers` | when to repeat packets |

mod ahead;
mod completions;
mod config;
mod hash;
mod lending;
mod link;
mod offers;
mod received;
mod register;
mod run;
mod slots;
#[cfg(test)]
mod tests;
mod timers;

pub use config::{AHEAD_MAX, AHEAD_SPAN_MAX, BUNDLES_MAX, ConfigError, ExecutorConfig, SLOTS_MAX, WAITING_MAX};
pub use run::{BundleCounts, Bundles, Counters, End, Event, Output, Run, RunKey};

use crate::mutants::planted;
use ahead::Ahead;
use completions::{Completions, Recipient};
use link::Link;
use midflight_endpoint::{Endpoint, Nanos};
use midflight_wire::tasks::{Completion, Keepalive, Packet, RESULT_MAX, Reason, Status, Wait, parse};
use midflight_wire::{Builder, Reject};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use register::Registrar;
use run::Report;
use slots::{Held, Kind, Slot, Slots, State};
use std::net::SocketAddr;
use zerocopy::byteorder::network_endian::U32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drain {
    No,
    Since(Nanos),
    Done,
}

/// The executor's state machine; see the module.
#[derive(Debug)]
pub struct Executor {
    link: Link,
    slots: Slots,
    registrar: Registrar,
    completions: Completions,
    ahead: Ahead,
    report: Report,
    /// Set while any slot runs.
    keepalive_due: Option<Nanos>,
    offers_due: Option<Nanos>,
    /// Since the last [`Event::Registered`].
    newly_registered: bool,
    seen: Option<SocketAddr>,
    drain: Drain,
    drain_silence: Nanos,
}

impl Executor {
    /// Creates an executor that begins to register at `now`.
    ///
    /// # Errors
    /// If the configuration is out of bounds.
    pub fn new(config: ExecutorConfig, now: Nanos) -> Result<Self, ConfigError> {
        config.check()?;
        let mut random = Pcg64Mcg::seed_from_u64(config.seed);
        let mut executor = Self {
            link: Link::new(&config, now, &mut random),
            slots: Slots::new(&config),
            registrar: Registrar::new(&config, random),
            completions: Completions::new(&config),
            ahead: Ahead::new(&config),
            report: Report::default(),
            keepalive_due: None,
            offers_due: None,
            newly_registered: false,
            seen: None,
            drain: Drain::No,
            drain_silence: config.drain_silence,
        };
        executor.slots.ordinary().for_each(|local| executor.registrar.want(local));
        executor.settle(now);
        Ok(executor)
    }

    /// The task of `run` ended, or could not start ([`Status::Unknown`], [`Status::Abandoned`], [`Status::Cancelled`]). Its slot
    /// waits again. An inline result above [`RESULT_MAX`] bytes becomes [`Status::Failed`].
    pub fn finish(&mut self, now: Nanos, run: RunKey, end: End) {
        let Some((held, started)) = self.slots.finish(run) else {
            self.report.counters.unknown_finishes += 1;
            return;
        };
        self.report.counters.finished += 1;
        self.ahead.ran(now.saturating_sub(started));
        self.complete(run, &held, end);
        self.lend(); // if it waited for others, a spare's wait is withdrawn, not its own
        if !self.run_kept(now, run.slot) {
            self.is_free(run.slot);
        }
        self.start_ready(now);
        self.settle(now);
    }

    /// A running task returns a part; the client gets it in a completion. The driver serves one by reference until the run ends.
    pub fn give_back_part(&mut self, now: Nanos, run: RunKey, part: Output) {
        let Some(held) = self.slots.held(run) else {
            self.report.counters.unknown_finishes += 1;
            return;
        };
        self.report.counters.parts += 1;
        let end = End { status: Status::Part, result: part, started: now, ended: now };
        self.complete(run, &held, end);
        self.settle(now);
    }

    /// The slot's runs have ended. The census still counts it as running.
    fn is_free(&mut self, local: u32) {
        let registered = self.slots.get(local).is_some_and(|slot| slot.registered);
        let is_surplus = self.slots.census.has_surplus(self.slots.kind(local));
        match (self.drain == Drain::No, registered) {
            (true, true) if self.slots.is_ahead(local) => self.slots.take_rest(local),
            (true, true) if is_surplus && self.link.poll.is_some() => self.slots.take_rest(local),
            (true, true) if is_surplus => self.slots.tell_done(local),
            (true, true) => self.slots.wait(local),
            (true, false) => self.unregistered(local),
            (false, true) => self.slots.leave(local),
            (false, false) => self.slots.enter(local, State::Gone),
        }
    }

    /// Drains: accepts no new tasks, finishes those that run, and leaves the switch. Ends with [`Event::Drained`].
    pub fn drain(&mut self, now: Nanos) {
        if self.drain != Drain::No {
            return;
        }
        self.drain = Drain::Since(now);
        self.registrar.clear();
        for local in self.slots.locals() {
            match self.slots.get(local).map(|slot| slot.state) {
                Some(State::Unregistered) => self.slots.enter(local, State::Gone),
                Some(State::Waiting | State::Idle | State::Ready | State::Returning) => self.slots.leave(local),
                _ => {}
            }
        }
        self.link.expect(now, false); // silence counts from now on
        self.settle(now);
    }

    /// Whether a drain has ended.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.drain == Drain::Done
    }

    /// Number of runs that have not ended.
    #[must_use]
    pub fn running(&self) -> u32 {
        self.slots.census.all(State::Running)
    }

    /// Number of registered slots, without prefetch slots, as far as known.
    #[must_use]
    pub fn registered(&self) -> u32 {
        self.slots.census.registered(Kind::Ordinary)
    }

    /// Number of registered prefetch slots, as far as known.
    #[must_use]
    pub fn registered_ahead(&self) -> u32 {
        self.slots.census.registered(Kind::Ahead)
    }

    /// Whether runs may wait for other tasks.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        !self.slots.spares().is_empty()
    }

    /// Number of runs that wait for other tasks and lend their slots.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.slots.census.waiting_runs
    }

    /// Number of received tasks that have not started.
    #[must_use]
    pub fn ready(&self) -> u32 {
        self.slots.ready()
    }

    /// Number of bundles of a resource, by its bit, and their use.
    #[must_use]
    pub fn bundles(&self, bit: u8) -> BundleCounts {
        let (held, offered) = self.slots.bundles_in_use(bit);
        BundleCounts { total: self.slots.bundles(bit), held, offered }
    }

    /// Number of unacknowledged completions.
    #[must_use]
    pub fn unacknowledged(&self) -> usize {
        self.completions.len()
    }

    /// Address of the current switch.
    #[must_use]
    pub fn switch(&self) -> SocketAddr {
        self.link.address()
    }

    /// Counters since the start.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.report.counters
    }

    fn complete(&mut self, run: RunKey, held: &Held, end: End) {
        let (status, result) = match end.result {
            Output::Inline(bytes) if bytes.len() > RESULT_MAX => {
                let message = format!("result of {} bytes: beyond {RESULT_MAX}, pass it by reference", bytes.len());
                (Status::Failed, Output::Inline(message.into_bytes()))
            }
            result => (end.status, result),
        };
        let (by_reference, result_length) = match &result {
            Output::Inline(bytes) => (0, bytes.len() as u16),
            Output::ByReference(_) => (1, size_of::<midflight_wire::tasks::BlobRef>() as u16),
        };
        let held_us = end.started.saturating_sub(held.arrived) / 1000;
        let completion = Completion {
            proof: 0.into(),
            submission: held.submission.into(),
            index: held.index,
            attempt: held.attempt,
            status: status as u8,
            by_reference,
            waited_us: held.waited_us.into(),
            held_us: u32::try_from(held_us).unwrap_or(u32::MAX).into(),
            ran_ns: end.ended.saturating_sub(end.started).into(),
            result_length: result_length.into(),
            reserved: 0.into(),
        };
        let recipient = Recipient { address: held.address, epoch: held.epoch };
        self.completions.add(recipient, held.token, completion, result, run, &mut self.report);
    }

    fn void_all(&mut self) {
        for local in self.slots.locals() {
            self.void(local);
        }
    }

    fn void(&mut self, local: u32) {
        if self.slots.void(local) {
            self.registrar.want(local);
        }
    }

    fn unregistered(&mut self, local: u32) {
        self.slots.enter(local, State::Unregistered);
        if self.slots.kind(local) == Kind::Ordinary {
            self.registrar.want(local);
        }
    }

    fn settle(&mut self, now: Nanos) {
        self.lend();
        self.watch_offers(now);
        let census = self.slots.census;
        let is_releasing = census.all(State::Leaving) + census.all(State::Returning) > 0;
        let expecting = census.all(State::Waiting) > census.got_no_op || is_releasing || !self.registrar.is_quiet();
        self.link.expect(now, expecting);
        let has_tasks = census.all(State::Running) + census.all(State::Ready) > 0;
        let rests = census.of(Kind::Ordinary, State::Idle) > 0; // it must stay registered
        let has_slots_to_name = has_tasks || rests || census.all(State::Returning) > 0;
        match self.keepalive_due {
            None if has_slots_to_name => self.keepalive_due = Some(now + self.link.lease / 3),
            Some(_) if !has_slots_to_name => self.keepalive_due = None,
            _ => {}
        }
        if self.registrar.is_quiet() {
            self.report_registration(now);
        }
        if matches!(self.drain, Drain::Since(_)) && !has_tasks && !is_releasing && self.completions.len() == 0 {
            self.drain = Drain::Done;
            self.report.events.push_back(Event::Drained);
        }
    }

    /// All REGISTERs are answered: reports the result.
    fn report_registration(&mut self, now: Nanos) {
        let slots = self.registered();
        if let (true, Some(seen)) = (std::mem::take(&mut self.newly_registered), self.seen) {
            self.report.events.push_back(Event::Registered { switch: self.link.address(), slots, seen });
        }
        if self.registrar.back_off(now) {
            self.report.events.push_back(Event::SlotsFull {
                got: slots,
                is_share: self.registrar.refused_for == Some(Reason::Share),
            });
        }
    }

    /// When to react to the switch's silence: first by a probe, because a parked wait gets no response (a polling one is a probe
    /// itself); later by changing the switch.
    fn silence_due(&self) -> Option<Nanos> {
        let since = self.link.silent_since()?;
        if self.drain != Drain::No {
            return (self.slots.census.all(State::Leaving) > 0).then_some(since + self.drain_silence);
        }
        if !self.registrar.is_question() && !self.link.is_asking() {
            Some(since + self.link.lease)
        } else {
            self.link.has_alternative().then_some(since + 2 * self.link.lease)
        }
    }

    fn on_silence(&mut self, now: Nanos) {
        if self.drain != Drain::No {
            for local in self.slots.locals() {
                if self.slots.get(local).is_some_and(|slot| slot.state == State::Leaving) {
                    self.slots.void(local);
                }
            }
        } else if self.is_to_be_asked() {
            self.link.ask(now);
        } else {
            self.next_switch(now);
        }
    }

    /// Not if slots poll, because the switch should have answered the polls; but an only switch is probed even then, for its
    /// epoch.
    fn is_to_be_asked(&self) -> bool {
        let is_asked = self.registrar.is_question() || self.link.is_asking();
        let has_polled = self.link.poll.is_some() && self.link.has_alternative();
        !is_asked && !has_polled
    }

    fn next_switch(&mut self, now: Nanos) {
        self.link.next_switch(now);
        self.switch_changed();
    }

    fn switch_changed(&mut self) {
        self.registrar.clear();
        self.void_all();
        self.ahead.has_backlog = false;
        for local in self.slots.ordinary() {
            if self.slots.get(local).is_some_and(|slot| slot.state == State::Unregistered) {
                self.registrar.want(local);
            }
        }
        self.report.counters.switch_changes += 1;
        self.report.events.push_back(Event::SwitchChanged { switch: self.link.address() });
    }
}

impl Executor {
    fn failback_due(&self) -> Option<Nanos> {
        self.link.failback_due().filter(|_| self.drain == Drain::No)
    }

    fn probe_better_switch(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        self.failback_due()?;
        let (to, counter) = self.link.failback_probe(now)?;
        put_question(counter, &NO_SLOT, buffer);
        Some(to)
    }

    fn ask_whether_it_lives(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        let counter = self.link.question(now)?;
        let slots = self.slots.locals().filter_map(|local| self.slots.get(local));
        let named = slots.filter(|slot| slot.registered).map(Slot::wait).next();
        put_question(counter, &named.unwrap_or(NO_SLOT), buffer);
        Some(self.link.address())
    }
}

const NO_SLOT: Wait = Wait { slot: U32::ZERO, generation: U32::ZERO, sequence: U32::ZERO };

/// A KEEPALIVE with epoch 0 changes nothing and needs no cookie; any live switch answers it by RESET. It names a slot if
/// possible, because under attack a switch may answer only known executors.
fn put_question(counter: u64, named: &Wait, buffer: &mut Vec<u8>) {
    Builder::new(buffer, &Keepalive { counter: counter.into(), ..Keepalive::new(0, 0) }).push(named);
}

impl Endpoint for Executor {
    type Event = Event;

    fn handle(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8]) {
        let from_switch = self.link.is_from_switch(from);
        let packet = match parse(datagram) {
            Ok(Packet::Version(other)) => return self.on_other_version(from_switch, other.version),
            Err(Reject::BadVersion(version)) => return self.on_other_version(from_switch, version),
            Ok(packet) => packet,
            Err(_) => {
                self.report.counters.rejected += 1;
                return;
            }
        };
        match packet {
            Packet::CompleteAck(_, completed) => self.on_complete_ack(now, completed),
            Packet::Stop(_, names) => self.on_stop(names),
            Packet::Assign(assign, assignments, appendix) if from_switch => {
                self.on_assign(now, assign, assignments, appendix);
            }
            Packet::Registered(answer, names) if from_switch => self.on_registered(now, answer, names),
            Packet::Cookie(cookie) if from_switch => self.on_cookie(now, cookie),
            Packet::Reset(reset, waits) if from_switch => self.on_reset(now, reset, waits),
            Packet::Reset(reset, []) if self.drain == Drain::No && self.link.found(from, reset.counter.get(), now) => {
                self.switch_changed();
            }
            Packet::Released(released, names) if from_switch => self.on_released(now, released, names),
            Packet::NoOp(no_op, waits) if from_switch => self.on_no_op(now, no_op, waits),
            Packet::Assign(..)
            | Packet::NoOp(..)
            | Packet::Registered(..)
            | Packet::Cookie(..)
            | Packet::Reset(..)
            | Packet::Released(..) => self.report.counters.foreign += 1,
            _ => self.report.counters.rejected += 1,
        }
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.give_back_late(now);
        self.leave_unused(now);
        self.renew_offers(now);
        self.report.counters.wait_repeats += self.slots.handle_timeout(now);
        self.completions.handle_timeout(now, &mut self.report);
        self.registrar.handle_timeout(now);
        if self.keepalive_due.is_some_and(|due| due <= now) {
            if !planted(21) || self.drain == Drain::No {
                self.slots.keep_alive();
            }
            self.keepalive_due = Some(now + self.link.lease / 3);
        }
        if self.silence_due().is_some_and(|due| due <= now) {
            self.on_silence(now);
        }
        self.settle(now);
    }

    fn poll_transmit(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        // The completion goes out before the wait that reports its task done.
        if let Some(client) = self.completions.poll_transmit(now, buffer) {
            return Some(client);
        }
        self.ask_ahead(now);
        self.watch_offers(now);
        let counted = self.slots.transmit_retrieve(now, &self.link, buffer)
            || self.slots.transmit_asks(now, &self.link, buffer)
            || self.slots.transmit_release(now, &self.link, buffer)
            || self.slots.transmit_keepalive(&self.link, buffer);
        let census = &self.slots.census;
        if counted && !(planted(24) && census.all(State::Waiting) == 0 && census.all(State::Running) > 2) {
            self.link.count();
        }
        if counted || self.registrar.poll_transmit(now, &self.link, buffer) {
            return Some(self.link.address());
        }
        self.ask_whether_it_lives(now, buffer).or_else(|| self.probe_better_switch(now, buffer))
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.report.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        let times = [
            self.slots.next_timeout(),
            self.completions.next_timeout(),
            self.registrar.next_timeout(),
            self.keepalive_due,
            self.silence_due(),
            self.link.question_due(),
            self.failback_due(),
            self.next_return_due(),
            self.unused_due(),
            self.offers_due,
        ];
        times.into_iter().flatten().min()
    }
}
