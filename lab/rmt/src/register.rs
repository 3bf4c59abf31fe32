//! Registers, and the one operation that a packet may do on each: a stateful ALU's.

use crate::field::{At, Field, Operand};
use crate::program::Pipeline;
use std::panic::Location;

/// Contents of a register's cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cell {
    /// One word of 8 bits.
    W8,
    /// One word of 16 bits.
    W16,
    /// One word of 32 bits.
    W32,
    /// Two words of 32 bits, low and high, in one access.
    Pair,
}

impl Cell {
    /// Bits of one word.
    #[must_use]
    pub const fn word_bits(self) -> u32 {
        match self {
            Self::W8 => 8,
            Self::W16 => 16,
            Self::W32 | Self::Pair => 32,
        }
    }

    /// Words per cell.
    #[must_use]
    pub const fn words(self) -> u32 {
        if matches!(self, Self::Pair) { 2 } else { 1 }
    }

    pub(crate) const fn mask(self) -> u32 {
        u32::MAX >> (32 - self.word_bits())
    }
}

/// A register array, as a handle into the program that declared it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub(crate) u16);

#[derive(Clone, Debug)]
pub(crate) struct RegisterInfo {
    pub(crate) name: String,
    pub(crate) pipeline: Pipeline,
    pub(crate) stage: usize,
    pub(crate) cell: Cell,
    pub(crate) cells: u32,
    pub(crate) at: At,
}

/// Selects a cell: a constant, or a slice of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Index {
    /// Always this cell.
    Const(u32),
    /// `bits` bits of `field` from bit `low` on.
    Slice {
        /// The field.
        field: Field,
        /// The lowest bit.
        low: u32,
        /// Number of bits, 0 to 17 or so: 2^bits cells must exist.
        bits: u32,
    },
}

/// The low bits of `field` as an index.
#[must_use]
pub const fn low_bits(field: Field, bits: u32) -> Index {
    Index::Slice { field, low: 0, bits }
}

/// One of the words of a cell; a single one is `Low`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    /// The first.
    Low,
    /// A pair's second.
    High,
}

/// A test of a word, before the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    /// word = value.
    Equal,
    /// word ≠ value.
    NotEqual,
    /// word < value, unsigned.
    Less,
    /// word > value, unsigned.
    Greater,
    /// The sign of `word − value` in 32 bits is negative: serial-number arithmetic's "before". Cells of 32 bits only.
    Before,
    /// The sign of `value − word` in 32 bits is negative: serial-number arithmetic's "after". Cells of 32 bits only.
    After,
}

/// A change of a word. Arithmetic is modulo the word's width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Alu {
    /// No change.
    Keep,
    /// The value.
    Set(Operand),
    /// word + value.
    Add(Operand),
    /// word − value.
    Sub(Operand),
    /// word AND value.
    And(Operand),
    /// word AND NOT value: the value's bits are cleared.
    Clear(Operand),
    /// word OR value.
    Or(Operand),
    /// word XOR value.
    Xor(Operand),
    /// A word of the cell before the access: a pair's words may take each other's value.
    Word(Word),
}

impl Alu {
    /// The word := `value`.
    pub fn set(value: impl Into<Operand>) -> Self {
        Self::Set(value.into())
    }

    /// The word := word + `value`.
    pub fn add(value: impl Into<Operand>) -> Self {
        Self::Add(value.into())
    }

    /// The word := word OR `value`.
    pub fn or(value: impl Into<Operand>) -> Self {
        Self::Or(value.into())
    }

    /// The word := word AND NOT `value`.
    pub fn clear(value: impl Into<Operand>) -> Self {
        Self::Clear(value.into())
    }

    pub(crate) fn operand(self) -> Option<Operand> {
        match self {
            Self::Keep | Self::Word(_) => None,
            Self::Set(v) | Self::Add(v) | Self::Sub(v) | Self::And(v) | Self::Clear(v) | Self::Or(v) | Self::Xor(v) => {
                Some(v)
            }
        }
    }
}

/// What a stateful ALU writes to the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// The word before the access.
    Old(Word),
    /// The word after the access.
    New(Word),
    /// 1 if the test held; 2 if it did not, but the [second](Access::otherwise_if) did; else 0.
    Predicate,
}

/// One arm: changes of the low and the high word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Arm {
    pub(crate) low: Alu,
    pub(crate) high: Alu,
}

const KEEP: Arm = Arm { low: Alu::Keep, high: Alu::Keep };

/// A stateful ALU's operation on one cell: one or two tests, two arms, one output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    pub(crate) register: Register,
    pub(crate) index: Index,
    pub(crate) test: Option<(Word, Test, Operand)>,
    /// Must hold for `otherwise`, in addition to the failure of `test`.
    pub(crate) second: Option<(Word, Test, Operand)>,
    pub(crate) then: Arm,
    pub(crate) otherwise: Arm,
    pub(crate) output: Option<(Output, Field)>,
    pub(crate) at: At,
}

impl Register {
    /// An access to the cell at `index`, without effect until the methods below add one.
    #[track_caller]
    #[must_use]
    pub fn at(self, index: Index) -> Access {
        let at = Location::caller();
        Access { register: self, index, test: None, second: None, then: KEEP, otherwise: KEEP, output: None, at }
    }
}

impl Access {
    /// Tests the (low) word; the arms are [`then`](Self::then) and [`otherwise`](Self::otherwise).
    #[must_use]
    pub fn test(self, test: Test, value: impl Into<Operand>) -> Self {
        Self { test: Some((Word::Low, test, value.into())), ..self }
    }

    /// The ALU's second comparator: `otherwise` applies only if this test holds too. If neither test holds, nothing changes.
    #[must_use]
    pub fn otherwise_if(self, word: Word, test: Test, value: impl Into<Operand>) -> Self {
        Self { second: Some((word, test, value.into())), ..self }
    }

    /// Changes the (low) word if the test holds.
    #[must_use]
    pub fn then(mut self, low: Alu) -> Self {
        self.then.low = low;
        self
    }

    /// Changes the high word if the test holds.
    #[must_use]
    pub fn then_high(mut self, high: Alu) -> Self {
        self.then.high = high;
        self
    }

    /// Changes the (low) word if the test does not hold.
    #[must_use]
    pub fn otherwise(mut self, low: Alu) -> Self {
        self.otherwise.low = low;
        self
    }

    /// Changes the high word if the test does not hold.
    #[must_use]
    pub fn otherwise_high(mut self, high: Alu) -> Self {
        self.otherwise.high = high;
        self
    }

    /// Changes the (low) word unconditionally.
    #[must_use]
    pub fn always(self, low: Alu) -> Self {
        self.then(low).otherwise(low)
    }

    /// Changes the high word unconditionally.
    #[must_use]
    pub fn always_high(self, high: Alu) -> Self {
        self.then_high(high).otherwise_high(high)
    }

    /// Writes `output` into `field`.
    #[must_use]
    pub fn give(self, output: Output, field: Field) -> Self {
        Self { output: Some((output, field)), ..self }
    }

    /// Writes the (low) word from before the access into `field`.
    #[must_use]
    pub fn give_old(self, field: Field) -> Self {
        self.give(Output::Old(Word::Low), field)
    }

    pub(crate) fn alus(&self) -> [Alu; 4] {
        [self.then.low, self.then.high, self.otherwise.low, self.otherwise.high]
    }

    /// Operands from the packet and the program, without the index.
    pub(crate) fn operands(&self) -> impl Iterator<Item = Operand> {
        let tests = [self.test, self.second].into_iter().flatten().map(|(_, _, value)| value);
        self.alus().into_iter().filter_map(Alu::operand).chain(tests)
    }

    pub(crate) fn uses_high(&self) -> bool {
        let output = matches!(self.output, Some((Output::Old(Word::High) | Output::New(Word::High), _)));
        let arms = [self.then.high, self.otherwise.high].iter().any(|&alu| alu != Alu::Keep);
        let taken = self.alus().contains(&Alu::Word(Word::High));
        let tested = [self.test, self.second].iter().any(|test| matches!(test, Some((Word::High, ..))));
        output || arms || taken || tested
    }
}
