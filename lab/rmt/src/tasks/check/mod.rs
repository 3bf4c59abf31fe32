//! Exhaustive search of small instances: a program on its machine, and packets that pass it in any order.
//!
//! A state consists of all registers, the recirculating packets, the pending requests of clients and executors, and the fate of each task.
//! A step is one pass of one packet: a client's SUBMIT, an executor's RETRIEVE, or any recirculating packet. These may overtake each other,
//! unlike in real recirculation. None is lost, unless the instance allows it.
//!
//! After each step the state is checked against the rules of `docs/internals/asic.md` ([`Broken::rule`]). A broken rule ends the search,
//! with a shortest sequence of steps to it as a text.

mod answers;
mod endless;
pub mod instances;
mod net;
mod pack;
mod passes;
mod progress;
mod search;
mod world;

use crate::{Machine, Packet, Sent};
pub use endless::{Endless, Way, endless, shifted};
pub use passes::{Passes, passes};
pub use search::run;
pub use world::Broken;

/// A task of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// From 1.
    pub tid: u32,
    /// From 1, the highest.
    pub level: u8,
    /// The resources that it needs.
    pub resources: u8,
}

/// The meaning of a packet that left a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PassOutcome {
    /// It recirculates.
    Round,
    /// An executor has a task.
    Assigned {
        /// Number of the executor.
        executor: u8,
        /// The task.
        tid: u32,
        /// Whether every word of the entry belongs to this task.
        whole: bool,
    },
    /// An executor gets no task.
    NoOp {
        /// Number of the executor.
        executor: u8,
    },
    /// A client is told about each task of its packet; the lowest bit is the first task.
    Answered {
        /// Number of the client.
        client: u8,
        /// The accepted tasks.
        taken: u32,
        /// The refused tasks.
        refused: u32,
    },
    /// A client is told which tasks were not taken.
    Refused {
        /// Number of the client.
        client: u8,
        /// The tasks.
        tids: Vec<u32>,
    },
    /// The packet ended in the switch.
    Gone,
}

impl PassOutcome {
    /// The tasks that leave the switch with it.
    fn tids(&self) -> &[u32] {
        match self {
            Self::Assigned { tid, .. } => std::slice::from_ref(tid),
            Self::Refused { tids, .. } => tids,
            _ => &[],
        }
    }
}

/// A program to check. Levels count from 1.
pub trait Subject: Send + Sync + 'static {
    /// Number of levels.
    fn levels(&self) -> u8;
    /// Entries of each level.
    fn size(&self) -> usize;
    /// Empty queues, whose serial numbers begin at `start`.
    fn machine(&self, start: u32) -> Machine;
    /// A client's SUBMIT.
    fn submit(&self, client: u8, tasks: &[Task]) -> Packet;
    /// An executor's RETRIEVE.
    fn retrieve(&self, executor: u8, resources: u8) -> Packet;
    /// The same, with a counter: the packet with this number of the executor's.
    fn retrieve_numbered(&self, executor: u8, resources: u8, _counter: u32) -> Packet {
        self.retrieve(executor, resources)
    }
    /// The executor of a recirculating packet; `None`: a client's.
    fn asker(&self, packet: &Packet) -> Option<u8>;
    /// Renumbers pointers and credit, so that states with equal differences become equal. Only differences may matter.
    fn number_anew(&self, _machine: &mut Machine, _flight: &mut [Packet], _start: u32) {}
    /// The meaning of a packet that has left a pass.
    fn told(&self, sent: &Sent) -> PassOutcome;
    /// The tasks in a level's queue, the head first.
    fn queued(&self, machine: &Machine, level: u8) -> Vec<u32>;
    /// The accepted task that a recirculating packet carries.
    fn held(&self, packet: &Packet) -> Option<u32>;
    /// The level at which a packet without a task asks for one.
    fn asks(&self, packet: &Packet) -> Option<u8>;
    /// The level of a packet's search, if the search continues at the next level from its tail.
    fn searches(&self, _packet: &Packet) -> Option<u8> {
        None
    }
    /// Invariants of a level's registers, given the number of tasks that packets hold.
    fn sound(&self, machine: &Machine, level: u8, held: usize) -> Result<(), String>;
    /// Invariants of the registers when no packet is inside.
    fn at_rest(&self, _machine: &Machine) -> Result<(), String> {
        Ok(())
    }
    /// Overwrites values that no packet will read, so that they do not distinguish states. A program that read them would assign task 0,
    /// which breaks T1.
    fn tidy(&self, machine: &mut Machine, flight: &mut [Packet]);
    /// A level's queue, as text.
    fn show(&self, machine: &Machine, level: u8) -> String {
        format!("{:?}", self.queued(machine, level))
    }
    /// A recirculating packet, as text.
    fn describe(&self, packet: &Packet) -> String;
}

/// An instance to search: its clients and executors, and their actions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// First serial number.
    pub start: u32,
    /// Each client's job: its tasks' levels and resources. It sends them in one packet.
    pub jobs: Vec<Vec<(u8, u8)>>,
    /// Number of tasks that the controller admits at each level of the safe program; `None`: one for each entry of the queue.
    pub room: Option<u32>,
    /// How often each client resubmits refused tasks.
    pub retries: u8,
    /// Each executor's resources and number of polls, one request at a time.
    pub executors: Vec<(u8, u8)>,
    /// The rule for the order of tasks; `None`: the strongest one.
    pub order: Option<Order>,
    /// Approximate limit of states.
    pub limit: Option<usize>,
    /// The rules that end the search; `None`: all. Allows a check of one rule if another often breaks.
    pub rules: Option<Vec<&'static str>>,
    /// Whether executors poll only while a task is queued, as if they could know that.
    pub informed: bool,
    /// How many recirculating packets may be lost.
    pub drops: u8,
    /// Whether a client resubmits its whole job if a task of it was lost unnoticed and no packet recirculates any more.
    pub timeouts: bool,
    /// Whether ingress and egress are separate steps: other packets may come between them, except those to the same place. The location of
    /// tasks is then known only while no packet is between the two.
    pub halves: bool,
    /// Whether recirculating packets keep their order, as in a switch with one port for them.
    pub fifo: bool,
    /// The network loses, delays and copies packets of clients and executors, which repeat them. Requires `retries` 0.
    pub network: Option<Network>,
}

/// Faults of the network and the endpoints' time-outs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Number of faults: a lost, late or copied packet, a lost answer, an early time-out.
    pub faults: u8,
    /// How often a SUBMIT of each client may arrive, including repeats.
    pub arrivals: u8,
    /// Whether clients and executors repeat packets that are only slow.
    pub early: bool,
    /// T2 as in the contract: a task is assigned once, however often its SUBMIT has arrived.
    pub strict: bool,
}

/// How far a level's order is kept (T3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// No search happens: tasks are assigned in the order of acceptance.
    Exact,
    /// One executor searches: the queue itself keeps that order, and a task is overtaken only if a search has held it.
    Kept,
    /// Several search: a task is overtaken only if a search has held it.
    Held,
}

impl Instance {
    /// All tasks.
    #[must_use]
    pub fn tasks(&self) -> Vec<Task> {
        let all = (1..).zip(self.jobs.iter().flatten());
        all.map(|(tid, &(level, resources))| Task { tid, level, resources }).collect()
    }

    /// Number of copies of all tasks: one for each arrival of their SUBMIT, and one for the work's end.
    pub(crate) fn batches(&self) -> usize {
        self.network.map_or(1, |network| usize::from(network.arrivals) + 1)
    }

    /// The required order.
    #[must_use]
    pub fn order(&self) -> Order {
        self.order.unwrap_or_else(|| self.order_kept())
    }

    fn order_kept(&self) -> Order {
        let wanted = self.jobs.iter().flatten().fold(0, |all, (_, resources)| all | resources);
        match self.executors.iter().filter(|(has, _)| wanted & !has != 0).count() {
            0 => Order::Exact,
            1 => Order::Kept,
            _ => Order::Held,
        }
    }
}

/// A broken rule with the steps to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule, and how it broke.
    pub broken: Broken,
    /// Number of steps to it.
    pub steps: usize,
    /// Whether no shorter sequence exists: the search for one was complete.
    pub shortest: bool,
    /// The steps to it, one per line.
    pub transcript: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}\n{}", self.broken.rule, self.broken.what, self.transcript)
    }
}

/// Counts of events over all steps, to show what an instance reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Tasks assigned.
    pub assigned: u64,
    /// Requests without a task.
    pub no_ops: u64,
    /// Answers that refused a task.
    pub refused: u64,
    /// Passes after which a packet held a task.
    pub held: u64,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Different states.
    pub states: usize,
    /// Steps between them.
    pub steps: usize,
    /// Depth of the state farthest from the start.
    pub depth: usize,
    /// Whether all states were reached, rather than the instance's limit.
    pub exhaustive: bool,
    /// None, or the first.
    pub violations: Vec<Violation>,
    /// Counts over all steps.
    pub seen: Seen,
}
