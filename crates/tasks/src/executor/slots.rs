//! The slots: what each is doing, and under which name the switch knows it.

mod extra;
mod transmit;

use super::hash::Keyed;
use super::timers::Timers;
use super::{ExecutorConfig, Run, RunKey};
use extra::Surplus;
use midflight_endpoint::Nanos;
use midflight_wire::{Assignment, SlotName, Wait};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// What a slot is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Has no name at the switch, wants one.
    Unregistered,
    /// Has asked for a task.
    Waiting,
    /// Has a task. Its name may be void meanwhile; then it registers when the task is done.
    Running,
    /// Has told the switch that it wants no more.
    Leaving,
    /// Has left, for good.
    Gone,
}

/// The task that a slot runs, as far as its completion needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) token: u64,
    pub(super) address: SocketAddr,
    pub(super) epoch: u32,
    pub(super) submission: u32,
    pub(super) index: u8,
    pub(super) attempt: u8,
    pub(super) waited_us: u32,
    pub(super) arrived: Nanos,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) state: State,
    /// Whether `name` is valid at the switch, as far as we know.
    pub(super) registered: bool,
    /// Whether it stands in `waits` or `leaves`.
    queued: bool,
    /// Whether the last task is done: what RELEASE says.
    done: bool,
    pub(super) name: Name,
    sequence: u32,
    run: u32,
    /// Whether the present wait was sent, so that a task may answer it.
    sent: bool,
    /// Whether the switch has said that it has no task for it (NO_OP): nothing is asked until the poll is due.
    told: bool,
    /// Times that the present wait was sent since it was told so, or the leave.
    tries: u8,
    /// When the first of them was.
    asked: Nanos,
    held: Option<Held>,
    surplus: Surplus,
}

/// An assignment that was accepted, and when.
#[derive(Clone, Debug)]
struct Given {
    assignment: Assignment,
    epoch: u32,
    arrived: Nanos,
    asked: Nanos,
}

impl Slot {
    /// Its present wait.
    pub(super) fn wait(&self) -> Wait {
        Wait { slot: self.name.number.into(), generation: self.name.generation.into(), sequence: self.sequence.into() }
    }

    /// How long ago the switch was asked, if it was asked once: an answer to a repeat might be one to the first.
    fn round_trip(&self, now: Nanos) -> Option<Nanos> {
        (self.tries == 1).then(|| now.saturating_sub(self.asked))
    }
}

/// A slot's number and generation at the switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) number: u32,
    pub(super) generation: u32,
}

impl From<&SlotName> for Name {
    fn from(name: &SlotName) -> Self {
        Self { number: name.slot.get(), generation: name.generation.get() }
    }
}

impl From<&Wait> for Name {
    fn from(wait: &Wait) -> Self {
        Self { number: wait.slot.get(), generation: wait.generation.get() }
    }
}

/// How many slots are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Census {
    pub(super) waiting: u32,
    /// Of those that wait: told that there is no task now, and not yet asking again.
    pub(super) told: u32,
    pub(super) running: u32,
    pub(super) leaving: u32,
    /// With a valid name at the switch.
    pub(super) registered: u32,
}

#[derive(Debug)]
pub(super) struct Slots {
    resources: u8,
    repeat_min: Nanos,
    poll_repeat_min: Nanos,
    slots: Vec<Slot>,
    by_number: HashMap<u32, u32, Keyed>,
    /// Slots whose wait is to be sent, first or again. An entry whose slot moved on meanwhile is passed over.
    waits: VecDeque<u32>,
    /// Slots whose leave is to be sent.
    leaves: VecDeque<u32>,
    timers: Timers,
    /// The next slot that KEEPALIVE looks at; at the end while none is due.
    keepalive: usize,
    pub(super) census: Census,
}

impl Slots {
    pub(super) fn new(config: &ExecutorConfig) -> Self {
        let slot = || Slot {
            state: State::Unregistered,
            registered: false,
            queued: false,
            done: false,
            name: Name::default(),
            sequence: 0,
            run: 0,
            sent: false,
            told: false,
            tries: 0,
            asked: 0,
            held: None,
            surplus: Surplus::default(),
        };
        Self {
            resources: config.resources,
            repeat_min: config.repeat_min,
            poll_repeat_min: config.poll_repeat_min,
            slots: (0..config.slots).map(|_| slot()).collect(),
            by_number: HashMap::with_hasher(Keyed(config.seed)),
            waits: VecDeque::new(),
            leaves: VecDeque::new(),
            timers: Timers::new(),
            keepalive: config.slots as usize,
            census: Census::default(),
        }
    }

    pub(super) fn get(&self, local: u32) -> Option<&Slot> {
        self.slots.get(local as usize)
    }

    pub(super) fn locals(&self) -> std::ops::Range<u32> {
        0..self.slots.len() as u32
    }

    pub(super) fn next_timeout(&self) -> Option<Nanos> {
        self.timers.next()
    }

    /// The slot that has this name now.
    fn find(&self, name: Name) -> Option<u32> {
        let &local = self.by_number.get(&name.number)?;
        (self.slots[local as usize].name == name).then_some(local)
    }

    /// The slot that had this number last, if its name is still held to be valid.
    pub(super) fn holder(&self, number: u32) -> Option<u32> {
        self.by_number.get(&number).copied().filter(|&local| self.slots[local as usize].registered)
    }

    /// An unregistered slot got a name, which no other has: it waits, from sequence 1.
    pub(super) fn register(&mut self, local: u32, name: Name) {
        self.by_number.insert(name.number, local);
        let slot = &mut self.slots[local as usize];
        (slot.name, slot.registered, slot.sequence) = (name, true, 0);
        self.census.registered += 1;
        self.wait(local);
    }

    /// A slot's name, if it has one, is void: a waiting one has to register, a running one when it is done, a leaving one has
    /// left. Returns whether the slot has to register now.
    pub(super) fn void(&mut self, local: u32) -> bool {
        let slot = &mut self.slots[local as usize];
        if !slot.registered {
            return false;
        }
        slot.registered = false;
        if self.by_number.get(&slot.name.number) == Some(&local) {
            self.by_number.remove(&slot.name.number);
        }
        self.census.registered -= 1;
        match slot.state {
            State::Waiting => {
                self.enter(local, State::Unregistered);
                return true;
            }
            State::Leaving => self.enter(local, State::Gone),
            State::Unregistered | State::Running | State::Gone => {}
        }
        false
    }

    /// The slot whose present wait this is: it waits, or runs what it was given.
    pub(super) fn present(&self, wait: &Wait) -> Option<u32> {
        let local = self.find(wait.into())?;
        let slot = &self.slots[local as usize];
        let is_present = slot.sequence == wait.sequence.get();
        (is_present && matches!(slot.state, State::Waiting | State::Running)).then_some(local)
    }

    /// The slot that has this name and leaves.
    pub(super) fn leaving(&self, name: Name) -> Option<u32> {
        self.find(name).filter(|&local| self.slots[local as usize].state == State::Leaving)
    }

    /// The slot whose present wait this is, if it waits and the wait was ever sent.
    fn asking(&self, wait: &Wait) -> Option<u32> {
        let local = self.present(wait)?;
        let slot = &self.slots[local as usize];
        (slot.state == State::Waiting && slot.sent).then_some(local)
    }

    /// There is no task for a slot's present wait: it asks again `every` later. With the round trip, if it asked once; `None`
    /// where nothing was being asked.
    pub(super) fn no_op(&mut self, now: Nanos, every: Nanos, wait: &Wait) -> Option<Option<Nanos>> {
        let local = self.asking(wait)?;
        let slot = &mut self.slots[local as usize];
        if slot.told || slot.tries == 0 {
            return None;
        }
        (slot.told, slot.queued) = (true, false);
        self.census.told += 1;
        self.timers.arm_poll(local, now, every);
        Some(slot.round_trip(now))
    }

    /// Accepts an assignment if it answers a slot's present wait. With the round trip, where the answer was immediate: that
    /// of a switch that is polled is.
    pub(super) fn assign(
        &mut self,
        now: Nanos,
        epoch: u32,
        is_polled: bool,
        assignment: &Assignment,
    ) -> Option<(Run, Option<Nanos>)> {
        let Assignment { slot, generation, sequence, .. } = *assignment;
        let local = self.asking(&Wait { slot, generation, sequence })?;
        let slot = &mut self.slots[local as usize];
        // A task that waited longer than we did was there when the wait came: the answer was immediate.
        let elapsed = now.saturating_sub(slot.asked);
        let waited = u64::from(assignment.waited_us.get()) * 1000;
        let round_trip = if is_polled { slot.round_trip(now) } else { (waited > elapsed).then_some(elapsed) };
        if is_polled {
            slot.surplus.remember(assignment);
        }
        let given = Given { assignment: *assignment, epoch, arrived: now, asked: slot.asked };
        Some((self.begin(local, &given), round_trip))
    }

    /// A slot runs what it was given.
    fn begin(&mut self, local: u32, given: &Given) -> Run {
        let Given { assignment, epoch, arrived, asked } = given;
        let held = Held {
            token: assignment.token.get(),
            address: assignment.address.into(),
            epoch: *epoch,
            submission: assignment.submission.get(),
            index: assignment.index,
            attempt: assignment.task.attempt,
            waited_us: assignment.waited_us.get(),
            arrived: *arrived,
        };
        let slot = &mut self.slots[local as usize];
        slot.held = Some(held);
        slot.run = slot.run.wrapping_add(1);
        let run = Run {
            key: RunKey { slot: local, run: slot.run },
            task: assignment.task,
            uid: assignment.uid.get(),
            jid: assignment.jid.get(),
            client: held.address,
            token: held.token,
            waited_us: held.waited_us,
            arrived: *arrived,
            asked: *asked,
        };
        self.enter(local, State::Running);
        run
    }

    /// What `run` held, if it runs. The caller says what the slot does next.
    pub(super) fn finish(&mut self, run: RunKey) -> Option<Held> {
        let slot = self.slots.get_mut(run.slot as usize)?;
        if slot.state != State::Running || slot.run != run.run {
            return None;
        }
        slot.done = true;
        slot.held.take()
    }

    /// A registered slot asks for a task, under its next sequence.
    pub(super) fn wait(&mut self, local: u32) {
        self.enter(local, State::Waiting);
        let slot = &mut self.slots[local as usize];
        slot.sequence = slot.sequence.wrapping_add(1);
        (slot.tries, slot.sent, slot.queued, slot.done) = (0, false, true, false);
        self.waits.push_back(local);
    }

    /// A registered slot asks for nothing more.
    pub(super) fn leave(&mut self, local: u32) {
        self.enter(local, State::Leaving);
        let slot = &mut self.slots[local as usize];
        (slot.tries, slot.queued) = (0, true);
        self.leaves.push_back(local);
    }

    /// Moves a slot to a state whose entry needs nothing to be sent, and keeps the census.
    pub(super) fn enter(&mut self, local: u32, state: State) {
        let slot = &mut self.slots[local as usize];
        for (of, change) in [(slot.state, -1), (state, 1)] {
            let count = match of {
                State::Waiting => &mut self.census.waiting,
                State::Running => &mut self.census.running,
                State::Leaving => &mut self.census.leaving,
                State::Unregistered | State::Gone => continue,
            };
            *count = count.wrapping_add_signed(change);
        }
        slot.state = state;
        slot.queued = false;
        self.census.told -= u32::from(std::mem::take(&mut slot.told));
        self.timers.disarm(local);
    }

    /// Queues the waits and leaves that are to be sent again; how many waits are repeated because no answer came.
    pub(super) fn handle_timeout(&mut self, now: Nanos) -> u64 {
        let mut repeats = 0;
        while let Some(local) = self.timers.pop(now) {
            let slot = &mut self.slots[local as usize];
            let queue = match slot.state {
                State::Waiting => &mut self.waits,
                State::Leaving => &mut self.leaves,
                State::Unregistered | State::Running | State::Gone => continue,
            };
            if std::mem::take(&mut slot.told) {
                slot.tries = 0;
                self.census.told -= 1;
            } else {
                repeats += u64::from(slot.state == State::Waiting);
            }
            slot.queued = true;
            queue.push_back(local);
        }
        repeats
    }

    /// All slots that run are to be named in KEEPALIVEs.
    pub(super) fn keep_alive(&mut self) {
        self.keepalive = 0;
    }
}
