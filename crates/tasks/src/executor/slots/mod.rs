//! The slots: state, and name at the switch.

mod ahead;
mod bundles;
mod census;
mod extra;
mod transmit;

use super::hash::Keyed;
use super::timers::Timers;
use super::{Bundles, ExecutorConfig, Run, RunKey};
use crate::mutants::planted;
use crate::proof::Token;
use ahead::Asked;
use bundles::Pool;
pub(super) use census::{Census, Kind};
use extra::ExtraTasks;
use midflight_endpoint::Nanos;
use midflight_wire::tasks::{Assignment, RunName, SlotName, Wait};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not registered. Must register, unless it is a prefetch or spare slot.
    Unregistered,
    /// Registered and idle: a prefetch slot, or its worker runs a prefetched task.
    Idle,
    /// Has asked for a task.
    Waiting,
    /// Has a task that has not started, because all workers are busy.
    Ready,
    /// Has a task. If its name becomes void, it registers when the task ends.
    Running,
    /// Has asked the switch to take back its wait or task; stays registered.
    Returning,
    /// Has told the switch that it leaves.
    Leaving,
    /// Has left, for good.
    Gone,
}

/// The part of a running task that its completion needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) token: Token,
    name: TaskName,
    pub(super) address: SocketAddr,
    pub(super) epoch: u32,
    pub(super) submission: u32,
    pub(super) index: u8,
    pub(super) attempt: u8,
    pub(super) waited_us: u32,
    pub(super) arrived: Nanos,
    stopped: bool,
}

/// A task's name in STOP: proof, submission, index. Names of two clients differ in the proof.
type TaskName = (u64, u32, u8);

fn task_name(name: &RunName) -> TaskName {
    (name.proof.get(), name.submission.get(), name.index)
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) state: State,
    /// Whether `name` is valid at the switch, as far as known.
    pub(super) registered: bool,
    queued: bool,
    /// Whether the last task is done, for RELEASE.
    done: bool,
    pub(super) name: Name,
    sequence: u32,
    run: u32,
    /// Whether the current wait was sent, so that a task may answer it.
    sent: bool,
    /// Whether the switch answered NO_OP; the slot polls again later.
    got_no_op: bool,
    /// Transmissions of the wait since the last NO_OP, or of the leave.
    tries: u8,
    /// When the first of these was sent.
    asked: Nanos,
    /// Number of the last RETRIEVE with this slot's prefetch wait.
    asked_in: u32,
    /// Counter of the first RELEASE of the current leave or return.
    released_in: u64,
    started: Nanos,
    /// The run was prefetched and lasts longer than expected.
    is_overdue: bool,
    is_waiting_run: bool,
    held: Option<Held>,
    extra: ExtraTasks,
    /// Counted resources that its wait offers, or its task requires.
    bundles: Bundles,
}

/// A task that has not started.
#[derive(Clone, Debug)]
struct Given {
    assignment: Assignment,
    arrival: Arrival,
}

/// How an assignment arrived.
#[derive(Clone, Debug)]
struct Arrival {
    appended: Option<Arc<Vec<u8>>>,
    epoch: u32,
    arrived: Nanos,
    asked: Nanos,
}

impl Slot {
    pub(super) fn wait(&self) -> Wait {
        Wait { slot: self.name.number.into(), generation: self.name.generation.into(), sequence: self.sequence.into() }
    }

    /// Age if sent only once; otherwise the response is ambiguous.
    fn round_trip(&self, now: Nanos) -> Option<Nanos> {
        (self.tries == 1).then(|| now.saturating_sub(self.asked))
    }
}

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

#[derive(Debug)]
pub(super) struct Slots {
    resources: u8,
    repeat_min: Nanos,
    poll_repeat_min: Nanos,
    pool: Pool,
    /// Number of ordinary slots, and of workers. Prefetch slots follow them, then spares.
    ordinary: u32,
    first_spare: u32,
    slots: Vec<Slot>,
    by_number: HashMap<u32, u32, Keyed>,
    /// Running slots by task. If two run the same one after a lease expired, the later.
    by_task: HashMap<TaskName, u32, Keyed>,
    /// Slots whose wait is to be sent. Skips entries whose slot has changed state.
    waits: VecDeque<u32>,
    /// The same for prefetch slots.
    asks: VecDeque<u32>,
    /// Unanswered RETRIEVEs of prefetch waits, the oldest first.
    asked: VecDeque<Asked>,
    /// Idle prefetch slots. Skips entries whose slot has changed state.
    idle: Vec<u32>,
    /// The same, if the switch does not know yet that the last task is done.
    untold: Vec<u32>,
    /// Tasks that have not started, in order of arrival.
    ready: VecDeque<(u32, Given)>,
    /// Prefetched runs, in the order of their start; some may have ended.
    lent: VecDeque<(Nanos, RunKey)>,
    /// Slots whose leave is to be sent.
    leaves: VecDeque<u32>,
    timers: Timers,
    /// The next slot for KEEPALIVE; past the last one if none is due.
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
            got_no_op: false,
            tries: 0,
            asked: 0,
            asked_in: 0,
            released_in: 0,
            started: 0,
            is_overdue: false,
            is_waiting_run: false,
            held: None,
            extra: ExtraTasks::default(),
            bundles: Bundles::default(),
        };
        let first_spare = config.slots + config.ahead;
        let all = first_spare + config.waiting;
        Self {
            resources: config.resources,
            repeat_min: config.repeat_min,
            poll_repeat_min: config.poll_repeat_min,
            pool: Pool::new(config),
            ordinary: config.slots,
            first_spare,
            slots: (0..all).map(|_| slot()).collect(),
            by_number: HashMap::with_hasher(Keyed(config.seed)),
            by_task: HashMap::with_hasher(Keyed(config.seed)),
            waits: VecDeque::new(),
            asks: VecDeque::new(),
            asked: VecDeque::new(),
            idle: Vec::new(),
            untold: Vec::new(),
            ready: VecDeque::new(),
            lent: VecDeque::new(),
            leaves: VecDeque::new(),
            timers: Timers::new(),
            keepalive: all as usize,
            census: Census::new(config.slots, config.ahead, config.waiting),
        }
    }

    pub(super) fn get(&self, local: u32) -> Option<&Slot> {
        self.slots.get(local as usize)
    }

    pub(super) fn locals(&self) -> std::ops::Range<u32> {
        0..self.slots.len() as u32
    }

    /// Slots that are always registered, one per worker.
    pub(super) fn ordinary(&self) -> std::ops::Range<u32> {
        0..self.ordinary
    }

    /// Slots for runs that wait for other tasks; registered when needed.
    pub(super) fn spares(&self) -> std::ops::Range<u32> {
        self.first_spare..self.slots.len() as u32
    }

    pub(super) fn kind(&self, local: u32) -> Kind {
        match local {
            local if local < self.ordinary => Kind::Ordinary,
            local if local < self.first_spare => Kind::Ahead,
            _ => Kind::Spare,
        }
    }

    pub(super) fn is_ahead(&self, local: u32) -> bool {
        self.kind(local) == Kind::Ahead
    }

    pub(super) fn next_timeout(&self) -> Option<Nanos> {
        self.timers.next()
    }

    fn find(&self, name: Name) -> Option<u32> {
        let &local = self.by_number.get(&name.number)?;
        (self.slots[local as usize].name == name).then_some(local)
    }

    /// The slot that last had this number, if its name is valid.
    pub(super) fn holder(&self, number: u32) -> Option<u32> {
        self.by_number.get(&number).copied().filter(|&local| self.slots[local as usize].registered)
    }

    /// Registers a slot. An ordinary slot starts to wait, from sequence 1; others stay idle.
    pub(super) fn register(&mut self, local: u32, name: Name) {
        self.by_number.insert(name.number, local);
        let slot = &mut self.slots[local as usize];
        (slot.name, slot.registered, slot.sequence) = (name, true, 0);
        let kind = self.kind(local);
        *self.census.registered_mut(kind) += 1;
        if kind != Kind::Ordinary {
            self.slots[local as usize].done = false;
            self.take_rest(local);
        } else {
            self.wait(local);
        }
    }

    /// Voids a slot's name. An ordinary slot must register again, a running one when its task ends; other kinds register when
    /// needed; a leaving one has left. A task not started is dropped, because the switch assigns it elsewhere. Returns whether
    /// the slot must register now.
    pub(super) fn void(&mut self, local: u32) -> bool {
        let kind = self.kind(local);
        let slot = &mut self.slots[local as usize];
        if !slot.registered {
            return false;
        }
        let state = slot.state;
        slot.registered = false;
        if self.by_number.get(&slot.name.number) == Some(&local) {
            self.by_number.remove(&slot.name.number);
        }
        *self.census.registered_mut(kind) -= 1;
        match state {
            State::Waiting | State::Idle | State::Returning | State::Ready => {
                self.ready.retain(|(ready, _)| state != State::Ready || *ready != local);
                self.enter(local, State::Unregistered);
                return kind == Kind::Ordinary;
            }
            State::Leaving if kind != Kind::Ordinary => self.enter(local, State::Unregistered),
            State::Leaving => self.enter(local, State::Gone),
            State::Running if planted(39) && self.ordinary > 2 => self.free_bundles(local),
            State::Unregistered | State::Running | State::Gone => {}
        }
        false
    }

    /// The slot whose current wait this is: it waits, has the task, or has just finished it.
    pub(super) fn present(&self, wait: &Wait) -> Option<u32> {
        let local = self.find(wait.into())?;
        let slot = &self.slots[local as usize];
        let is_present = slot.sequence == wait.sequence.get();
        let is_concerned = !matches!(slot.state, State::Unregistered | State::Leaving | State::Gone);
        (is_present && is_concerned).then_some(local)
    }

    /// The slot with this name, if it announced its leave or return in the packet with this counter or before.
    pub(super) fn released(&self, name: Name, counter: u64) -> Option<(u32, State)> {
        let local = self.find(name)?;
        let slot = &self.slots[local as usize];
        let has_said = slot.tries > 0 && counter >= slot.released_in;
        let is_asked = matches!(slot.state, State::Leaving | State::Returning);
        (is_asked && has_said).then_some((local, slot.state))
    }

    /// The slot whose current wait this is, if it was sent and is unanswered.
    fn asking(&self, wait: &Wait) -> Option<u32> {
        let local = self.present(wait)?;
        let slot = &self.slots[local as usize];
        (slot.state == State::Waiting && slot.sent).then_some(local)
    }

    /// NO_OP: the slot polls again after `every`. Returns the round trip if the wait was sent once; `None` if no response was
    /// expected.
    pub(super) fn no_op(&mut self, now: Nanos, every: Nanos, wait: &Wait) -> Option<Option<Nanos>> {
        let local = self.asking(wait)?;
        let slot = &mut self.slots[local as usize];
        if slot.got_no_op || slot.tries == 0 {
            return None;
        }
        (slot.got_no_op, slot.queued) = (true, false);
        self.census.got_no_op += 1;
        self.timers.arm_poll(local, now, every);
        Some(slot.round_trip(now))
    }

    /// Accepts an assignment to a slot's current wait, unless the task requires bundles beyond its offer. Returns the run, or
    /// none if it must wait for a worker; and the round trip if the response was immediate, as always from a polled switch.
    pub(super) fn assign(
        &mut self,
        now: Nanos,
        epoch: u32,
        is_polled: bool,
        assignment: &Assignment,
        appended: Option<&[u8]>,
    ) -> Option<(Option<Run>, Option<Nanos>)> {
        let Assignment { slot, generation, sequence, .. } = *assignment;
        let local = self.asking(&Wait { slot, generation, sequence })?;
        let required = self.counted_of(assignment.task.resources);
        if required & !self.slots[local as usize].bundles.mask() != 0 {
            return None;
        }
        self.keep_required(local, required);
        let slot = &mut self.slots[local as usize];
        // A task older than this wait was queued when it arrived, so the response was immediate.
        let elapsed = now.saturating_sub(slot.asked);
        let waited = u64::from(assignment.waited_us.get()) * 1000;
        let round_trip = if is_polled { slot.round_trip(now) } else { (waited > elapsed).then_some(elapsed) };
        if is_polled {
            slot.extra.remember(assignment);
        }
        let appended = appended.map(|argument| Arc::new(argument.to_vec()));
        let arrival = Arrival { appended, epoch, arrived: now, asked: slot.asked };
        if self.has_worker() {
            return Some((Some(self.begin(now, local, assignment, arrival)), round_trip));
        }
        self.enter(local, State::Ready);
        self.ready.push_back((local, Given { assignment: *assignment, arrival }));
        Some((None, round_trip))
    }

    /// Whether fewer runs work than there are ordinary slots, and no earlier task is ready.
    fn has_worker(&self) -> bool {
        let most = if planted(28) && self.ordinary > 4 { self.ordinary + 1 } else { self.ordinary };
        self.ready.is_empty() && self.census.working() < most
    }

    fn begin(&mut self, now: Nanos, local: u32, assignment: &Assignment, arrival: Arrival) -> Run {
        let Arrival { appended, epoch, arrived, asked } = arrival;
        let token = Token::new(assignment.token.get());
        let held = Held {
            token,
            name: task_name(&token.run_name(assignment.submission.get(), assignment.index)),
            address: assignment.address.into(),
            epoch,
            submission: assignment.submission.get(),
            index: assignment.index,
            attempt: assignment.task.attempt,
            waited_us: assignment.waited_us.get(),
            arrived,
            stopped: false,
        };
        self.by_task.insert(held.name, local);
        let required = self.counted_of(assignment.task.resources);
        let slot = &mut self.slots[local as usize];
        slot.held = Some(held);
        slot.run = slot.run.wrapping_add(1);
        (slot.started, slot.is_overdue) = (now, false);
        let run = Run {
            key: RunKey { slot: local, run: slot.run },
            task: assignment.task,
            appended,
            uid: assignment.uid.get(),
            jid: assignment.jid.get(),
            client: held.address,
            waited_us: held.waited_us,
            arrived,
            asked,
            bundles: slot.bundles.only(required),
        };
        self.enter(local, State::Running);
        if self.is_ahead(local) {
            self.lent.push_back((now, run.key));
        }
        run
    }

    /// Ends `run`, and returns its task and start time. The caller sets the slot's next state.
    pub(super) fn finish(&mut self, run: RunKey) -> Option<(Held, Nanos)> {
        let slot = self.slots.get_mut(run.slot as usize)?;
        if slot.state != State::Running || slot.run != run.run {
            return None;
        }
        slot.done = true;
        let (held, started) = (slot.held.take()?, slot.started);
        self.census.overdue -= u32::from(std::mem::take(&mut slot.is_overdue));
        let was_waiting = std::mem::take(&mut slot.is_waiting_run);
        if was_waiting && !(planted(49) && self.ordinary > 2) {
            self.census.waiting_runs -= 1;
            self.note_fewer_takers();
        }
        if self.by_task.get(&held.name) == Some(&run.slot) {
            self.by_task.remove(&held.name);
        }
        self.ended(run.slot);
        Some((held, started))
    }

    pub(super) fn held(&self, run: RunKey) -> Option<Held> {
        let slot = self.get(run.slot).filter(|slot| slot.state == State::Running && slot.run == run.run)?;
        slot.held
    }

    /// `None` if the run has ended, or nothing changes.
    pub(super) fn set_waiting(&mut self, run: RunKey, is_waiting: bool) -> Option<()> {
        let slot = self.slots.get_mut(run.slot as usize)?;
        let runs = slot.state == State::Running && slot.run == run.run && slot.held.is_some();
        if !runs || slot.is_waiting_run == is_waiting {
            return None;
        }
        if planted(43) && !is_waiting && self.census.waiting_runs > 1 {
            return None; // planted bug: only the last of several waiting runs continues
        }
        slot.is_waiting_run = is_waiting;
        match is_waiting {
            true => self.census.waiting_runs += 1,
            false => {
                self.census.waiting_runs -= 1;
                self.note_fewer_takers();
            }
        }
        Some(())
    }

    /// The run that its client stops, if the driver does not know yet. A task not started starts or is returned soon, and its
    /// client asks again.
    pub(super) fn stop(&mut self, name: &RunName) -> Option<RunKey> {
        let &local = self.by_task.get(&task_name(name))?;
        let slot = &mut self.slots[local as usize];
        if slot.state != State::Running {
            return None;
        }
        let held = slot.held.as_mut()?;
        let is_new = !std::mem::replace(&mut held.stopped, true);
        is_new.then_some(RunKey { slot: local, run: slot.run })
    }

    /// Asks for a task with the next sequence.
    pub(super) fn wait(&mut self, local: u32) {
        self.enter(local, State::Waiting);
        let slot = &mut self.slots[local as usize];
        slot.sequence = slot.sequence.wrapping_add(1);
        (slot.tries, slot.sent, slot.queued, slot.done) = (0, false, true, false);
        self.waits_of(local).push_back(local);
    }

    fn waits_of(&mut self, local: u32) -> &mut VecDeque<u32> {
        if self.is_ahead(local) { &mut self.asks } else { &mut self.waits }
    }

    pub(super) fn leave(&mut self, local: u32) {
        self.ready.retain(|(ready, _)| *ready != local); // the switch queues its task again
        self.enter(local, State::Leaving);
        let slot = &mut self.slots[local as usize];
        (slot.tries, slot.queued) = (0, true);
        self.leaves.push_back(local);
    }

    /// Sets a slot's state without sending anything, and updates the census.
    pub(super) fn enter(&mut self, local: u32, state: State) {
        let kind = self.kind(local);
        let slot = &mut self.slots[local as usize];
        self.census.moves(kind, slot.state, state);
        slot.state = state;
        slot.queued = false;
        self.census.got_no_op -= u32::from(std::mem::take(&mut slot.got_no_op));
        self.timers.disarm(local);
        self.free_unneeded(local, state);
    }

    /// Returns the number of unanswered waits to repeat.
    pub(super) fn handle_timeout(&mut self, now: Nanos) -> u64 {
        let mut repeats = 0;
        while let Some(local) = self.timers.pop(now) {
            let is_ahead = self.is_ahead(local);
            let slot = &mut self.slots[local as usize];
            let queue = match slot.state {
                State::Waiting if is_ahead => &mut self.asks,
                State::Waiting => &mut self.waits,
                State::Leaving | State::Returning => &mut self.leaves,
                State::Unregistered | State::Idle | State::Ready | State::Running | State::Gone => continue,
            };
            if std::mem::take(&mut slot.got_no_op) {
                slot.tries = 0;
                self.census.got_no_op -= 1;
            } else {
                repeats += u64::from(slot.state == State::Waiting);
            }
            slot.queued = true;
            queue.push_back(local);
        }
        repeats
    }

    pub(super) fn keep_alive(&mut self) {
        self.keepalive = 0;
    }
}
