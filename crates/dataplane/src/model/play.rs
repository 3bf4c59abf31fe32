//! Turns any bytes into a story, for property tests and fuzzers: a small switch, a few clients and executors who mostly
//! say sensible things, sometimes repeat, reorder and forge them, and time that mostly creeps and sometimes leaps.

use super::duel::Duel;
use crate::Datagram;
use crate::transcript::{Engine, PollingAsic};
use crate::{Stats, TasksConfig};
use midflight_wire::{
    BY_REFERENCE, Builder, Cancel, Header, Keepalive, Leave, Operation, Packet, Probe, Register, Release, Retrieve,
    SlotName, Submit, TaskInfo, TaskName, Wait, parse,
};
use std::net::SocketAddr;
use zerocopy::{Immutable, IntoBytes};

/// Masks that meet each other in interesting ways.
const MASKS: [u8; 8] = [0, 0, 1, 2, 3, 5, 7, 255];
/// Nanoseconds by which time may move.
const LEAPS: [u64; 8] = [1, 1_000, 1_000_000, 100_000_000, 500_000_000, 1_000_000_000, 10_000_000_000, 60_000_000_000];
const CLIENTS: usize = 5;
const EXECUTORS: usize = 4;
/// Of these many names of slots, the oldest are forgotten by who tells the story.
const REMEMBERED: usize = 24;

/// The epoch that [`play`] expects its engine to have.
pub const EPOCH: u32 = 77;

/// Plays the story of `bytes`: `start` makes an engine with the configuration that the bytes ask for and [`EPOCH`].
/// Returns what was counted.
///
/// # Errors
/// Where the engine differs from the model or breaks a rule.
pub fn play<E: Engine>(bytes: &[u8], start: impl FnOnce(&TasksConfig) -> E) -> Result<Stats, String> {
    play_before(bytes, |config| Ok(Duel::new(start(config), config, EPOCH)))
}

/// Plays the story of `bytes` before the asic engine, which differs from the model: its books must balance, and its answers be
/// packets. Returns what was counted.
///
/// # Errors
/// Where that does not hold.
pub fn play_asic(bytes: &[u8]) -> Result<Stats, String> {
    let start = |config: &TasksConfig| PollingAsic::new(config, EPOCH, 1).map_err(|error| error.to_string());
    play_before(bytes, |config| start(config).map(AsicBooks))
}

/// Who judges what an engine answers.
trait Judge {
    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &[u8]) -> Result<Vec<Datagram>, String>;
    fn tick(&mut self, now_ns: u64) -> Result<Vec<Datagram>, String>;
    fn stats(&self) -> Stats;
}

fn play_before<J: Judge>(bytes: &[u8], start: impl FnOnce(&TasksConfig) -> Result<J, String>) -> Result<Stats, String> {
    let mut bytes = Bytes(bytes);
    let config = TasksConfig {
        queue: 1 + bytes.below(16),
        slots: 1 + bytes.below(12),
        clients: 1 + bytes.below(5),
        levels: 1 + bytes.below(8),
        ..TasksConfig::default()
    };
    let judge = start(&config)?;
    let mut game = Game { bytes, judge, config, now: 1_000, clients: [0; CLIENTS], executors: Default::default() };
    while !game.bytes.0.is_empty() {
        game.step()?;
    }
    Ok(game.judge.stats())
}

impl<E: Engine> Judge for Duel<E> {
    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &[u8]) -> Result<Vec<Datagram>, String> {
        Self::packet(self, now_ns, from, datagram)
    }

    fn tick(&mut self, now_ns: u64) -> Result<Vec<Datagram>, String> {
        Self::tick(self, now_ns)
    }

    fn stats(&self) -> Stats {
        Self::stats(self)
    }
}

/// T1 and T2 of the asic engine: between two packets, when nothing goes round, a task that was taken is queued or was assigned.
struct AsicBooks(PollingAsic);

impl AsicBooks {
    fn balance(&self, sent: Vec<Datagram>) -> Result<Vec<Datagram>, String> {
        let Stats { submitted, assigned, queued, .. } = self.0.stats();
        let waiting: u64 = queued.iter().map(|&tasks| u64::from(tasks)).sum();
        if submitted != assigned + waiting {
            return Err(format!("T1, T2: {submitted} tasks were taken, {assigned} assigned, {waiting} wait"));
        }
        match sent.iter().find(|(_, bytes)| parse(bytes).is_err()) {
            Some((to, bytes)) => Err(format!("no packet, to {to}: {bytes:02x?}")),
            None => self.0.check().map(|()| sent),
        }
    }
}

impl Judge for AsicBooks {
    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &[u8]) -> Result<Vec<Datagram>, String> {
        let (_, sent) = self.0.packet(now_ns, from, datagram);
        self.balance(sent)
    }

    fn tick(&mut self, now_ns: u64) -> Result<Vec<Datagram>, String> {
        let (_, sent) = self.0.tick(now_ns);
        self.balance(sent)
    }

    fn stats(&self) -> Stats {
        self.0.stats()
    }
}

/// Choices yet to be made; 0 for ever when they run out.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, bound: u32) -> u32 {
        u32::from(self.next()) % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.next() as usize % from.len()]
    }

    fn word(&mut self) -> u32 {
        u32::from_be_bytes([self.next(), self.next(), self.next(), self.next()])
    }

    /// Mostly the next sequence after `last`; else the same, an older one, one ahead, or anything.
    fn sequence(&mut self, last: u32) -> u32 {
        match self.next() {
            0..=191 => last.wrapping_add(1),
            192..=215 => last,
            216..=231 => last.wrapping_sub(self.below(80)),
            232..=247 => last.wrapping_add(self.below(80)),
            248..=251 => last.wrapping_add(0x7FFF_FFFF),
            _ => self.word(),
        }
    }
}

/// An executor as it remembers itself.
#[derive(Default)]
struct Executor {
    registration: u32,
    /// Slots that it was ever given, the last ones last, each with its last wait.
    slots: Vec<(SlotName, u32)>,
}

struct Game<'a, J> {
    bytes: Bytes<'a>,
    judge: J,
    config: TasksConfig,
    now: u64,
    /// The last sequence of each.
    clients: [u32; CLIENTS],
    executors: [Executor; EXECUTORS],
}

impl<J: Judge> Game<'_, J> {
    fn step(&mut self) -> Result<(), String> {
        // Each datagram has its own time, so it is never in doubt who has been silent for longest.
        self.now += 1;
        match self.bytes.next() {
            0..=59 => self.submit(),
            60..=129 => self.retrieve(),
            130..=154 => self.register(),
            155..=164 => self.keepalive(),
            165..=179 => self.release(),
            180..=194 => self.cancel(),
            195..=204 => self.probe(),
            205..=224 => {
                self.now += self.bytes.pick(&LEAPS);
                Ok(())
            }
            225..=249 => self.judge.tick(self.now).map(drop),
            _ => self.noise(),
        }
    }

    fn submit(&mut self) -> Result<(), String> {
        let who = self.client();
        let sequence = self.next_sequence(who);
        let count = self.count(32);
        let tasks: Vec<_> = (0..count).map(|_| self.task()).collect();
        let header = self.header(Operation::Submit, sequence);
        let fixed = Submit { header, client: identity(who), uid: (sequence % 3).into(), jid: sequence.into() };
        self.send(client_address(who), &fixed, &tasks)
    }

    fn cancel(&mut self) -> Result<(), String> {
        let who = self.client();
        let sequence = self.next_sequence(who);
        let names = self.task_names(who, 1);
        let fixed = Cancel { header: self.header(Operation::Cancel, sequence), client: identity(who) };
        self.send(client_address(who), &fixed, &names)
    }

    fn probe(&mut self) -> Result<(), String> {
        let who = self.client();
        let names = self.task_names(who, 0);
        let fixed = Probe { header: self.header(Operation::Probe, 9), client: identity(who) };
        self.send(client_address(who), &fixed, &names)
    }

    fn register(&mut self) -> Result<(), String> {
        let who = self.executor();
        let last = self.executors[who].registration;
        let registration = if self.bytes.below(4) == 0 { last } else { last + 1 };
        self.executors[who].registration = registration;
        let mut header = self.header(Operation::Register, registration);
        header.count = 1 + self.bytes.below(6) as u8;
        let fixed = Register {
            header,
            executor: identity(who),
            first: self.bytes.below(4).into(),
            resources: self.bytes.pick(&MASKS),
            reserved: [0; 3],
        };
        self.send_bytes(executor_address(who), fixed.as_bytes().to_vec())
    }

    fn retrieve(&mut self) -> Result<(), String> {
        let who = self.executor();
        let count = self.count(16);
        let mut waits = Vec::new();
        for _ in 0..count {
            let (name, sequence) = self.slot_and_sequence(who);
            waits.push(Wait { slot: name.slot, generation: name.generation, sequence: sequence.into() });
        }
        let resources = self.bytes.pick(&MASKS);
        let fixed = Retrieve { header: self.executor_header(Operation::Retrieve), resources, reserved: [0; 3] };
        self.send(executor_address(who), &fixed, &waits)
    }

    fn keepalive(&mut self) -> Result<(), String> {
        let who = self.executor();
        let count = self.count(64);
        let names: Vec<_> = (0..count).map(|_| self.slot(who).0).collect();
        let fixed = Keepalive { header: self.executor_header(Operation::Keepalive) };
        self.send(executor_address(who), &fixed, &names)
    }

    fn release(&mut self) -> Result<(), String> {
        let who = self.executor();
        let count = self.count(16);
        let mut leaves = Vec::new();
        for _ in 0..count {
            let (name, last) = self.slot(who);
            let sequence = if self.bytes.below(4) == 0 { self.bytes.sequence(last) } else { last };
            let (slot, generation, done) = (name.slot, name.generation, self.bytes.below(2) as u8);
            leaves.push(Leave { slot, generation, sequence: sequence.into(), done, reserved: [0; 3] });
        }
        let fixed = Release { header: self.executor_header(Operation::Release) };
        self.send(executor_address(who), &fixed, &leaves)
    }

    /// Bytes that nobody would send.
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
        self.send_bytes(client_address(0), datagram)
    }

    fn client(&mut self) -> usize {
        self.bytes.next() as usize % CLIENTS
    }

    fn executor(&mut self) -> usize {
        self.bytes.next() as usize % EXECUTORS
    }

    /// Mostly few records, sometimes as many as fit, seldom more.
    fn count(&mut self, most: u32) -> u32 {
        match self.bytes.next() {
            0..=127 => 1,
            128..=223 => 1 + self.bytes.below(4),
            224..=251 => 1 + self.bytes.below(most),
            _ => self.bytes.below(most + 8),
        }
    }

    fn next_sequence(&mut self, client: usize) -> u32 {
        let sequence = self.bytes.sequence(self.clients[client]);
        if sequence.wrapping_sub(self.clients[client]) as i32 > 0 {
            self.clients[client] = sequence;
        }
        sequence
    }

    fn task(&mut self) -> TaskInfo {
        let kind = self.bytes.next();
        let levels = self.config.levels as u8;
        TaskInfo {
            tid: u32::from(kind).into(),
            function: 0.into(),
            priority: if kind == 255 { levels + 1 } else { 1 + self.bytes.next() % levels },
            resources: self.bytes.pick(&MASKS),
            argument_length: match kind {
                254 => 17,
                253 => BY_REFERENCE,
                _ => kind % 17,
            },
            attempt: if kind == 252 { 255 } else { kind % 2 },
            argument: [kind; 16],
        }
    }

    /// Tasks of the last few submissions of a client.
    fn task_names(&mut self, client: usize, least: u32) -> Vec<TaskName> {
        let count = self.count(32).saturating_sub(1).max(least);
        let mut names = Vec::new();
        for _ in 0..count {
            let submission = self.clients[client].wrapping_sub(self.bytes.below(6)).into();
            names.push(TaskName { submission, index: self.bytes.below(5) as u8, reserved: [0; 3] });
        }
        names
    }

    /// A slot that the executor has, or had, or that another has, with its last wait.
    fn slot(&mut self, who: usize) -> (SlotName, u32) {
        let choice = self.bytes.next();
        let whose = if choice >= 250 { self.executor() } else { who };
        let slots = &self.executors[whose].slots;
        if slots.is_empty() || choice == 249 {
            return (SlotName { slot: u32::from(choice).into(), generation: 1.into() }, 0);
        }
        // Mostly one of the last four.
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

    fn header(&self, operation: Operation, sequence: u32) -> Header {
        Header::new(operation, 0, sequence)
    }

    fn executor_header(&mut self, operation: Operation) -> Header {
        let epoch = if self.bytes.next() == 255 { EPOCH + 1 } else { EPOCH };
        Header::new(operation, epoch, 0)
    }

    fn send<H, R>(&mut self, from: SocketAddr, fixed: &H, records: &[R]) -> Result<(), String>
    where
        H: IntoBytes + Immutable,
        R: IntoBytes + Immutable,
    {
        let mut datagram = Vec::new();
        Builder::new(&mut datagram, fixed).set_count(records.len() as u8);
        datagram.extend_from_slice(records.as_bytes());
        self.send_bytes(from, datagram)
    }

    /// Sends it, seldom spoilt, from another address, or twice.
    fn send_bytes(&mut self, mut from: SocketAddr, mut datagram: Vec<u8>) -> Result<(), String> {
        match self.bytes.next() {
            0..=239 => {}
            240..=244 => self.deliver(from, &datagram)?,
            245 => from = executor_address(self.bytes.next() as usize % EXECUTORS),
            246 => from = client_address(self.bytes.next() as usize % CLIENTS),
            247 => datagram.truncate(self.bytes.next() as usize),
            248 => datagram.resize(datagram.len() + 1 + self.bytes.below(40) as usize, 0),
            _ => {
                let offset = self.bytes.next() as usize % datagram.len().max(1);
                let value = self.bytes.next();
                datagram.iter_mut().skip(offset).take(1).for_each(|byte| *byte = value);
            }
        }
        self.deliver(from, &datagram)
    }

    fn deliver(&mut self, from: SocketAddr, datagram: &[u8]) -> Result<(), String> {
        self.now += 1;
        for (_, answer) in self.judge.packet(self.now, from, datagram)? {
            let Ok(Packet::Registered(registered, names)) = parse(&answer) else { continue };
            let owner = registered.executor.get() as usize % EXECUTORS;
            let slots = &mut self.executors[owner].slots;
            for name in names {
                if slots.iter().all(|(known, _)| known != name) {
                    slots.push((*name, 0));
                }
            }
            let excess = slots.len().saturating_sub(REMEMBERED);
            slots.drain(..excess);
        }
        Ok(())
    }
}

fn identity(number: usize) -> zerocopy::byteorder::network_endian::U64 {
    (number as u64).into()
}

fn client_address(number: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, number as u8], 7000))
}

fn executor_address(number: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 1, number as u8], 9000))
}
