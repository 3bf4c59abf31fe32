//! What an executor says: REGISTER, RETRIEVE, KEEPALIVE, RELEASE; and what its silence says.

use super::answers::Answers;
use super::queue::Task;
use super::{Model, is_later};
use crate::Verdict;
use midflight_wire::{
    Header, Keepalive, Leave, Operation, Reason, Register, Registered, Release, Released, Reset, Retrieve, SlotName,
    Wait,
};
use std::net::SocketAddr;

/// A registered executor slot.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) executor: u64,
    /// The executor's own number of it.
    pub(super) local: u32,
    /// The sequence of the REGISTER that made it.
    pub(super) registration: u32,
    pub(super) generation: u32,
    pub(super) address: SocketAddr,
    pub(super) resources: u8,
    /// Of its last wait.
    pub(super) sequence: u32,
    pub(super) heard_ns: u64,
    pub(super) state: State,
}

/// What a registered slot does.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// Neither waits nor works. `may_repeat`: its last wait was taken out by silence, and may come again.
    Free { may_repeat: bool },
    /// Is parked.
    Waiting,
    /// Has a task.
    Assigned(Box<Task>),
}

impl Slot {
    pub(super) fn task(&self) -> Option<&Task> {
        match &self.state {
            State::Assigned(task) => Some(task),
            _ => None,
        }
    }
}

/// Whom a record's slot and generation name.
enum Named {
    /// A slot of the sender.
    Slot,
    /// Nobody.
    Unknown,
    /// A slot of another.
    Spoofed,
}

impl Model {
    pub(super) fn register(&mut self, from: SocketAddr, register: &Register, answers: &mut Answers) -> Verdict {
        let mut names = Vec::new();
        let mut returned = Vec::new();
        for offset in 0..u32::from(register.header.count) {
            let local = register.first.get().wrapping_add(offset);
            match self.register_slot(from, register, local, &mut returned) {
                Some(name) => names.push(name),
                None => break,
            }
        }
        let missing = usize::from(register.header.count) - names.len();
        self.count(Verdict::SlotsFull, missing);
        let fixed = Registered {
            header: answers.header(Operation::Registered, &register.header),
            executor: register.executor,
            first: register.first,
            lease_ms: ((self.config.lease_ns / 1_000_000) as u32).into(),
            seen: from.into(),
            reason: if missing == 0 { Reason::None } else { Reason::SlotsFull } as u8,
            reserved: 0,
            poll_us: 0.into(),
        };
        answers.answer(from, &fixed, &names, names.len() as u8);
        self.requeue_all(returned, answers);
        Verdict::Ok
    }

    fn register_slot(
        &mut self,
        from: SocketAddr,
        register: &Register,
        local: u32,
        returned: &mut Vec<Task>,
    ) -> Option<SlotName> {
        let executor = register.executor.get();
        let registration = register.header.sequence.get();
        let known = self.slots.iter().find(|(_, slot)| slot.executor == executor && slot.local == local);
        let known = known.map(|(&number, slot)| (number, slot.clone()));
        if let Some((number, slot)) = &known
            && registration.wrapping_sub(slot.registration).cast_signed() <= 0
        {
            let unchanged = SlotName { slot: (*number).into(), generation: slot.generation.into() };
            self.hear(*number);
            self.choose(|_| Ok(unchanged));
            return Some(unchanged);
        }
        if known.is_none() && self.slots.len() == self.config.slots as usize {
            return None;
        }
        let name = self.choose(|model| model.draw(known.as_ref().map(|(number, slot)| (*number, slot.generation))));
        if let Some((number, _)) = known {
            returned.extend(self.vacate(number));
        }
        let slot = Slot {
            executor,
            local,
            registration,
            generation: name.generation.get(),
            address: from,
            resources: register.resources,
            sequence: 0,
            heard_ns: self.now,
            state: State::Free { may_repeat: false },
        };
        self.slots.insert(name.slot.get(), slot);
        self.known_slots.insert(name.slot.get());
        Some(name)
    }

    /// The name that a registration gets: the engine's next choice, which must then be what `draw` finds right,
    /// or the model's own.
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

    /// A slot number and a new generation; for a slot that is `known` by (number, generation) the same number.
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

    /// Forgets a slot; a task that it held is given back.
    fn vacate(&mut self, number: u32) -> Option<Task> {
        self.parked.retain(|&other| other != number);
        match self.slots.remove(&number)?.state {
            State::Assigned(task) => {
                self.stats.returned += 1;
                Some(*task)
            }
            _ => None,
        }
    }

    /// Only when a packet's last record is done: what it gives back never goes to a slot that leaves in it.
    fn requeue_all(&mut self, returned: Vec<Task>, answers: &mut Answers) {
        for task in returned {
            self.requeue(task, answers);
        }
    }

    pub(super) fn retrieve(
        &mut self,
        from: SocketAddr,
        retrieve: &Retrieve,
        waits: &[Wait],
        answers: &mut Answers,
    ) -> Verdict {
        if self.is_foreign(from, &retrieve.header, answers) {
            return Verdict::ForeignEpoch;
        }
        let mut void = Vec::new();
        for wait in waits {
            let name = SlotName { slot: wait.slot, generation: wait.generation };
            match self.whose(from, &name) {
                Named::Unknown => {
                    self.count(Verdict::ForeignSlot, 1);
                    void.push(name);
                }
                Named::Spoofed => self.count(Verdict::SpoofedSlot, 1),
                Named::Slot => {
                    let is_void = self.wait(wait.slot.get(), wait.sequence.get(), retrieve.resources, answers);
                    if is_void {
                        void.push(name);
                    }
                }
            }
        }
        self.say_reset(from, &void, answers);
        Verdict::Ok
    }

    /// One row of the document's table. Says whether the executor must register the slot anew.
    fn wait(&mut self, number: u32, sequence: u32, resources: u8, answers: &mut Answers) -> bool {
        let slot = self.hear(number);
        let is_larger = is_later(sequence, slot.sequence);
        if !is_larger && sequence != slot.sequence {
            self.count(Verdict::StaleWait, 1);
            return false;
        }
        match slot.state.clone() {
            State::Free { may_repeat } if !is_larger && !may_repeat => {
                self.count(Verdict::StaleWait, 1);
                return true;
            }
            State::Waiting if !is_larger => self.count(Verdict::RepeatedWait, 1),
            State::Assigned(_) if !is_larger => {
                self.count(Verdict::RepeatedWait, 1);
                self.say_assignment(number, answers);
            }
            state => {
                match state {
                    State::Assigned(_) => self.stats.completed += 1,
                    State::Free { .. } if !is_larger => self.count(Verdict::RepeatedWait, 1),
                    _ => {}
                }
                let slot = self.hear(number);
                let keeps_place = matches!(slot.state, State::Waiting) && slot.resources == resources;
                slot.state = State::Waiting;
                slot.sequence = sequence;
                if is_larger {
                    slot.resources = resources;
                }
                let offered = slot.resources;
                if !keeps_place {
                    self.parked.retain(|&other| other != number);
                    self.parked.push(number);
                }
                if let Some(task) = self.dequeue(offered) {
                    self.assign(number, task, answers);
                }
            }
        }
        false
    }

    pub(super) fn keepalive(
        &mut self,
        from: SocketAddr,
        keepalive: &Keepalive,
        names: &[SlotName],
        answers: &mut Answers,
    ) -> Verdict {
        if self.is_foreign(from, &keepalive.header, answers) {
            return Verdict::ForeignEpoch;
        }
        let mut void = Vec::new();
        for name in names {
            match self.whose(from, name) {
                Named::Unknown => {
                    self.count(Verdict::ForeignSlot, 1);
                    void.push(*name);
                }
                Named::Spoofed => self.count(Verdict::SpoofedSlot, 1),
                Named::Slot => {
                    self.hear(name.slot.get());
                }
            }
        }
        self.say_reset(from, &void, answers);
        Verdict::Ok
    }

    pub(super) fn release(
        &mut self,
        from: SocketAddr,
        release: &Release,
        leaves: &[Leave],
        answers: &mut Answers,
    ) -> Verdict {
        if self.is_foreign(from, &release.header, answers) {
            return Verdict::ForeignEpoch;
        }
        let mut released = Vec::new();
        let mut returned = Vec::new();
        for leave in leaves {
            let name = SlotName { slot: leave.slot, generation: leave.generation };
            let is_gone = match self.whose(from, &name) {
                Named::Unknown => true,
                Named::Spoofed => {
                    self.count(Verdict::SpoofedSlot, 1);
                    false
                }
                Named::Slot => self.leave(leave, &mut returned),
            };
            if is_gone {
                released.push(name);
            }
        }
        if !released.is_empty() {
            let fixed = Released { header: answers.plain_header(Operation::Released) };
            answers.answer(from, &fixed, &released, released.len() as u8);
        }
        self.requeue_all(returned, answers);
        Verdict::Ok
    }

    /// Says whether the slot is released.
    fn leave(&mut self, leave: &Leave, returned: &mut Vec<Task>) -> bool {
        let number = leave.slot.get();
        let slot = self.hear(number);
        let is_larger = is_later(leave.sequence.get(), slot.sequence);
        if !is_larger && leave.sequence.get() != slot.sequence {
            self.count(Verdict::StaleWait, 1);
            return false;
        }
        let is_done = is_larger || leave.done != 0;
        if is_done && matches!(slot.state, State::Assigned(_)) {
            slot.state = State::Free { may_repeat: false };
            self.stats.completed += 1;
        }
        returned.extend(self.vacate(number));
        true
    }

    /// What a tick does with one slot (T10).
    pub(super) fn look_at(&mut self, number: u32, answers: &mut Answers) {
        let now = self.now;
        let lease = self.config.lease_ns;
        let Some(slot) = self.slots.get_mut(&number) else { return };
        let silent = now - slot.heard_ns;
        match slot.state.clone() {
            State::Assigned(task) if silent >= lease => {
                slot.state = State::Free { may_repeat: false };
                self.stats.expired += 1;
                self.requeue(*task, answers);
            }
            State::Waiting if silent >= lease / 2 => {
                slot.state = State::Free { may_repeat: true };
                self.parked.retain(|&other| other != number);
            }
            State::Free { .. } if silent >= self.config.slot_idle_ns => {
                self.slots.remove(&number);
            }
            _ => {}
        }
    }

    /// A packet for a switch that ran here before is answered with RESET without records.
    fn is_foreign(&self, from: SocketAddr, header: &Header, answers: &mut Answers) -> bool {
        if header.epoch.get() == self.epoch {
            return false;
        }
        let reset = Reset { header: answers.plain_header(Operation::Reset) };
        answers.answer_last::<_, SlotName>(from, &reset, &[]);
        true
    }

    fn say_reset(&self, to: SocketAddr, void: &[SlotName], answers: &mut Answers) {
        if !void.is_empty() {
            let reset = Reset { header: answers.plain_header(Operation::Reset) };
            answers.answer_last(to, &reset, void);
        }
    }

    fn whose(&self, from: SocketAddr, name: &SlotName) -> Named {
        match self.slots.get(&name.slot.get()) {
            Some(slot) if slot.generation != name.generation.get() => Named::Unknown,
            Some(slot) if slot.address != from => Named::Spoofed,
            Some(_) => Named::Slot,
            None => Named::Unknown,
        }
    }

    /// A registered slot, which is thereby heard.
    fn hear(&mut self, number: u32) -> &mut Slot {
        let now = self.now;
        let slot = self.slots.get_mut(&number).expect("looked up by whose()");
        slot.heard_ns = now;
        slot
    }
}
