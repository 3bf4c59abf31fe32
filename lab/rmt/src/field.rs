//! Fields of the packet header vector, and operands: a field, a constant or an argument.

use crate::table::{Compare, Relation};
use std::panic::Location;

/// The source line of a declaration.
pub type At = &'static Location<'static>;

/// Bits of a field, as of the header vector's containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Width {
    /// 8 bits.
    W8,
    /// 16 bits.
    W16,
    /// 32 bits.
    W32,
}

impl Width {
    /// Number of bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::W8 => 8,
            Self::W16 => 16,
            Self::W32 => 32,
        }
    }

    /// A value with all bits set.
    #[must_use]
    pub const fn mask(self) -> u32 {
        u32::MAX >> (32 - self.bits())
    }
}

/// Whether a field keeps its value between passes and pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Space {
    /// Travels with the packet.
    Header,
    /// Zero at the start of each pass.
    Metadata,
}

/// A field of the packet header vector, as a handle into the program that declared it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Field {
    pub(crate) space: Space,
    pub(crate) index: u16,
    pub(crate) width: Width,
}

impl Field {
    /// Width of the field.
    #[must_use]
    pub const fn width(self) -> Width {
        self.width
    }

    /// True if the field equals `value`.
    #[track_caller]
    #[must_use]
    pub fn is(self, value: u32) -> Compare {
        self.masked(self.width.mask(), value)
    }

    /// True if the field differs from `value`.
    #[track_caller]
    #[must_use]
    pub fn is_not(self, value: u32) -> Compare {
        self.compare(Relation::Masked { mask: self.width.mask(), value, equal: false })
    }

    /// True if the bits under `mask` equal those of `value`.
    #[track_caller]
    #[must_use]
    pub fn masked(self, mask: u32, value: u32) -> Compare {
        self.compare(Relation::Masked { mask, value, equal: true })
    }

    /// True if the bits under `mask` differ from those of `value`.
    #[track_caller]
    #[must_use]
    pub fn masked_not(self, mask: u32, value: u32) -> Compare {
        self.compare(Relation::Masked { mask, value, equal: false })
    }

    /// True if the field is less than `value`, both unsigned. A gateway orders few bits: [`Target::gateway_order_bits`](crate::Target).
    #[track_caller]
    #[must_use]
    pub fn below(self, value: u32) -> Compare {
        self.compare(Relation::Below(value))
    }

    /// True if the field is at least `value`, both unsigned.
    #[track_caller]
    #[must_use]
    pub fn at_least(self, value: u32) -> Compare {
        self.compare(Relation::AtLeast(value))
    }

    /// True if both are equal.
    #[track_caller]
    #[must_use]
    pub fn equals(self, other: Field) -> Compare {
        self.compare(Relation::Field { other, equal: true })
    }

    /// True if they differ.
    #[track_caller]
    #[must_use]
    pub fn differs(self, other: Field) -> Compare {
        self.compare(Relation::Field { other, equal: false })
    }

    #[track_caller]
    fn compare(self, relation: Relation) -> Compare {
        Compare { field: self, relation, at: Location::caller() }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct FieldInfo {
    pub(crate) name: String,
    pub(crate) width: Width,
    /// Metadata that ingress passes to egress in a header before the packet.
    pub(crate) bridged: bool,
}

/// A source of an action's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The field's value when the packet entered the stage.
    Field(Field),
    /// A constant.
    Const(u32),
    /// The table entry's argument with this number.
    Argument(u8),
}

impl From<Field> for Operand {
    fn from(field: Field) -> Self {
        Self::Field(field)
    }
}

impl From<u32> for Operand {
    fn from(value: u32) -> Self {
        Self::Const(value)
    }
}

/// The argument with this number of the matching entry.
#[must_use]
pub const fn argument(number: u8) -> Operand {
    Operand::Argument(number)
}
