//! The tasks program on the wire, in the model of a switch's pipeline.
//!
//! `docs/internals/asic.md` explains the programs and the model, `docs/internals/asic-wire.md` the parser before a program, the deparser
//! after it, and the controller.
//!
//! A call is one pass. The caller sends recirculated packets in again: at once, or after the delay of recirculation, interleaved with
//! new packets.
//!
//! ```
//! use midflight_asic::{AsicConfig, AsicTasks, Turn};
//! use midflight_dataplane::Verdict;
//! use midflight_wire::tasks::{Packet, Submit, TaskInfo, parse};
//! use midflight_wire::packet;
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
mod shares;
mod slots;

use midflight_dataplane::read;
use midflight_dataplane::{Datagram, Stats, Verdict};
use midflight_wire::tasks::{Packet, Preference, Retrieve, SlotName, Submit, TaskInfo, Wait};
use parser::{Asked, Origin, Sender};
use pipeline::{PassOutcome, Pipeline};
use slots::Named;
use std::net::SocketAddr;

pub use config::{AsicConfig, AsicError, Program};
pub use controller::{Controller, SlotEntry};

/// The results of a pass. `packet` and `again` clear it first.
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

/// A recirculating packet: its headers and payload.
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
    /// Recirculated packets.
    pub rounds: u64,
    /// Waits answered with "no task".
    pub no_ops: u64,
    /// Acknowledged tasks returned to their clients, by searches of the published program.
    pub returned: u64,
    /// Packets that the program dropped: should be 0, because the parser filters them.
    pub dropped: u64,
}

/// The asic engine: the cluster's task queue.
#[derive(Clone, Debug)]
pub struct AsicTasks {
    config: AsicConfig,
    pipeline: Pipeline,
    controller: Controller,
    counters: Counters,
}

impl AsicTasks {
    /// A newly started switch. `epoch` is not 0; cookies and generations are derived from `secret`, which is random.
    ///
    /// # Errors
    /// If a bound of the configuration is violated, or the program does not fit the target.
    pub fn new(config: &AsicConfig, epoch: u32, secret: u128) -> Result<Self, AsicError> {
        Ok(Self {
            config: *config,
            controller: Controller::new(config, epoch, secret)?,
            pipeline: Pipeline::build(config)?,
            counters: Counters::default(),
        })
    }

    /// Handles one datagram. Its effects are in `turn`.
    pub fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &[u8], turn: &mut Turn) -> Verdict {
        turn.clear();
        let read = read(datagram, self.config.levels, &mut self.controller.stats);
        let verdict = match (read, parser::ipv4(from)) {
            (Ok(packet), Some(ipv4)) => self.take(now_ns, ipv4, packet, turn),
            (refused, _) => self.controller.refuse(from, refused.err(), &mut turn.sent),
        };
        self.controller.count(verdict, 1);
        // Nothing to copy: the pipeline has no separate table of slots.
        self.controller.slots.forget_changes();
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

    /// The controller frees slots that have been silent for too long. Visits a bounded number of slots and returns how many; none for a
    /// lease's time after a pause between ticks.
    pub fn tick(&mut self, now_ns: u64) -> u32 {
        let visited = self.controller.tick(now_ns);
        self.controller.slots.forget_changes();
        visited
    }

    /// The counters, and the gauges from the registers. The fate of an assigned task is unknown.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = self.controller.stats();
        let queued = self.queued();
        stats.queued[..queued.len()].copy_from_slice(&queued);
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

    /// Whether the registers are consistent while nothing recirculates.
    ///
    /// # Errors
    /// Names the inconsistent ones.
    pub fn check_at_rest(&self) -> Result<(), String> {
        self.pipeline.check_at_rest()
    }

    fn take(&mut self, now: u64, sender: Sender, packet: Packet<'_>, turn: &mut Turn) -> Verdict {
        match packet {
            Packet::Submit(submit, tasks, _, preference) => self.submit(sender, submit, tasks, preference, turn),
            Packet::Retrieve(retrieve, waits) => self.retrieve(now, sender, retrieve, waits, turn),
            packet => self.controller.take(now, sender.from, packet, &mut turn.sent),
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
        let (Sender { from, .. }, controller) = (sender, &mut self.controller);
        if !controller.deparser.is_present(&retrieve.header) {
            return controller.foreign(from, retrieve.counter, &mut turn.sent);
        }
        let [wait] = waits else { return Verdict::BadCount };
        match controller.hear(now, from, &name(wait), retrieve.counter) {
            Named::Slot => self.pass(parser::retrieve(&self.pipeline, sender, retrieve, *wait), turn),
            Named::Unknown | Named::Spoofed => {
                turn.sent.extend(controller.deparser.reset(from, retrieve.counter, &[*wait]));
            }
            Named::Replayed => {}
        }
        Verdict::Ok
    }

    fn pass(&mut self, inside: Inside, turn: &mut Turn) {
        self.counters.passes += 1;
        let Inside { packet, origin } = inside;
        let Self { pipeline, controller, counters, .. } = self;
        for told in pipeline.pass(packet, &origin) {
            match told {
                PassOutcome::Round(packet) => turn.round.push(Inside { packet, origin: origin.clone() }),
                PassOutcome::Assigned(task) => {
                    controller.stats.tasks.assigned += 1;
                    turn.sent.extend(controller.deparser.assign(&origin, &task));
                }
                PassOutcome::NoOp => {
                    counters.no_ops += 1;
                    turn.sent.extend(controller.deparser.no_op(&origin));
                }
                PassOutcome::Submitted { taken, refused } => {
                    controller.stats.tasks.submitted += u64::from(taken.count_ones());
                    controller.count(Verdict::Full, refused.count_ones() as usize);
                    // It knows no places (T19).
                    if matches!(origin.asked, Asked::Submit { prefers: true, .. }) {
                        controller.count(Verdict::NoPlace, taken.count_ones() as usize);
                    }
                    turn.sent.extend(controller.deparser.submit_ack(&origin, taken, refused));
                }
                PassOutcome::Returned => counters.returned += 1,
                PassOutcome::Ended => {}
                PassOutcome::Dropped => counters.dropped += 1,
            }
        }
    }
}

fn name(wait: &Wait) -> SlotName {
    SlotName { slot: wait.slot, generation: wait.generation }
}
