//! The executors' slots: the table before the program, and the controller's records.

use super::shares::{Refused, Shares};
use super::{AsicConfig, SlotEntry};
use midflight_dataplane::{TICK_SLOTS, Verdict};
use midflight_wire::tasks::{Reason, Register, SlotName};
use siphasher::sip::SipHasher24;
use std::collections::HashMap;
use std::net::SocketAddr;

#[derive(Clone, Debug)]
struct Slot {
    executor: u64,
    /// The executor's own number for it.
    local: u32,
    /// The sequence of the REGISTER that made it.
    registration: u32,
    generation: u32,
    address: SocketAddr,
    /// The counter of the last packet that named it.
    counter: u64,
    /// The lower half of its executor's counter at registration, or a little less.
    began: u32,
    heard_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// A slot of the sender.
    Slot,
    /// No slot.
    Unknown,
    /// A slot that is registered at another address.
    Spoofed,
    /// A slot of the sender, in a packet that is not later than the last one that named it.
    Replayed,
}

/// Why a REGISTER does not get all of its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The slot has a later registration.
    Stale,
    /// There is no slot for it.
    Refused(Refused),
}

impl Ended {
    pub(super) fn verdict(self) -> Verdict {
        match self {
            Self::Stale => Verdict::StaleRegister,
            Self::Refused(Refused::Full) => Verdict::SlotsFull,
            Self::Refused(Refused::Share) => Verdict::SlotsShare,
        }
    }

    pub(super) fn reason(self) -> Reason {
        match self {
            Self::Stale => Reason::TooOld,
            Self::Refused(Refused::Full) => Reason::SlotsFull,
            Self::Refused(Refused::Share) => Reason::Share,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Slots {
    /// By number; `vacant` has the numbers without a slot.
    slots: Vec<Option<Slot>>,
    vacant: Vec<u32>,
    shares: Shares,
    by_owner: HashMap<(u64, u32), u32>,
    changed: Vec<u32>,
    generations: Generations,
    idle_ns: u64,
    steadiness: Steadiness,
    /// The slot that the next tick visits first.
    cursor: usize,
}

impl Slots {
    pub(super) fn new(config: &AsicConfig, secret: u128) -> Self {
        Self {
            slots: Vec::new(),
            vacant: Vec::new(),
            shares: Shares::new(config.slots),
            by_owner: HashMap::new(),
            changed: Vec::new(),
            generations: Generations::new(secret),
            idle_ns: config.slot_idle_ns,
            steadiness: Steadiness::new(config.lease_ms),
            cursor: 0,
        }
    }

    pub(super) fn registered(&self) -> u32 {
        self.by_owner.len() as u32
    }

    /// The names of the slots that a REGISTER asks for, up to the first one that it does not get.
    pub(super) fn register(
        &mut self,
        now: u64,
        from: SocketAddr,
        register: &Register,
    ) -> (Vec<SlotName>, Option<Ended>) {
        let mut names = Vec::new();
        for offset in 0..u32::from(register.header.count) {
            match self.register_slot(now, from, register, register.first.get().wrapping_add(offset)) {
                Ok(name) => names.push(name),
                Err(ended) => return (names, Some(ended)),
            }
        }
        (names, None)
    }

    /// A repeat of the slot's last registration changes nothing, and is no sign of life: it may be a copy.
    fn register_slot(
        &mut self,
        now: u64,
        from: SocketAddr,
        register: &Register,
        local: u32,
    ) -> Result<SlotName, Ended> {
        let (executor, registration) = (register.executor.get(), register.header.sequence.get());
        let known = self.by_owner.get(&(executor, local)).copied();
        let number = match known.and_then(|number| Some((number, self.slots[number as usize].as_ref()?))) {
            Some((number, slot)) => {
                match registration.wrapping_sub(slot.registration).cast_signed() {
                    ..0 => return Err(Ended::Stale),
                    0 => return Ok(SlotName { slot: number.into(), generation: slot.generation.into() }),
                    1.. => {}
                }
                self.shares.move_one(slot.address, from);
                number
            }
            None => {
                self.shares.take(from).map_err(Ended::Refused)?;
                self.vacant_number()
            }
        };
        let generation = self.generations.next();
        let began = (u32::from(register.counter.get()) << 16).wrapping_sub(1);
        let slot = Slot { executor, local, registration, generation, address: from, counter: 0, began, heard_ns: now };
        self.changed.push(number);
        self.slots[number as usize] = Some(slot);
        self.by_owner.insert((executor, local), number);
        Ok(SlotName { slot: number.into(), generation: generation.into() })
    }

    fn vacant_number(&mut self) -> u32 {
        self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        })
    }

    pub(super) fn changed(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.changed)
    }

    pub(super) fn forget_changes(&mut self) {
        self.changed.clear();
    }

    /// A slot's entry in the pipeline's table, if it is registered.
    pub(super) fn entry(&self, number: u32) -> Option<SlotEntry> {
        let slot = self.slots.get(number as usize)?.as_ref()?;
        Some(SlotEntry { generation: slot.generation, address: slot.address, counter: slot.began })
    }

    /// Whether a name is that of a slot at this address.
    pub(super) fn is_of(&self, from: SocketAddr, name: &SlotName) -> bool {
        let slot = self.slots.get(name.slot.get() as usize).and_then(Option::as_ref);
        slot.is_some_and(|slot| slot.generation == name.generation.get() && slot.address == from)
    }

    /// Resolves a record's name. A slot of the sender counts as heard, if the packet's counter is later than all before.
    pub(super) fn hear(&mut self, now: u64, from: SocketAddr, name: &SlotName, counter: u64) -> Named {
        let Some(Some(slot)) = self.slots.get_mut(name.slot.get() as usize) else { return Named::Unknown };
        if slot.generation != name.generation.get() {
            return Named::Unknown;
        }
        if slot.address != from {
            return Named::Spoofed;
        }
        if counter <= slot.counter {
            return Named::Replayed;
        }
        (slot.counter, slot.heard_ns) = (counter, now);
        Named::Slot
    }

    /// Frees a slot. If it had a task, the task's client notices that no result comes.
    pub(super) fn vacate(&mut self, number: u32) {
        if let Some(slot) = self.slots.get_mut(number as usize).and_then(Option::take) {
            self.by_owner.remove(&(slot.executor, slot.local));
            self.shares.give_back(slot.address);
            self.vacant.push(number);
            self.changed.push(number);
        }
    }

    pub(super) fn gaps(&self) -> u64 {
        self.steadiness.gaps
    }

    pub(super) fn tick(&mut self, now: u64) -> u32 {
        if !self.steadiness.tick(now) {
            return 0;
        }
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

/// Unpredictable numbers, from a count under a key; none is 0. A cookie's message is longer than such a count, so the two share a key.
#[derive(Clone, Debug)]
struct Generations {
    key: SipHasher24,
    drawn: u64,
}

impl Generations {
    fn new(secret: u128) -> Self {
        Self { key: SipHasher24::new_with_key(&secret.to_le_bytes()), drawn: 0 }
    }

    fn next(&mut self) -> u32 {
        self.drawn += 1;
        ((self.key.hash(&self.drawn.to_be_bytes()) >> 32) as u32).max(1)
    }
}

/// Whether the switch has ticked without a gap for a whole lease. After a gap, a peer's silence proves nothing.
#[derive(Clone, Debug)]
struct Steadiness {
    lease_ns: u64,
    ticked_ns: Option<u64>,
    /// Before this time no slot is freed.
    expires_ns: u64,
    gaps: u64,
}

impl Steadiness {
    fn new(lease_ms: u32) -> Self {
        Self { lease_ns: u64::from(lease_ms) * 1_000_000, ticked_ns: None, expires_ns: 0, gaps: 0 }
    }

    fn tick(&mut self, now: u64) -> bool {
        if self.ticked_ns.is_some_and(|ticked| now.saturating_sub(ticked) > self.lease_ns / 3) {
            self.gaps += 1;
            self.expires_ns = now.saturating_add(self.lease_ns);
        }
        self.ticked_ns = Some(now);
        now >= self.expires_ns
    }
}
