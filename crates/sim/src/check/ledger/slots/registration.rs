//! How slots come and go: REGISTER and RELEASE.

use super::super::super::rules::{Checked, holds};
use super::super::{Ledger, Name, Taken, given, name_of};
use super::{Slot, State};
use midflight_dataplane::Verdict;
use midflight_wire::{Leave, Packet, Reason, Register, Release, SlotName};
use std::net::SocketAddr;

impl Ledger {
    pub(in super::super) fn register(
        &mut self,
        taken: &Taken<'_>,
        register: &Register,
        answers: &[(SocketAddr, Packet<'_>)],
    ) -> Checked<Verdict> {
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
        self.expected.reasons[Verdict::SlotsFull as usize] += u64::from(missing);
        let full = self.slots.registered() == self.slots.bound;
        holds!(T7, missing == 0 || full, "{missing} slots find no room where there is some");
        let reason = if missing > 0 { Reason::SlotsFull } else { Reason::None };
        holds!(T7, registered.reason == reason as u8, "reason {} with {missing} slots missing", registered.reason);
        let mut given = given(&answers[1..]);
        for task in given_back {
            self.requeue(taken.now, task, &mut given)?;
        }
        holds!(T2, given.is_empty(), "a REGISTER lets tasks be assigned that nobody gave back: {given:?}");
        Ok(Verdict::Ok)
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
        let slots = &mut self.slots;
        holds!(T9, known.is_none_or(|known| known == number), "slot {known:?} of {owner:?} is called {number}");
        holds!(T12, number >= 1 && number <= slots.bound, "slot {number} of {}", slots.bound);
        slots.fresh = slots.fresh.max(number);
        let (from, resources) = (taken.from, register.resources);
        if known.is_none() {
            holds!(T2, !slots.slots.contains_key(&number), "slot {number} has two owners");
            slots.owners.insert(owner, number);
        } else if let Some(slot) = slots.slots.get_mut(&number) {
            slot.heard = taken.now;
            if registration.wrapping_sub(slot.registration) as i32 <= 0 {
                let same = slot.generation == generation;
                holds!(T2, same, "a REGISTER that is not later changes the generation of slot {number}");
                return Ok(());
            }
            holds!(T2, slot.generation != generation, "slot {number} keeps its generation though it is renewed");
            if let State::Assigned(assignment) = slot.state {
                self.expected.returned += 1;
                self.seen.returned.push(from);
                given_back.push(name_of(&assignment));
            }
        }
        let slot = Slot {
            owner,
            registration,
            generation,
            sequence: 0,
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
        if release.header.epoch.get() != self.epoch.unwrap_or(0) {
            return self.foreign(taken, answers);
        }
        let (mut left, mut given_back) = (Vec::new(), Vec::new());
        for leave in leaves {
            if self.leave(taken, leave, &mut given_back) {
                left.push((leave.slot.get(), leave.generation.get()));
            }
        }
        let named = Self::named(taken, answers)?;
        holds!(T9, named == left, "slots {named:?} are said to have left, not {left:?}");
        let mut given = given(answers);
        for task in given_back {
            self.requeue(taken.now, task, &mut given)?;
        }
        holds!(T2, given.is_empty(), "a RELEASE lets tasks be assigned that nobody gave back: {given:?}");
        Ok(Verdict::Ok)
    }

    /// One slot of a RELEASE; whether it is registered no more.
    fn leave(&mut self, taken: &Taken<'_>, leave: &Leave, given_back: &mut Vec<Name>) -> bool {
        let slot = match self.slots.hear(taken, leave.slot.get(), leave.generation.get()) {
            Ok(slot) => slot,
            Err(unknown) => {
                self.expected.reasons[Verdict::SpoofedSlot as usize] += u64::from(!unknown);
                return unknown;
            }
        };
        let ahead = leave.sequence.get().wrapping_sub(slot.sequence) as i32;
        if ahead < 0 {
            self.expected.reasons[Verdict::StaleWait as usize] += 1;
            return false;
        }
        if let State::Assigned(assignment) = slot.state {
            if leave.done != 0 || ahead > 0 {
                self.queue.done(name_of(&assignment));
                self.expected.completed += 1;
            } else {
                self.expected.returned += 1;
                self.seen.returned.push(taken.from);
                given_back.push(name_of(&assignment));
            }
        }
        self.slots.vacate(leave.slot.get());
        true
    }
}
