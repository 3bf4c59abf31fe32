//! What every program declares: kinds of packets, fields, and values of fields with their names.

/// The kinds of packets, each with its number and its name in the tables of the documentation.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $number:literal, $name:literal;)*) => {
        /// What a packet is: the field `op`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Kind { $($(#[$doc])* $kind = $number,)* }

        impl Kind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];
            const NAMES: &'static [(u32, &'static str)] = &[$(($number, $name),)*];

            /// The one with this number.
            #[must_use]
            pub fn from_number(number: u32) -> Option<Self> {
                Self::ALL.iter().copied().find(|&kind| kind as u32 == number)
            }
        }
    };
}

/// A structure of fields, each beside what declares it, in the order in which they are declared.
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

/// Values of a field, as constants of a module, and all of them by name.
macro_rules! values {
    ($(#[$of:meta])* $values:ident { $($(#[$doc:meta])* $name:ident = $value:expr,)* }) => {
        $(#[$of])*
        pub(super) mod $values {
            $($(#[$doc])* pub(in super::super) const $name: u32 = $value;)*
            pub(in super::super) const NAMES: &[(u32, &str)] = &[$(($name, stringify!($name)),)*];
        }
    };
}
