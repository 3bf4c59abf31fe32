//! How packet structures and the codes in them are declared.

/// One field of a packet structure: its name, offset and size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name, as in wire.h.
    pub name: &'static str,
    /// Bytes from the start of the structure.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
}

/// Derives what makes a structure readable from and writable to bytes at any alignment.
macro_rules! layout {
    ($($(#[$doc:meta])* pub struct $name:ident { $($(#[$fdoc:meta])* pub $field:ident: $ty:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
            #[repr(C)]
            #[allow(missing_docs, reason = "wire.h and docs/wire.md have a sentence per field")]
            pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* }
        )*

        /// Every structure with its size in bytes and its fields: what tests hold against wire.h and docs/wire.md.
        #[must_use]
        pub fn structures() -> Vec<(&'static str, usize, Vec<$crate::Field>)> {
            vec![$((
                stringify!($name),
                size_of::<$name>(),
                vec![$($crate::Field {
                    name: stringify!($field),
                    offset: std::mem::offset_of!($name, $field),
                    size: size_of::<$ty>(),
                },)*],
            ),)*]
        }
    };
}

/// A byte on the wire that stands for one of a few names.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $number:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$vdoc])* $variant = $number,)* }

        impl $name {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The one with this number.
            #[must_use]
            pub fn from_number(number: u8) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)* _ => None }
            }
        }

        impl From<$name> for u8 {
            fn from(code: $name) -> u8 {
                code as u8
            }
        }
    )*};
}

/// Gives each fixed part its operation, of the enum `Operation` of its program.
macro_rules! fixed_parts {
    ($($name:ident)*) => {$(
        impl $name {
            /// With its operation, this epoch and this sequence in the header; all other fields are zero.
            #[inline]
            #[must_use]
            pub fn new(epoch: u32, sequence: u32) -> Self {
                let mut fixed = Self::new_zeroed();
                fixed.header = Header::new(Operation::$name, epoch, sequence);
                fixed
            }
        }
    )*};
}
