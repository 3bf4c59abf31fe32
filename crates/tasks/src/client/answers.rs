//! Responses of the switch. The client accepts one only from the current switch, with its own identity, to an outstanding
//! request, in the current epoch. A new epoch first makes it submit its tasks again.

use super::in_flight::{Cancellation, Request};
use super::switches::EpochMeaning;
use super::table::{Cancel, State};
use super::{CancelledHow, Client, Event};
use crate::mutants::planted;
use midflight_endpoint::Nanos;
use midflight_wire::tasks::{CancelAck, Holder, Known, PROBE_MAX, ProbeAck, Reason, SubmitAck};
use midflight_wire::{Header, VERSION};
use std::net::SocketAddr;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Answered {
    /// None.
    Nothing,
    /// A packet in flight. An earlier switch at the same address may have answered it.
    Flight,
    /// The outstanding PROBE. It was sent in the current epoch, so the switch that answers it is alive.
    Question,
}

impl Client {
    fn admit(&mut self, now: Nanos, from: SocketAddr, client: u64, header: &Header, answered: Answered) -> bool {
        let epoch = header.epoch.get();
        let refused = if client != self.config.identity {
            &mut self.counters.foreign_identity
        } else if !self.switches.is_present(from) {
            &mut self.counters.foreign_address
        } else if answered == Answered::Nothing {
            &mut self.counters.unexpected_answers
        } else if epoch == 0 {
            &mut self.counters.bad_answers
        } else {
            match self.switches.judge(epoch) {
                EpochMeaning::Past if answered == Answered::Flight => &mut self.counters.old_epoch,
                judgement => {
                    if judgement != EpochMeaning::Present {
                        self.change_switch(now, epoch);
                    }
                    self.release_resumed();
                    self.switches.hear(now);
                    self.is_asking = false;
                    return true;
                }
            }
        };
        *refused += 1;
        false
    }

    pub(super) fn handle_submit_ack(&mut self, now: Nanos, from: SocketAddr, ack: &SubmitAck) {
        let sequence = ack.header.sequence.get();
        let (taken, not_taken) = (ack.taken.get(), ack.not_taken.get());
        let count = match self.flights.get(sequence).map(|flight| &flight.request) {
            Some(&Request::Submit { count, .. }) => Some(count),
            _ => None,
        };
        let answered = if count.is_some() { Answered::Flight } else { Answered::Nothing };
        if !self.admit(now, from, ack.client.get(), &ack.header, answered) {
            return;
        }
        let all = u32::MAX >> (32 - u32::from(ack.header.count).clamp(1, 32));
        let reason = Reason::from_number(ack.reason);
        let (Some(reason), true) = (reason, count == Some(ack.header.count) && taken ^ not_taken == all) else {
            self.counters.bad_answers += 1;
            return;
        };
        let Some(flight) = self.flights.take(sequence) else { return };
        if flight.sent_once {
            self.round_trip.sample(now.saturating_sub(flight.sent_at));
        }
        let answered: Vec<u32> = self.table.sent_in(sequence).map(|(_, at)| at).collect();
        self.pace(now, flight.sent_at, not_taken, reason);
        for (index, at) in self.table.sent_in(sequence) {
            let bit = if planted(31) { index & 15 } else { index };
            if taken >> bit & 1 == 1 {
                self.taken(now, at);
            } else {
                // An earlier switch may have accepted a repeated SUBMIT, so the task keeps its name.
                if flight.sent_once && reason != Reason::TooOld {
                    self.table.unname(at);
                }
                self.submit_again(at);
            }
        }
        self.save(&answered);
        if let Request::Submit { unwanted, .. } = flight.request {
            self.cancellations.extend(unwanted.into_iter().filter(|it| taken >> it.name.index & 1 == 1));
        }
        self.flights.recycle(flight.packet);
    }

    /// Adapts the window (T7).
    fn pace(&mut self, now: Nanos, sent_at: Nanos, not_taken: u32, reason: Reason) {
        if not_taken == 0 {
            self.backoff.reset();
            self.flights.widen();
        } else if reason == Reason::TooOld {
            self.counters.too_old += u64::from(not_taken.count_ones());
            self.flights.skip_ahead();
        } else {
            let returned =
                if reason == Reason::Share { &mut self.counters.over_share } else { &mut self.counters.full };
            *returned += u64::from(not_taken.count_ones());
            if self.backoff.full(now, sent_at, &mut self.rng) {
                self.flights.narrow(now, sent_at);
            }
        }
    }

    pub(super) fn handle_cancel_ack(&mut self, now: Nanos, from: SocketAddr, ack: &CancelAck, holders: &[Holder]) {
        let sequence = ack.header.sequence.get();
        let asked = match self.flights.get(sequence).map(|flight| &flight.request) {
            Some(Request::Cancel(asked)) => Some(asked.len()),
            _ => None,
        };
        let answered = if asked.is_some() { Answered::Flight } else { Answered::Nothing };
        if !self.admit(now, from, ack.client.get(), &ack.header, answered) {
            return;
        }
        let (count, taken_out) = (asked.unwrap_or(0), ack.taken_out.get());
        let is_of_it = holders.iter().all(|holder| usize::from(holder.index) < count);
        if !is_of_it || u64::from(taken_out) >> count != 0 {
            self.counters.bad_answers += 1;
            return;
        }
        // A change of the switch dropped this CANCEL.
        let Some(flight) = self.flights.take(sequence) else { return };
        if flight.sent_once {
            self.round_trip.sample(now.saturating_sub(flight.sent_at));
        }
        let Request::Cancel(asked) = flight.request else { return };
        if Reason::from_number(ack.reason) == Some(Reason::TooOld) {
            self.flights.skip_ahead();
            self.cancellations.extend(asked);
            return;
        }
        for (index, it) in asked.into_iter().enumerate() {
            let bit = if planted(32) { index & 15 } else { index };
            let held = if planted(37) { index & 15 } else { index };
            let holder = holders.iter().find(|holder| usize::from(holder.index) == held);
            if let Some(holder) = holder {
                self.held(now, it, holder.executor.into());
            } else {
                self.stopping.not_held(now, it.name);
                self.not_held(now, it, taken_out >> bit & 1 == 1);
            }
        }
    }

    /// No executor has this task: the switch removed or does not know it.
    fn not_held(&mut self, now: Nanos, it: Cancellation, was_taken_out: bool) {
        let Some(at) = self.table.by_key_and_name(it.key, it.name) else { return };
        let record = self.table.get_mut(at);
        if record.state != State::Open || record.cancel == Cancel::No {
            return;
        }
        if was_taken_out {
            return self.cancelled(at, CancelledHow::TakenOut);
        }
        if self.switches.keeps_no_record {
            // This switch cannot name the executor. Another one may, so allow a new cancellation.
            self.goes_on(at);
            self.table.get_mut(at).cancel = Cancel::No;
            return;
        }
        let is_new = !std::mem::replace(&mut record.gone, true);
        if record.cancel == Cancel::Queued {
            self.goes_on(at);
        }
        if is_new {
            self.gone.push_back((now + self.config.gone_after, it));
        }
    }

    pub(super) fn handle_probe_ack(&mut self, now: Nanos, from: SocketAddr, ack: &ProbeAck) {
        let sequence = ack.header.sequence.get();
        if ack.client.get() == self.config.identity && self.switches.found(from, sequence, now) {
            return self.ask_another(now);
        }
        let answered = if self.probe.is_asked_by(sequence) { Answered::Question } else { Answered::Nothing };
        let (asked, round_trip) = (self.probe.tasks.len(), self.probe.round_trip(now, sequence));
        if !self.admit(now, from, ack.client.get(), &ack.header, answered) {
            return;
        }
        if asked != usize::from(ack.header.count) {
            self.counters.bad_answers += 1;
            return;
        }
        if let Some(measured) = round_trip {
            self.round_trip.sample(measured);
        }
        let seen = SocketAddr::from(ack.seen);
        if self.seen_as.replace(seen) != Some(seen) {
            self.events.push_back(Event::SeenAs(seen));
        }
        self.probe.answered();
        self.switches.keeps_no_record = Known::from_number(ack.known) == Some(Known::NoRecord);
        // A pipeline, whose entries have no room for longer arguments.
        let appends = !self.switches.keeps_no_record;
        if self.switches.appends.replace(appends) != Some(appends) && !appends {
            self.take_back_appended();
        }
        if self.switches.keeps_no_record {
            self.tokens.take_halves();
            self.probe.tasks.clear();
        }
        if asked == PROBE_MAX && ack.open.get() == 0 {
            // The switch may have lost all tasks: probe at once.
            self.probe.due = now;
        }
        self.notice_gone(now, ack.open.get());
    }

    /// The switch no longer has the tasks with a clear bit; their completions may be on their way.
    fn notice_gone(&mut self, now: Nanos, open: u32) {
        let due = now + self.config.gone_after;
        // Empty after a change of the switch.
        for (index, it) in self.probe.tasks.drain(..).enumerate() {
            let Some(at) = self.table.by_key_and_name(it.key, it.name) else { continue };
            let record = self.table.get_mut(at);
            let bit = if planted(33) { index & 15 } else { index };
            if open >> bit & 1 == 0 && record.state == State::Open && !record.gone {
                record.gone = true;
                self.gone.push_back((due, it));
            }
        }
    }

    /// Reports a switch of the list that uses another version.
    pub(super) fn handle_version(&mut self, from: SocketAddr, version: u8) {
        if version == VERSION {
            self.counters.unexpected_answers += 1;
            return;
        }
        self.counters.other_version += 1;
        if let Some(switch) = self.switches.answers_with(from, version) {
            self.events.push_back(Event::OtherVersion { switch, version });
        }
    }
}
