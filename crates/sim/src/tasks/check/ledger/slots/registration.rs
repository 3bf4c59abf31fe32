//! How slots come and go: REGISTER and RELEASE.

use super::super::super::rules::*;
use super::super::{Ledger, Name, Taken, given, is_within_share, source};
use super::{Slot, State};
use crate::check::{Checked, holds};
use midflight_dataplane::Verdict;
use midflight_endpoint::serial;
use midflight_wire::{Leave, Packet, Reason, Register, Release, SlotName};
use std::net::SocketAddr;

impl Ledger {
    pub(in super::super) fn register(
        &mut self,
        taken: &Taken<'_>,
        register: &Register,
        answers: &[(SocketAddr, Packet<'_>)],
    ) -> Checked<Verdict> {
        if !self.has_cookie(taken, &register.header, register.executor.get(), register.cookie.get(), answers)? {
            return Ok(Verdict::NoCookie);
        }
        let Some((to, Packet::Registered(registered, names))) = answers.first() else {
            holds!(T9, false, "a REGISTER is answered by {answers:?}");
            unreachable!("the rule has just been broken");
        };
        holds!(T9, *to == taken.from, "a REGISTER of {} is answered to {to}", taken.from);
        let told = (registered.executor, registered.first, registered.header.sequence);
        let asked = (register.executor, register.first, register.header.sequence);
        holds!(T9, told == asked, "another REGISTER is answered: {registered:?}");
        let lease_ms = self.config.lease_ns / 1_000_000;
        let told_ms = u64::from(registered.lease_ms.get());
        holds!(T10, told_ms == lease_ms, "a lease of {told_ms} ms is told where it is {lease_ms} ms");
        let mut given_back = Vec::new();
        for (k, name) in (0..).zip(*names) {
            self.renew(taken, register, register.first.get() + k, name, &mut given_back)?;
        }
        let missing = u32::from(register.header.count) - names.len() as u32;
        let next = (register.executor.get(), register.first.get() + names.len() as u32);
        let refusal = if missing > 0 { self.refusal(taken, next, register.header.sequence.get()) } else { None };
        holds!(T7, missing == 0 || refusal.is_some(), "{missing} slots find no room where there is some");
        let (verdict, reason) = refusal.unwrap_or((Verdict::Ok, Reason::None));
        self.expected.reasons[verdict as usize] += u64::from(missing);
        holds!(T7, registered.reason == reason as u8, "reason {} where it is {reason:?}", registered.reason);
        let mut given = given(&answers[1..]);
        for task in given_back {
            self.requeue(taken.now, task, &mut given)?;
        }
        holds!(T2, given.is_empty(), "a REGISTER lets tasks be assigned that nobody gave back: {given:?}");
        Ok(Verdict::Ok)
    }

    /// Why an executor's slot is not registered by this REGISTER: it is older than the present one, or there is no room, or none for
    /// its source (T14).
    fn refusal(&self, taken: &Taken<'_>, owner: (u64, u32), registration: u32) -> Option<(Verdict, Reason)> {
        let slots = &self.slots;
        if let Some(slot) = slots.owners.get(&owner).and_then(|number| slots.slots.get(number)) {
            let older = serial::distance(registration, slot.registration) < 0;
            return older.then_some((Verdict::StaleRegister, Reason::TooOld));
        }
        let free = (slots.bound - slots.registered()) as usize;
        let held = slots.slots.values().filter(|slot| source(slot.address) == source(taken.from)).count();
        match free {
            0 => Some((Verdict::SlotsFull, Reason::SlotsFull)),
            _ if !is_within_share(held, free) => Some((Verdict::SlotsShare, Reason::Share)),
            _ => None,
        }
    }

    /// One slot of a REGISTER. A new generation ends what the slot had; a repeat changes nothing.
    fn renew(
        &mut self,
        taken: &Taken<'_>,
        register: &Register,
        local: u32,
        name: &SlotName,
        given_back: &mut Vec<Name>,
    ) -> Checked {
        let (number, generation) = (name.slot.get(), name.generation.get());
        let registration = register.header.sequence.get();
        let owner = (register.executor.get(), local);
        let known = self.slots.owners.get(&owner).copied();
        let refusal = self.refusal(taken, owner, registration);
        holds!(T14, refusal.is_none(), "slot {local} is registered, where it is refused: {refusal:?}");
        let slots = &mut self.slots;
        holds!(T9, known.is_none_or(|known| known == number), "slot {known:?} of {owner:?} is called {number}");
        holds!(T12, number >= 1 && number <= slots.bound, "slot {number} of {}", slots.bound);
        slots.fresh = slots.fresh.max(number);
        let (from, resources) = (taken.from, register.resources);
        if known.is_none() {
            holds!(T2, !slots.slots.contains_key(&number), "slot {number} has two owners");
            slots.owners.insert(owner, number);
        } else if let Some(slot) = slots.slots.get_mut(&number) {
            if registration == slot.registration {
                let same = slot.generation == generation;
                holds!(T2, same, "a REGISTER that is repeated changes the generation of slot {number}");
                return Ok(());
            }
            holds!(T2, slot.generation != generation, "slot {number} keeps its generation though it is renewed");
            if let State::Assigned(task, _) = slot.state {
                self.expected.returned += 1;
                self.seen.returned.push(from);
                given_back.push(task);
            }
        }
        let slot = Slot {
            owner,
            registration,
            generation,
            sequence: 0,
            counter: 0,
            address: from,
            resources,
            heard: taken.now,
            spent: true,
            state: State::Free,
        };
        slots.slots.insert(number, slot);
        Ok(())
    }

    pub(in super::super) fn release(
        &mut self,
        taken: &Taken<'_>,
        release: &Release,
        leaves: &[Leave],
        answers: &[(SocketAddr, Packet<'_>)],
    ) -> Checked<Verdict> {
        let counter = release.counter.get();
        if release.header.epoch.get() != self.epoch.unwrap_or(0) {
            return self.foreign(taken, counter, answers);
        }
        let (mut left, mut given_back) = (Vec::new(), Vec::new());
        for leave in leaves {
            if self.leave(taken, leave, counter, &mut given_back) {
                left.push((leave.slot.get(), leave.generation.get()));
            }
        }
        Self::have_left(taken, counter, &left, answers)?;
        let mut given = given(answers);
        for task in given_back {
            self.requeue(taken.now, task, &mut given)?;
        }
        holds!(T2, given.is_empty(), "a RELEASE lets tasks be assigned that nobody gave back: {given:?}");
        Ok(Verdict::Ok)
    }

    /// RELEASED names these slots, and repeats the counter of what it answers (T13). Where there are none it is not sent.
    fn have_left(
        taken: &Taken<'_>,
        counter: u64,
        left: &[(u32, u32)],
        answers: &[(SocketAddr, Packet<'_>)],
    ) -> Checked {
        let mut named = None;
        for (to, packet) in answers {
            if let Packet::Released(released, names) = packet {
                holds!(T12, named.is_none() && *to == taken.from, "two lists of slots for one packet");
                holds!(T13, released.counter.get() == counter, "packet {counter} is answered by {released:?}");
                named = Some(names.iter().map(|name| (name.slot.get(), name.generation.get())).collect::<Vec<_>>());
            }
        }
        let named = named.unwrap_or_default();
        holds!(T9, named == left, "slots {named:?} are said to have left, not {left:?}");
        Ok(())
    }

    /// One slot of a RELEASE; whether it is registered no more.
    fn leave(&mut self, taken: &Taken<'_>, leave: &Leave, counter: u64, given_back: &mut Vec<Name>) -> bool {
        let name = SlotName { slot: leave.slot, generation: leave.generation };
        let slot = match self.slots.named(taken, &name, counter) {
            Ok(slot) => slot,
            Err(Verdict::ForeignSlot) => return true,
            Err(wrong) => {
                self.expected.reasons[wrong as usize] += 1;
                return false;
            }
        };
        let ahead = serial::distance(leave.sequence.get(), slot.sequence);
        if ahead < 0 {
            self.expected.reasons[Verdict::StaleWait as usize] += 1;
            return false;
        }
        if let State::Assigned(task, _) = slot.state {
            if leave.done != 0 || ahead > 0 {
                self.queue.done(task);
                self.expected.completed += 1;
            } else {
                self.expected.returned += 1;
                self.seen.returned.push(taken.from);
                given_back.push(task);
            }
        }
        self.slots.vacate(leave.slot.get());
        true
    }
}
