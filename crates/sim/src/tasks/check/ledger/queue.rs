//! The tasks of a switch: which are queued, in which order they must go, and which are with a slot.

use super::super::rules::*;
use super::Name;
use crate::check::{Checked, holds};
use midflight_dataplane::Stats;
use midflight_endpoint::Nanos;
use midflight_wire::{Assignment, LEVELS, Submit, TaskInfo};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;

/// Clocks of the core count 8 ns, and what it tells is cut to microseconds.
const WAIT_TOLERANCE_US: u64 = 2;

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Queued,
    Assigned,
}

/// A task that the switch has acknowledged and that has not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) info: TaskInfo,
    pub(super) jid: u32,
    uid: u32,
    token: u64,
    /// Counts what was accepted.
    order: u64,
    accepted: Nanos,
    state: State,
    /// As a slot was told last.
    attempt: u8,
    /// Whether a slot was told.
    tried: bool,
}

/// The queued tasks of one level and mask.
#[derive(Debug, Default)]
struct Line {
    /// Those of which an attempt was made here: in any order, before the others.
    requeued: BTreeSet<Name>,
    /// In the order of acceptance.
    first: VecDeque<Name>,
}

impl Line {
    fn len(&self) -> usize {
        self.requeued.len() + self.first.len()
    }
}

#[derive(Debug)]
pub(super) struct Queue {
    bound: u32,
    order: u64,
    tasks: HashMap<Name, Task>,
    lines: BTreeMap<(u8, u8), Line>,
    queued: [u32; LEVELS as usize],
    assigned: u32,
    /// First attempts, and how long they had waited.
    first_attempts: u64,
    waited_us: u64,
}

impl Queue {
    pub(super) fn new(bound: u32) -> Self {
        let (tasks, lines) = (HashMap::new(), BTreeMap::new());
        let queued = [0; LEVELS as usize];
        Self { bound, order: 0, tasks, lines, queued, assigned: 0, first_attempts: 0, waited_us: 0 }
    }

    pub(super) fn open(&self) -> usize {
        self.tasks.len()
    }

    pub(super) fn queued(&self) -> [u32; LEVELS as usize] {
        self.queued
    }

    pub(super) fn assigned(&self) -> u32 {
        self.assigned
    }

    /// The waits that the switch tells are those of the first attempts.
    pub(super) fn waits(&self, stats: &Stats) -> Checked {
        let told: u64 = stats.wait_us.iter().sum();
        holds!(BOOKS, told == self.first_attempts, "{told} waits are told of {} first attempts", self.first_attempts);
        let right = stats.wait_sum_us.abs_diff(self.waited_us) <= WAIT_TOLERANCE_US * self.first_attempts;
        holds!(BOOKS, right, "waits of {} us are told, which were {} us", stats.wait_sum_us, self.waited_us);
        Ok(())
    }

    /// Tasks that there is room for.
    pub(super) fn room(&self) -> u32 {
        self.bound - self.tasks.len() as u32
    }

    pub(super) fn state(&self, name: Name) -> Option<State> {
        self.tasks.get(&name).map(|task| task.state)
    }

    /// Whether a client has tasks here.
    pub(super) fn has_of(&self, client: u64) -> bool {
        self.tasks.keys().any(|name| name.0 == client)
    }

    /// A task was acknowledged.
    pub(super) fn accept(&mut self, now: Nanos, name: Name, submit: &Submit, info: &TaskInfo) -> Checked {
        let (jid, uid, token) = (submit.jid.get(), submit.uid.get(), submit.token.get());
        self.order += 1;
        let (info, state) = (*info, State::Queued);
        let (order, attempt) = (self.order, info.attempt);
        let task = Task { info, jid, uid, token, order, accepted: now, state, attempt, tried: false };
        holds!(T8, self.tasks.insert(name, task).is_none(), "{name:?} is accepted twice");
        self.lines.entry((info.priority, info.resources)).or_default().first.push_back(name);
        self.queued[usize::from(info.priority - 1)] += 1;
        Ok(())
    }

    /// A slot lost it, or gave it back.
    pub(super) fn requeue(&mut self, name: Name) {
        let Some(task) = self.tasks.get_mut(&name) else { return };
        task.state = State::Queued;
        self.assigned -= 1;
        self.queued[usize::from(task.info.priority - 1)] += 1;
        self.lines.entry((task.info.priority, task.info.resources)).or_default().requeued.insert(name);
    }

    /// It is done.
    pub(super) fn done(&mut self, name: Name) {
        self.assigned -= u32::from(self.tasks.remove(&name).is_some());
    }

    /// Its client took it out; false where it is not queued.
    pub(super) fn take_out(&mut self, name: Name) -> bool {
        let Some(task) = self.tasks.get(&name).filter(|task| task.state == State::Queued).copied() else {
            return false;
        };
        self.tasks.remove(&name);
        self.leave_line(name, &task.info);
        true
    }

    /// Its client is silent: what it has queued is given up. Says how many tasks.
    pub(super) fn drop_of(&mut self, client: u64) -> u64 {
        let own: Vec<Name> = self.tasks.keys().filter(|name| name.0 == client).copied().collect();
        own.into_iter().filter(|name| self.take_out(*name)).count() as u64
    }

    /// Tasks of these clients, queued and assigned.
    pub(super) fn held_by(&self, is_theirs: impl Fn(u64) -> bool) -> usize {
        self.tasks.keys().filter(|name| is_theirs(name.0)).count()
    }

    fn leave_line(&mut self, name: Name, info: &TaskInfo) {
        self.queued[usize::from(info.priority - 1)] -= 1;
        if let Some(line) = self.lines.get_mut(&(info.priority, info.resources))
            && !line.requeued.remove(&name)
        {
            match line.first.front() {
                Some(front) if *front == name => drop(line.first.pop_front()),
                _ => line.first.retain(|&other| other != name),
            }
        }
    }

    /// Of the tasks queued, one that a slot with one of these resources may run: level and mask.
    pub(super) fn suits(&self, resources: impl Iterator<Item = u8> + Clone) -> Option<(u8, u8)> {
        let used = self.lines.iter().filter(|(_, line)| line.len() > 0);
        used.map(|(key, _)| *key).find(|(_, mask)| resources.clone().any(|resources| mask & !resources == 0))
    }

    /// A slot with these resources is given a task: the right one (T3, T4, T5), which nobody else has (T2), as its client
    /// submitted it (T1).
    pub(super) fn assign(
        &mut self,
        now: Nanos,
        name: Name,
        given: &Assignment,
        resources: u8,
        address: Option<SocketAddr>,
        expected: &mut Stats,
    ) -> Checked<Task> {
        let Some(&task) = self.tasks.get(&name) else {
            holds!(T1, false, "a task that nobody has submitted, or that has ended, is assigned: {given:?}");
            unreachable!("the rule has just been broken");
        };
        holds!(T2, task.state == State::Queued, "a task that a slot has is given to another: {given:?}");
        holds!(T5, task.info.resources & !resources == 0, "resources {resources:#04x} do not suffice for {given:?}");
        self.in_order(name, &task, resources)?;
        let attempt = task.attempt.saturating_add(1);
        let right = TaskInfo { attempt, ..task.info };
        holds!(T1, given.task == right, "{:?} is assigned where {right:?} was submitted", given.task);
        holds!(T1, (given.jid.get(), given.uid.get()) == (task.jid, task.uid), "another job or user: {given:?}");
        holds!(T13, given.token.get() == task.token, "a token of another SUBMIT: {given:?}");
        let to = SocketAddr::from(given.address);
        holds!(T1, address.is_none_or(|address| address == to), "a client at {address:?} is said to be at {to}");
        let waited = now.saturating_sub(task.accepted) / 1000;
        let told = u64::from(given.waited_us.get());
        holds!(BOOKS, told.abs_diff(waited) <= WAIT_TOLERANCE_US, "waited {waited} us, of which {told} are told");
        if !task.tried {
            self.first_attempts += 1;
            self.waited_us += waited;
        }
        self.leave_line(name, &task.info);
        self.assigned += 1;
        expected.assigned += 1;
        let kept = Task { state: State::Assigned, attempt, tried: true, ..task };
        self.tasks.insert(name, kept);
        Ok(kept)
    }

    /// T3 and T4.
    fn in_order(&self, name: Name, task: &Task, resources: u8) -> Checked {
        let TaskInfo { priority: level, resources: mask, .. } = task.info;
        let fits = |((_, other), line): &(&(u8, u8), &Line)| other & !resources == 0 && line.len() > 0;
        for ((other, _), _) in self.lines.iter().filter(fits) {
            holds!(T4, *other >= level, "a task of level {level} is given before one of level {other}");
        }
        let own = &self.lines[&(level, mask)];
        if own.requeued.is_empty() {
            let first = own.first.front();
            holds!(T3, first == Some(&name), "{name:?} is given before {first:?}, of the same level and mask");
        } else {
            let before = own.requeued.contains(&name);
            holds!(T3, before, "{name:?} is given before {:?}, which were queued again", own.requeued);
        }
        // Among masks the older head goes first; which of several requeued ones is the head is not said by a rule.
        for ((_, other), line) in self.lines.iter().filter(|(key, _)| key.0 == level).filter(fits) {
            let head = line.first.front().filter(|_| line.requeued.is_empty());
            let Some(head) = head.map(|head| &self.tasks[head]) else { continue };
            let older = own.requeued.len() < 2 && head.order < task.order;
            holds!(T3, !older, "{name:?} is given before an older one of mask {other:#04x}");
        }
        Ok(())
    }
}
