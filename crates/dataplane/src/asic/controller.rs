//! The controller: the switch's own CPU, which knows the executors' slots. The pipeline's table of slots is its work.

use super::AsicConfig;
use crate::TICK_SLOTS;
use midflight_wire::{Leave, Register, SlotName};
use std::collections::HashMap;
use std::net::SocketAddr;

/// A registered executor slot.
#[derive(Clone, Debug)]
struct Slot {
    executor: u64,
    /// The executor's own number of it.
    local: u32,
    /// The sequence of the REGISTER that made it.
    registration: u32,
    generation: u32,
    address: SocketAddr,
    heard_ns: u64,
}

/// Whom a record's slot and generation name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// A slot of the sender.
    Slot,
    /// Nobody.
    Unknown,
    /// A slot of another.
    Spoofed,
}

#[derive(Clone, Debug)]
pub(super) struct Controller {
    /// By number; the vacant ones among them are in `vacant`.
    slots: Vec<Option<Slot>>,
    vacant: Vec<u32>,
    most: usize,
    by_owner: HashMap<(u64, u32), u32>,
    idle_ns: u64,
    secret: u64,
    /// The slot that the next tick looks at first.
    cursor: usize,
}

impl Controller {
    pub(super) fn new(config: &AsicConfig, secret: u64) -> Self {
        Self {
            slots: Vec::new(),
            vacant: Vec::new(),
            most: config.slots as usize,
            by_owner: HashMap::new(),
            idle_ns: config.slot_idle_ns,
            secret,
            cursor: 0,
        }
    }

    /// Slots registered now.
    pub(super) fn slots(&self) -> u32 {
        self.by_owner.len() as u32
    }

    /// The names of the slots that a REGISTER asks for, as many as there is room for; and how many are missing.
    pub(super) fn register(&mut self, now: u64, from: SocketAddr, register: &Register) -> (Vec<SlotName>, usize) {
        let wanted = u32::from(register.header.count);
        let locals = (0..wanted).map(|offset| register.first.get().wrapping_add(offset));
        let names: Vec<_> = locals.map_while(|local| self.register_slot(now, from, register, local)).collect();
        let missing = wanted as usize - names.len();
        (names, missing)
    }

    /// A registration that is not newer than the slot's changes nothing.
    fn register_slot(&mut self, now: u64, from: SocketAddr, register: &Register, local: u32) -> Option<SlotName> {
        let owner = (register.executor.get(), local);
        let registration = register.header.sequence.get();
        let known = self.by_owner.get(&owner).copied();
        if let Some(number) = known
            && let Some(slot) = &mut self.slots[number as usize]
            && registration.wrapping_sub(slot.registration).cast_signed() <= 0
        {
            slot.heard_ns = now;
            return Some(SlotName { slot: number.into(), generation: slot.generation.into() });
        }
        let number = known.or_else(|| self.vacant_number())?;
        let generation = self.draw();
        let (executor, local) = owner;
        let slot = Slot { executor, local, registration, generation, address: from, heard_ns: now };
        self.slots[number as usize] = Some(slot);
        self.by_owner.insert(owner, number);
        Some(SlotName { slot: number.into(), generation: generation.into() })
    }

    fn vacant_number(&mut self) -> Option<u32> {
        let fresh = (self.slots.len() < self.most).then_some(self.slots.len() as u32);
        let number = self.vacant.pop().or(fresh)?;
        if number as usize == self.slots.len() {
            self.slots.push(None);
        }
        Some(number)
    }

    /// The next generation: splitmix64 of the secret, its upper half.
    fn draw(&mut self) -> u32 {
        self.secret = self.secret.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.secret ^ self.secret >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) >> 32) as u32
    }

    fn whose(&self, from: SocketAddr, name: &SlotName) -> Named {
        match self.slots.get(name.slot.get() as usize) {
            Some(Some(slot)) if slot.generation != name.generation.get() => Named::Unknown,
            Some(Some(slot)) if slot.address != from => Named::Spoofed,
            Some(Some(_)) => Named::Slot,
            Some(None) | None => Named::Unknown,
        }
    }

    /// Whose it is; the sender's own is heard.
    pub(super) fn hear(&mut self, now: u64, from: SocketAddr, name: &SlotName) -> Named {
        let whose = self.whose(from, name);
        if whose == Named::Slot
            && let Some(Some(slot)) = self.slots.get_mut(name.slot.get() as usize)
        {
            slot.heard_ns = now;
        }
        whose
    }

    /// Slots leave. Those that are gone now, and how many were another's. What was assigned to them is their clients' to miss.
    pub(super) fn release(&mut self, from: SocketAddr, leaves: &[Leave]) -> (Vec<SlotName>, usize) {
        let (mut gone, mut spoofed) = (Vec::new(), 0);
        for leave in leaves {
            let name = SlotName { slot: leave.slot, generation: leave.generation };
            match self.whose(from, &name) {
                Named::Spoofed => spoofed += 1,
                Named::Unknown => gone.push(name),
                Named::Slot => {
                    self.vacate(name.slot.get());
                    gone.push(name);
                }
            }
        }
        (gone, spoofed)
    }

    fn vacate(&mut self, number: u32) {
        if let Some(slot) = self.slots.get_mut(number as usize).and_then(Option::take) {
            self.by_owner.remove(&(slot.executor, slot.local));
            self.vacant.push(number);
        }
    }

    pub(super) fn tick(&mut self, now: u64) -> u32 {
        let looks = (TICK_SLOTS as usize).min(self.slots.len());
        for _ in 0..looks {
            self.cursor = (self.cursor + 1) % self.slots.len();
            let slot = &self.slots[self.cursor];
            if slot.as_ref().is_some_and(|slot| now.saturating_sub(slot.heard_ns) >= self.idle_ns) {
                self.vacate(self.cursor as u32);
            }
        }
        looks as u32
    }
}
