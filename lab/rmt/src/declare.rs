//! Declarations of every program: kinds of packets, fields, and named values of fields.

/// The kinds of packets, each with its number and its name in the documentation's tables.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $number:literal, $name:literal;)*) => {
        /// A packet's kind: the field `op`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Kind { $($(#[$doc])* $kind = $number,)* }

        impl Kind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];
            const NAMES: &'static [(u32, &'static str)] = &[$(($number, $name),)*];

            /// The kind with this number.
            #[must_use]
            pub fn from_number(number: u32) -> Option<Self> {
                Self::ALL.iter().copied().find(|&kind| kind as u32 == number)
            }
        }
    };
}

/// A structure of fields, each with its declaration, in declaration order.
macro_rules! fields {
    ($(#[$of:meta])* $structure_vis:vis struct $structure:ident($b:ident, $config:ident) {
        $($(#[$doc:meta])* $vis:vis $field:ident: $type:ty = $declared:expr,)*
    }) => {
        $(#[$of])*
        #[derive(Clone, Debug)]
        $structure_vis struct $structure { $($(#[$doc])* $vis $field: $type,)* }

        impl $structure {
            fn declared($b: &mut Builder, $config: Config) -> Self {
                Self { $($field: $declared,)* }
            }
        }
    };
}

/// Values of a field, as constants of a module, and a list of them by name.
macro_rules! values {
    ($(#[$of:meta])* $values:ident { $($(#[$doc:meta])* $name:ident = $value:expr,)* }) => {
        $(#[$of])*
        pub(super) mod $values {
            $($(#[$doc])* pub(in super::super) const $name: u32 = $value;)*
            pub(in super::super) const NAMES: &[(u32, &str)] = &[$(($name, stringify!($name)),)*];
        }
    };
}
