//! What the switch says, and what clients acknowledge. A packet of the switch counts only in the present epoch; a new epoch
//! voids all slots first.

use super::slots::{Name, State};
use super::{Event, Executor, Run};
use crate::Nanos;
use midflight_wire::{Assign, Assignment, CompleteAck, Completed, NoOp, Registered, Released, Reset, SlotName, Wait};

/// Leases that a switch may tell: one below 3 ms could not be kept, and one above an hour is as good as none.
const LEASE_MS: std::ops::RangeInclusive<u32> = 3..=3_600_000;

impl Executor {
    pub(super) fn on_registered(&mut self, now: Nanos, answer: &Registered, names: &[SlotName]) {
        let epoch = answer.header.epoch.get();
        if self.link.has_passed(epoch) {
            self.report.counters.foreign += 1;
            return;
        }
        let Some((request, round_trip)) = self.registrar.answered(now, answer) else {
            self.report.counters.foreign += 1;
            return;
        };
        if epoch != self.link.epoch() {
            self.restarted(epoch);
        }
        self.link.heard(now);
        self.link.lease = Nanos::from(answer.lease_ms.get().clamp(*LEASE_MS.start(), *LEASE_MS.end())) * 1_000_000;
        self.link.poll = Some(Nanos::from(answer.poll_us.get()) * 1000).filter(|&every| every > 0);
        if let Some(round_trip) = round_trip {
            self.link.round_trip.sample(round_trip);
        }
        self.seen = Some(answer.seen.into());
        let locals = request.first..request.first + request.count;
        let mut names = names.iter();
        for local in locals {
            match names.next() {
                Some(name) => self.named(local, name.into(), request.sequence),
                None if self.slots.get(local).is_some_and(|slot| slot.state == State::Unregistered) => {
                    self.report.counters.slots_full += 1;
                    self.registrar.refused(local);
                }
                None => {}
            }
        }
    }

    /// The switch calls a slot by this name now.
    fn named(&mut self, local: u32, name: Name, registration: u32) {
        let Some(slot) = self.slots.get(local) else { return };
        let older = slot.registered && (registration.wrapping_sub(slot.registration) as i32) < 0;
        if older || (slot.registered && slot.name == name) {
            return;
        }
        match slot.state {
            State::Unregistered => {}
            State::Waiting => _ = self.slots.void(local),
            State::Running => {
                self.slots.void(local);
                return;
            }
            State::Leaving | State::Gone => return,
        }
        // A number that another slot of ours had was given anew, so that one's name is void: it was forgotten in silence.
        if let Some(other) = self.slots.holder(name.number) {
            self.void(other);
        }
        self.registrar.satisfied(local);
        self.slots.register(local, name, registration);
        self.newly_registered = true;
    }

    /// Another epoch: the switch knows none of our slots. What is being asked for is repeated anyhow, and a second REGISTER for
    /// it would take from the slots what they were assigned in between.
    fn restarted(&mut self, epoch: u32) {
        self.link.enter(epoch);
        self.registrar.ask_refused();
        self.void_all();
    }

    pub(super) fn on_reset(&mut self, now: Nanos, reset: &Reset, names: &[SlotName]) {
        let epoch = reset.header.epoch.get();
        if names.is_empty() {
            // An answer to an epoch that we have left already says nothing new.
            if epoch == self.link.epoch() || self.link.has_passed(epoch) {
                self.report.counters.foreign += 1;
                return;
            }
            self.link.heard(now);
            self.report.counters.resets += u64::from(self.slots.census.registered);
            self.restarted(epoch);
        } else if self.is_present(now, epoch) {
            for name in names {
                if let Some(local) = self.slots.find(name.into()) {
                    self.report.counters.resets += 1;
                    self.void(local);
                }
            }
        }
    }

    pub(super) fn on_assign(&mut self, now: Nanos, assign: &Assign, assignments: &[Assignment]) {
        let epoch = assign.header.epoch.get();
        if !self.is_present(now, epoch) {
            return;
        }
        let is_polled = self.link.poll.is_some();
        for assignment in assignments {
            if let Some((run, round_trip)) = self.slots.assign(now, epoch, is_polled, assignment) {
                if let Some(round_trip) = round_trip {
                    self.link.round_trip.sample(round_trip);
                }
                self.run(run);
            } else if let Some(local) = is_polled.then(|| self.slots.keep(now, epoch, assignment)).flatten() {
                self.report.counters.surplus += 1;
                self.run_kept(local);
            } else {
                self.report.counters.stale_assignments += 1;
            }
        }
    }

    fn run(&mut self, run: Run) {
        self.report.counters.runs += 1;
        self.report.events.push_back(Event::Run(run));
    }

    /// Whether a slot runs what was kept for it.
    pub(super) fn run_kept(&mut self, local: u32) -> bool {
        self.slots.run_kept(local).map(|run| self.run(run)).is_some()
    }

    pub(super) fn on_no_op(&mut self, now: Nanos, no_op: &NoOp, waits: &[Wait]) {
        if !self.is_present(now, no_op.header.epoch.get()) {
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
            self.report.counters.polls += 1;
        }
    }

    pub(super) fn on_released(&mut self, now: Nanos, released: &Released, names: &[SlotName]) {
        if self.is_present(now, released.header.epoch.get()) {
            for name in names {
                if let Some(local) = self.slots.find(name.into()) {
                    self.void(local);
                }
            }
        }
    }

    pub(super) fn on_complete_ack(&mut self, now: Nanos, ack: &CompleteAck, completed: &[Completed]) {
        for one in completed {
            self.completions.acknowledge(now, ack.client.get(), one, &mut self.report);
        }
    }

    /// Whether a packet of the switch is of the present epoch; then it was heard.
    fn is_present(&mut self, now: Nanos, epoch: u32) -> bool {
        let present = epoch != 0 && epoch == self.link.epoch();
        if present {
            self.link.heard(now);
        } else {
            self.report.counters.foreign += 1;
        }
        present
    }
}
