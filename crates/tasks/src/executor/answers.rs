//! Packets of the switch, and acknowledgements of clients. A packet of the switch is accepted only in the current epoch. A
//! new epoch first voids all slots.

use super::slots::{Kind, Name, State};
use super::{Event, Executor, Run};
use crate::mutants::planted;
use midflight_endpoint::{Nanos, serial};
use midflight_wire::{
    Argument, Assign, Assignment, Completed, Cookie, NoOp, Piece, Reason, Registered, Released, Reset, RunName,
    SlotName, VERSION, Wait,
};
use std::net::SocketAddr;
use zerocopy::IntoBytes;

/// The leases that are accepted from a switch: one below 3 ms could not be kept, and one above an hour is as good as none.
const LEASE_MS: std::ops::RangeInclusive<u32> = 3..=3_600_000;

impl Executor {
    pub(super) fn on_registered(&mut self, now: Nanos, answer: &Registered, names: &[SlotName]) {
        let epoch = answer.header.epoch.get();
        let answered = if epoch == 0 || self.seems_past(epoch) { None } else { self.registrar.answered(now, answer) };
        let Some((request, round_trip)) = answered else {
            self.report.counters.foreign += 1;
            return;
        };
        if epoch != self.link.epoch() {
            self.restarted(epoch);
        }
        self.link.heard(now);
        self.link.lease = Nanos::from(answer.lease_ms.get().clamp(*LEASE_MS.start(), *LEASE_MS.end())) * 1_000_000;
        self.link.poll = Some(Nanos::from(answer.poll_us.get()) * 1000).filter(|&every| every > 0);
        self.slots.set_polled(self.link.poll.is_some());
        if let Some(round_trip) = round_trip {
            self.link.round_trip.sample(round_trip);
        }
        self.seen = Some(answer.seen.into());
        let is_ahead = self.slots.is_ahead(request.first);
        let locals = request.first..request.first + request.count;
        let mut names = names.iter();
        for local in locals {
            match names.next() {
                Some(name) => self.named(local, name.into()),
                // They are no loss; the switch has no room for more.
                None if is_ahead => self.ahead.refused(now),
                None => {
                    self.report.counters.slots_full += 1;
                    self.registrar.refused(local, Reason::from_number(answer.reason));
                }
            }
        }
    }

    /// Never: epochs have no order, and an earlier one may return. Only a mutant takes an epoch far below for an old one.
    fn seems_past(&self, epoch: u32) -> bool {
        let ahead = serial::distance(epoch, self.link.epoch());
        planted(23) && self.slots.ordinary().end > 40 && self.link.epoch() != 0 && ahead < -(1 << 30)
    }

    /// The switch asks for a cookie. That does not mean that it will accept anything, so its silence goes on.
    pub(super) fn on_cookie(&mut self, now: Nanos, answer: &Cookie) {
        let Some(round_trip) = self.registrar.is_refused(now, answer) else {
            self.report.counters.foreign += 1;
            return;
        };
        self.report.counters.cookies += 1;
        if let Some(round_trip) = round_trip {
            self.link.round_trip.sample(round_trip);
        }
        if std::mem::replace(&mut self.link.cookie, answer.cookie.get()) != answer.cookie.get() {
            self.registrar.ask_again();
        }
    }

    /// The switch has given a slot this name.
    fn named(&mut self, local: u32, name: Name) {
        // If another slot of ours had this number, the switch has dropped that slot without telling us, and its name is
        // void.
        if let Some(other) = self.slots.holder(name.number) {
            self.void(other);
        }
        self.registrar.satisfied(local);
        self.slots.register(local, name);
        self.newly_registered |= self.slots.kind(local) == Kind::Ordinary;
    }

    /// Another epoch: the switch knows none of our slots. Slots whose REGISTER is in flight are left alone: it is repeated
    /// anyway, and a second REGISTER would return the tasks that they were assigned in between.
    fn restarted(&mut self, epoch: u32) {
        self.link.enter(epoch);
        self.registrar.ask_refused();
        self.void_all();
    }

    pub(super) fn on_reset(&mut self, now: Nanos, reset: &Reset, waits: &[Wait]) {
        let (epoch, counter) = (reset.header.epoch.get(), reset.counter.get());
        if !waits.is_empty() {
            if self.is_answer(now, epoch, counter) {
                waits.iter().for_each(|wait| self.on_void(wait));
            }
        } else if epoch != 0
            && epoch != self.link.epoch()
            && !self.seems_past(epoch)
            && self.link.was_asked_in_epoch(counter)
        {
            self.link.heard(now);
            self.report.counters.resets += u64::from(self.registered());
            self.restarted(epoch);
        } else if epoch == self.link.epoch() && self.link.is_answer(counter) {
            self.link.heard(now);
        } else {
            self.report.counters.foreign += 1;
        }
    }

    /// The switch does not know a wait. Slots that leave are skipped: RELEASED tells them.
    fn on_void(&mut self, wait: &Wait) {
        if let Some(local) = self.slots.present(wait) {
            self.report.counters.resets += 1;
            self.void(local);
        } else {
            self.report.counters.stale_resets += 1;
        }
    }

    pub(super) fn on_assign(&mut self, now: Nanos, assign: &Assign, assignments: &[Assignment]) {
        let epoch = assign.header.epoch.get();
        if !self.is_present(epoch) {
            return;
        }
        let is_polled = self.link.poll.is_some();
        for assignment in assignments {
            if let Some((run, round_trip)) = self.slots.assign(now, epoch, is_polled, assignment) {
                if let Some(round_trip) = round_trip {
                    self.link.round_trip.sample(round_trip);
                }
                self.link.heard(now);
                // A task that was given to a parked slot has not waited.
                self.ahead.has_backlog |= assignment.waited_us.get() > 0;
                match run {
                    Some(run) => self.run(run),
                    None => self.report.counters.taken_early += 1,
                }
            } else if let Some(local) = is_polled.then(|| self.slots.keep(now, epoch, assignment)).flatten() {
                self.link.heard(now);
                self.report.counters.extra_tasks += 1;
                self.run_kept(now, local);
            } else {
                self.report.counters.stale_assignments += 1;
            }
        }
        self.answered_ahead(now, assign.header.sequence.get());
    }

    /// A packet answers the waits ahead of this number. Returns whether such an answer was expected.
    fn answered_ahead(&mut self, now: Nanos, number: u32) -> bool {
        let Some(answered) = (number != 0).then(|| self.slots.answered_ahead(now, number)).flatten() else {
            return false;
        };
        self.link.heard(now);
        self.link.round_trip.sample(answered.round_trip);
        self.ahead.has_backlog = !answered.is_short;
        true
    }

    pub(super) fn run(&mut self, run: Run) {
        self.report.counters.runs += 1;
        if planted(25) {
            self.keepalive_due = Some(run.arrived + self.link.lease / 3); // so no KEEPALIVE is sent while tasks keep coming
        }
        self.report.events.push_back(Event::Run(run));
    }

    /// Lets a slot run an extra task that was kept for it. Returns whether there was one.
    pub(super) fn run_kept(&mut self, now: Nanos, local: u32) -> bool {
        self.slots.run_kept(now, local).map(|run| self.run(run)).is_some()
    }

    pub(super) fn on_no_op(&mut self, now: Nanos, no_op: &NoOp, waits: &[Wait]) {
        if !self.is_present(no_op.header.epoch.get()) {
            return;
        }
        if self.answered_ahead(now, no_op.header.sequence.get()) {
            self.report.counters.polls_ahead += 1;
            return;
        }
        for wait in waits {
            let Some(round_trip) = self.link.poll.and_then(|every| self.slots.no_op(now, every, wait)) else {
                self.report.counters.stale_no_ops += 1;
                continue;
            };
            if let Some(round_trip) = round_trip {
                self.link.round_trip.sample(round_trip);
            }
            self.link.heard(now);
            self.report.counters.polls += 1;
        }
    }

    pub(super) fn on_released(&mut self, now: Nanos, released: &Released, names: &[SlotName]) {
        let counter = released.counter.get();
        if !self.is_answer(now, released.header.epoch.get(), counter) {
            return;
        }
        for name in names {
            match self.slots.released(name.into(), counter) {
                Some((local, State::Returning)) => self.slots.take_rest(local),
                Some((local, _)) => self.void(local),
                None => self.report.counters.stale_releases += 1,
            }
        }
    }

    pub(super) fn on_complete_ack(&mut self, now: Nanos, completed: &[Completed]) {
        for one in completed {
            self.completions.acknowledge(now, one, &mut self.report);
        }
    }

    /// An argument that is not as long as it says is malformed.
    pub(super) fn on_argument(&mut self, client: SocketAddr, said: &Argument, pieces: &[Piece]) {
        let (length, room) = (said.length.get() as usize, pieces.as_bytes());
        if length.div_ceil(size_of::<Piece>()) != pieces.len() {
            self.report.counters.rejected += 1;
            return;
        }
        self.report.counters.arguments_came_along += 1;
        let (name, tag, bytes) = (said.name.get(), said.tag, room[..length].to_vec());
        self.report.events.push_back(Event::Argument { client, name, tag, bytes });
    }

    /// A client wants tasks to be stopped. Each proves that the sender knows the token of its SUBMIT, as only its client, the switch
    /// and the executors of that SUBMIT do (T13).
    pub(super) fn on_stop(&mut self, names: &[RunName]) {
        for name in names {
            match self.slots.stop(name) {
                Some(run) if planted(36) && run.slot >= 8 => {} // planted bug: the driver is told of the first slots only
                Some(run) => {
                    self.report.counters.stops += 1;
                    self.report.events.push_back(Event::Stop(run));
                }
                None => self.report.counters.unknown_stops += 1,
            }
        }
    }

    /// Handles a datagram of another version, or a VERSION packet. It gets no answer: only switches answer those.
    pub(super) fn on_other_version(&mut self, from_switch: bool, version: u8) {
        self.report.counters.other_versions += 1;
        if from_switch && version != VERSION && self.link.is_new_version(version) {
            self.report.events.push_back(Event::OtherVersion { switch: self.link.address(), version });
        }
    }

    /// Whether a packet has the current epoch and answers one that was sent lately. If so, the silence of the switch ends.
    fn is_answer(&mut self, now: Nanos, epoch: u32, counter: u64) -> bool {
        if epoch == self.link.epoch() && self.link.was_asked(counter) {
            self.link.heard(now);
            return true;
        }
        self.report.counters.foreign += 1;
        false
    }

    /// Whether a packet of the switch has the current epoch. That alone does not end the silence of the switch, because
    /// others may know the epoch too; only an answer to a wait of ours does.
    fn is_present(&mut self, epoch: u32) -> bool {
        let present = epoch != 0 && epoch == self.link.epoch();
        self.report.counters.foreign += u64::from(!present);
        present
    }
}
