//! Packets of the switch, and acknowledgements of clients. Only the switch's current epoch is accepted; a new one first voids all
//! slots.

use super::slots::{Kind, Name, State};
use super::{Event, Executor, Run};
use crate::mutants::planted;
use midflight_endpoint::{Nanos, serial};
use midflight_wire::tasks::{
    APPENDED_MAX, Appendix, Assign, Assignment, Completed, Cookie, NoOp, Reason, Registered, Released, Reset, RunName,
    SlotName, Wait,
};
use midflight_wire::{PACKET_MAX, VERSION};

/// Bytes of the longest assignment.
const ASSIGNMENT_MAX: usize = size_of::<Assignment>() + APPENDED_MAX;

/// Accepted leases. Below 3 ms a lease cannot be kept, and above an hour it has no effect.
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
                // Not a loss: the switch has no room for more prefetch slots.
                None if is_ahead => self.ahead.refused(now),
                None => {
                    self.report.counters.slots_full += 1;
                    self.registrar.refused(local, Reason::from_number(answer.reason));
                }
            }
        }
    }

    /// Always false, because an earlier epoch may return. Only a mutant treats a far lower one as old.
    fn seems_past(&self, epoch: u32) -> bool {
        let ahead = serial::distance(epoch, self.link.epoch());
        planted(23) && self.slots.ordinary().end > 40 && self.link.epoch() != 0 && ahead < -(1 << 30)
    }

    /// A cookie does not end the switch's silence, because it may accept nothing.
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

    fn named(&mut self, local: u32, name: Name) {
        // The switch dropped another slot with this number without notice.
        if let Some(other) = self.slots.holder(name.number) {
            self.void(other);
        }
        self.registrar.satisfied(local);
        self.slots.register(local, name);
        self.newly_registered |= self.slots.kind(local) == Kind::Ordinary;
    }

    /// A new epoch: the switch knows no slots. Leaves slots with a REGISTER in flight alone, because a second one would return
    /// the tasks assigned in between.
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

    /// The switch does not know a wait. Skips leaving slots, which get RELEASED.
    fn on_void(&mut self, wait: &Wait) {
        if let Some(local) = self.slots.present(wait) {
            self.report.counters.resets += 1;
            self.void(local);
        } else {
            self.report.counters.stale_resets += 1;
        }
    }

    pub(super) fn on_assign(
        &mut self,
        now: Nanos,
        assign: &Assign,
        assignments: &[Assignment],
        mut appendix: Appendix<'_>,
    ) {
        let epoch = assign.header.epoch.get();
        if !self.is_present(epoch) {
            return;
        }
        let is_polled = self.link.poll.is_some();
        for assignment in assignments {
            let appended = appendix.next(&assignment.task);
            if let Some((run, round_trip)) = self.slots.assign(now, epoch, is_polled, assignment, appended) {
                if let Some(round_trip) = round_trip {
                    self.link.round_trip.sample(round_trip);
                }
                self.link.heard(now);
                // A task assigned to a parked slot did not wait.
                self.ahead.has_backlog |= assignment.waited_us.get() > 0;
                match run {
                    Some(run) => self.run(run),
                    None => self.report.counters.taken_early += 1,
                }
            } else if let Some(local) = is_polled.then(|| self.slots.keep(now, epoch, assignment, appended)).flatten() {
                self.link.heard(now);
                self.report.counters.extra_tasks += 1;
                self.run_kept(now, local);
            } else {
                self.report.counters.stale_assignments += 1;
            }
        }
        let appended: usize = assignments.iter().map(|assignment| assignment.task.appended_bytes()).sum();
        let is_full = size_of::<Assign>() + size_of_val(assignments) + appended + ASSIGNMENT_MAX > PACKET_MAX;
        self.answered_ahead(now, assign.header.sequence.get(), is_full);
    }

    /// Returns whether a response to prefetch waits with this number was expected.
    fn answered_ahead(&mut self, now: Nanos, number: u32, is_full: bool) -> bool {
        let Some(answered) = (number != 0).then(|| self.slots.answered_ahead(now, number, is_full)).flatten() else {
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

    /// Returns whether the slot had an extra task.
    pub(super) fn run_kept(&mut self, now: Nanos, local: u32) -> bool {
        self.slots.run_kept(now, local).map(|run| self.run(run)).is_some()
    }

    pub(super) fn on_no_op(&mut self, now: Nanos, no_op: &NoOp, waits: &[Wait]) {
        if !self.is_present(no_op.header.epoch.get()) {
            return;
        }
        if self.answered_ahead(now, no_op.header.sequence.get(), false) {
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

    /// Each record proves knowledge of the SUBMIT's token, which only the client, the switch and the executors of that SUBMIT
    /// have (T13).
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

    /// Another version gets no response; only switches send those.
    pub(super) fn on_other_version(&mut self, from_switch: bool, version: u8) {
        self.report.counters.other_versions += 1;
        if from_switch && version != VERSION && self.link.is_new_version(version) {
            self.report.events.push_back(Event::OtherVersion { switch: self.link.address(), version });
        }
    }

    /// A response to a recent packet, in the current epoch, ends the silence of the switch.
    fn is_answer(&mut self, now: Nanos, epoch: u32, counter: u64) -> bool {
        if epoch == self.link.epoch() && self.link.was_asked(counter) {
            self.link.heard(now);
            return true;
        }
        self.report.counters.foreign += 1;
        false
    }

    /// Does not end the switch's silence: others may know the epoch.
    fn is_present(&mut self, epoch: u32) -> bool {
        let present = epoch != 0 && epoch == self.link.epoch();
        self.report.counters.foreign += u64::from(!present);
        present
    }
}
