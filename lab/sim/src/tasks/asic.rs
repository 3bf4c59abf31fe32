//! The asic engine: a pipeline's program, which handles packets pass by pass. A recirculating packet returns after the
//! recirculation delay, and finds the queue as the packets in between have left it.

use crate::{Actor, Context, Wake};
use midflight_asic::{AsicTasks, Counters, Inside, Turn};
use midflight_endpoint::Nanos;
use midflight_wire::Header;
use midflight_wire::tasks::{Operation, Packet, parse};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use zerocopy::FromBytes;

const TICK: Nanos = 10_000_000;
const PICOSECONDS: u64 = 1_000;
/// Recirculation delay of the papers' switch: "less than a microsecond" (Bolt §3.3.2); get_task takes 2 µs more at
/// level 4, which is three recirculations (§5.6).
pub const RECIRCULATION: Nanos = 650;
const ROUND: u64 = 0;
const ENTER: u64 = 1;

/// The limits and delays of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// Delay of a recirculation.
    pub recirculation: Nanos,
    /// Packets that enter per second, including recirculating ones; 0: no limit.
    pub passes_per_s: u64,
    /// Maximum datagrams that wait to enter; further ones are dropped.
    pub queue: u32,
    /// Maximum packets in recirculation; further ones are dropped.
    pub recirculating: u32,
    /// Maximum passes of one packet and all that it causes; then it is dropped. 0: no limit.
    pub passes: u32,
}

/// Counts of pipelines, including those of dead switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passes {
    /// All passes of packets.
    pub passes: u64,
    /// Recirculations among them.
    pub rounds: u64,
    /// Passes of SUBMITs.
    pub submit: u64,
    /// Tasks that these queued.
    pub submitted: u64,
    /// Passes of RETRIEVEs that got a task.
    pub retrieve: u64,
    /// The tasks that these got.
    pub assigned: u64,
    /// The largest number of passes for one of them.
    pub most: u32,
    /// Requests that found no task.
    pub no_ops: u64,
    /// Acknowledged tasks returned to their clients.
    pub returned: u64,
    /// Packets dropped because too many recirculated.
    pub dropped_recirculating: u64,
    /// Packets dropped after too many passes.
    pub dropped_passes: u64,
    /// Packets dropped because too many waited for the pipeline.
    pub dropped_queue: u64,
    /// Packets that the program dropped.
    pub dropped_program: u64,
}

/// The counts of a switch's pipelines over all its lives.
#[derive(Clone, Debug, Default)]
pub struct Tally(Rc<RefCell<Passes>>);

impl Tally {
    /// The current counts.
    #[must_use]
    pub fn passes(&self) -> Passes {
        *self.0.borrow()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Submit,
    Retrieve,
    Other,
}

#[derive(Debug)]
struct Going {
    inside: Inside,
    kind: Kind,
    passes: u32,
}

#[derive(Debug)]
enum Waiting {
    Datagram(SocketAddr, Vec<u8>),
    Round(Going),
}

/// The program and its pipeline.
#[derive(Debug)]
pub struct AsicSwitch {
    tasks: AsicTasks,
    pipeline: Pipeline,
    turn: Turn,
    /// Recirculating packets in order: all take equally long.
    round: VecDeque<Going>,
    waiting: VecDeque<Waiting>,
    datagrams: u32,
    /// When the next packet may enter, in picoseconds.
    free_ps: u64,
    tally: Tally,
}

impl AsicSwitch {
    /// A switch with this engine.
    #[must_use]
    pub fn new(tasks: AsicTasks, pipeline: Pipeline, tally: Tally) -> Self {
        let (turn, round, waiting) = (Turn::default(), VecDeque::new(), VecDeque::new());
        Self { tasks, pipeline, turn, round, waiting, datagrams: 0, free_ps: 0, tally }
    }

    /// The engine.
    #[must_use]
    pub fn tasks(&self) -> &AsicTasks {
        &self.tasks
    }

    fn admit(&mut self, now: Nanos) -> Nanos {
        let Some(gap_ps) = (1_000_000_000 * PICOSECONDS).checked_div(self.pipeline.passes_per_s) else { return now };
        let begin = self.free_ps.max(now * PICOSECONDS);
        self.free_ps = begin + gap_ps;
        begin / PICOSECONDS
    }

    fn enter(&mut self, context: &mut Context<'_>, packet: Waiting) {
        let now = context.now();
        let at = self.admit(now);
        if at <= now && self.waiting.is_empty() {
            return self.pass(context, packet);
        }
        self.datagrams += u32::from(matches!(packet, Waiting::Datagram(..)));
        self.waiting.push_back(packet);
        context.after(at.saturating_sub(now), ENTER);
    }

    fn pass(&mut self, context: &mut Context<'_>, packet: Waiting) {
        match packet {
            Waiting::Datagram(from, datagram) => self.pass_datagram(context, from, &datagram),
            Waiting::Round(Going { inside, kind, passes }) => {
                let before = *self.tasks.counters();
                self.tasks.again(inside, &mut self.turn);
                self.passed(context, &before, kind, passes + 1);
            }
        }
    }

    fn pass_datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        let before = *self.tasks.counters();
        self.tasks.packet(context.now(), from, datagram, &mut self.turn);
        let kind = match Header::ref_from_prefix(datagram).ok().and_then(|(it, _)| Operation::from_number(it.operation))
        {
            Some(Operation::Submit) => Kind::Submit,
            Some(Operation::Retrieve) => Kind::Retrieve,
            _ => Kind::Other,
        };
        self.passed(context, &before, kind, 1);
    }

    /// Counts and sends the results of a packet's pass; `passes` includes this one.
    fn passed(&mut self, context: &mut Context<'_>, before: &Counters, kind: Kind, passes: u32) {
        self.count(before, kind, passes);
        for (to, datagram) in &self.turn.sent {
            context.send(*to, datagram);
        }
        for inside in std::mem::take(&mut self.turn.round) {
            self.go_round(context, Going { inside, kind, passes });
        }
    }

    fn count(&self, before: &Counters, kind: Kind, passes: u32) {
        let (after, mut sum) = (self.tasks.counters(), self.tally.0.borrow_mut());
        let pass = after.passes - before.passes;
        sum.passes += pass;
        sum.rounds += after.rounds - before.rounds;
        sum.no_ops += after.no_ops - before.no_ops;
        sum.returned += after.returned - before.returned;
        sum.dropped_program += after.dropped - before.dropped;
        sum.submit += if kind == Kind::Submit { pass } else { 0 };
        for (_, datagram) in &self.turn.sent {
            match parse(datagram) {
                Ok(Packet::SubmitAck(ack)) => sum.submitted += u64::from(ack.taken.get().count_ones()),
                Ok(Packet::Assign(..)) => {
                    sum.assigned += 1;
                    sum.retrieve += u64::from(passes);
                    sum.most = sum.most.max(passes);
                }
                _ => {}
            }
        }
    }

    fn go_round(&mut self, context: &mut Context<'_>, going: Going) {
        let Pipeline { recirculation, recirculating, passes, .. } = self.pipeline;
        let on_the_way = self.round.len() + self.waiting.len() - self.datagrams as usize;
        if passes > 0 && going.passes >= passes {
            self.tally.0.borrow_mut().dropped_passes += 1;
        } else if on_the_way >= recirculating as usize {
            self.tally.0.borrow_mut().dropped_recirculating += 1;
        } else {
            self.round.push_back(going);
            context.after(recirculation, ROUND);
        }
    }
}

impl Actor for AsicSwitch {
    fn start(&mut self, context: &mut Context<'_>) {
        context.wake_at(context.now() + TICK);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        if self.pipeline.passes_per_s == 0 {
            return self.pass_datagram(context, from, datagram);
        }
        if self.datagrams >= self.pipeline.queue {
            self.tally.0.borrow_mut().dropped_queue += 1;
            return;
        }
        self.enter(context, Waiting::Datagram(from, datagram.to_vec()));
    }

    fn wake(&mut self, context: &mut Context<'_>, wake: Wake) {
        match wake {
            Wake::Token(ROUND) => {
                if let Some(going) = self.round.pop_front() {
                    self.enter(context, Waiting::Round(going));
                }
            }
            Wake::Token(_) => {
                if let Some(packet) = self.waiting.pop_front() {
                    self.datagrams -= u32::from(matches!(packet, Waiting::Datagram(..)));
                    self.pass(context, packet);
                }
            }
            Wake::Time => {
                self.tasks.tick(context.now());
                context.wake_at(context.now() + TICK);
            }
        }
    }
}
