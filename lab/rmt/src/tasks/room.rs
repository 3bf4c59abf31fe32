//! Allocates registers for an entry's words in stages with room. A word with more cells than one register may have is split into several
//! *banks*; the highest bits of the entry's number select one.

use crate::{Cell, Compare, Field, Target, Width};

/// What a target's stages have left for entries.
pub(super) struct Room<'t> {
    target: &'t Target,
    /// Of each part of each stage: stateful ALUs and map RAMs.
    stages: Vec<Vec<(u32, u32)>>,
}

impl<'t> Room<'t> {
    /// The whole target.
    pub(super) fn of(target: &'t Target) -> Self {
        Self { target, stages: vec![target.parts(); target.stages] }
    }

    /// Takes these blocks of a stage for a register, from the part with most; false if there are too few.
    pub(super) fn spend(&mut self, stage: usize, blocks: u32) -> bool {
        let fits = |(alus, rams): &&mut (u32, u32)| *alus > 0 && *rams >= blocks;
        let part = self.stages[stage].iter_mut().filter(fits).max_by_key(|(_, rams)| *rams);
        part.map(|part| *part = (part.0 - 1, part.1 - blocks)).is_some()
    }

    /// The first stage, from this one on, with room for this many cells. Without one the last: the program's check then names what exceeds
    /// the budget.
    fn take(&mut self, from: usize, width: Width, index_bits: u32) -> usize {
        let (blocks, last) = (blocks(width, index_bits), self.stages.len() - 1);
        (from..=last).find(|&stage| self.spend(stage, blocks)).unwrap_or(last)
    }

    /// The banks of a word of this width for `cell_bits` bits of cells, none in an earlier stage. Narrow words have as many as wide ones:
    /// two smaller registers fill gaps that a larger one does not fit.
    pub(super) fn banks(&mut self, from: usize, width: Width, cell_bits: u32) -> Vec<Bank> {
        let index_bits = cell_bits.min(self.target.register_index_bits(u32::BITS));
        let take = |bank: Bank| Bank { stage: self.take(from, width, index_bits), ..bank };
        Bank::all(from, index_bits, cell_bits).map(take).collect()
    }
}

/// SRAM blocks of a register of one word per entry, including its spare one.
pub(super) fn blocks(width: Width, index_bits: u32) -> u32 {
    (width.bits() << index_bits).div_ceil(Target::SRAM_BLOCK_BITS) + 1
}

pub(super) fn cell(width: Width) -> Cell {
    match width {
        Width::W8 => Cell::W8,
        Width::W16 => Cell::W16,
        Width::W32 => Cell::W32,
    }
}

/// One register of a word.
#[derive(Clone, Copy)]
pub(super) struct Bank {
    number: u32,
    pub(super) stage: usize,
    /// Bits of an entry's number that are its index here.
    pub(super) index_bits: u32,
    cell_bits: u32,
}

impl Bank {
    /// The banks of a word, all in this stage.
    fn all(stage: usize, index_bits: u32, cell_bits: u32) -> impl Iterator<Item = Self> {
        (0..1 << (cell_bits - index_bits)).map(move |number| Self { number, stage, index_bits, cell_bits })
    }

    /// The same, as few as the target allows.
    pub(super) fn fewest(stage: usize, width: Width, cell_bits: u32, target: &Target) -> impl Iterator<Item = Self> {
        Self::all(stage, cell_bits.min(target.register_index_bits(width.bits())), cell_bits)
    }

    /// Name of the register or its table: the word's, if there is one bank only.
    pub(super) fn name(self, word: &str) -> String {
        if self.is_only() { word.into() } else { format!("{word}, bank {}", self.number) }
    }

    fn is_only(self) -> bool {
        self.cell_bits == self.index_bits
    }

    /// True if the entry is in it; `None`: all are. `entry` has the entry's number in its low bits.
    #[track_caller]
    pub(super) fn has(self, entry: Field) -> Option<Compare> {
        let mask = (1 << self.cell_bits) - (1 << self.index_bits);
        (!self.is_only()).then(|| entry.masked(mask, self.number << self.index_bits))
    }
}
