//! The asic engine on the wire: a program for a switch's pipeline, in a model of such a switch, with what it needs around it.
//!
//! `docs/internals/asic.md` explains the programs and the model, `docs/internals/asic-wire.md` the rest: the parser in
//! front of a program, the deparser behind it, the controller beside it.
//!
//! A call is one pass. The caller sends recirculated packets in again: at once, or after the delay of recirculation, with
//! packets that arrive meanwhile in between.
//!
//! ```
//! use midflight_dataplane::asic::{AsicConfig, AsicTasks, Turn};
//! use midflight_dataplane::Verdict;
//! use midflight_wire::{Packet, Submit, TaskInfo, packet, parse};
//!
//! let mut switch = AsicTasks::new(&AsicConfig::default(), 7, 1)?;
//! let task = TaskInfo { tid: 100.into(), ..TaskInfo::PLAIN };
//! let submit = packet(&Submit { client: 5.into(), token: 6.into(), ..Submit::new(0, 1) }, &[task]);
//!
//! let mut turn = Turn::default();
//! assert_eq!(switch.packet(0, "10.0.0.1:7000".parse()?, &submit, &mut turn), Verdict::Ok);
//! assert!(turn.round.is_empty(), "one task enters in one pass");
//! let [(_, answer)] = &turn.sent[..] else { panic!("a SUBMIT is answered") };
//! assert!(matches!(parse(answer), Ok(Packet::SubmitAck(ack)) if ack.taken.get() == 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
mod controller;
mod deparser;
mod parser;
mod pipeline;
pub mod reads;
mod shares;
mod slots;

use crate::cookie::Cookies;
use crate::read::read;
use crate::{Datagram, Stats, Verdict};
use deparser::Deparser;
use midflight_wire::{Packet, Preference, Retrieve, SlotName, Submit, TaskInfo, Wait};
use parser::{Asked, Origin, Sender};
use pipeline::{Pipeline, Told};
use slots::{Named, Slots};
use std::net::SocketAddr;
use zerocopy::FromZeros;
use zerocopy::byteorder::network_endian::U64;

pub use config::{AsicConfig, AsicError, Program};

/// The results of a pass, for its caller. `packet` and `again` clear it first.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// Datagrams that leave the switch, in order.
    pub sent: Vec<Datagram>,
    /// Recirculated packets: each needs another pass, by [`AsicTasks::again`].
    pub round: Vec<Inside>,
}

impl Turn {
    fn clear(&mut self) {
        self.sent.clear();
        self.round.clear();
    }
}

/// A recirculating packet: its headers, and its payload.
#[derive(Clone, Debug)]
pub struct Inside {
    packet: midflight_rmt::Packet,
    origin: Origin,
}

/// Counts that [`Stats`] does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that went through the pipelines.
    pub passes: u64,
    /// How many of them were recirculated.
    pub rounds: u64,
    /// Waits that were answered with "no task".
    pub no_ops: u64,
    /// Tasks that were given back although they had been acknowledged: the published program's searches do that.
    pub returned: u64,
    /// Packets that the program dropped. It should drop none that the parser lets through.
    pub dropped: u64,
}

/// The asic engine: the cluster's one task queue.
#[derive(Clone, Debug)]
pub struct AsicTasks {
    config: AsicConfig,
    pipeline: Pipeline,
    slots: Slots,
    cookies: Cookies,
    deparser: Deparser,
    stats: Stats,
    counters: Counters,
}

impl AsicTasks {
    /// A switch that has just started. `epoch` is not 0; cookies and generations are derived from `secret`, which is random.
    ///
    /// # Errors
    /// Where a bound of the configuration is violated, or the target has no room for the program.
    pub fn new(config: &AsicConfig, epoch: u32, secret: u128) -> Result<Self, AsicError> {
        config.check()?;
        Ok(Self {
            config: *config,
            pipeline: Pipeline::build(config)?,
            slots: Slots::new(config, secret),
            cookies: Cookies::new(secret, config.cookie_ns),
            deparser: Deparser::new(epoch),
            stats: Stats::new_zeroed(),
            counters: Counters::default(),
        })
    }

    /// Takes one datagram and returns the verdict on it. What it causes is in `turn`.
    pub fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &[u8], turn: &mut Turn) -> Verdict {
        turn.clear();
        let verdict = match (read(datagram, self.config.levels, &mut self.stats), parser::ipv4(from)) {
            (Err(Verdict::BadVersion), _) => {
                turn.sent.push(deparser::version(from));
                Verdict::BadVersion
            }
            (Err(verdict), _) => verdict,
            // Its slots would be registered, and never get a task.
            (Ok(_), None) => Verdict::NotForSwitch,
            (Ok(packet), Some(ipv4)) => self.take(now_ns, ipv4, packet, turn),
        };
        self.count(verdict, 1);
        verdict
    }

    /// One more pass of a recirculated packet.
    pub fn again(&mut self, inside: Inside, turn: &mut Turn) {
        turn.clear();
        self.counters.rounds += 1;
        self.pass(inside, turn);
    }

    /// All passes of all recirculating packets, at once. Results of earlier calls in `turn` stay there.
    pub fn finish(&mut self, turn: &mut Turn) {
        while let Some(inside) = turn.round.pop() {
            self.counters.rounds += 1;
            self.pass(inside, turn);
        }
    }

    /// The controller frees slots that have been silent for too long. It visits a bounded number a call, and returns how many:
    /// none for a lease's time after a pause between ticks.
    pub fn tick(&mut self, now_ns: u64) -> u32 {
        self.slots.tick(now_ns)
    }

    /// The counters, and the gauges that the registers show. What became of an assigned task is not known.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = self.stats;
        let queued = self.queued();
        stats.queued[..queued.len()].copy_from_slice(&queued);
        stats.slots = self.slots.registered();
        stats.gaps = self.slots.gaps();
        stats
    }

    /// The counts that [`stats`](Self::stats) does not have.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Queued entries of each level, without those that searches carry.
    #[must_use]
    pub fn queued(&self) -> [u32; 4] {
        self.pipeline.queued()
    }

    /// Whether the registers agree with each other while nothing recirculates.
    ///
    /// # Errors
    /// Says which do not.
    pub fn check_at_rest(&self) -> Result<(), String> {
        self.pipeline.check_at_rest()
    }

    fn take(&mut self, now: u64, sender: Sender, packet: Packet<'_>, turn: &mut Turn) -> Verdict {
        let Sender { from, .. } = sender;
        match packet {
            Packet::Submit(submit, tasks, preference) => self.submit(sender, submit, tasks, preference, turn),
            Packet::Retrieve(retrieve, waits) => self.retrieve(now, sender, retrieve, waits, turn),
            Packet::Register(register) => self.register(now, from, register, turn),
            Packet::Keepalive(keepalive, waits) => self.keepalive(now, from, keepalive, waits, turn),
            Packet::Release(release, leaves) => self.release(now, from, release, leaves, turn),
            Packet::Probe(probe, _) => self.probe(now, from, probe, turn),
            Packet::Cancel(cancel, names) => self.cancel(from, cancel, names, turn),
            _ => Verdict::NotForSwitch,
        }
    }

    fn submit(
        &mut self,
        sender: Sender,
        submit: &Submit,
        tasks: &[TaskInfo],
        preference: Option<&Preference>,
        turn: &mut Turn,
    ) -> Verdict {
        let Some(inside) = parser::submit(&self.pipeline, sender, submit, tasks, preference) else {
            return Verdict::BadArgument;
        };
        self.pass(inside, turn);
        Verdict::Ok
    }

    /// A pipeline answers a packet with one packet, so a RETRIEVE carries one wait.
    fn retrieve(&mut self, now: u64, sender: Sender, retrieve: &Retrieve, waits: &[Wait], turn: &mut Turn) -> Verdict {
        let Sender { from, .. } = sender;
        if !self.deparser.is_present(&retrieve.header) {
            return self.foreign(from, retrieve.counter, turn);
        }
        let [wait] = waits else { return Verdict::BadCount };
        match self.hear(now, from, &name(wait), retrieve.counter) {
            Named::Slot => self.pass(parser::retrieve(&self.pipeline, sender, retrieve, *wait), turn),
            Named::Unknown | Named::Spoofed => turn.sent.extend(self.deparser.reset(from, retrieve.counter, &[*wait])),
            Named::Replayed => {}
        }
        Verdict::Ok
    }

    /// Notes that a slot was heard, if it is the sender's.
    fn hear(&mut self, now: u64, from: SocketAddr, name: &SlotName, counter: U64) -> Named {
        let named = self.slots.hear(now, from, name, counter.get());
        match named {
            Named::Slot => {}
            Named::Unknown => self.count(Verdict::ForeignSlot, 1),
            Named::Spoofed => self.count(Verdict::SpoofedSlot, 1),
            Named::Replayed => self.count(Verdict::Replayed, 1),
        }
        named
    }

    fn pass(&mut self, inside: Inside, turn: &mut Turn) {
        self.counters.passes += 1;
        let Inside { packet, origin } = inside;
        for told in self.pipeline.pass(packet, &origin) {
            match told {
                Told::Round(packet) => turn.round.push(Inside { packet, origin: origin.clone() }),
                Told::Assigned(task) => {
                    self.stats.tasks.assigned += 1;
                    turn.sent.extend(self.deparser.assign(&origin, &task));
                }
                Told::NoOp => {
                    self.counters.no_ops += 1;
                    turn.sent.extend(self.deparser.no_op(&origin));
                }
                Told::Submitted { taken, refused } => {
                    self.stats.tasks.submitted += u64::from(taken.count_ones());
                    self.count(Verdict::Full, refused.count_ones() as usize);
                    // It knows no places (T19).
                    if matches!(origin.asked, Asked::Submit { prefers: true, .. }) {
                        self.count(Verdict::NoPlace, taken.count_ones() as usize);
                    }
                    turn.sent.extend(self.deparser.submit_ack(&origin, taken, refused));
                }
                Told::Returned => self.counters.returned += 1,
                Told::Ended => {}
                Told::Dropped => self.counters.dropped += 1,
            }
        }
    }

    fn count(&mut self, verdict: Verdict, times: usize) {
        self.stats.reasons[verdict as usize] += times as u64;
    }
}

fn name(wait: &Wait) -> SlotName {
    SlotName { slot: wait.slot, generation: wait.generation }
}
