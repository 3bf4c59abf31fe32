//! The registers' values, as the controller reads them.

use super::entries::TID;
use super::{Safe, Word};
use crate::{Machine, Register};

/// A level's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// `add_ptr`, in entries.
    pub add: u32,
    /// `retrieve_ptr`, in entries.
    pub retrieve: u32,
    /// Counted entries.
    pub queued: u32,
    /// Tasks ever accepted.
    pub accepted: u32,
    /// The limit of `accepted`: N plus the tasks that have left.
    pub credit: u32,
    /// The lagging copy of `credit`.
    pub credit_seen: u32,
}

impl Safe {
    /// The registers of a level, from 0. Pointers have as many bits as the levels leave them.
    #[must_use]
    pub fn level(&self, machine: &Machine, level: u32) -> Level {
        let r = &self.registers.pointers;
        let read = |register: Register| machine.read(register, level, Word::Low);
        let word = if level.is_multiple_of(2) { Word::Low } else { Word::High };
        let step = self.config.step();
        Level {
            add: read(r.add) / step,
            retrieve: read(r.retrieve) / step,
            queued: machine.read(r.queued[level as usize / 2], 0, word),
            accepted: read(r.accepted),
            credit: read(self.registers.credit),
            credit_seen: read(r.credit_seen),
        }
    }

    /// The TIDs of the tasks of a level, from 0, the head first.
    #[must_use]
    pub fn queue(&self, machine: &Machine, level: u32) -> Vec<u32> {
        let tids = &self.registers.entries[TID];
        let tid = |(register, index)| machine.read(register, index, Word::Low);
        self.cells(machine, level).map(|cell| tid(tids.of(cell))).collect()
    }

    /// The positions of a level's tasks, the head first; at most as many as there are cells.
    pub(super) fn cells(&self, machine: &Machine, level: u32) -> impl Iterator<Item = u32> {
        let (Level { add, retrieve, .. }, step, size) =
            (self.level(machine, level), self.config.step(), self.config.size);
        let number = add.wrapping_sub(retrieve) & (u32::MAX / step);
        (0..number.min(size)).map(move |n| (retrieve.wrapping_add(n) & (size - 1)) * step + level)
    }
}
