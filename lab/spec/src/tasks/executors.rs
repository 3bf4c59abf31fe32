//! The packets of executors: REGISTER, KEEPALIVE, RELEASE.

use super::Model;
use super::answers::Answers;
use super::queue::Task;
use super::shares::Refusal;
use midflight_dataplane::Verdict;
use midflight_endpoint::serial::is_later;
use midflight_wire::tasks::{
    Keepalive, Leave, LeaveHow, Reason, Register, Registered, Release, Released, Reset, RunName, SlotName, Stop, Wait,
};
use midflight_wire::{Header, counting, packet};
use siphasher::sip::SipHasher24;
use std::collections::BTreeSet;
use std::hash::Hasher;
use std::net::SocketAddr;
use zerocopy::IntoBytes;
use zerocopy::byteorder::network_endian::{U32, U64};

#[derive(Clone, Debug)]
pub(super) struct Slot {
    executor: u64,
    local: u32,
    /// Sequence of the REGISTER that created it.
    registration: u32,
    pub(super) generation: u32,
    pub(super) address: SocketAddr,
    pub(super) resources: u8,
    pub(super) places: Vec<u32>,
    /// Of its last wait.
    pub(super) sequence: u32,
    /// The largest counter of the packets that named it.
    counter: u64,
    pub(super) heard_ns: u64,
    pub(super) state: State,
}

#[derive(Clone, Debug)]
pub(super) enum State {
    /// Has no task and is not parked. `may_repeat`: a lease expired while it was parked, or its prefetch wait got
    /// nothing, so the same wait may repeat.
    Free {
        may_repeat: bool,
    },
    Waiting,
    Assigned(Box<Task>),
}

impl Slot {
    pub(super) fn task(&self) -> Option<&Task> {
        match &self.state {
            State::Assigned(task) => Some(task),
            _ => None,
        }
    }

    pub(super) fn task_mut(&mut self) -> Option<&mut Task> {
        match &mut self.state {
            State::Assigned(task) => Some(task),
            _ => None,
        }
    }
}

impl Model {
    pub(super) fn register(&mut self, from: SocketAddr, register: &Register, answers: &mut Answers) -> Verdict {
        if !self.takes_cookie(from, &register.header, register.executor, register.cookie, answers) {
            return Verdict::NoCookie;
        }
        let count = usize::from(register.header.count);
        let mut names = Vec::new();
        let mut returned = Vec::new();
        let mut reason = Reason::None;
        for offset in 0..count {
            let local = register.first.get().wrapping_add(offset as u32);
            match self.register_slot(from, register, local, &mut returned) {
                Ok(name) => names.push(name),
                Err((verdict, why)) => {
                    self.count(verdict, count - offset);
                    reason = why;
                    break;
                }
            }
        }
        let fixed = Registered {
            executor: register.executor,
            first: register.first,
            lease_ms: ((self.config.lease_ns / 1_000_000) as u32).into(),
            seen: from.into(),
            reason: reason as u8,
            ..Registered::new(self.epoch, register.header.sequence.get())
        };
        answers.answer(from, packet(&fixed, &names));
        self.requeue_all(returned, answers);
        Verdict::Ok
    }

    fn register_slot(
        &mut self,
        from: SocketAddr,
        register: &Register,
        local: u32,
        returned: &mut Vec<Task>,
    ) -> Result<SlotName, Refusal> {
        let executor = register.executor.get();
        let registration = register.header.sequence.get();
        let known = self.slots.iter().find(|(_, slot)| slot.executor == executor && slot.local == local);
        let known = known.map(|(&number, slot)| (number, slot.clone()));
        match &known {
            Some((number, slot)) if registration == slot.registration => {
                let unchanged = SlotName { slot: (*number).into(), generation: slot.generation.into() };
                return Ok(self.choose(|_| Ok(unchanged)));
            }
            Some((_, slot)) if !is_later(registration, slot.registration) => {
                return Err((Verdict::StaleRegister, Reason::TooOld));
            }
            Some(_) => {}
            None => self.slot_room(from, register.kind)?,
        }
        let name = self.choose(|model| model.draw(known.as_ref().map(|(number, slot)| (*number, slot.generation))));
        if let Some((number, _)) = known {
            returned.extend(self.vacate(number));
        }
        let places = self.enter_places(register);
        let slot = Slot {
            places,
            executor,
            local,
            registration,
            generation: name.generation.get(),
            address: from,
            resources: register.resources,
            sequence: 0,
            counter: 0,
            heard_ns: self.now,
            state: State::Free { may_repeat: false },
        };
        self.slots.insert(name.slot.get(), slot);
        self.known_slots.insert(name.slot.get());
        Ok(name)
    }

    /// The registration's places that are known or fit.
    fn enter_places(&mut self, register: &Register) -> Vec<u32> {
        let mut known = self.places();
        let mut entered = Vec::new();
        let named = register.places.map(U32::get);
        for (index, place) in named.into_iter().enumerate() {
            if place == 0 || named[..index].contains(&place) {
                continue;
            }
            if known.len() == self.config.places as usize && !known.contains(&place) {
                self.count(Verdict::PlacesFull, 1);
                continue;
            }
            known.insert(place);
            entered.push(place);
        }
        entered
    }

    /// Places in use by slots or waiting tasks.
    pub(super) fn places(&self) -> BTreeSet<u32> {
        let wished = self.queued.iter().filter_map(|task| task.wish).map(|wish| wish.place);
        self.slots.values().flat_map(|slot| slot.places.iter().copied()).chain(wished).collect()
    }

    /// The name for a registration: the engine's next choice if `draw` accepts it, else the model's.
    fn choose(&mut self, draw: impl FnOnce(&mut Self) -> Result<SlotName, String>) -> SlotName {
        match draw(self) {
            Ok(name) => {
                if let Some(choices) = &mut self.choices
                    && !choices.is_empty()
                {
                    choices.remove(0);
                }
                name
            }
            Err(objection) => {
                self.objection.get_or_insert(objection);
                SlotName { slot: u32::MAX.into(), generation: 0.into() }
            }
        }
    }

    fn draw(&mut self, known: Option<(u32, u32)>) -> Result<SlotName, String> {
        let Some(choices) = &self.choices else {
            self.generation += 1;
            let vacant = || (0..self.config.slots).find(|number| !self.slots.contains_key(number)).unwrap_or(0);
            let number = known.map_or_else(vacant, |(number, _)| number);
            return Ok(SlotName { slot: number.into(), generation: self.generation.into() });
        };
        let choice = *choices.first().ok_or("REGISTERED names fewer slots than it should")?;
        let number = choice.slot.get();
        match known {
            Some((same, _)) if number != same => Err(format!("slot {same} became slot {number}")),
            Some((_, old)) if choice.generation.get() == old => Err(format!("slot {number} keeps generation {old}")),
            None if self.slots.contains_key(&number) => Err(format!("slot {number} is not vacant")),
            _ => Ok(choice),
        }
    }

    fn vacate(&mut self, number: u32) -> Option<Task> {
        self.parked.retain(|&other| other != number);
        match self.slots.remove(&number)?.state {
            State::Assigned(task) => {
                self.stats.tasks.returned += 1;
                Some(*task)
            }
            _ => None,
        }
    }

    /// Returns tasks to the queue: parked slots get them in priority order (T3, T4); the rest go to the heads of their
    /// lists, so the last one first. Runs after a packet's last record, so that no returned task goes to a slot that a
    /// later record releases.
    fn requeue_all(&mut self, mut returned: Vec<Task>, answers: &mut Answers) {
        returned.sort_by_key(|task| (task.info.priority, task.accepted_ns));
        let left_over: Vec<_> = returned.into_iter().filter_map(|task| self.offer(task, answers)).collect();
        left_over.into_iter().rev().for_each(|task| self.queue_again(task));
    }

    pub(super) fn keepalive(
        &mut self,
        from: SocketAddr,
        keepalive: &Keepalive,
        waits: &[Wait],
        answers: &mut Answers,
    ) -> Verdict {
        let counter = keepalive.counter;
        if keepalive.header.epoch.get() == 0 {
            return self.answer_question(from, counter, waits, answers);
        }
        if self.is_foreign(from, &keepalive.header, counter, answers) {
            return Verdict::ForeignEpoch;
        }
        let mut void = Vec::new();
        let mut unwanted = Vec::new();
        for wait in waits {
            if !self.names(from, wait, counter, &mut void) {
                continue;
            }
            if self.slots[&wait.slot.get()].sequence == wait.sequence.get() {
                self.hear(wait.slot.get());
                let task = self.slots[&wait.slot.get()].task();
                unwanted.extend(task.filter(|task| self.is_unwanted(task)).map(stop_of));
            } else {
                self.count(Verdict::StaleWait, 1);
            }
        }
        if void.is_empty() && !unwanted.is_empty() {
            self.stats.tasks.stops += unwanted.len() as u64;
            answers.answer(from, packet(&Stop::new(self.epoch, 0), &unwanted));
        }
        self.say_reset(from, counter, &void, answers);
        Verdict::Ok
    }

    pub(super) fn release(
        &mut self,
        from: SocketAddr,
        release: &Release,
        leaves: &[Leave],
        answers: &mut Answers,
    ) -> Verdict {
        let counter = release.counter;
        if self.is_foreign(from, &release.header, counter, answers) {
            return Verdict::ForeignEpoch;
        }
        let mut released = Vec::new();
        let mut returned = Vec::new();
        for leave in leaves {
            let is_gone = match self.name(from, leave.slot.get(), leave.generation.get(), counter.get()) {
                Ok(()) => self.leave(leave, &mut returned),
                Err(Verdict::ForeignSlot) => true,
                Err(wrong) => {
                    self.count(wrong, 1);
                    false
                }
            };
            if is_gone {
                released.push(SlotName { slot: leave.slot, generation: leave.generation });
            }
        }
        if !released.is_empty() {
            answers.answer(from, packet(&Released { counter, ..Released::new(self.epoch, 0) }, &released));
        }
        self.requeue_all(returned, answers);
        Verdict::Ok
    }

    fn leave(&mut self, leave: &Leave, returned: &mut Vec<Task>) -> bool {
        let number = leave.slot.get();
        let sequence = leave.sequence.get();
        let slot = self.slot(number);
        let is_larger = is_later(sequence, slot.sequence);
        if !is_larger && sequence != slot.sequence {
            self.count(Verdict::StaleWait, 1);
            return false;
        }
        let stays = leave.done == LeaveHow::Stays as u8;
        let is_done = is_larger || (leave.done != LeaveHow::Withdrawn as u8 && !stays);
        if is_done && matches!(slot.state, State::Assigned(_)) {
            self.finish(number);
            self.slot(number).state = State::Free { may_repeat: false };
        }
        if stays {
            returned.extend(self.stay(number, sequence));
        } else {
            returned.extend(self.vacate(number));
        }
        true
    }

    /// A slot returns its task unstarted and stays registered. The attempt does not count.
    fn stay(&mut self, number: u32, sequence: u32) -> Option<Task> {
        self.parked.retain(|&other| other != number);
        let slot = self.hear(number);
        slot.sequence = sequence;
        let State::Assigned(mut task) = std::mem::replace(&mut slot.state, State::Free { may_repeat: false }) else {
            return None;
        };
        if task.info.attempt < u8::MAX {
            task.info.attempt -= 1;
        }
        self.stats.tasks.returned += 1;
        Some(*task)
    }

    /// Whether a packet is for an earlier switch at this address. If so, answers with a RESET without records.
    pub(super) fn is_foreign(&self, from: SocketAddr, header: &Header, counter: U64, answers: &mut Answers) -> bool {
        if header.epoch.get() == self.epoch {
            return false;
        }
        answers.answer_last(from, counting(&Reset { counter, ..Reset::new(self.epoch, 0) }, 0));
        true
    }

    /// Answers a KEEPALIVE with epoch 0, which asks whether a switch lives here. If it names a slot of the sender, the
    /// answer confirms that slot.
    fn answer_question(&self, from: SocketAddr, counter: U64, waits: &[Wait], answers: &mut Answers) -> Verdict {
        let is_of = |wait: &Wait| {
            let slot = self.slots.get(&wait.slot.get());
            slot.is_some_and(|slot| slot.generation == wait.generation.get() && slot.address == from)
        };
        let is_known = waits.first().is_some_and(is_of);
        answers.answer_last(from, counting(&Reset { counter, ..Reset::new(self.epoch, is_known.into()) }, 0));
        Verdict::Ok
    }

    pub(super) fn say_reset(&self, to: SocketAddr, counter: U64, void: &[Wait], answers: &mut Answers) {
        if !void.is_empty() {
            answers.answer_last(to, packet(&Reset { counter, ..Reset::new(self.epoch, 0) }, void));
        }
    }

    /// Checks that the sender owns the slot, and stores the packet's counter with it.
    fn name(&mut self, from: SocketAddr, number: u32, generation: u32, counter: u64) -> Result<(), Verdict> {
        match self.slots.get_mut(&number) {
            Some(slot) if slot.generation == generation => {
                if slot.address != from {
                    return Err(Verdict::SpoofedSlot);
                }
                if counter <= slot.counter {
                    return Err(Verdict::Replayed);
                }
                slot.counter = counter;
                Ok(())
            }
            _ => Err(Verdict::ForeignSlot),
        }
    }

    /// [`name`](Self::name) for a wait. A failure is counted, and the wait added to `void` unless the packet was a
    /// copy.
    pub(super) fn names(&mut self, from: SocketAddr, wait: &Wait, counter: U64, void: &mut Vec<Wait>) -> bool {
        let Err(wrong) = self.name(from, wait.slot.get(), wait.generation.get(), counter.get()) else {
            return true;
        };
        self.count(wrong, 1);
        if wrong != Verdict::Replayed {
            void.push(*wait);
        }
        false
    }

    pub(super) fn hear(&mut self, number: u32) -> &mut Slot {
        let now = self.now;
        let slot = self.slot(number);
        slot.heard_ns = now;
        slot
    }

    pub(super) fn slot(&mut self, number: u32) -> &mut Slot {
        self.slots.get_mut(&number).expect("visited up by name()")
    }
}

pub(crate) fn stop_proof(token: u64, submission: u32, index: u8) -> u64 {
    let mut proof = SipHasher24::new_with_keys(token, 3);
    proof.write(RunName::new(0, submission, index).as_bytes());
    proof.finish()
}

fn stop_of(task: &Task) -> RunName {
    RunName::new(stop_proof(task.token, task.submission, task.index), task.submission, task.index)
}
