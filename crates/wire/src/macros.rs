//! Macros that declare packet structures and codes.

/// One field of a packet structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name in wire.h.
    pub name: &'static str,
    /// Offset in bytes from the start of the structure.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
}

/// Derives what a structure needs to be read from bytes, and written to them, at any alignment.
macro_rules! layout {
    ($($(#[$doc:meta])* pub struct $name:ident { $($(#[$fdoc:meta])* pub $field:ident: $ty:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
            #[repr(C)]
            #[allow(missing_docs, reason = "wire.h and docs/wire.md have a sentence per field")]
            pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* }
        )*

        /// Every structure with its size in bytes and its fields; tests compare them with wire.h and docs/wire.md.
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

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $number:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$vdoc])* $variant = $number,)* }

        impl $name {
            /// All codes in numerical order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code with this number.
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

/// Ties each fixed part to its operation in the program's enum `Operation`.
macro_rules! fixed_parts {
    ($($name:ident)*) => {$(
        impl $name {
            /// Sets the operation, epoch and sequence; all other fields are zero.
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
