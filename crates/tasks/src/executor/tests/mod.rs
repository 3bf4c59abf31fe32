//! Tests in which the test acts as the switch and the clients.

mod ahead;
mod completions;
mod cookies;
mod counted;
mod polling;
mod property;
mod registration;
mod resets;
mod running;
mod versions;
mod waiting;

use super::link::ANSWERABLE;
use super::*;
use crate::proof::Token;
use midflight_endpoint::MS;
use midflight_wire::tasks::{
    AckState, Assign, Assignment, Complete, CompleteAck, Completed, Cookie, NoOp, Operation, REGISTER_MAX, Reason,
    Register, Registered, Released, Reset, Retrieve, RunName, SLOTS_MAX as WAITS_MAX, SlotName, Stop, TaskInfo,
};
use midflight_wire::{Address, PACKET_MAX, counting, packet};

pub(super) const EPOCH: u32 = 0xE90C;
pub(super) const TOKEN: u64 = 77;

pub(super) fn switch(n: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, n], 9000))
}

pub(super) fn client(n: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 1, n], 7000))
}

pub(super) fn never_ahead(config: ExecutorConfig) -> ExecutorConfig {
    ExecutorConfig { ahead: 0, ..config }
}

/// An executor, its clock, and the packets and events of its last turn.
pub(super) struct World {
    pub(super) executor: Executor,
    pub(super) now: Nanos,
    pub(super) sent: Vec<(SocketAddr, Vec<u8>)>,
    pub(super) events: Vec<Event>,
    /// `poll_us` in REGISTERED; 0 means that the switch parks slots.
    pub(super) poll_us: u16,
    /// Counter of the last packet that had one.
    pub(super) counter: u64,
}

impl World {
    pub(super) fn new(slots: u32) -> Self {
        Self::with(never_ahead(ExecutorConfig::new(42, 1, vec![switch(1), switch(2)], slots, 0b101)))
    }

    pub(super) fn with(config: ExecutorConfig) -> Self {
        let executor = Executor::new(config, 0).unwrap();
        let mut world = Self { executor, now: 0, sent: Vec::new(), events: Vec::new(), poll_us: 0, counter: 0 };
        world.turn();
        world
    }

    pub(super) fn polling(slots: u32, poll_us: u16) -> Self {
        let mut world = Self::new(slots);
        world.poll_us = poll_us;
        world.grant(EPOCH, 7);
        world
    }

    /// An executor whose slots have number 100 + local and generation 7, and have sent their first waits.
    pub(super) fn registered(slots: u32) -> Self {
        let mut world = Self::new(slots);
        world.grant(EPOCH, 7);
        world
    }

    pub(super) fn turn(&mut self) {
        self.events = std::iter::from_fn(|| self.executor.poll_event()).collect();
        let mut buffer = Vec::new();
        self.sent.clear();
        while let Some(to) = self.executor.poll_transmit(self.now, &mut buffer) {
            self.sent.push((to, buffer.clone()));
            assert!(buffer.len() <= PACKET_MAX, "T15: {} bytes", buffer.len());
            self.counter = counter(&buffer).unwrap_or(self.counter);
        }
    }

    /// Lets time pass to `until` and takes every turn that is due. Keeps all packets and events.
    pub(super) fn pass(&mut self, until: Nanos) {
        let (mut sent, mut events) = (Vec::new(), Vec::new());
        while let Some(due) = self.executor.poll_timeout().filter(|&due| due <= until) {
            self.now = self.now.max(due);
            self.executor.handle_timeout(self.now);
            self.turn();
            let next = self.executor.poll_timeout();
            assert!(next.is_none_or(|next| next > self.now), "a timeout that was handled is due again");
            sent.append(&mut self.sent);
            events.append(&mut self.events);
        }
        (self.now, self.sent, self.events) = (until, sent, events);
    }

    pub(super) fn deliver(&mut self, from: SocketAddr, datagram: &[u8]) {
        self.executor.handle(self.now, from, datagram);
        self.turn();
    }

    /// Answers all REGISTERs of the last turn, and those that follow.
    pub(super) fn grant(&mut self, epoch: u32, generation: u32) {
        let mut sent = Vec::new();
        loop {
            let requests = self.registers();
            sent.append(&mut self.sent);
            if requests.is_empty() {
                break;
            }
            for (to, request) in requests {
                let answer = answer_to(&request, epoch, u32::from(request.header.count), generation, self.poll_us);
                self.executor.handle(self.now, to, &answer);
            }
            let events = std::mem::take(&mut self.events);
            self.turn();
            self.events.splice(0..0, events);
        }
        self.sent = sent;
    }

    pub(super) fn registers(&self) -> Vec<(SocketAddr, Register)> {
        let requests = self.sent.iter().filter_map(|(to, packet)| match parse(packet) {
            Ok(Packet::Register(request)) => Some((*to, *request)),
            _ => None,
        });
        requests.collect()
    }

    pub(super) fn questions(&self, of: SocketAddr) -> Vec<u64> {
        let is_question =
            |packet: &[u8]| matches!(parse(packet), Ok(Packet::Keepalive(fixed, [_])) if fixed.header.epoch.get() == 0);
        let asked = self.sent.iter().filter(|(to, packet)| *to == of && is_question(packet));
        asked.filter_map(|(_, packet)| counter(packet)).collect()
    }

    pub(super) fn question(&self, of: SocketAddr) -> u64 {
        *self.questions(of).last().expect("it was asked")
    }

    /// All waits of the last turn: slot, generation, sequence.
    pub(super) fn waits(&self) -> Vec<(u32, u32, u32)> {
        let packets = self.sent.iter().filter_map(|(_, packet)| match parse(packet) {
            Ok(Packet::Retrieve(_, waits)) => Some(waits),
            _ => None,
        });
        packets.flatten().map(numbers).collect()
    }

    pub(super) fn operations(&self) -> Vec<Operation> {
        self.sent.iter().map(|(_, packet)| Operation::from_number(packet[3]).unwrap()).collect()
    }

    pub(super) fn runs(&self) -> Vec<Run> {
        self.events
            .iter()
            .filter_map(|event| if let Event::Run(run) = event { Some(run.clone()) } else { None })
            .collect()
    }

    pub(super) fn counters(&self) -> Counters {
        *self.executor.counters()
    }

    /// RESET in response to the last packet with a counter.
    pub(super) fn reset(&mut self, from: SocketAddr, epoch: u32, waits: &[(u32, u32, u32)]) {
        self.deliver(from, &reset(epoch, self.counter, waits));
    }

    /// The same with RELEASED; slots as (slot, generation).
    pub(super) fn released(&mut self, epoch: u32, slots: &[(u32, u32)]) {
        self.deliver(switch(1), &released(epoch, self.counter, slots));
    }

    pub(super) fn assign(&mut self, assignments: &[Assignment]) {
        self.deliver(switch(1), &assign(EPOCH, assignments));
    }

    /// Assigns task `index` to local slot `slot` at `sequence` and returns the run.
    pub(super) fn start(&mut self, slot: u32, sequence: u32, index: u8) -> Run {
        self.assign(&[assignment(slot, 7, sequence, index)]);
        let runs = self.runs();
        assert_eq!(runs.len(), 1, "one run");
        runs[0].clone()
    }

    pub(super) fn finish(&mut self, run: &Run, result: &[u8]) {
        let end = End {
            status: Status::Ok,
            result: Output::Inline(result.to_vec()),
            started: run.arrived + 5_000,
            ended: run.arrived + 9_000,
        };
        self.executor.finish(self.now, run.key, end);
        self.turn();
    }
}

pub(super) fn registered(epoch: u32, request: &Register, count: u32, generation: u32) -> Vec<u8> {
    answer_to(request, epoch, count, generation, 0)
}

pub(super) fn answer_to(request: &Register, epoch: u32, count: u32, generation: u32, poll_us: u16) -> Vec<u8> {
    let first = 100 + request.first.get();
    let names: Vec<_> = (first..first + count).map(|number| (number, generation)).collect();
    answer_with(request, epoch, &names, 300 * MS, poll_us)
}

pub(super) fn answer_with(request: &Register, epoch: u32, names: &[(u32, u32)], lease: Nanos, poll_us: u16) -> Vec<u8> {
    let full = names.len() < usize::from(request.header.count);
    let fixed = Registered {
        executor: request.executor,
        first: request.first,
        lease_ms: ((lease / MS) as u32).into(),
        seen: Address::from(client(200)),
        reason: if full { Reason::SlotsFull } else { Reason::None } as u8,
        poll_us: poll_us.into(),
        ..Registered::new(epoch, request.header.sequence.get())
    };
    packet(&fixed, &slot_names(names))
}

fn slot_names(names: &[(u32, u32)]) -> Vec<SlotName> {
    let name = |&(slot, generation): &(u32, u32)| SlotName { slot: slot.into(), generation: generation.into() };
    names.iter().map(name).collect()
}

/// Task `index` of submission 9, for local slot `slot`.
pub(super) fn assignment(slot: u32, generation: u32, sequence: u32, index: u8) -> Assignment {
    let task = TaskInfo { tid: u32::from(index).into(), function: 3.into(), attempt: 2, ..TaskInfo::PLAIN };
    Assignment {
        token: TOKEN.into(),
        slot: (100 + slot).into(),
        generation: generation.into(),
        sequence: sequence.into(),
        waited_us: 11.into(),
        task,
        uid: 5.into(),
        jid: 6.into(),
        address: client(1).into(),
        submission: 9.into(),
        index,
        reserved: [0; 3],
    }
}

pub(super) fn assign(epoch: u32, assignments: &[Assignment]) -> Vec<u8> {
    packet(&Assign::new(epoch, 0), assignments)
}

pub(super) fn wait((slot, generation, sequence): (u32, u32, u32)) -> Wait {
    Wait { slot: slot.into(), generation: generation.into(), sequence: sequence.into() }
}

pub(super) fn numbers(wait: &Wait) -> (u32, u32, u32) {
    (wait.slot.get(), wait.generation.get(), wait.sequence.get())
}

pub(super) fn counter(packet: &[u8]) -> Option<u64> {
    match parse(packet) {
        Ok(Packet::Retrieve(fixed, _)) => Some(fixed.counter.get()),
        Ok(Packet::Keepalive(fixed, _)) => Some(fixed.counter.get()),
        Ok(Packet::Release(fixed, _)) => Some(fixed.counter.get()),
        _ => None,
    }
}

pub(super) fn reset(epoch: u32, counter: u64, waits: &[(u32, u32, u32)]) -> Vec<u8> {
    let waits: Vec<_> = waits.iter().copied().map(wait).collect();
    packet(&Reset { counter: counter.into(), ..Reset::new(epoch, 0) }, &waits)
}

pub(super) fn cookie(sequence: u32, identity: u64, cookie: u64) -> Vec<u8> {
    let (identity, cookie) = (identity.into(), cookie.into());
    counting(&Cookie { identity, cookie, ..Cookie::new(EPOCH, sequence) }, 0)
}

pub(super) fn released(epoch: u32, counter: u64, slots: &[(u32, u32)]) -> Vec<u8> {
    packet(&Released { counter: counter.into(), ..Released::new(epoch, 0) }, &slot_names(slots))
}

/// NO_OP to these waits: slot, generation, sequence.
pub(super) fn no_op(epoch: u32, waits: &[(u32, u32, u32)]) -> Vec<u8> {
    let waits: Vec<_> = waits.iter().copied().map(wait).collect();
    packet(&NoOp::new(epoch, 0), &waits)
}

pub(super) fn ack(index: u8, state: AckState) -> Vec<u8> {
    let one = Completed { proof: 0.into(), submission: 9.into(), index, attempt: 2, state: state as u8, reserved: 0 };
    packet(&CompleteAck::new(EPOCH, 0), &[proven(Token::new(TOKEN), one)])
}

pub(super) fn proven(token: Token, one: Completed) -> Completed {
    Completed { proof: token.acknowledgement_proof(&one).into(), ..one }
}

/// Slots in each packet of one operation in the last turn.
pub(super) fn names(world: &World, operation: Operation) -> Vec<Vec<u32>> {
    let lists = world.sent.iter().filter_map(|(_, packet)| match parse(packet) {
        Ok(Packet::Keepalive(_, waits)) if operation == Operation::Keepalive => {
            Some(waits.iter().map(|wait| wait.slot.get()).collect())
        }
        Ok(Packet::Release(_, leaves)) if operation == Operation::Release => {
            Some(leaves.iter().map(|leave| leave.slot.get()).collect())
        }
        _ => None,
    });
    lists.collect()
}
