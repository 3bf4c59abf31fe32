//! Follows a switch step by step: the reference model gets the same datagrams, and must give the same answers, verdict
//! and counters, byte for byte. A difference names the broken rule: T1 to T8, T10 to T14 or T19.
//!
//! No fault excuses a difference: the model gets each datagram when it reaches the switch, with the time of the
//! switch's clock. Only a switch's death ends its model, and the promises of its acknowledgements (then T9 holds:
//! `callers.rs`).

mod differences;

use super::rules::*;
use crate::check::{Broken, Checked, holds};
use crate::tasks::switch::{Origin, Took, Turn};
use differences::{Difference, assignments};
use midflight_dataplane::program::Engine;
use midflight_dataplane::{Datagram, Out, Stats, TICK_SLOTS, Verdict};
use midflight_endpoint::Nanos;
use midflight_spec::tasks::{Given, Model, SlotState, SlotView};
use midflight_wire::PACKET_MAX;
use midflight_wire::tasks::{LeaveHow, Packet, parse};
use std::collections::HashMap;
use std::net::SocketAddr;
use zerocopy::FromZeros;

/// A task's name at its client: client, submission, index.
pub(super) type Name = (u64, u32, u8);

/// The last assignment of each slot (generation, sequence).
type Answered = HashMap<u32, (u32, u32)>;

/// Events of one turn of a switch, for the checks of callers and leases.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) accepted: Vec<(u32, u32, Name)>,
    /// Assignments without repeats: jid, tid, attempt.
    pub(super) assigned: Vec<(u32, u32, u8)>,
    pub(super) expired: Vec<SocketAddr>,
    /// Owners of parked slots that were removed for silence.
    pub(super) unparked: Vec<SocketAddr>,
    /// Number of tasks that slots returned because they were released or registered again.
    pub(super) returned: u64,
    /// Tasks that slots returned unstarted: jid, tid, attempt.
    pub(super) given_back: Vec<(u32, u32, u8)>,
}

#[derive(Debug)]
pub(super) struct Follower {
    model: Model,
    before: Stats,
    answered: Answered,
}

impl Follower {
    pub(super) fn new(Origin { config, epoch, secret }: &Origin) -> Self {
        let model = Model::new(config, *epoch, *secret);
        Self { model, before: Stats::new_zeroed(), answered: Answered::new() }
    }

    pub(super) fn is_open(&self, (client, submission, index): Name) -> bool {
        self.model.is_open(client, submission, index)
    }

    pub(super) fn open(&self) -> usize {
        self.before.queued.iter().sum::<u32>() as usize + self.before.busy as usize
    }

    pub(super) fn turn(&mut self, turn: &Turn<'_>) -> Checked<Seen> {
        let stats = turn.tasks.stats();
        match &turn.took {
            Some(took) => self.packet(turn.now, took, turn.gave, &stats),
            None => self.tick(turn.now, turn.visited, turn.gave, &stats),
        }
    }

    fn packet(&mut self, now: Nanos, took: &Took<'_>, gave: &Out, stats: &Stats) -> Checked<Seen> {
        let sent = datagrams(gave);
        bounded(took, &sent)?;
        let given_back = self.would_give_back(took);
        let followed = self.model.follow(now, took.from, took.datagram, &sent);
        let (right, owed) = followed.map_err(|what| Broken { rule: T2, what })?;
        Difference { model: &self.model, question: Some((took.datagram, right)), stats }.of_answers(&sent, &owed)?;
        differences::of_verdicts(took.verdict, right)?;
        let is_taken = took.verdict == Verdict::Ok;
        let given_back = given_back.into_iter().filter(|given| is_taken && self.model.has_taken_back(given));
        let given_back = given_back.map(|given| given.task).collect();
        let seen = Seen { accepted: accepted(took, &sent), given_back, ..Seen::default() };
        self.settle(stats, &sent, seen)
    }

    /// The tasks that a RELEASE would return unstarted, if the switch accepts it.
    fn would_give_back(&self, took: &Took<'_>) -> Vec<Given> {
        let Ok(Packet::Release(_, leaves)) = parse(took.datagram) else { return Vec::new() };
        let stays = leaves.iter().filter(|leave| leave.done == u8::from(LeaveHow::Stays));
        stays.filter_map(|leave| self.model.given_to(leave.slot.get(), leave.sequence.get())).collect()
    }

    fn tick(&mut self, now: Nanos, visited: u32, gave: &Out, stats: &Stats) -> Checked<Seen> {
        holds!(T12, visited <= TICK_SLOTS, "a tick visited {visited} slots");
        let sent = datagrams(gave);
        let held: Vec<_> = self.model.slots().filter(|slot| slot.state != SlotState::Free).collect();
        let (right, owed) = self.model.tick(now);
        Difference { model: &self.model, question: None, stats }.of_answers(&sent, &owed)?;
        let seen = self.silenced(&held);
        let seen = self.settle(stats, &sent, seen)?;
        holds!(BOOKS, visited == right, "a tick visited {visited} slots, not {right}");
        Ok(seen)
    }

    /// The slots that were parked or assigned before a tick and were removed for silence.
    fn silenced(&self, held: &[SlotView]) -> Seen {
        let (mut seen, mut after) = (Seen::default(), self.model.slots().peekable());
        for before in held {
            while after.next_if(|slot| slot.number < before.number).is_some() {}
            let is_held = after.peek().is_some_and(|now| now.number == before.number && now.state != SlotState::Free);
            match before.state {
                _ if is_held => {}
                SlotState::Assigned => seen.expired.push(before.address),
                _ => seen.unparked.push(before.address),
            }
        }
        seen
    }

    fn settle(&mut self, stats: &Stats, sent: &[Datagram], mut seen: Seen) -> Checked<Seen> {
        differences::of_stats(stats, &self.model.stats())?;
        seen.returned = stats.tasks.returned - self.before.tasks.returned - seen.given_back.len() as u64;
        self.before = *stats;
        self.note_assignments(sent, &mut seen);
        Ok(seen)
    }

    /// A slot's wait is answered once; the same assignment again is a repeat.
    fn note_assignments(&mut self, sent: &[Datagram], seen: &mut Seen) {
        for given in assignments(sent).values() {
            let wait = (given.generation.get(), given.sequence.get());
            if self.answered.insert(given.slot.get(), wait) != Some(wait) {
                seen.assigned.push((given.jid.get(), given.task.tid.get(), given.task.attempt));
            }
        }
    }
}

/// T12: the datagrams for one packet are bounded, and `owes_several` has predicted them.
fn bounded(took: &Took<'_>, sent: &[Datagram]) -> Checked {
    holds!(T12, sent.len() <= 33, "{} datagrams for one packet", sent.len());
    let to_sender = sent.iter().all(|(to, _)| *to == took.from);
    holds!(T12, took.several || (sent.len() <= 1 && to_sender), "more is sent than one answer, unforeseen");
    let longest = sent.iter().map(|(_, bytes)| bytes.len()).max().unwrap_or(0);
    holds!(T12, longest <= PACKET_MAX, "an answer of {longest} bytes");
    Ok(())
}

fn accepted(took: &Took<'_>, sent: &[Datagram]) -> Vec<(u32, u32, Name)> {
    let (Verdict::Ok, Ok(Packet::Submit(submit, tasks, ..))) = (took.verdict, parse(took.datagram)) else {
        return vec![];
    };
    let acknowledged = sent.iter().find_map(|(_, bytes)| match parse(bytes) {
        Ok(Packet::SubmitAck(ack)) => Some(ack.taken.get()),
        _ => None,
    });
    let taken = (0..).zip(tasks).filter(|(index, _)| acknowledged.unwrap_or(0) >> index & 1 == 1);
    let name = |index| (submit.client.get(), submit.header.sequence.get(), index);
    taken.map(|(index, task)| (submit.jid.get(), task.tid.get(), name(index))).collect()
}

fn datagrams(out: &Out) -> Vec<Datagram> {
    out.iter().map(|(to, bytes)| (to, bytes.to_vec())).collect()
}
