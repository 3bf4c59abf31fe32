//! Turns fuzzing input into packets and ticks for a small switch. A few clients and executors send mostly valid
//! packets; sometimes they repeat, reorder or forge them. Time mostly advances by nanoseconds, sometimes by seconds.

use super::bytes::Bytes;
use super::checker::{AsicChecker, Checker};
use super::differential::Differential;
use super::participants::{CLIENTS, Client, EXECUTORS, Executor, client_address, executor_address, identity};
use crate::transcript::PollingAsic;
use midflight_dataplane::program::Engine;
use midflight_dataplane::{Cookies, Stats, TasksConfig, TasksProgram, Which};
use midflight_endpoint::serial::is_later;
use midflight_wire::tasks::{
    APPENDED, BY_REFERENCE, Cancel, Keepalive, Leave, Operation, Packet, Preference, Probe, Register, Release,
    Retrieve, SlotName, Submit, TaskInfo, TaskName, parse,
};
use midflight_wire::{Header, PACKET_MAX, counting, packet};
use std::mem::offset_of;
use std::net::SocketAddr;
use zerocopy::byteorder::network_endian::U64;
use zerocopy::{Immutable, IntoBytes};

/// Some contain each other, some overlap, some do neither.
const MASKS: [u8; 8] = [0, 0, 1, 2, 3, 5, 7, 255];
/// Preferred places and places of slots; 0 is none.
const PLACES: [u32; 8] = [0, 0, 0, 1, 1, 2, 3, 4];
const PATIENCES: [u32; 8] = [0, 1, 1, 3, 64, 500, 1000, 40_000];
/// Nanoseconds by which time jumps without a tick.
const LEAPS: [u64; 8] = [1, 1_000, 1_000_000, 100_000_000, 333_333_333, 500_000_000, 1_000_000_000, 3_000_000_000];
/// Nanoseconds between ticks. The last one exceeds a third of a lease, which makes a gap.
const STEPS: [u64; 4] = [100_000_000, 300_000_000, 333_333_333, 333_333_334];

/// Kinds of tasks whose arguments are appended, and their lengths: full blocks, one byte more, the longest. Kind 251 has an impossible one.
const APPENDED_KINDS: std::ops::Range<u8> = 128..252;
const LENGTHS: [u16; 16] = [17, 120, 121, 361, 473, 480, 480, 480, 480, 480, 480, 480, 480, 480, 480, 480];

const FEW_CLIENTS: usize = 4;
/// Bytes for tasks in a SUBMIT.
const ROOM: usize = PACKET_MAX - size_of::<Submit>() - size_of::<Preference>();

/// The epoch that [`interpret`] expects of its engine.
pub const EPOCH: u32 = 77;

/// Interprets `bytes` for an engine, compares it with the model, and returns the counters. `start` creates the engine
/// with the configuration that the bytes choose, [`EPOCH`] and `secret`.
///
/// # Errors
/// If the engine differs from the model or breaks a rule.
pub fn interpret<E: Engine<Program = TasksProgram>>(
    bytes: &[u8],
    secret: u128,
    start: impl FnOnce(&TasksConfig) -> E,
) -> Result<Stats, String> {
    interpret_with(bytes, secret, |config| Ok(Differential::new(start(config), config, EPOCH, secret)))
}

/// Interprets `bytes` for the asic engine and returns the counters. That engine may differ from the model, so only
/// invariants are checked: task counters add up, and answers are well-formed.
///
/// # Errors
/// If an invariant fails.
pub fn interpret_asic(bytes: &[u8]) -> Result<Stats, String> {
    const SECRET: u128 = 1;
    let start = |config: &TasksConfig| PollingAsic::new(config, EPOCH, SECRET).map_err(|error| error.to_string());
    interpret_with(bytes, SECRET, |config| start(config).map(AsicChecker))
}

fn interpret_with<C: Checker>(
    bytes: &[u8],
    secret: u128,
    start: impl FnOnce(&TasksConfig) -> Result<C, String>,
) -> Result<Stats, String> {
    let mut bytes = Bytes(bytes);
    let is_crowd = bytes.below(2) == 0;
    let config = TasksConfig {
        queue: 1 + bytes.below(if C::APPENDED { 48 } else { 16 }),
        slots: 1 + bytes.below(20),
        clients: if is_crowd { 8 + bytes.below(5) } else { 1 + bytes.below(5) },
        levels: 1 + bytes.below(8),
        places: 1 + bytes.below(4),
        arguments: 8,
        lease_ns: 1_000_000_000,
        slot_idle_ns: 2_000_000_000,
        client_idle_ns: 3_000_000_000,
        cookie_ns: 1_000_000_000,
    };
    let mut run = Interpreter {
        checker: start(&config)?,
        config,
        cookies: Cookies::new(secret, config.cookie_ns),
        is_ipv6: C::IPV6 && bytes.below(2) == 0,
        is_crowd,
        bytes,
        now: 1_000,
        clients: Default::default(),
        executors: Default::default(),
    };
    while !run.bytes.is_empty() {
        run.step()?;
    }
    Ok(run.checker.stats())
}

fn bytes_of(task: &TaskInfo) -> usize {
    size_of::<TaskInfo>() + task.appended_bytes()
}

struct Interpreter<'a, C> {
    bytes: Bytes<'a>,
    checker: C,
    config: TasksConfig,
    cookies: Cookies,
    is_ipv6: bool,
    /// All clients take part, or so few that they often affect each other.
    is_crowd: bool,
    now: u64,
    clients: [Client; CLIENTS],
    executors: [Executor; EXECUTORS],
}

impl<C: Checker> Interpreter<'_, C> {
    fn step(&mut self) -> Result<(), String> {
        self.now += 1;
        match self.bytes.next() {
            0..=59 => self.submit(),
            60..=129 => self.retrieve(),
            130..=154 => self.register(),
            155..=164 => self.keepalive(),
            165..=179 => self.release(),
            180..=194 => self.cancel(),
            195..=204 => self.probe(),
            205..=216 => {
                self.now += self.bytes.pick(&LEAPS);
                Ok(())
            }
            217..=220 => self.run(),
            221..=239 => self.checker.tick(self.now).map(drop),
            240..=241 => self.purge(),
            242..=244 => {
                let who = self.client();
                self.clients[who].has_moved = self.bytes.below(8) == 0;
                Ok(())
            }
            245..=246 => {
                let who = self.executor();
                self.executors[who].has_moved = self.bytes.below(4) == 0;
                Ok(())
            }
            _ => self.noise(),
        }
    }

    fn run(&mut self) -> Result<(), String> {
        let step = self.bytes.pick(&STEPS);
        for _ in 0..1 + self.bytes.below(16) {
            self.now += step;
            self.checker.tick(self.now)?;
        }
        Ok(())
    }

    fn purge(&mut self) -> Result<(), String> {
        let who = self.client();
        let which = match self.bytes.below(3) {
            0 => Which::Client(identity(who)),
            1 => Which::Resources(self.bytes.pick(&MASKS)),
            _ => Which::Address(self.client_address(who).ip()),
        };
        self.checker.purge(which)
    }

    fn submit(&mut self) -> Result<(), String> {
        let who = self.client();
        let sequence = self.next_sequence(who);
        let count = self.bytes.count(32);
        let mut tasks: Vec<_> = (0..count).map(|_| self.task()).collect();
        // Rarely a little too long.
        let most = if self.bytes.next() == 255 { ROOM + 40 } else { ROOM };
        while tasks.iter().map(bytes_of).sum::<usize>() > most {
            tasks.pop();
        }
        let fixed = Submit {
            client: identity(who).into(),
            cookie: self.cookie(who, self.client_address(who)),
            token: (u64::from(sequence) << 32 | identity(who)).into(),
            uid: (sequence % 3).into(),
            jid: sequence.into(),
            ..Submit::new(0, sequence)
        };
        let (place, patience_ms) = (self.bytes.pick(&PLACES), self.bytes.pick(&PATIENCES));
        let mut datagram = packet(&fixed, &tasks);
        let appended: usize = tasks.iter().map(TaskInfo::appended_bytes).sum();
        datagram.extend((0..appended).map(|at| at as u8 ^ sequence as u8));
        // Place 0 means no preference; both spellings are tried.
        if place != 0 || patience_ms == 0 {
            let preference = Preference { place: place.into(), patience_ms: patience_ms.into() };
            datagram.extend_from_slice(preference.as_bytes());
        }
        self.send_bytes(self.client_address(who), datagram)
    }

    fn cancel(&mut self) -> Result<(), String> {
        let who = self.client();
        let sequence = self.next_sequence(who);
        let names = self.task_names(who, 1);
        let (client, cookie) = (identity(who).into(), self.cookie(who, self.client_address(who)));
        self.send(self.client_address(who), &Cancel { client, cookie, ..Cancel::new(0, sequence) }, &names)
    }

    fn probe(&mut self) -> Result<(), String> {
        let who = self.client();
        let names = self.task_names(who, 0);
        let probe = self.bytes.sequence(self.clients[who].probe);
        self.clients[who].probe = probe;
        let (client, cookie) = (identity(who).into(), self.cookie(who, self.client_address(who)));
        self.send(self.client_address(who), &Probe { client, cookie, ..Probe::new(0, probe) }, &names)
    }

    fn register(&mut self) -> Result<(), String> {
        let who = self.executor();
        let last = self.executors[who].registration;
        let registration = match self.bytes.below(16) {
            0..3 => last,
            3 => last.saturating_sub(1),
            _ => last + 1,
        };
        self.executors[who].registration = last.max(registration);
        let count = 1 + self.bytes.below(6) as u8;
        let fixed = Register {
            executor: identity(who).into(),
            cookie: self.cookie(who, self.executor_address(who)),
            first: self.bytes.below(4).into(),
            resources: self.bytes.pick(&MASKS),
            kind: u8::from(self.bytes.below(4) == 0),
            places: [self.bytes.pick(&PLACES).into(), self.bytes.pick(&PLACES).into()],
            ..Register::new(0, registration)
        };
        self.send_bytes(self.executor_address(who), counting(&fixed, count))
    }

    fn retrieve(&mut self) -> Result<(), String> {
        let who = self.executor();
        let count = self.bytes.count(16);
        let mut waits = Vec::new();
        for _ in 0..count {
            let (name, sequence) = self.slot_and_sequence(who);
            waits.push(name.wait(sequence));
        }
        let resources = self.bytes.pick(&MASKS);
        let (epoch, counter) = (self.epoch(), self.counter(who));
        let ahead = u8::from(self.bytes.below(3) == 0);
        let number = if ahead == 0 { 0 } else { counter.get() as u32 };
        let fixed = Retrieve { counter, resources, ahead, ..Retrieve::new(epoch, number) };
        self.send(self.executor_address(who), &fixed, &waits)
    }

    fn keepalive(&mut self) -> Result<(), String> {
        let who = self.executor();
        let count = self.bytes.count(64);
        let mut waits = Vec::new();
        for _ in 0..count {
            let (name, last) = self.slot(who);
            let sequence = if self.bytes.below(8) == 0 { self.bytes.sequence(last) } else { last };
            waits.push(name.wait(sequence));
        }
        let (epoch, counter) = (self.epoch(), self.counter(who));
        self.send(self.executor_address(who), &Keepalive { counter, ..Keepalive::new(epoch, 0) }, &waits)
    }

    fn release(&mut self) -> Result<(), String> {
        let who = self.executor();
        let count = self.bytes.count(16);
        let mut leaves = Vec::new();
        for _ in 0..count {
            let (name, last) = self.slot(who);
            let sequence = if self.bytes.below(4) == 0 { self.bytes.sequence(last) } else { last };
            let (slot, generation, done) = (name.slot, name.generation, self.bytes.below(4) as u8);
            leaves.push(Leave { slot, generation, sequence: sequence.into(), done, reserved: [0; 3] });
        }
        let (epoch, counter) = (self.epoch(), self.counter(who));
        self.send(self.executor_address(who), &Release { counter, ..Release::new(epoch, 0) }, &leaves)
    }

    fn noise(&mut self) -> Result<(), String> {
        let length = self.bytes.below(64) as usize;
        let mut datagram = vec![0; length];
        if self.bytes.below(2) == 0 {
            let operation = self.bytes.pick(Operation::ALL);
            let header = Header::new(operation, EPOCH, 1);
            let shared = length.min(size_of::<Header>());
            datagram[..shared].copy_from_slice(&header.as_bytes()[..shared]);
        }
        for byte in datagram.iter_mut().skip(4) {
            *byte = self.bytes.next();
        }
        // Without this, nearly all would be refused for an unknown key.
        if let Some(key) = datagram.get_mut(offset_of!(Header, key)) {
            *key /= 128;
        }
        self.send_bytes(self.client_address(0), datagram)
    }

    fn client(&mut self) -> usize {
        let most = if self.is_crowd { CLIENTS } else { FEW_CLIENTS };
        self.bytes.next() as usize % most
    }

    fn executor(&mut self) -> usize {
        self.bytes.next() as usize % EXECUTORS
    }

    fn client_address(&self, number: usize) -> SocketAddr {
        client_address(number, self.clients[number].has_moved, self.is_ipv6)
    }

    fn executor_address(&self, number: usize) -> SocketAddr {
        executor_address(number, self.executors[number].has_moved, self.is_ipv6)
    }

    /// Mostly the current cookie; sometimes the previous one, an older one, another identity's or address's, or none.
    fn cookie(&mut self, who: usize, at: SocketAddr) -> U64 {
        let choice = self.bytes.next();
        let windows_ago = match choice {
            192..=207 => 1,
            208..=211 => 2,
            _ => 0,
        };
        let given_ns = self.now.saturating_sub(windows_ago * self.config.cookie_ns);
        let cookie = match choice {
            212..=215 => self.cookies.give(given_ns, identity(who) + 1, at),
            216..=219 => self.cookies.give(given_ns, identity(who), SocketAddr::new(at.ip(), 1)),
            220..=255 => 0,
            _ => self.cookies.give(given_ns, identity(who), at),
        };
        cookie.into()
    }

    fn counter(&mut self, executor: usize) -> U64 {
        let last = self.executors[executor].counter;
        let counter = self.bytes.counter(last);
        if counter < u64::MAX {
            self.executors[executor].counter = last.max(counter);
        }
        counter.into()
    }

    fn next_sequence(&mut self, client: usize) -> u32 {
        let sequence = self.bytes.sequence(self.clients[client].sequence);
        if is_later(sequence, self.clients[client].sequence) {
            self.clients[client].sequence = sequence;
        }
        sequence
    }

    fn task(&mut self) -> TaskInfo {
        let kind = self.bytes.next();
        let levels = self.config.levels as u8;
        let mut argument = [kind; 16];
        let is_appended = C::APPENDED && APPENDED_KINDS.contains(&kind);
        if is_appended {
            argument[..2].copy_from_slice(&self.bytes.pick(&LENGTHS).to_be_bytes());
        }
        if kind == 251 {
            argument[..2].copy_from_slice(&(if self.bytes.below(2) == 0 { 16u16 } else { 481 }).to_be_bytes());
        }
        TaskInfo {
            tid: u32::from(kind).into(),
            function: 0.into(),
            priority: if kind == 255 { levels + 1 } else { 1 + self.bytes.next() % levels },
            resources: self.bytes.pick(&MASKS),
            argument_length: match kind {
                254 => 17,
                253 => BY_REFERENCE,
                _ if is_appended => APPENDED,
                _ => kind % 17,
            },
            attempt: if kind == 252 { 255 } else { kind % 2 },
            argument,
        }
    }

    fn task_names(&mut self, client: usize, least: u32) -> Vec<TaskName> {
        let count = self.bytes.count(32).saturating_sub(1).max(least);
        let mut names = Vec::new();
        for _ in 0..count {
            let submission = self.clients[client].sequence.wrapping_sub(self.bytes.below(4));
            names.push(TaskName::new(submission, self.bytes.below(4) as u8));
        }
        names
    }

    /// A slot that the executor has or had, or another executor's, with the sequence of its last wait.
    fn slot(&mut self, who: usize) -> (SlotName, u32) {
        let choice = self.bytes.next();
        let whose = if choice >= 250 { self.executor() } else { who };
        let slots = &self.executors[whose].slots;
        if slots.is_empty() || choice == 249 {
            return (SlotName { slot: u32::from(choice).into(), generation: 1.into() }, 0);
        }
        let back = if choice < 200 { choice as usize % 4 } else { choice as usize };
        slots[slots.len() - 1 - back % slots.len()]
    }

    fn slot_and_sequence(&mut self, who: usize) -> (SlotName, u32) {
        let (name, last) = self.slot(who);
        let sequence = self.bytes.sequence(last);
        for (known, last) in self.executors.iter_mut().flat_map(|executor| &mut executor.slots) {
            if *known == name {
                *last = sequence;
            }
        }
        (name, sequence)
    }

    /// The epoch of an executor's packet, rarely wrong.
    fn epoch(&mut self) -> u32 {
        if self.bytes.next() == 255 { EPOCH + 1 } else { EPOCH }
    }

    fn send<H, R>(&mut self, from: SocketAddr, fixed: &H, records: &[R]) -> Result<(), String>
    where
        H: IntoBytes + Immutable,
        R: IntoBytes + Immutable,
    {
        self.send_bytes(from, packet(fixed, records))
    }

    /// Sends a datagram; rarely corrupted, from another address, or twice.
    fn send_bytes(&mut self, mut from: SocketAddr, mut datagram: Vec<u8>) -> Result<(), String> {
        match self.bytes.next() {
            0..=239 => {}
            240..=244 => self.deliver(from, &datagram)?,
            245 => {
                let other = self.executor();
                from = self.executor_address(other);
            }
            246 => {
                let other = self.client();
                from = self.client_address(other);
            }
            247 => datagram.truncate(self.bytes.next() as usize),
            248 => datagram.resize(datagram.len() + 1 + self.bytes.below(40) as usize, 0),
            choice => {
                // Mostly one of the first bytes (version, operation, count, key).
                let offset = if choice < 252 { self.bytes.below(6) } else { self.bytes.next().into() };
                let value = self.bytes.next();
                datagram.iter_mut().skip(offset as usize).take(1).for_each(|byte| *byte = value);
            }
        }
        self.deliver(from, &datagram)
    }

    fn deliver(&mut self, from: SocketAddr, datagram: &[u8]) -> Result<(), String> {
        self.now += 1;
        for (_, answer) in self.checker.packet(self.now, from, datagram)? {
            if let Ok(Packet::Registered(registered, names)) = parse(&answer) {
                self.executors[registered.executor.get() as usize % EXECUTORS].learn(names);
            }
        }
        Ok(())
    }
}
