//! The load of `bench core` and `bench xdp`: packets of one client and one executor.
//!
//! Blocks of submits and of retrieves alternate, so the queue keeps its depth, and only the calls are timed. Every block checks that as
//! many tasks were assigned as accepted.

use crate::median::median;
use anyhow::{Context, Result, ensure};
use midflight_dataplane::program::Engine;
use midflight_dataplane::{Out, TasksConfig, TasksProgram};
use midflight_wire::tasks::{
    Operation, Packet, Probe, Register, Retrieve, SLOT_PLACES, SLOTS_MAX, SUBMIT_MAX, SlotKind, Submit, TaskInfo, Wait,
    parse,
};
use midflight_wire::{Address, Builder, Header};
use std::net::{Ipv4Addr, SocketAddr};

const CLIENT: u64 = 0x00c1_1e27;
const EXECUTOR: u64 = 0x0e8e_c000;
pub(super) const EPOCH: u32 = 7;
pub(super) const SECRET: u128 = 0x5eed;
const SLOTS: u32 = 64;
const SUBMIT_BATCH: usize = SUBMIT_MAX;
const RETRIEVE_BATCH: usize = SLOTS_MAX;
/// Tasks per timed block: whole packets of both kinds.
pub(super) const BLOCK: usize = 10 * SUBMIT_BATCH * RETRIEVE_BATCH;
/// Usual tasks in the queue.
pub(super) const DEPTH: usize = 64 << 10;
/// Simulated time from packet to packet.
pub(super) const STEP_NS: u64 = 20;

/// Starts with an empty queue.
pub(super) trait Timed: Engine<Program = TasksProgram> {
    /// Handles packets in order, and must refuse none. Returns the nanoseconds that it took.
    fn feed(&mut self, now_ns: u64, from: Address, packets: &mut Packets, out: &mut Out) -> Result<f64>;
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub depth: usize,
    /// Timed blocks of submits and retrieves.
    pub blocks: usize,
}

impl Size {
    /// Bounds of a queue with room for it.
    pub(super) fn config(self) -> Result<TasksConfig> {
        let room = u32::try_from(self.depth + 2 * BLOCK)?.next_power_of_two();
        let usual = TasksConfig::default();
        Ok(TasksConfig { queue: room.max(usual.queue), ..usual })
    }
}

/// Nanoseconds per task, and tasks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub submit_ns: f64,
    pub retrieve_ns: f64,
    pub assigned: u64,
}

impl Cost {
    pub(super) fn median(runs: &[Self]) -> Self {
        let of = |part: fn(&Self) -> f64| median(runs.iter().map(part).collect());
        Self {
            submit_ns: of(|c| c.submit_ns),
            retrieve_ns: of(|c| c.retrieve_ns),
            assigned: runs.iter().map(|c| c.assigned).sum(),
        }
    }

    pub(super) fn mean_ns(self) -> f64 {
        f64::midpoint(self.submit_ns, self.retrieve_ns)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Mix {
    pub levels: u8,
    pub masks: u16,
    /// Tasks in a SUBMIT, and waits in a RETRIEVE.
    pub submit_batch: usize,
    pub retrieve_batch: usize,
}

impl Mix {
    /// One task per packet.
    pub(super) const SINGLE: Self = Self { levels: 4, masks: 8, submit_batch: 1, retrieve_batch: 1 };
    /// As [`Self::SINGLE`], in full packets.
    pub(super) const BATCH: Self =
        Self { levels: 4, masks: 8, submit_batch: SUBMIT_BATCH, retrieve_batch: RETRIEVE_BATCH };
    /// The most queue heads to compare.
    pub(super) const WORST: Self = Self { levels: 1, masks: 256, submit_batch: 1, retrieve_batch: 1 };
}

/// Contiguous, of equal length, as in a receive buffer.
#[derive(Default)]
pub(super) struct Packets {
    bytes: Vec<u8>,
    length: usize,
}

impl Packets {
    fn push(&mut self, packet: &[u8]) {
        self.length = packet.len();
        self.bytes.extend_from_slice(packet);
    }

    /// Never 0.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() / self.length
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.bytes.chunks_exact_mut(self.length)
    }
}

/// The median cost over blocks, at a steady depth.
pub(super) fn measure(engine: impl Timed, size: Size, mix: Mix) -> Result<Cost> {
    let mut world = World::new(engine, mix)?;
    for _ in 0..size.depth.div_ceil(BLOCK) {
        world.submit()?;
    }
    let before = world.engine.stats();
    let mut submit_ns = Vec::new();
    let mut retrieve_ns = Vec::new();
    for _ in 0..size.blocks {
        submit_ns.push(world.submit()? / BLOCK as f64);
        retrieve_ns.push(world.retrieve()? / BLOCK as f64);
    }
    let after = world.engine.stats();
    let (accepted, assigned) =
        (after.tasks.submitted - before.tasks.submitted, after.tasks.assigned - before.tasks.assigned);
    ensure!(accepted == assigned, "{accepted} tasks were accepted, {assigned} assigned");
    if let Err(what) = world.engine.check() {
        anyhow::bail!("the queue is broken: {what}");
    }
    Ok(Cost { submit_ns: median(submit_ns), retrieve_ns: median(retrieve_ns), assigned })
}

/// A queue with one client and one executor of 64 slots, and the state of their next packets.
struct World<E> {
    engine: E,
    out: Out,
    now_ns: u64,
    client: Address,
    executor: Address,
    slots: Vec<(u32, u32)>,
    submission: u32,
    wait: u32,
    counter: u64,
    cookie: u64,
    seed: u64,
    mix: Mix,
}

impl<E: Timed> World<E> {
    fn new(engine: E, mix: Mix) -> Result<Self> {
        let address = |port| Address::from(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let mut world = Self {
            engine,
            out: Out::new(),
            now_ns: 1_000_000_000,
            client: address(1000),
            executor: address(2000),
            slots: Vec::new(),
            submission: 0,
            wait: 0,
            counter: 0,
            cookie: 0,
            seed: 42,
            mix,
        };
        world.cookie = world.cookie_for(world.client, CLIENT)?;
        world.register()?;
        Ok(world)
    }

    /// The cookie of a client or executor at an address, from the response to a PROBE without one.
    fn cookie_for(&mut self, from: Address, identity: u64) -> Result<u64> {
        let mut buffer = Vec::new();
        let header = Header::new(Operation::Probe, 0, 1);
        Builder::new(&mut buffer, &Probe { header, client: identity.into(), cookie: 0.into() });
        self.engine.packet(self.now_ns, from.into(), &mut buffer, &mut self.out)?;
        let (_, answer) = self.out.iter().next().context("a packet without a cookie got no answer")?;
        let Ok(Packet::Cookie(given)) = parse(answer) else { anyhow::bail!("a packet without a cookie was taken") };
        Ok(given.cookie.get())
    }

    fn register(&mut self) -> Result<()> {
        let cookie = self.cookie_for(self.executor, EXECUTOR)?;
        let mut buffer = Vec::new();
        while self.slots.len() < SLOTS as usize {
            let first = u32::try_from(self.slots.len())?;
            let count = (SLOTS - first).min(32);
            let mut builder = Builder::new(
                &mut buffer,
                &Register {
                    header: Header::new(Operation::Register, 0, 1),
                    executor: EXECUTOR.into(),
                    cookie: cookie.into(),
                    first: first.into(),
                    resources: 255,
                    kind: SlotKind::Ordinary as u8,
                    counter: 0.into(),
                    places: [0.into(); SLOT_PLACES],
                },
            );
            builder.set_count(u8::try_from(count)?);
            self.engine.packet(self.now_ns, self.executor.into(), &mut buffer, &mut self.out)?;
            let (_, answer) = self.out.iter().next().context("REGISTER got no answer")?;
            let Ok(Packet::Registered(_, names)) = parse(answer) else { anyhow::bail!("REGISTER was not answered") };
            self.slots.extend(names.iter().map(|n| (n.slot.get(), n.generation.get())));
        }
        Ok(())
    }

    /// Well mixed: levels, masks and their order must not follow a pattern that a branch predictor could learn.
    fn draw(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.seed >> 33
    }

    fn submits(&mut self) -> Packets {
        let mut packets = Packets::default();
        let mut buffer = Vec::new();
        for _ in 0..BLOCK / self.mix.submit_batch {
            self.submission += 1;
            let header = Header::new(Operation::Submit, 0, self.submission);
            let (client, cookie, token) = (CLIENT.into(), self.cookie.into(), u64::from(self.submission).into());
            let fixed = Submit { header, client, cookie, token, uid: 1.into(), jid: 1.into() };
            let mut builder = Builder::new(&mut buffer, &fixed);
            for tid in 0..self.mix.submit_batch {
                let (level, mask) = (self.draw(), self.draw());
                builder.push(&TaskInfo {
                    tid: u32::try_from(tid).unwrap_or(u32::MAX).into(),
                    function: 1.into(),
                    priority: 1 + (level % u64::from(self.mix.levels)) as u8,
                    resources: (mask % u64::from(self.mix.masks)) as u8,
                    ..TaskInfo::PLAIN
                });
            }
            packets.push(&buffer);
        }
        packets
    }

    fn retrieves(&mut self) -> Packets {
        let mut packets = Packets::default();
        let mut buffer = Vec::new();
        for _ in 0..BLOCK / self.mix.retrieve_batch {
            let header = Header::new(Operation::Retrieve, EPOCH, 0);
            self.counter += 1;
            let fixed = Retrieve { header, counter: self.counter.into(), resources: 255, ahead: 0, reserved: [0; 6] };
            let mut builder = Builder::new(&mut buffer, &fixed);
            for _ in 0..self.mix.retrieve_batch {
                let (slot, generation) = self.slots[self.wait as usize % self.slots.len()];
                let sequence = 1 + self.wait / SLOTS;
                self.wait += 1;
                builder.push(&Wait { slot: slot.into(), generation: generation.into(), sequence: sequence.into() });
            }
            packets.push(&buffer);
        }
        packets
    }

    /// Returns nanoseconds.
    fn feed(&mut self, from: Address, packets: &mut Packets) -> Result<f64> {
        let ns = self.engine.feed(self.now_ns, from, packets, &mut self.out)?;
        self.now_ns += STEP_NS * packets.len() as u64;
        Ok(ns)
    }

    fn submit(&mut self) -> Result<f64> {
        let mut packets = self.submits();
        let before = self.engine.stats().tasks.submitted;
        let ns = self.feed(self.client, &mut packets)?;
        ensure!(self.engine.stats().tasks.submitted - before == BLOCK as u64, "not all of {BLOCK} tasks were accepted");
        Ok(ns)
    }

    fn retrieve(&mut self) -> Result<f64> {
        let mut packets = self.retrieves();
        let before = self.engine.stats().tasks.assigned;
        let ns = self.feed(self.executor, &mut packets)?;
        ensure!(self.engine.stats().tasks.assigned - before == BLOCK as u64, "not all of {BLOCK} waits were assigned");
        Ok(ns)
    }
}
