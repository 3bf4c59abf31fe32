//! A correct switch for tests, written from `docs/internals/tasks.md` ("The switch"). It parks slots, or it is polled and keeps
//! no record.

use super::*;
use midflight_wire::{Cookie, Keepalive, Leave, LeaveHow, Release};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Interval of new cookies; a cookie is also valid in the next one.
const COOKIE: Nanos = 1_000 * MS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Has {
    /// `spent`: only a larger sequence may wait.
    Free {
        spent: bool,
    },
    Wait,
    Task(Assignment),
}

#[derive(Clone, Debug)]
struct Slot {
    executor: u64,
    local: u32,
    generation: u32,
    registration: u32,
    sequence: u32,
    counter: u64,
    address: SocketAddr,
    heard: Nanos,
    has: Has,
}

#[derive(Clone, Debug)]
pub(super) struct Switch {
    epoch: u32,
    poll_us: u16,
    pub(super) room: u32,
    pub(super) tasks: u32,
    slots: BTreeMap<u32, Slot>,
    generations: u32,
    given: u32,
    /// Tasks reported as done: epoch and number of the assignment.
    pub(super) done: Vec<(u64, u32)>,
}

type Out = Vec<(SocketAddr, Vec<u8>)>;

impl Switch {
    pub(super) fn new(epoch: u32, polled: bool) -> Self {
        let poll_us = if polled { 60_000 } else { 0 };
        Self {
            epoch,
            poll_us,
            room: 1_000,
            tasks: 0,
            slots: BTreeMap::new(),
            generations: epoch << 16,
            given: 0,
            done: Vec::new(),
        }
    }

    pub(super) fn started_anew(&self, polled: bool) -> Self {
        Self::new(self.epoch + 3, polled)
    }

    pub(super) fn forget_idle(&mut self) {
        self.slots.retain(|_, slot| !matches!(slot.has, Has::Free { .. }));
    }

    pub(super) fn assigned(&self, from: SocketAddr) -> usize {
        self.slots.values().filter(|slot| slot.address == from && matches!(slot.has, Has::Task(_))).count()
    }

    pub(super) fn is_polled(&self) -> bool {
        self.poll_us > 0
    }

    pub(super) fn handle(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8]) -> Out {
        let answers = match parse(datagram) {
            Ok(Packet::Register(request)) => self.register(now, from, request),
            Ok(Packet::Retrieve(fixed, waits)) => self.retrieve(now, from, fixed, waits),
            Ok(Packet::Keepalive(fixed, waits)) => self.keepalive(now, from, fixed, waits),
            Ok(Packet::Release(fixed, leaves)) => self.release(now, from, fixed, leaves),
            other => panic!("an executor that does not drain sends no {other:?}"),
        };
        answers.into_iter().map(|answer| (from, answer)).collect()
    }

    /// Checks for silence. Keeps slots without a wait or task, so that dropping them repairs nothing.
    pub(super) fn tick(&mut self, now: Nanos) -> Out {
        for slot in self.slots.values_mut() {
            match slot.has {
                Has::Task(_) if now >= slot.heard + LEASE => {
                    slot.has = Has::Free { spent: true };
                    self.tasks += 1;
                }
                Has::Wait if now >= slot.heard + LEASE / 2 => slot.has = Has::Free { spent: false },
                _ => {}
            }
        }
        let mut out = Vec::new();
        while let Some(number) = self.slots.iter().find(|(_, slot)| slot.has == Has::Wait).map(|(&number, _)| number) {
            let Some(given) = self.give(now, number) else { break };
            out.push((self.slots[&number].address, assign(self.epoch, &[given])));
        }
        out
    }

    fn register(&mut self, now: Nanos, from: SocketAddr, request: &Register) -> Vec<Vec<u8>> {
        let executor = request.executor.get();
        let window = now / COOKIE;
        let taken = [window, window.saturating_sub(1)].map(|window| self.cookie(executor, from, window));
        if !taken.contains(&request.cookie.get()) {
            let fresh = Cookie::new(self.epoch, request.header.sequence.get());
            return vec![counting(&Cookie { identity: request.executor, cookie: taken[0].into(), ..fresh }, 0)];
        }
        let registration = request.header.sequence.get();
        let first = request.first.get();
        let names: Vec<_> = (first..first + u32::from(request.header.count))
            .map_while(|local| self.name(now, from, executor, local, registration))
            .collect();
        vec![answer_with(request, self.epoch, &names, LEASE, self.poll_us)]
    }

    fn cookie(&self, executor: u64, from: SocketAddr, window: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.epoch, executor, from, window).hash(&mut hasher);
        hasher.finish()
    }

    /// A local slot's number and generation; `None` if there is no room, or the registration is too old.
    fn name(
        &mut self,
        now: Nanos,
        address: SocketAddr,
        executor: u64,
        local: u32,
        registration: u32,
    ) -> Option<(u32, u32)> {
        let known = self.slots.iter().find(|(_, slot)| (slot.executor, slot.local) == (executor, local));
        let number = match known {
            Some((&number, slot)) if slot.registration == registration => return Some((number, slot.generation)),
            Some((_, slot)) if slot.registration > registration => return None,
            Some((&number, slot)) => {
                self.tasks += u32::from(matches!(slot.has, Has::Task(_)));
                number
            }
            None => (1..=self.room).find(|number| !self.slots.contains_key(number))?,
        };
        self.generations += 1;
        let (generation, has) = (self.generations, Has::Free { spent: true });
        let (sequence, counter, heard) = (0, 0, now);
        let slot = Slot { executor, local, generation, registration, sequence, counter, address, heard, has };
        self.slots.insert(number, slot);
        Some((number, generation))
    }

    /// The slot that a record names, if it has this address.
    fn named(&mut self, from: SocketAddr, wait: &Wait) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(&wait.slot.get())?;
        (slot.generation == wait.generation.get() && slot.address == from).then_some(slot)
    }

    fn keepalive(&mut self, now: Nanos, from: SocketAddr, fixed: &Keepalive, waits: &[Wait]) -> Vec<Vec<u8>> {
        let counter = fixed.counter.get();
        if fixed.header.epoch.get() != self.epoch {
            return vec![reset(self.epoch, counter, &[])];
        }
        let mut voids = Vec::new();
        for wait in waits {
            match self.named(from, wait) {
                None => voids.push(numbers(wait)),
                Some(slot) if counter <= slot.counter => {}
                Some(slot) => {
                    slot.counter = counter;
                    slot.heard = if slot.sequence == wait.sequence.get() { now } else { slot.heard };
                }
            }
        }
        self.void(counter, &voids)
    }

    fn void(&self, counter: u64, voids: &[(u32, u32, u32)]) -> Vec<Vec<u8>> {
        let packet = || reset(self.epoch, counter, voids);
        (!voids.is_empty()).then(packet).into_iter().collect()
    }

    fn retrieve(&mut self, now: Nanos, from: SocketAddr, fixed: &Retrieve, waits: &[Wait]) -> Vec<Vec<u8>> {
        let counter = fixed.counter.get();
        if fixed.header.epoch.get() != self.epoch {
            return vec![reset(self.epoch, counter, &[])];
        }
        let (mut voids, mut given, mut nothing) = (Vec::new(), Vec::new(), Vec::new());
        for wait in waits {
            match self.named(from, wait) {
                None => voids.push(numbers(wait)),
                Some(slot) if counter <= slot.counter => {}
                Some(slot) => {
                    slot.counter = counter;
                    if fixed.ahead != 0 && !self.is_polled() {
                        match self.wait(now, wait) {
                            None => voids.push(numbers(wait)),
                            Some(Some(task)) => given.push(task),
                            Some(None) => nothing.extend(self.is_not_parked(wait).then(|| numbers(wait))),
                        }
                    } else if self.is_polled() {
                        let task = self.poll(now, wait);
                        given.extend(task);
                    } else if let Some(task) = self.wait(now, wait) {
                        given.extend(task);
                    } else {
                        voids.push(numbers(wait));
                    }
                }
            }
        }
        let mut answers = self.void(counter, &voids);
        if !given.is_empty() {
            answers.push(packet(&Assign::new(self.epoch, fixed.header.sequence.get()), &given));
        } else if !nothing.is_empty() {
            let waits: Vec<_> = nothing.into_iter().map(wait).collect();
            answers.push(packet(&NoOp::new(self.epoch, fixed.header.sequence.get()), &waits));
        } else if self.is_polled() && answers.is_empty() {
            answers.push(no_op(self.epoch, &waits.iter().map(numbers).collect::<Vec<_>>()));
        }
        answers
    }

    /// Unparks a prefetch wait that got no task. Returns whether the wait is current.
    fn is_not_parked(&mut self, wait: &Wait) -> bool {
        let slot = self.slots.get_mut(&wait.slot.get()).filter(|slot| slot.sequence == wait.sequence.get());
        slot.is_some_and(|slot| {
            slot.has = Has::Free { spent: false };
            true
        })
    }

    fn release(&mut self, now: Nanos, from: SocketAddr, fixed: &Release, leaves: &[Leave]) -> Vec<Vec<u8>> {
        let counter = fixed.counter.get();
        if fixed.header.epoch.get() != self.epoch {
            return vec![reset(self.epoch, counter, &[])];
        }
        let mut done = Vec::new();
        for leave in leaves {
            if self.leave(now, from, counter, leave) {
                done.push((leave.slot.get(), leave.generation.get()));
            }
        }
        if done.is_empty() { Vec::new() } else { vec![released(self.epoch, counter, &done)] }
    }

    fn leave(&mut self, now: Nanos, from: SocketAddr, counter: u64, leave: &Leave) -> bool {
        let number = leave.slot.get();
        let known = self.slots.get_mut(&number).filter(|slot| slot.generation == leave.generation.get());
        let Some(slot) = known else { return true };
        let later = leave.sequence.get().wrapping_sub(slot.sequence) as i32;
        if slot.address != from || counter <= slot.counter {
            return false;
        }
        slot.counter = counter;
        if later < 0 {
            return false;
        }
        let is_returned = later == 0 && leave.done != u8::from(LeaveHow::Done) && matches!(slot.has, Has::Task(_));
        self.tasks += u32::from(is_returned);
        if let (Has::Task(given), false) = (slot.has, is_returned) {
            self.done.push((given.token.get(), given.submission.get()));
        }
        if leave.done == u8::from(LeaveHow::Stays) {
            (slot.sequence, slot.heard, slot.has) = (leave.sequence.get(), now, Has::Free { spent: true });
        } else {
            self.slots.remove(&number);
        }
        true
    }

    /// Assigns a task to a polling slot without keeping a record.
    fn poll(&mut self, now: Nanos, wait: &Wait) -> Option<Assignment> {
        let slot = self.slots.get_mut(&wait.slot.get())?;
        (slot.sequence, slot.heard, slot.has) = (wait.sequence.get(), now, Has::Wait);
        let given = self.give(now, wait.slot.get());
        self.slots.get_mut(&wait.slot.get())?.has = Has::Free { spent: false };
        given
    }

    /// Accepts a wait and returns its task, if any; `None` if its slot must register again.
    fn wait(&mut self, now: Nanos, wait: &Wait) -> Option<Option<Assignment>> {
        let slot = self.slots.get_mut(&wait.slot.get())?;
        let ahead = wait.sequence.get().wrapping_sub(slot.sequence) as i32;
        match slot.has {
            _ if ahead < 0 => return Some(None),
            Has::Free { spent: true } if ahead == 0 => return None,
            Has::Task(given) if ahead == 0 => return Some(Some(given)),
            Has::Task(given) => {
                self.done.push((given.token.get(), given.submission.get()));
                (slot.sequence, slot.heard, slot.has) = (wait.sequence.get(), now, Has::Wait);
            }
            _ => (slot.sequence, slot.heard, slot.has) = (wait.sequence.get(), now, Has::Wait),
        }
        Some(self.give(now, wait.slot.get()))
    }

    fn give(&mut self, now: Nanos, number: u32) -> Option<Assignment> {
        let slot = self.slots.get_mut(&number)?;
        if self.tasks == 0 || slot.has != Has::Wait {
            return None;
        }
        self.tasks -= 1;
        self.given += 1;
        let mut given = assignment(0, slot.generation, slot.sequence, 0);
        (given.slot, given.submission, given.token) = (number.into(), self.given.into(), u64::from(self.epoch).into());
        given.task.tid = given.submission; // so that a run reports it
        (slot.has, slot.heard) = (Has::Task(given), now);
        Some(given)
    }
}
