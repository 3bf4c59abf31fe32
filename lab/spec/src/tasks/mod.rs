//! The reference model of the tasks program: what each packet must cause, in plain Rust.
//!
//! It was written from `docs/internals/tasks.md` and the packet formats, not from the C core, and as simply as
//! possible: vectors, linear searches, one function per message. It must match an engine byte for byte in answers,
//! verdicts and counters.
//!
//! The protocol leaves an engine two free choices: the epoch, and the slot and generation of a registration.
//! [`Model::packet`] makes its own choices. [`Model::follow`] checks and adopts those of an engine.
//!
//! In two points the model follows the C core more closely than the protocol requires:
//!
//! - Slots and clients have indices. A tick visits them in this order and continues where the last tick stopped. A new
//!   client gets the index freed last, or the next unused one.
//! - Each tick visits all records. So does an engine with at most 256 records in use, and test input stays below that.

mod answers;
pub(crate) mod bytes;
mod checker;
mod clients;
mod differential;
mod executors;
mod interpreter;
mod participants;
mod queue;
mod shares;
mod slab;
mod tick;
mod waits;

pub use checker::Checker;
pub use differential::Differential;
pub use interpreter::{EPOCH, interpret, interpret_asic};

use answers::Answers;
use clients::Client;
use executors::Slot;
pub(crate) use executors::stop_proof;
use midflight_dataplane::Cookies;
use midflight_dataplane::program::{Called, Engine};
use midflight_dataplane::read;
use midflight_dataplane::{Datagram, Out, Purge, Stats, TasksConfig, TasksProgram, Verdict};
use midflight_wire::tasks::{Cookie, Packet, SlotName, parse};
use midflight_wire::{Header, Version, counting};
use queue::Task;
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use zerocopy::byteorder::network_endian::U64;
use zerocopy::{FromZeros, IntoBytes};

/// Minimum distance between the acceptance times of two tasks, in nanoseconds.
const TASK_APART_NS: u64 = 8;

/// A registered slot, as seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotView {
    /// Slot number.
    pub number: u32,
    /// Address of its executor.
    pub address: SocketAddr,
    /// Resources it offers, a bit each.
    pub resources: u8,
    /// Parked, assigned or neither.
    pub state: SlotState,
}

/// A task assigned to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// Slot number.
    pub slot: u32,
    /// Sequence of the wait that it answered.
    pub sequence: u32,
    /// The task's jid, tid and attempt.
    pub task: (u32, u32, u8),
}

/// State of a registered slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// Neither parked nor assigned.
    Free,
    /// Parked.
    Waiting,
    /// Has a task.
    Assigned,
}

/// The switch of `docs/internals/tasks.md`.
#[derive(Clone, Debug)]
pub struct Model {
    config: TasksConfig,
    epoch: u32,
    cookies: Cookies,
    /// Nanoseconds; set by each call.
    now: u64,
    clients: Slab<Client>,
    /// Queued tasks. The first task of a level and mask without a place is the head of that list; so is the first task
    /// of a level and place.
    queued: Vec<Task>,
    slots: BTreeMap<u32, Slot>,
    parked: Vec<u32>,
    /// All slot numbers ever registered, in the order of a tick's visits.
    known_slots: BTreeSet<u32>,
    /// The last slot that the last tick visited.
    slot_cursor: Option<u32>,
    /// Index of the client that the next tick visits first.
    next_client: usize,
    ticked_ns: Option<u64>,
    /// Nothing expires before this time.
    expires_ns: u64,
    /// When the youngest task was acknowledged, in nanoseconds.
    accepted_ns: u64,
    /// The last generation that the model drew. It starts at the epoch, so two switches draw different ones.
    generation: u32,
    /// The engine's remaining choices for the registration in progress. If `None`, the model chooses.
    choices: Option<Vec<SlotName>>,
    objection: Option<String>,
    stats: Stats,
}

impl Model {
    /// A fresh switch.
    #[must_use]
    pub fn new(config: &TasksConfig, epoch: u32, secret: u128) -> Self {
        Self {
            config: *config,
            epoch,
            cookies: Cookies::new(secret, config.cookie_ns),
            now: 0,
            clients: Slab::default(),
            queued: Vec::new(),
            slots: BTreeMap::new(),
            parked: Vec::new(),
            known_slots: BTreeSet::new(),
            slot_cursor: None,
            next_client: 0,
            ticked_ns: None,
            expires_ns: 0,
            accepted_ns: 0,
            generation: epoch,
            choices: None,
            objection: None,
            stats: Stats::new_zeroed(),
        }
    }

    /// Handles one datagram. Returns the verdict and the datagrams to send.
    pub fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &[u8]) -> (Verdict, Vec<Datagram>) {
        self.now = now_ns;
        let mut answers = Answers::new(self.epoch);
        let verdict = self.take(from, datagram, &mut answers);
        self.count(verdict, 1);
        (verdict, answers.finish())
    }

    /// Like [`Model::packet`], but adopts the slots and generations that an engine chose in its `answers`.
    ///
    /// # Errors
    /// If a slot is not vacant or does not exist, or a generation is not new.
    pub fn follow(
        &mut self,
        now_ns: u64,
        from: SocketAddr,
        datagram: &[u8],
        answers: &[Datagram],
    ) -> Result<(Verdict, Vec<Datagram>), String> {
        let registered = answers.iter().find_map(|(_, bytes)| match parse(bytes) {
            Ok(Packet::Registered(_, names)) => Some(names.to_vec()),
            _ => None,
        });
        self.choices = Some(registered.unwrap_or_default());
        let said = self.packet(now_ns, from, datagram);
        self.choices = None;
        self.objection.take().map_or(Ok(said), Err)
    }

    /// Whether a task with this name is queued or assigned.
    #[must_use]
    pub fn is_open(&self, client: u64, submission: u32, index: u8) -> bool {
        self.open_tasks().any(|task| (task.client, task.submission, task.index) == (client, submission, index))
    }

    /// Registered slots by number.
    pub fn slots(&self) -> impl Iterator<Item = SlotView> + '_ {
        self.slots.iter().map(|(&number, slot)| {
            let state = match &slot.state {
                executors::State::Free { .. } => SlotState::Free,
                executors::State::Waiting => SlotState::Waiting,
                executors::State::Assigned(_) => SlotState::Assigned,
            };
            SlotView { number, address: slot.address, resources: slot.resources, state }
        })
    }

    /// The task assigned to a slot in answer to this wait.
    #[must_use]
    pub fn given_to(&self, slot: u32, sequence: u32) -> Option<Given> {
        let known = self.slots.get(&slot).filter(|known| known.sequence == sequence)?;
        let task = known.task()?;
        Some(Given { slot, sequence, task: (task.jid, task.info.tid.get(), task.info.attempt) })
    }

    /// Whether the slot no longer has this task.
    #[must_use]
    pub fn has_taken_back(&self, given: &Given) -> bool {
        self.given_to(given.slot, given.sequence).is_none()
    }

    fn take(&mut self, from: SocketAddr, datagram: &[u8], answers: &mut Answers) -> Verdict {
        let packet = match read(datagram, self.config.levels, &mut self.stats) {
            Ok(packet) => packet,
            Err(verdict) => {
                if verdict == Verdict::BadVersion {
                    answers.answer(from, Version::OURS.as_bytes().to_vec());
                }
                return verdict;
            }
        };
        match packet {
            Packet::Submit(submit, tasks, appendix, preference) => {
                self.submit(from, submit, tasks, appendix, preference, answers)
            }
            Packet::Cancel(cancel, names) => self.cancel(from, cancel, names, answers),
            Packet::Probe(probe, names) => self.probe(from, probe, names, answers),
            Packet::Register(register) => self.register(from, register, answers),
            Packet::Retrieve(retrieve, waits) => self.retrieve(from, retrieve, waits, answers),
            Packet::Keepalive(keepalive, waits) => self.keepalive(from, keepalive, waits, answers),
            Packet::Release(release, leaves) => self.release(from, release, leaves, answers),
            _ => Verdict::NotForSwitch,
        }
    }

    /// Whether the cookie proves the sender's address (T13). If not, answers with the right cookie.
    fn takes_cookie(
        &self,
        from: SocketAddr,
        header: &Header,
        identity: U64,
        cookie: U64,
        answers: &mut Answers,
    ) -> bool {
        let takes = self.cookies.takes(self.now, identity.get(), from, cookie.get());
        if !takes {
            let cookie = self.cookies.give(self.now, identity.get(), from).into();
            let answer = Cookie { identity, cookie, ..Cookie::new(self.epoch, header.sequence.get()) };
            answers.answer(from, counting(&answer, 0));
        }
        takes
    }

    fn count(&mut self, verdict: Verdict, times: usize) {
        self.stats.reasons[verdict as usize] += times as u64;
    }
}

impl Engine for Model {
    type Program = TasksProgram;

    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &mut [u8], out: &mut Out) -> Called<Verdict> {
        let (verdict, sent) = Model::packet(self, now_ns, from, datagram);
        out.owe(&sent)?;
        Ok(verdict)
    }

    fn tick(&mut self, now_ns: u64, out: &mut Out) -> Called<u32> {
        let (visited, sent) = Model::tick(self, now_ns);
        out.owe(&sent)?;
        Ok(visited)
    }

    fn order(&mut self, purge: &mut Purge) -> Called<bool> {
        purge.count(Model::purge(self, purge.which()));
        Ok(true)
    }

    fn stats(&self) -> Stats {
        let mut stats = self.stats;
        for task in &self.queued {
            stats.queued[usize::from(task.info.priority) - 1] += 1;
        }
        stats.parked = self.parked.len() as u32;
        stats.busy = self.slots.values().filter(|slot| slot.task().is_some()).count() as u32;
        stats.slots = self.slots.len() as u32;
        stats.clients = self.clients.iter().count() as u32;
        stats.for_place = self.queued.iter().filter(|task| task.wish.is_some()).count() as u32;
        stats.places = self.places().len() as u32;
        stats.argument_blocks = self.blocks() as u32;
        stats
    }

    /// Checks T1, T5, T6 and T7.
    fn check(&self) -> Result<(), String> {
        let stats = self.stats();
        let queued: u64 = stats.queued.iter().map(|&tasks| u64::from(tasks)).sum();
        let ended = stats.tasks.completed + stats.tasks.cancelled + stats.tasks.dropped + stats.tasks.purged;
        let accounted = queued + u64::from(stats.busy) + ended;
        if stats.tasks.submitted != accounted {
            return Err(format!("T1: {} tasks submitted, {accounted} accounted for", stats.tasks.submitted));
        }
        for (number, slot) in &self.slots {
            if slot.task().is_some_and(|task| !suffices(slot.resources, task.info.resources)) {
                return Err(format!("T5: slot {number} has a task that it may not run"));
            }
            let is_parked = self.parked.contains(number);
            let may_run = |task: &Task| task.wish.is_none() && suffices(slot.resources, task.info.resources);
            if is_parked && self.queued.iter().any(may_run) {
                return Err(format!("T6: slot {number} is parked while a task that it may run is queued"));
            }
        }
        if self.records() > self.config.queue as usize {
            return Err(format!("T7: {} tasks in a queue of {}", self.records(), self.config.queue));
        }
        Ok(())
    }
}

/// T5.
fn suffices(offered: u8, needed: u8) -> bool {
    needed & !offered == 0
}
