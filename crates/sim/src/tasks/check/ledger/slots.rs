//! The slots of a switch, and what executors say of them: RETRIEVE, KEEPALIVE, and silence; coming and going is in
//! `registration`.

mod registration;

use super::super::rules::*;
use super::{Ledger, Name, Taken, given};
use crate::check::{Checked, holds};
use midflight_dataplane::{TasksConfig, Verdict};
use midflight_endpoint::{Nanos, serial};
use midflight_wire::{Assignment, Keepalive, Packet, Retrieve, SlotName, Wait};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Free,
    Waiting,
    Assigned(Name, Assignment),
}

#[derive(Clone, Debug)]
struct Slot {
    owner: (u64, u32),
    registration: u32,
    generation: u32,
    sequence: u32,
    /// The largest of the packets that named it.
    counter: u64,
    address: SocketAddr,
    resources: u8,
    heard: Nanos,
    /// Only a larger sequence may wait (T10).
    spent: bool,
    state: State,
}

#[derive(Debug)]
pub(super) struct Slots {
    lease: Nanos,
    idle: Nanos,
    bound: u32,
    slots: BTreeMap<u32, Slot>,
    owners: HashMap<(u64, u32), u32>,
    /// The highest number that was ever given.
    fresh: u32,
    /// The slot at which the last tick stopped.
    cursor: u32,
}

/// What silence does to a slot of somebody.
pub(super) enum Silence {
    /// It loses its task.
    Costs(Name, SocketAddr),
    /// It waits no more.
    Unparks(SocketAddr),
    IsNothing,
}

/// What a wait asks for.
enum Asked {
    /// Nothing: it is old, or is parked already.
    Nothing,
    /// Its slot is void.
    Void,
    /// A task for these resources, or to be parked.
    Task(u8),
    /// The assignment that it has.
    Again(Assignment),
}

impl Slot {
    /// Its last wait comes again. The same assignment is given again, which says nothing of the first: the lease runs on (T10).
    fn repeat(&mut self, now: Nanos) -> Asked {
        if let State::Assigned(_, assignment) = self.state {
            return Asked::Again(assignment);
        }
        self.heard = now;
        match std::mem::replace(&mut self.state, State::Waiting) {
            State::Free => Asked::Task(self.resources),
            _ => Asked::Nothing,
        }
    }
}

impl Slots {
    pub(super) fn new(config: &TasksConfig) -> Self {
        Self {
            lease: config.lease_ns,
            idle: config.slot_idle_ns,
            bound: config.slots,
            slots: BTreeMap::new(),
            owners: HashMap::new(),
            fresh: 0,
            cursor: 0,
        }
    }

    pub(super) fn registered(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(super) fn waiting(&self) -> u32 {
        self.slots.values().filter(|slot| slot.state == State::Waiting).count() as u32
    }

    pub(super) fn waiting_masks(&self) -> impl Iterator<Item = u8> + Clone {
        self.slots.values().filter(|slot| slot.state == State::Waiting).map(|slot| slot.resources)
    }

    /// Of the slots that wait and may run a task of this mask, the smallest number of resources.
    pub(super) fn fewest_resources(&self, mask: u8) -> Option<u32> {
        self.waiting_masks().filter(|resources| mask & !resources == 0).map(u8::count_ones).min()
    }

    /// A waiting slot is given a task, at its address and as the answer to its wait; its resources.
    pub(super) fn take(&mut self, now: Nanos, to: SocketAddr, task: Name, given: &Assignment) -> Checked<u8> {
        let slot = self.slots.get_mut(&given.slot.get());
        let Some(slot) = slot.filter(|slot| slot.state == State::Waiting) else {
            holds!(T2, false, "a slot that does not wait is given a task: {given:?}");
            unreachable!("the rule has just been broken");
        };
        let wait = (given.generation.get(), given.sequence.get());
        let asked = (slot.generation, slot.sequence);
        holds!(T2, wait == asked, "wait {wait:?} is answered where {asked:?} (generation, sequence) waits: {given:?}");
        holds!(T2, to == slot.address, "a slot of {} is given its task at {to}", slot.address);
        (slot.state, slot.heard) = (State::Assigned(task, *given), now);
        Ok(slot.resources)
    }

    /// The slots that the next tick looks at, in its order.
    pub(super) fn in_tick_order(&mut self) -> Vec<u32> {
        let looked = self.fresh.min(midflight_dataplane::TICK_SLOTS);
        let next = |cursor: u32, fresh: u32| if cursor < fresh { cursor + 1 } else { 1 };
        (0..looked)
            .map(|_| {
                self.cursor = next(self.cursor, self.fresh);
                self.cursor
            })
            .collect()
    }

    /// What silence does to a slot.
    pub(super) fn expire(&mut self, now: Nanos, number: u32) -> Silence {
        let Some(slot) = self.slots.get_mut(&number) else { return Silence::IsNothing };
        let silent = now.saturating_sub(slot.heard);
        match slot.state {
            State::Assigned(task, _) if silent >= self.lease => {
                (slot.spent, slot.state) = (true, State::Free);
                return Silence::Costs(task, slot.address);
            }
            State::Waiting if silent >= self.lease / 2 => {
                slot.state = State::Free;
                return Silence::Unparks(slot.address);
            }
            State::Free if silent >= self.idle => self.vacate(number),
            _ => {}
        }
        Silence::IsNothing
    }

    fn vacate(&mut self, number: u32) {
        if let Some(slot) = self.slots.remove(&number) {
            self.owners.remove(&slot.owner);
        }
    }

    /// The slot that a record of a packet speaks for, whose counter is the packet's from now on; else why it does not.
    fn named(&mut self, taken: &Taken<'_>, name: &SlotName, counter: u64) -> Result<&mut Slot, Verdict> {
        let slot = self.slots.get_mut(&name.slot.get()).filter(|slot| slot.generation == name.generation.get());
        let slot = slot.ok_or(Verdict::ForeignSlot)?;
        if slot.address != taken.from {
            return Err(Verdict::SpoofedSlot);
        }
        if counter <= slot.counter {
            return Err(Verdict::Replayed);
        }
        slot.counter = counter;
        Ok(slot)
    }
}

/// Of a wait: slot, generation, sequence.
type WaitName = (u32, u32, u32);

fn wait_name(wait: &Wait) -> WaitName {
    (wait.slot.get(), wait.generation.get(), wait.sequence.get())
}

fn slot_of(wait: &Wait) -> SlotName {
    SlotName { slot: wait.slot, generation: wait.generation }
}

impl Ledger {
    /// RESET without records: all that the sender has is void. It repeats the counter of what it answers.
    fn foreign(&self, taken: &Taken<'_>, counter: u64, answers: &[(SocketAddr, Packet<'_>)]) -> Checked<Verdict> {
        let right = matches!(answers, [(to, Packet::Reset(reset, []))]
            if *to == taken.from && reset.counter.get() == counter);
        holds!(T9, right, "a packet of a past epoch is answered by {answers:?}");
        Ok(Verdict::ForeignEpoch)
    }

    /// The waits that the RESET among some answers names are these, and it repeats the counter of what it answers (T13).
    fn are_void(taken: &Taken<'_>, counter: u64, voids: &[WaitName], answers: &[(SocketAddr, Packet<'_>)]) -> Checked {
        let mut named = None;
        for (to, packet) in answers {
            if let Packet::Reset(reset, waits) = packet {
                holds!(T12, named.is_none() && *to == taken.from, "two lists of waits for one packet");
                holds!(T13, reset.counter.get() == counter, "packet {counter} is answered by {reset:?}");
                named = Some(waits.iter().map(wait_name).collect::<Vec<_>>());
            }
        }
        let named = named.unwrap_or_default();
        holds!(T9, named == voids, "waits {named:?} are said to be void, not {voids:?}");
        Ok(())
    }

    pub(super) fn retrieve(
        &mut self,
        taken: &Taken<'_>,
        retrieve: &Retrieve,
        waits: &[Wait],
        answers: &[(SocketAddr, Packet<'_>)],
    ) -> Checked<Verdict> {
        if retrieve.header.epoch.get() != self.epoch.unwrap_or(0) {
            return self.foreign(taken, retrieve.counter.get(), answers);
        }
        holds!(T12, answers.len() <= 2, "{} answers to a RETRIEVE", answers.len());
        let mut given: std::collections::VecDeque<_> = given(answers).into();
        let mut voids = Vec::new();
        for wait in waits {
            let wanted = (wait.slot, wait.generation, wait.sequence);
            let answers_it = |(_, a): &(SocketAddr, Assignment)| (a.slot, a.generation, a.sequence) == wanted;
            match self.wait(taken, retrieve, wait) {
                Asked::Nothing => {}
                Asked::Void => voids.push(wait_name(wait)),
                Asked::Again(before) => {
                    let again = given.pop_front();
                    let address = self.clients.address(self.name_of(&before).0).map_or(before.address, Into::into);
                    let before = Assignment { address, ..before };
                    let same = again == Some((taken.from, before));
                    holds!(T2, same, "a repeated wait gets {again:?} where it has {before:?}");
                }
                Asked::Task(resources) => {
                    if let Some((to, assignment)) = given.pop_front_if(|next| answers_it(next)) {
                        self.assign(taken.now, to, &assignment)?;
                    } else {
                        let suits = self.queue.suits([resources].into_iter());
                        holds!(T6, suits.is_none(), "slot {} is parked with a task queued: {suits:?}", wait.slot);
                    }
                }
            }
        }
        holds!(T2, given.is_empty(), "what no wait asked for is assigned: {given:?}");
        Self::are_void(taken, retrieve.counter.get(), &voids, answers)?;
        Ok(Verdict::Ok)
    }

    /// What one wait asks for. Whoever asks with a larger sequence is done with the task before.
    fn wait(&mut self, taken: &Taken<'_>, retrieve: &Retrieve, wait: &Wait) -> Asked {
        let reasons = &mut self.expected.reasons;
        let slot = match self.slots.named(taken, &slot_of(wait), retrieve.counter.get()) {
            Ok(slot) => slot,
            Err(wrong) => {
                reasons[wrong as usize] += 1;
                return if wrong == Verdict::Replayed { Asked::Nothing } else { Asked::Void };
            }
        };
        let ahead = serial::distance(wait.sequence.get(), slot.sequence);
        if ahead < 0 || (ahead == 0 && slot.state == State::Free && slot.spent) {
            reasons[Verdict::StaleWait as usize] += 1;
            return if ahead < 0 { Asked::Nothing } else { Asked::Void };
        }
        if ahead == 0 {
            reasons[Verdict::RepeatedWait as usize] += 1;
            return slot.repeat(taken.now);
        }
        let resources = retrieve.resources;
        (slot.sequence, slot.spent, slot.heard) = (wait.sequence.get(), false, taken.now);
        let before = std::mem::replace(&mut slot.state, State::Waiting);
        let same = slot.resources == resources;
        slot.resources = resources;
        match before {
            State::Waiting if same => Asked::Nothing,
            State::Assigned(task, _) => {
                self.queue.done(task);
                self.expected.completed += 1;
                Asked::Task(resources)
            }
            State::Waiting | State::Free => Asked::Task(resources),
        }
    }

    /// T10: only the wait that was answered renews a lease.
    pub(super) fn keepalive(
        &mut self,
        taken: &Taken<'_>,
        keepalive: &Keepalive,
        waits: &[Wait],
        answers: &[(SocketAddr, Packet<'_>)],
    ) -> Checked<Verdict> {
        let counter = keepalive.counter.get();
        let epoch = keepalive.header.epoch.get();
        if epoch != self.epoch.unwrap_or(0) {
            let foreign = self.foreign(taken, counter, answers)?;
            // In no epoch it asks whether a switch lives here.
            return Ok(if epoch == 0 { Verdict::Ok } else { foreign });
        }
        let mut voids = Vec::new();
        for wait in waits {
            let wrong = match self.slots.named(taken, &slot_of(wait), counter) {
                Ok(slot) if slot.sequence == wait.sequence.get() => {
                    slot.heard = taken.now;
                    continue;
                }
                Ok(_) => Verdict::StaleWait,
                Err(wrong) => wrong,
            };
            self.expected.reasons[wrong as usize] += 1;
            if matches!(wrong, Verdict::ForeignSlot | Verdict::SpoofedSlot) {
                voids.push(wait_name(wait));
            }
        }
        Self::are_void(taken, counter, &voids, answers)?;
        holds!(T12, answers.len() == usize::from(!voids.is_empty()), "a KEEPALIVE is answered by {answers:?}");
        Ok(Verdict::Ok)
    }
}
