//! What a switch must do follows from what it took and gave so far. The ledger of one switch process reads every packet in
//! and out, keeps its own books of clients, tasks and slots, and holds the switch to the rules T1 to T8 and T10 to T14.
//!
//! No fault excuses any of them here: a switch answers for what reaches it, when it reaches it, by its own clock. What is
//! lost on the way never comes to the ledger; what is repeated comes twice, and must be known. Only a switch's death ends its
//! ledger, and with it what it had acknowledged (T9 takes over: `callers.rs`).

mod clients;
mod cookies;
mod queue;
mod slots;
#[cfg(test)]
mod tests;
mod time;

use super::rules::*;
use crate::check::{Checked, holds};
use crate::tasks::switch::Turn;
use clients::Clients;
use cookies::Cookies;
use midflight_dataplane::{Out, Stats, TasksConfig, Verdict};
use midflight_endpoint::Nanos;
use midflight_wire::{
    Assignment, Header, MAGIC, Operation, PACKET_MAX, Packet, Reject, VERSION_OPERATION, Version, parse,
};
use queue::Queue;
use slots::Slots;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use time::Ticks;
use zerocopy::FromBytes;

/// A task, as its client submitted it: client, submission, index.
pub(super) type Name = (u64, u32, u8);

/// A datagram that a switch took, and what came of it.
struct Taken<'a> {
    /// By the switch's clock.
    now: Nanos,
    from: SocketAddr,
    datagram: &'a [u8],
    verdict: Verdict,
    out: &'a Out,
    /// What `owes_several` said beforehand.
    several: bool,
    stats: &'a Stats,
}

/// What the ledger tells of one packet or tick, for those who check more than the switch.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Tasks accepted: the client's identity, jid and tid, and the name.
    pub accepted: Vec<(u32, u32, Name)>,
    /// Assignments, repeats not: where to, jid, tid, attempt.
    pub assigned: Vec<(SocketAddr, u32, u32, u8)>,
    /// Leases that ran out: of whom.
    pub expired: Vec<SocketAddr>,
    /// Slots that were taken out though they wait, for silence: whose.
    pub unparked: Vec<SocketAddr>,
    /// Tasks that a slot gave back: by whom.
    pub returned: Vec<SocketAddr>,
}

/// The books of one switch process.
#[derive(Debug)]
pub(super) struct Ledger {
    config: TasksConfig,
    /// Known since its first answer.
    epoch: Option<u32>,
    clients: Clients,
    queue: Queue,
    slots: Slots,
    cookies: Cookies,
    ticks: Ticks,
    /// Whose SUBMIT each token is of.
    tokens: HashMap<u64, u64>,
    /// What must be counted.
    expected: Stats,
    seen: Seen,
}

impl Ledger {
    /// Of a switch that has just started.
    pub(super) fn new(config: TasksConfig) -> Self {
        Self {
            clients: Clients::new(&config),
            queue: Queue::new(config.queue),
            slots: Slots::new(&config),
            cookies: Cookies::new(config.cookie_ns),
            ticks: Ticks::new(config.lease_ns),
            tokens: HashMap::new(),
            expected: Stats::NOTHING,
            seen: Seen::default(),
            config,
            epoch: None,
        }
    }

    /// What the switch calls its life, once it has answered something.
    pub(super) fn epoch(&self) -> Option<u32> {
        self.epoch
    }

    /// Whether a task is queued or assigned under this name.
    pub(super) fn is_open(&self, name: Name) -> bool {
        self.queue.state(name).is_some()
    }

    /// Tasks that are queued or assigned.
    pub(super) fn open(&self) -> usize {
        self.queue.open()
    }

    /// The switch had its turn.
    pub(super) fn turn(&mut self, turn: &Turn<'_>) -> Checked<Seen> {
        let stats = turn.tasks.stats();
        let Some(took) = turn.took else {
            return self.tick(turn.now, turn.looked, turn.gave, &stats);
        };
        self.packet(&Taken {
            now: turn.now,
            from: took.from,
            datagram: took.datagram,
            verdict: took.verdict,
            out: turn.gave,
            several: took.several,
            stats: &stats,
        })
    }

    /// The switch took a datagram.
    fn packet(&mut self, taken: &Taken<'_>) -> Checked<Seen> {
        self.bounded(taken)?;
        let answers = self.answers(taken.out)?;
        match self.expected_verdict(taken.datagram) {
            Err(reason) => self.refused(taken, &answers, reason)?,
            Ok(packet) => self.accepted(taken, &packet, &answers)?,
        }
        self.expected.reasons[taken.verdict as usize] += 1;
        self.settle(taken.now, taken.stats)
    }

    /// T12: what is sent for one packet is bounded, and foreseen by `owes_several`.
    fn bounded(&self, taken: &Taken<'_>) -> Checked {
        let sent = taken.out.len();
        holds!(T12, sent <= 33, "{sent} datagrams for one packet");
        let to_sender = taken.out.iter().all(|(to, _)| to == taken.from);
        holds!(T12, taken.several || (sent <= 1 && to_sender), "more is sent than one answer, unforeseen");
        Ok(())
    }

    /// What was sent, read; all of it is well-formed, fits a packet and carries the switch's epoch.
    fn answers<'a>(&mut self, out: &'a Out) -> Checked<Vec<(SocketAddr, Packet<'a>)>> {
        let mut answers = Vec::with_capacity(out.len());
        for (to, datagram) in out.iter() {
            let packet = parse(datagram);
            holds!(T12, datagram.len() <= PACKET_MAX, "{} bytes to {to}", datagram.len());
            let Ok(packet) = packet else {
                holds!(T11, false, "what is sent to {to} is malformed: {packet:?}");
                continue;
            };
            if let Packet::Version(_) = packet {
                answers.push((to, packet));
                continue;
            }
            let told = Header::ref_from_prefix(datagram).map_or(0, |(header, _)| header.epoch.get());
            let epoch = *self.epoch.get_or_insert(told);
            holds!(
                T9,
                told == epoch && epoch != 0,
                "an answer of epoch {told} by a switch of epoch {epoch}: {packet:?}"
            );
            answers.push((to, packet));
        }
        Ok(answers)
    }

    /// What a datagram is to a switch: a packet, or nothing, under which reason.
    fn expected_verdict<'a>(&self, datagram: &'a [u8]) -> Result<Packet<'a>, Verdict> {
        if names_a_version(datagram) {
            return Err(Verdict::NotForSwitch);
        }
        let packet = parse(datagram);
        let is_ours = !matches!(packet, Err(Reject::BadMagic | Reject::BadVersion(_)));
        if let Some(header) = header_of(datagram).filter(|_| is_ours) {
            match Operation::from_number(header.operation) {
                None => return Err(Verdict::UnknownOperation),
                Some(_) if header.key != 0 => return Err(Verdict::UnknownKey),
                Some(operation) if is_answer(operation) => return Err(Verdict::NotForSwitch),
                Some(_) => {}
            }
        }
        match packet {
            Ok(Packet::Submit(_, tasks)) if tasks.iter().any(|t| u32::from(t.priority) > self.config.levels) => {
                Err(Verdict::BadPriority)
            }
            Ok(packet) => Ok(packet),
            Err(reject) => {
                let same = Verdict::ALL.iter().find(|verdict| verdict.name() == reject.to_string());
                Err(*same.expect("the parser's reasons are the core's"))
            }
        }
    }

    /// T11: nothing is answered, but another version by VERSION; `settle` sees that nothing has changed, but the count of the
    /// reason.
    fn refused(&mut self, taken: &Taken<'_>, answers: &[(SocketAddr, Packet<'_>)], reason: Verdict) -> Checked {
        let right = match reason {
            Verdict::BadVersion => matches!(answers, [(to, Packet::Version(_))] if *to == taken.from),
            _ => answers.is_empty(),
        };
        holds!(T11, right, "a bad packet ({}) is answered by {answers:?}", reason.name());
        holds!(T11, taken.verdict != Verdict::Ok, "a bad packet ({}) is taken", reason.name());
        // Two things may be wrong with a task, and levels are the switch's own.
        let same = taken.verdict == reason
            || [taken.verdict, reason] == [Verdict::BadPriority, Verdict::BadArgument]
            || [taken.verdict, reason] == [Verdict::BadArgument, Verdict::BadPriority];
        holds!(T11, same, "a bad packet ({}) is counted as {}", reason.name(), taken.verdict.name());
        let opened = !matches!(reason, Verdict::BadMagic | Verdict::BadVersion | Verdict::UnknownOperation);
        if let Some(header) = header_of(taken.datagram).filter(|_| opened && !names_a_version(taken.datagram)) {
            self.expected.packets[usize::from(header.operation)] += 1;
        }
        Ok(())
    }

    fn accepted(&mut self, taken: &Taken<'_>, packet: &Packet<'_>, answers: &[(SocketAddr, Packet<'_>)]) -> Checked {
        let operation = usize::from(taken.datagram[3]);
        self.expected.packets[operation] += 1;
        let verdict = match packet {
            Packet::Submit(submit, tasks) => self.submit(taken, submit, tasks, answers)?,
            Packet::Cancel(cancel, names) => self.cancel(taken, cancel, names, answers)?,
            Packet::Probe(probe, names) => self.probe(taken, probe, names, answers)?,
            Packet::Register(register) => self.register(taken, register, answers)?,
            Packet::Retrieve(retrieve, waits) => self.retrieve(taken, retrieve, waits, answers)?,
            Packet::Keepalive(keepalive, names) => self.keepalive(taken, keepalive, names, answers)?,
            Packet::Release(release, leaves) => self.release(taken, release, leaves, answers)?,
            _ => Verdict::NotForSwitch,
        };
        holds!(BOOKS, taken.verdict == verdict, "{} where it is {}", taken.verdict.name(), verdict.name());
        Ok(())
    }

    /// A task that a slot lost or gave back goes to a slot that waits and may run it, or before the others of its list.
    fn requeue(&mut self, now: Nanos, task: Name, given: &mut Vec<(SocketAddr, Assignment)>) -> Checked {
        self.queue.requeue(task);
        // A tick may give it to a slot that it finds silent, too, a moment later: the answers are grouped by executor.
        let own = given.iter().enumerate().filter(|(_, (_, a))| self.name_of(a) == task);
        if let Some((place, _)) = own.min_by_key(|(_, (_, a))| a.task.attempt) {
            let (to, assignment) = given.remove(place);
            self.assign(now, to, &assignment)?;
        }
        Ok(())
    }

    /// A task is given to a slot.
    fn assign(&mut self, now: Nanos, to: SocketAddr, assignment: &Assignment) -> Checked {
        let name = self.name_of(assignment);
        let resources = self.slots.take(now, to, name, assignment)?;
        let others = self.slots.fewest_resources(assignment.task.resources);
        let fewer = others.is_some_and(|fewest| fewest < resources.count_ones());
        holds!(T5, !fewer, "a slot with more resources than another that waits gets {assignment:?}");
        let address = self.clients.address(name.0);
        let task = self.queue.assign(now, name, assignment, resources, address, &mut self.expected)?;
        self.seen.assigned.push((to, task.jid, task.info.tid.get(), assignment.task.attempt));
        Ok(())
    }

    /// Under which name a task is assigned. Slots are told no client's identity, but a token (T13).
    fn name_of(&self, assignment: &Assignment) -> Name {
        let client = self.tokens.get(&assignment.token.get()).copied().unwrap_or(0);
        (client, assignment.submission.get(), assignment.index)
    }

    /// What holds between any two packets: T6, T1, and that all is counted.
    fn settle(&mut self, now: Nanos, stats: &Stats) -> Checked<Seen> {
        if let Some((level, mask)) = self.queue.suits(self.slots.waiting_masks()) {
            holds!(T6, false, "a slot waits while a task of level {level}, mask {mask:#04x} is queued at {now}");
        }
        let expected = &mut self.expected;
        (expected.queued, expected.busy) = (self.queue.queued(), self.queue.assigned());
        (expected.parked, expected.slots) = (self.slots.waiting(), self.slots.registered());
        expected.clients = self.clients.known();
        self.queue.waits(stats)?;
        let [now_open, was] =
            [stats, expected].map(|s| (s.queued, s.busy, s.submitted, s.completed, s.cancelled, s.dropped));
        holds!(
            T1,
            now_open == was,
            "tasks queued, busy, submitted, completed, cancelled, dropped: {now_open:?}, not {was:?}"
        );
        let [moved, was] = [stats, expected].map(|s| (s.assigned, s.expired, s.returned));
        holds!(T10, moved == was, "tasks assigned, expired, returned: {moved:?}, not {was:?}");
        let [kept, was] = [stats, expected].map(|s| (s.parked, s.slots, s.clients, s.gaps));
        holds!(BOOKS, kept == was, "slots parked, slots, clients, gaps: {kept:?}, not {was:?}");
        for verdict in Verdict::ALL {
            let [counted, right] = [stats, expected].map(|s| s.reasons[*verdict as usize]);
            holds!(BOOKS, counted == right, "{} is counted {counted} times, not {right}", verdict.name());
        }
        holds!(
            BOOKS,
            stats.packets == expected.packets,
            "packets by operation: {:?}, not {:?}",
            stats.packets,
            expected.packets
        );
        Ok(std::mem::take(&mut self.seen))
    }
}

fn is_answer(operation: Operation) -> bool {
    !matches!(
        operation,
        Operation::Submit
            | Operation::Register
            | Operation::Retrieve
            | Operation::Keepalive
            | Operation::Release
            | Operation::Probe
            | Operation::Cancel
    )
}

/// All assignments among some answers, with the addresses that they go to.
fn given(answers: &[(SocketAddr, Packet<'_>)]) -> Vec<(SocketAddr, Assignment)> {
    let mut given = Vec::new();
    for (to, packet) in answers {
        if let Packet::Assign(_, assignments) = packet {
            given.extend(assignments.iter().map(|assignment| (*to, *assignment)));
        }
    }
    given
}

/// Whether a datagram says which version its sender speaks: it is for no switch, whatever else stands in it.
fn names_a_version(datagram: &[u8]) -> bool {
    let start = Version::ref_from_prefix(datagram).ok();
    start.is_some_and(|(start, _)| start.magic.get() == MAGIC && start.operation == VERSION_OPERATION)
}

fn header_of(datagram: &[u8]) -> Option<&Header> {
    Header::ref_from_prefix(datagram).ok().map(|(header, _)| header)
}

/// Who shares: an IPv4 address, or all that have the first 64 bits of an IPv6 address (T14).
fn source(address: SocketAddr) -> IpAddr {
    match address.ip().to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
        ipv4 => ipv4,
    }
}

/// T14: a source may take another record while it holds fewer than eight times what is free.
fn is_within_share(held: usize, free: usize) -> bool {
    held < 8 * free
}
