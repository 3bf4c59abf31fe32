//! `midflight bench core`: what a decision costs. The C core alone, on packets that lie in memory.
//!
//! An operation is one single-task packet. The queue is kept at its depth: blocks of submits and of retrieves take turns, and
//! only the calls are timed. Every block checks that as many tasks were assigned as were accepted.

use super::{How, median};
use crate::envelope::{Envelope, Measure};
use anyhow::{Context, Result, ensure};
use midflight_dataplane::{Out, Tasks, TasksConfig, Verdict};
use midflight_wire::{Address, Builder, Header, Operation, Packet, Register, Retrieve, Submit, TaskInfo, Wait, parse};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Instant;

const CLIENT: u64 = 0x00c1_1e27;
const EXECUTOR: u64 = 0x0e8e_c000;
const EPOCH: u32 = 7;
const SLOTS: u32 = 64;
/// Operations between two looks at the clock.
const BLOCK: usize = 4096;
const SUBMIT_BATCH: usize = 32;
const RETRIEVE_BATCH: usize = 16;
/// Tasks in the queue, usually and where it is deep.
const DEPTH: usize = 64 << 10;
const DEEP: usize = 1 << 20;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight bench core
  midflight bench core --quick           two seconds, less exact
  midflight bench core --json

RESULTS (medians of blocks of 4,096 operations, then of the runs; one core)
  core.submit_ns, core.retrieve_ns       one task a packet; 64 Ki tasks queued, 4 levels, 8 masks
  core.retrieve_worst_ns                 256 masks of one level, all of which the executor may run
  core.batch_ns_per_task                 the mean of a SUBMIT of 32 tasks and a RETRIEVE of 16 slots, a task each
  core.batch_submit_ns_per_task, core.batch_retrieve_ns_per_task
  core.deep_ratio                        submit and retrieve with 1 Mi tasks queued, against 64 Ki
  core.state_bytes, core.state_bytes_1m  of a queue's memory: default bounds; room for 1 Mi tasks

EXIT CODES
  0 measured, 1 failed, 2 wrong usage";

pub(super) fn run(how: &How) -> Result<ExitCode> {
    let (runs, blocks) = if how.quick { (1, 20) } else { (5, 200) };
    let mut costs: [Vec<Cost>; 4] = Default::default();
    for run in 1..=runs {
        eprintln!("run {run} of {runs}");
        let usual = Size { depth: DEPTH, blocks };
        costs[0].push(measure(usual, Mix::SINGLE)?);
        costs[1].push(measure(Size { depth: DEEP, blocks }, Mix::SINGLE)?);
        costs[2].push(measure(usual, Mix::BATCH)?);
        costs[3].push(measure(usual, Mix::WORST)?);
    }
    let [single, deep, batch, worst] = costs.map(|runs| Cost::median(&runs));
    let bytes = |queue| TasksConfig { queue, ..TasksConfig::default() }.state_bytes();
    let results = vec![
        Measure::quantity("core.submit_ns", single.submit_ns, "ns"),
        Measure::quantity("core.retrieve_ns", single.retrieve_ns, "ns"),
        Measure::quantity("core.retrieve_worst_ns", worst.retrieve_ns, "ns"),
        Measure::quantity("core.batch_ns_per_task", batch.mean_ns(), "ns"),
        Measure::quantity("core.batch_submit_ns_per_task", batch.submit_ns, "ns"),
        Measure::quantity("core.batch_retrieve_ns_per_task", batch.retrieve_ns, "ns"),
        Measure::quantity("core.deep_ratio", deep.mean_ns() / single.mean_ns(), ""),
        Measure::count("core.state_bytes", bytes(TasksConfig::default().queue), "bytes"),
        Measure::count("core.state_bytes_1m", bytes(1 << 20), "bytes"),
    ];
    Envelope::new("core", results).print(how.json)?;
    Ok(ExitCode::SUCCESS)
}

/// How large a run is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Tasks in the queue.
    pub depth: usize,
    /// Blocks of submits and retrieves that are timed.
    pub blocks: usize,
}

/// Nanoseconds a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub submit_ns: f64,
    pub retrieve_ns: f64,
}

impl Cost {
    fn median(runs: &[Self]) -> Self {
        let of = |part: fn(&Self) -> f64| median(runs.iter().map(part).collect());
        Self { submit_ns: of(|c| c.submit_ns), retrieve_ns: of(|c| c.retrieve_ns) }
    }

    fn mean_ns(self) -> f64 {
        f64::midpoint(self.submit_ns, self.retrieve_ns)
    }
}

/// Which tasks are queued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    pub levels: u8,
    pub masks: u16,
    /// Tasks in a SUBMIT, and waits in a RETRIEVE.
    pub submit_batch: usize,
    pub retrieve_batch: usize,
}

impl Mix {
    /// 4 levels and 8 masks, one task a packet.
    pub(crate) const SINGLE: Self = Self { levels: 4, masks: 8, submit_batch: 1, retrieve_batch: 1 };
    /// The same in full packets.
    pub(crate) const BATCH: Self =
        Self { levels: 4, masks: 8, submit_batch: SUBMIT_BATCH, retrieve_batch: RETRIEVE_BATCH };
    /// The most heads that a retrieve can have to compare.
    pub(crate) const WORST: Self = Self { levels: 1, masks: 256, submit_batch: 1, retrieve_batch: 1 };
}

/// Packets of one length, one behind the other, as in a receive buffer.
#[derive(Default)]
struct Packets {
    bytes: Vec<u8>,
    length: usize,
}

impl Packets {
    fn push(&mut self, packet: &[u8]) {
        self.length = packet.len();
        self.bytes.extend_from_slice(packet);
    }
}

/// A queue with one client and one executor of 64 slots, and what they will say next.
struct World {
    tasks: Tasks,
    out: Out,
    now_ns: u64,
    client: Address,
    executor: Address,
    slots: Vec<(u32, u32)>,
    submission: u32,
    wait: u32,
    seed: u64,
    mix: Mix,
}

impl World {
    fn new(config: &TasksConfig, mix: Mix) -> Result<Self> {
        let address = |port| Address::from(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let mut world = Self {
            tasks: Tasks::new(config, EPOCH, 0x5eed)?,
            out: Out::new(),
            now_ns: 1_000_000_000,
            client: address(1000),
            executor: address(2000),
            slots: Vec::new(),
            submission: 0,
            wait: 0,
            seed: 42,
            mix,
        };
        world.register()?;
        Ok(world)
    }

    fn register(&mut self) -> Result<()> {
        let mut buffer = Vec::new();
        while self.slots.len() < SLOTS as usize {
            let first = u32::try_from(self.slots.len())?;
            let count = (SLOTS - first).min(32);
            let mut builder = Builder::new(
                &mut buffer,
                &Register {
                    header: Header::new(Operation::Register, 0, 1),
                    executor: EXECUTOR.into(),
                    first: first.into(),
                    resources: 255,
                    reserved: [0; 3],
                },
            );
            builder.set_count(u8::try_from(count)?);
            self.tasks.packet(self.now_ns, self.executor, &buffer, &mut self.out);
            let (_, answer) = self.out.iter().next().context("REGISTER got no answer")?;
            let Ok(Packet::Registered(_, names)) = parse(answer) else { anyhow::bail!("REGISTER was not answered") };
            self.slots.extend(names.iter().map(|n| (n.slot.get(), n.generation.get())));
        }
        Ok(())
    }

    /// A well-mixed number: levels, masks and their order must not follow a pattern that a processor could learn.
    fn draw(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.seed >> 33
    }

    fn submits(&mut self, tasks: usize) -> Packets {
        let mut packets = Packets::default();
        let mut buffer = Vec::new();
        for _ in 0..tasks / self.mix.submit_batch {
            self.submission += 1;
            let header = Header::new(Operation::Submit, 0, self.submission);
            let fixed = Submit { header, client: CLIENT.into(), uid: 1.into(), jid: 1.into() };
            let mut builder = Builder::new(&mut buffer, &fixed);
            for tid in 0..self.mix.submit_batch {
                let (level, mask) = (self.draw(), self.draw());
                builder.push(&TaskInfo {
                    tid: u32::try_from(tid).unwrap_or(u32::MAX).into(),
                    function: 1.into(),
                    priority: 1 + (level % u64::from(self.mix.levels)) as u8,
                    resources: (mask % u64::from(self.mix.masks)) as u8,
                    argument_length: 0,
                    attempt: 0,
                    argument: [0; 16],
                });
            }
            packets.push(&buffer);
        }
        packets
    }

    fn retrieves(&mut self, tasks: usize) -> Packets {
        let mut packets = Packets::default();
        let mut buffer = Vec::new();
        for _ in 0..tasks / self.mix.retrieve_batch {
            let header = Header::new(Operation::Retrieve, EPOCH, 0);
            let mut builder = Builder::new(&mut buffer, &Retrieve { header, resources: 255, reserved: [0; 3] });
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

    /// Feeds the packets and returns the nanoseconds that it took.
    fn feed(&mut self, from: Address, packets: &Packets) -> Result<f64> {
        let start = Instant::now();
        let mut refused = 0;
        for packet in packets.bytes.chunks_exact(packets.length) {
            self.now_ns += 20;
            let verdict = self.tasks.packet(self.now_ns, from, packet, &mut self.out);
            refused += usize::from(verdict != Verdict::Ok);
        }
        let ns = start.elapsed().as_nanos() as f64;
        ensure!(
            refused == 0,
            "the core refused {refused} of {} well-formed packets",
            packets.bytes.len() / packets.length
        );
        Ok(ns)
    }

    fn submit(&mut self, tasks: usize) -> Result<f64> {
        let packets = self.submits(tasks);
        let before = self.tasks.stats().submitted;
        let ns = self.feed(self.client, &packets)?;
        ensure!(self.tasks.stats().submitted - before == tasks as u64, "not all of {tasks} tasks were accepted");
        Ok(ns)
    }

    fn retrieve(&mut self, tasks: usize) -> Result<f64> {
        let packets = self.retrieves(tasks);
        let before = self.tasks.stats().assigned;
        let ns = self.feed(self.executor, &packets)?;
        ensure!(self.tasks.stats().assigned - before == tasks as u64, "not all of {tasks} waits were assigned");
        Ok(ns)
    }
}

/// The median cost over blocks, at a steady depth.
pub(crate) fn measure(size: Size, mix: Mix) -> Result<Cost> {
    let queue = u32::try_from(size.depth + 2 * BLOCK)?.next_power_of_two().max(TasksConfig::default().queue);
    let mut world = World::new(&TasksConfig { queue, ..TasksConfig::default() }, mix)?;
    let whole = size.depth.next_multiple_of(SUBMIT_BATCH);
    world.submit(whole)?;
    let mut submit_ns = Vec::new();
    let mut retrieve_ns = Vec::new();
    for _ in 0..size.blocks {
        submit_ns.push(world.submit(BLOCK)? / BLOCK as f64);
        retrieve_ns.push(world.retrieve(BLOCK)? / BLOCK as f64);
    }
    Ok(Cost { submit_ns: median(submit_ns), retrieve_ns: median(retrieve_ns) })
}
