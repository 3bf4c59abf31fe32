//! The clients of a switch, their windows, and what they ask: SUBMIT, CANCEL, PROBE.

use super::super::rules::*;
use super::{Ledger, Taken, given, is_within_share, queue, source};
use crate::check::{Checked, holds};
use midflight_dataplane::{TasksConfig, Verdict};
use midflight_endpoint::{Nanos, serial};
use midflight_wire::{Cancel, Packet, Probe, Reason, Submit, TaskInfo, TaskName, WINDOW};
use std::collections::HashMap;
use std::net::SocketAddr;

#[derive(Debug)]
struct Client {
    /// The highest sequence.
    highest: u32,
    /// What the last [`WINDOW`] sequences were answered.
    answers: HashMap<u32, u32>,
    /// The sequence of its last PROBE.
    probed: u32,
    heard: Nanos,
    address: SocketAddr,
}

/// What the window says of a sequence (T8).
enum Freshness {
    Fresh,
    Repeated(u32),
    TooOld,
}

#[derive(Debug)]
pub(super) struct Clients {
    bound: usize,
    idle: Nanos,
    known: HashMap<u64, Client>,
}

impl Clients {
    pub(super) fn new(config: &TasksConfig) -> Self {
        Self { bound: config.clients as usize, idle: config.client_idle_ns, known: HashMap::new() }
    }

    pub(super) fn known(&self) -> u32 {
        self.known.len() as u32
    }

    /// Where a client was heard last.
    pub(super) fn address(&self, identity: u64) -> Option<SocketAddr> {
        self.known.get(&identity).map(|client| client.address)
    }

    /// Whether a client is where this address says it is, or its neighbours.
    fn shares_with(&self, identity: u64, address: SocketAddr) -> bool {
        self.address(identity).is_some_and(|own| source(own) == source(address))
    }

    /// Those that were not heard for `client_idle`.
    pub(super) fn silent(&self, now: Nanos) -> Vec<u64> {
        let silent = |client: &Client| now.saturating_sub(client.heard) >= self.idle;
        self.known.iter().filter(|(_, client)| silent(client)).map(|(identity, _)| *identity).collect()
    }

    /// Forgets the silent ones that have no open task.
    pub(super) fn forget_silent(&mut self, now: Nanos, has_open: impl Fn(u64) -> bool) {
        for identity in self.silent(now) {
            if !has_open(identity) {
                self.known.remove(&identity);
            }
        }
    }

    /// Whether a packet needs no cookie: its client is known, is where it was, and its sequence, where that is asked, goes on.
    fn is_trusted(&self, taken: &Taken<'_>, identity: u64, sequence: Option<u32>) -> bool {
        let Some(client) = self.known.get(&identity) else { return false };
        let is_far = |sequence: u32| serial::distance(sequence, client.highest) > WINDOW as i32;
        client.address == taken.from && !sequence.is_some_and(is_far)
    }

    /// What a client's window says of a sequence; the window moves. One that is new says that the client lives, and where.
    fn hear(&mut self, taken: &Taken<'_>, identity: u64, sequence: u32) -> Freshness {
        let Some(client) = self.known.get_mut(&identity) else { return Freshness::Fresh };
        if serial::is_later(sequence, client.highest) {
            client.highest = sequence;
            let highest = client.highest;
            client.answers.retain(|&old, _| highest.wrapping_sub(old) < WINDOW);
        }
        if client.highest.wrapping_sub(sequence) >= WINDOW {
            return Freshness::TooOld;
        }
        if let Some(&answer) = client.answers.get(&sequence) {
            return Freshness::Repeated(answer);
        }
        (client.heard, client.address) = (taken.now, taken.from);
        Freshness::Fresh
    }

    fn answered(&mut self, identity: u64, sequence: u32, answer: u32) {
        if let Some(client) = self.known.get_mut(&identity) {
            client.answers.insert(sequence, answer);
        }
    }
}

impl Ledger {
    /// A client that is not known is remembered, where there is room for it and its source (T14); else why not.
    fn admit(&mut self, taken: &Taken<'_>, identity: u64, sequence: u32) -> Result<(), (Verdict, Reason)> {
        let clients = &mut self.clients;
        let free = clients.bound - clients.known.len();
        let held = clients.known.keys().filter(|other| clients.shares_with(**other, taken.from)).count();
        if free == 0 {
            return Err((Verdict::ClientsFull, Reason::ClientsFull));
        }
        if !is_within_share(held, free) {
            return Err((Verdict::ClientsShare, Reason::Share));
        }
        let (answers, probed) = (HashMap::new(), 0);
        let client = Client { highest: sequence, answers, probed, heard: taken.now, address: taken.from };
        clients.known.insert(identity, client);
        Ok(())
    }

    pub(super) fn submit(
        &mut self,
        taken: &Taken<'_>,
        submit: &Submit,
        tasks: &[TaskInfo],
        answers: &[(SocketAddr, Packet<'_>)],
    ) -> Checked<Verdict> {
        let (identity, sequence) = (submit.client.get(), submit.header.sequence.get());
        let trusted = self.clients.is_trusted(taken, identity, Some(sequence));
        if !trusted && !self.has_cookie(taken, &submit.header, identity, submit.cookie.get(), answers)? {
            return Ok(Verdict::NoCookie);
        }
        let Some((to, Packet::SubmitAck(ack))) = answers.first() else {
            holds!(T7, false, "a SUBMIT is answered by {answers:?}");
            unreachable!("the rule has just been broken");
        };
        let told = (*to, ack.client, ack.header.sequence, ack.header.count);
        let asked = (taken.from, submit.client, submit.header.sequence, submit.header.count);
        holds!(T8, told == asked, "another SUBMIT is answered: {ack:?} to {to}");
        let all = u32::MAX >> (32 - tasks.len());
        let said = ack.taken.get();
        let told = (ack.taken.get() ^ ack.not_taken.get(), ack.taken.get() & ack.not_taken.get());
        holds!(T7, told == (all, 0), "what is taken and what is not are not all of {}: {ack:?}", tasks.len());
        let known = self.clients.known.contains_key(&identity);
        let admitted = if known { Ok(()) } else { self.admit(taken, identity, sequence) };
        let (verdict, reason) = if let Err(refusal) = admitted {
            holds!(T8, said == 0, "tasks of a client that found no room are taken: {ack:?}");
            refusal
        } else {
            match self.clients.hear(taken, identity, sequence) {
                Freshness::TooOld => {
                    holds!(T8, said == 0, "tasks below the window are taken: {ack:?}");
                    (Verdict::TooOld, Reason::TooOld)
                }
                Freshness::Repeated(before) => {
                    holds!(T8, said == before, "a repeated SUBMIT is answered {said:#x}, where it was {before:#x}");
                    holds!(T8, answers.len() == 1, "a repeated SUBMIT lets tasks be assigned: {answers:?}");
                    (Verdict::RepeatedSubmit, Reason::Full)
                }
                Freshness::Fresh => (Verdict::Ok, self.submit_fresh(taken, submit, tasks, said, answers)?),
            }
        };
        let reason = if said == all { Reason::None } else { reason };
        holds!(T7, ack.reason == reason as u8, "reason {} where it is {reason:?}: {ack:?}", ack.reason);
        let room = self.queue.room();
        holds!(BOOKS, ack.room.get() == room, "room for {} where it is {room}", ack.room);
        Ok(verdict)
    }

    /// T7, T14: as many tasks are taken as there is room for, and room for this source, the first ones. Why the others are not.
    fn submit_fresh(
        &mut self,
        taken: &Taken<'_>,
        submit: &Submit,
        tasks: &[TaskInfo],
        said: u32,
        answers: &[(SocketAddr, Packet<'_>)],
    ) -> Checked<Reason> {
        let (identity, sequence) = (submit.client.get(), submit.header.sequence.get());
        let (free, clients) = (self.queue.room() as usize, &self.clients);
        let held = self.queue.held_by(|client| clients.shares_with(client, taken.from));
        let fits = |count: &usize| *count < free && is_within_share(held + count, free - count);
        let count = (0..tasks.len()).take_while(fits).count();
        let right = if count == 0 { 0 } else { u32::MAX >> (32 - count) };
        holds!(T7, said == right, "{said:#x} of {} tasks are taken where there is room for {count}", tasks.len());
        self.expected.submitted += count as u64;
        let (verdict, reason) =
            if count == free { (Verdict::Full, Reason::Full) } else { (Verdict::QueueShare, Reason::Share) };
        self.expected.reasons[verdict as usize] += (tasks.len() - count) as u64;
        self.clients.answered(identity, sequence, said);
        self.tokens.insert(submit.token.get(), identity);
        let mut given = given(answers);
        for (index, task) in (0_u8..).zip(&tasks[..count]) {
            let name = (identity, sequence, index);
            self.queue.accept(taken.now, name, submit, task)?;
            self.seen.accepted.push((submit.jid.get(), task.tid.get(), name));
            if let Some(place) = given.iter().position(|(_, a)| self.name_of(a) == name) {
                let (to, assignment) = given.remove(place);
                self.assign(taken.now, to, &assignment)?;
            } else {
                let suits = self.slots.fewest_resources(task.resources);
                holds!(T6, suits.is_none(), "a slot waits that may run {name:?}, which is queued");
            }
        }
        holds!(T1, given.is_empty(), "a SUBMIT lets tasks be assigned that it does not bring: {given:?}");
        Ok(reason)
    }

    pub(super) fn cancel(
        &mut self,
        taken: &Taken<'_>,
        cancel: &Cancel,
        names: &[TaskName],
        answers: &[(SocketAddr, Packet<'_>)],
    ) -> Checked<Verdict> {
        let (identity, sequence) = (cancel.client.get(), cancel.header.sequence.get());
        let known = self.clients.known.contains_key(&identity);
        let trusted = !known || self.clients.is_trusted(taken, identity, Some(sequence));
        if !trusted && !self.has_cookie(taken, &cancel.header, identity, cancel.cookie.get(), answers)? {
            return Ok(Verdict::NoCookie);
        }
        let [(to, Packet::CancelAck(ack))] = answers else {
            holds!(T12, false, "a CANCEL is answered by {answers:?}");
            unreachable!("the rule has just been broken");
        };
        let told = (*to, ack.client, ack.header.sequence, ack.header.count);
        let asked = (taken.from, cancel.client, cancel.header.sequence, cancel.header.count);
        holds!(T8, told == asked, "another CANCEL is answered: {ack:?} to {to}");
        let mut out = 0;
        let mut verdict = Verdict::Ok;
        if !known {
            self.expected.reasons[Verdict::NotQueued as usize] += names.len() as u64;
        } else {
            match self.clients.hear(taken, identity, sequence) {
                Freshness::TooOld => verdict = Verdict::TooOld,
                Freshness::Repeated(before) => (verdict, out) = (Verdict::RepeatedSubmit, before),
                Freshness::Fresh => {
                    for (bit, name) in names.iter().enumerate() {
                        let gone = self.queue.take_out((identity, name.submission.get(), name.index));
                        self.expected.cancelled += u64::from(gone);
                        self.expected.reasons[Verdict::NotQueued as usize] += u64::from(!gone);
                        out |= u32::from(gone) << bit;
                    }
                    self.clients.answered(identity, sequence, out);
                }
            }
        }
        let said = ack.taken_out.get();
        holds!(T8, said == out, "{said:#x} of {} tasks are said to be taken out, not {out:#x}", names.len());
        let too_old = ack.reason == Reason::TooOld as u8;
        holds!(T8, too_old == (verdict == Verdict::TooOld), "reason {} of a CANCEL that is {verdict:?}", ack.reason);
        Ok(verdict)
    }

    pub(super) fn probe(
        &mut self,
        taken: &Taken<'_>,
        probe: &Probe,
        names: &[TaskName],
        answers: &[(SocketAddr, Packet<'_>)],
    ) -> Checked<Verdict> {
        let (identity, sequence) = (probe.client.get(), probe.header.sequence.get());
        let trusted = self.clients.is_trusted(taken, identity, None);
        if !trusted && !self.has_cookie(taken, &probe.header, identity, probe.cookie.get(), answers)? {
            return Ok(Verdict::NoCookie);
        }
        let [(to, Packet::ProbeAck(ack))] = answers else {
            holds!(T12, false, "a PROBE is answered by {answers:?}");
            unreachable!("the rule has just been broken");
        };
        let told = (*to, ack.client, ack.header.sequence, ack.header.count);
        let asked = (taken.from, probe.client, probe.header.sequence, probe.header.count);
        holds!(T9, told == asked, "another PROBE is answered: {ack:?} to {to}");
        if let Some(client) = self.clients.known.get_mut(&identity)
            && serial::is_later(sequence, client.probed)
        {
            (client.probed, client.heard, client.address) = (sequence, taken.now, taken.from);
        }
        let known = self.clients.known.contains_key(&identity);
        holds!(T8, (ack.known == 1) == known, "a client is known: {known}, and told {}", ack.known);
        for (bit, name) in names.iter().enumerate() {
            let state = self.queue.state((identity, name.submission.get(), name.index));
            let open = matches!(state, Some(queue::State::Queued | queue::State::Assigned));
            let said = ack.open.get() >> bit & 1 == 1;
            holds!(T1, said == open, "task {name:?} is said to be open: {said}, where it is {state:?}");
        }
        holds!(T9, SocketAddr::from(ack.seen) == taken.from, "{} is told to be {:?}", taken.from, ack.seen);
        holds!(BOOKS, ack.room.get() == self.queue.room(), "room for {} where it is {}", ack.room, self.queue.room());
        Ok(Verdict::Ok)
    }
}
