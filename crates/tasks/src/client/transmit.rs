//! Writes packets.

use super::in_flight::{Cancellation, Held, Request};
use super::table::{List, State};
use super::{Client, Event};
use midflight_endpoint::Nanos;
use midflight_wire::tasks::{CANCEL_MAX, Cancel, Preference, Probe, SUBMIT_MAX, Submit, TaskInfo};
use midflight_wire::{Builder, PACKET_MAX};
use std::net::SocketAddr;

impl Client {
    pub(super) fn transmit(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        let to_switch = self.resend(now, buffer) || self.cancel_some(now, buffer) || self.submit_some(now, buffer) || {
            self.probe.ready && {
                self.ask(now, buffer);
                true
            }
        };
        if to_switch {
            return Some(self.switches.address());
        }
        self.tell_executor(buffer)
            .or_else(|| self.acks.transmit(buffer))
            .or_else(|| self.probe_better_switch(now, buffer))
    }

    /// Writes a PROBE without tasks to a preferred switch.
    fn probe_better_switch(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        if !self.is_watching() {
            return None;
        }
        let (switch, sequence) = self.switches.failback_probe(now, || self.probe.count())?;
        let (client, cookie) = (self.config.identity.into(), switch.cookie.into());
        Builder::new(buffer, &Probe { client, cookie, ..Probe::new(0, sequence) });
        Some(switch.address)
    }

    fn resend(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> bool {
        while let Some(sequence) = self.flights.to_resend() {
            if self.is_moot(sequence) {
                self.drop_flight(sequence);
                continue;
            }
            let is_first = self.flights.get(sequence).is_some_and(|flight| flight.unsent);
            buffer.clear();
            buffer.extend_from_slice(self.flights.resent(sequence, now, self.switches.cookie()));
            self.counters.retransmitted += u64::from(!is_first);
            return true;
        }
        false
    }

    /// Whether no task of a SUBMIT still waits for its response.
    fn is_moot(&self, sequence: u32) -> bool {
        let is_submit =
            self.flights.get(sequence).is_some_and(|flight| matches!(flight.request, Request::Submit { .. }));
        is_submit && self.table.sent_in(sequence).next().is_none()
    }

    fn drop_flight(&mut self, sequence: u32) {
        let Some(flight) = self.flights.take(sequence) else { return };
        if let Request::Submit { unwanted, .. } = flight.request {
            self.cancellations.extend(unwanted);
        }
        self.flights.recycle(flight.packet);
    }

    /// Whether the next sequence is to be skipped, or still names tasks from 2^32 packets ago.
    fn must_skip(&self) -> bool {
        self.flights.must_skip_ahead() || self.table.knows_submission(self.flights.next())
    }

    /// Whether the next sequence must wait for all responses, because it is far from those in flight.
    pub(super) fn is_barred(&self) -> bool {
        !self.flights.is_empty() && self.must_skip()
    }

    /// Whether a packet with the next sequence may be sent.
    fn may_go(&mut self) -> bool {
        if self.is_barred() {
            return false;
        }
        while self.must_skip() {
            self.flights.skip();
        }
        true
    }

    fn cancel_some(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> bool {
        if self.cancellations.is_empty() || !self.flights.has_room() || !self.may_go() {
            return false;
        }
        let count = self.cancellations.len().min(CANCEL_MAX);
        let some: Vec<Cancellation> = self.cancellations.drain(..count).collect();
        let (client, cookie) = (self.config.identity.into(), self.switches.cookie().into());
        let fixed = Cancel { client, cookie, ..Cancel::new(self.switches.epoch(), self.flights.next()) };
        let mut packet = Builder::new(buffer, &fixed);
        some.iter().for_each(|it| packet.push(&it.name.on_the_wire()));
        self.put_in_flight(now, buffer, Request::Cancel(some));
        true
    }

    /// Writes a SUBMIT; in a durable client, all that the driver must save first.
    fn submit_some(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> bool {
        while self.write_submit(now, buffer) {
            if !self.config.durable {
                return true;
            }
        }
        false
    }

    /// As many tasks of one job with the same placement preference as fit, at most 32; repeated submissions first.
    fn write_submit(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> bool {
        if now < self.backoff.until() || !self.flights.may_submit() {
            return false;
        }
        let mut asked = 0;
        let list = if self.may_append(List::Returned, &mut asked) {
            List::Returned
        } else if self.table.front(List::Returned).is_none() && self.may_append(List::Fresh, &mut asked) {
            List::Fresh
        } else {
            return false;
        };
        if !self.may_go() {
            return false;
        }
        let mut records = [0; SUBMIT_MAX];
        let mut count = 0;
        let (mut jid, mut prefer) = (0, None);
        let mut bytes = size_of::<Submit>() + size_of::<Preference>();
        while count < SUBMIT_MAX
            && let Some(at) = self.table.front(list)
            && (count == 0 || (self.table.get(at).jid, self.table.get(at).prefer) == (jid, prefer))
        {
            bytes += size_of::<TaskInfo>() + self.table.get(at).info.appended_bytes();
            let may_append = self.table.get(at).appended.is_none() || self.switches.appends == Some(true);
            if bytes > PACKET_MAX || !may_append {
                break;
            }
            (jid, prefer) = (self.table.get(at).jid, self.table.get(at).prefer);
            self.table.unlink(at);
            let record = self.table.get_mut(at);
            record.state = State::Sent;
            record.sent.get_or_insert(now);
            records[count] = at;
            count += 1;
        }
        let sequence = self.flights.next();
        self.table.name(sequence, &records[..count]);
        let count = self.build_submit(sequence, jid, &records[..count], buffer);
        self.put_in_flight(now, buffer, Request::Submit { count, unwanted: Vec::new() });
        self.save(&records[..usize::from(count)]);
        true
    }

    /// Whether the list has a task that may be sent now. At a switch that takes no appended arguments, the driver must serve those first;
    /// `asked` counts them.
    fn may_append(&mut self, list: List, asked: &mut usize) -> bool {
        while let Some(at) = self.table.front(list)
            && let Some(argument) = self.table.get(at).appended.clone()
        {
            match self.switches.appends {
                Some(true) => return true,
                Some(false) if *asked == SUBMIT_MAX => return false,
                Some(false) => {
                    *asked += 1;
                    self.table.unlink(at);
                    self.events.push_back(Event::NeedsReference { key: self.table.get(at).key(), argument });
                }
                None => {
                    self.probe.ready |= !self.probe.awaits_answer();
                    return false;
                }
            }
        }
        self.table.front(list).is_some()
    }

    /// Takes back the SUBMITs that the switch refuses for their arguments.
    pub(super) fn take_back_appended(&mut self) {
        for sequence in self.flights.submits() {
            let tasks: Vec<u32> = self.table.sent_in(sequence).map(|(_, at)| at).collect();
            if tasks.iter().any(|&at| self.table.get(at).appended.is_some()) {
                self.drop_flight(sequence);
                tasks.into_iter().for_each(|at| self.submit_again(at));
            }
        }
    }

    /// Writes a SUBMIT of tasks with the same placement preference, and returns their number.
    pub(super) fn build_submit(&self, sequence: u32, jid: u32, records: &[u32], buffer: &mut Vec<u8>) -> u8 {
        let (client, uid, jid) = (self.config.identity.into(), self.config.uid.into(), jid.into());
        let (cookie, token) = (self.switches.cookie().into(), self.tokens.of(sequence).number().into());
        let fixed = Submit { client, cookie, token, uid, jid, ..Submit::new(self.switches.epoch(), sequence) };
        let mut packet = Builder::new(buffer, &fixed);
        records.iter().for_each(|&at| packet.push(&self.table.get(at).info));
        let appended = records.iter().filter_map(|&at| self.table.get(at).appended.as_ref());
        appended.for_each(|argument| packet.append(argument));
        if let Some(prefer) = records.first().and_then(|&at| self.table.get(at).prefer) {
            packet.prefer(&prefer.on_the_wire());
        }
        packet.count() as u8
    }

    fn put_in_flight(&mut self, now: Nanos, packet: &[u8], request: Request) {
        self.begin_to_watch(now);
        let mut copy = self.flights.buffer();
        copy.clear();
        copy.extend_from_slice(packet);
        let is_held = self.config.durable && matches!(request, Request::Submit { .. });
        let held = if is_held { Held::Unsaved } else { Held::No };
        self.flights.push(now, self.round_trip.timeout(), copy, request, held);
    }

    fn ask(&mut self, now: Nanos, buffer: &mut Vec<u8>) {
        self.counters.probes_repeated += u64::from(self.probe.awaits_answer());
        let sequence = self.probe.ask(now);
        // Allows for several lost repeats before the switch counts as silent.
        let patience = self.round_trip.timeout().min(self.config.switch_silence / 4);
        self.probe.due = now + self.config.probe_interval.max(patience);
        let (client, cookie) = (self.config.identity.into(), self.switches.cookie().into());
        let fixed = Probe { client, cookie, ..Probe::new(self.switches.epoch(), sequence) };
        let mut packet = Builder::new(buffer, &fixed);
        self.probe.tasks.iter().for_each(|it| packet.push(&it.name.on_the_wire()));
    }
}
