//! Structures of counters. Each counter is written once, with what it counts.

/// Declares a structure of counters that lists them by name. With `counted by`, also its twin of atomic numbers, which threads share.
#[macro_export]
macro_rules! counters {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* pub $field:ident,)* } counted by $counts:ident) => {
        $crate::counters! { $(#[$about])* pub struct $name { $($(#[$doc])* pub $field,)* } }

        #[derive(Debug, Default)]
        pub(super) struct $counts {
            $(pub(super) $field: std::sync::atomic::AtomicU64,)*
        }

        impl $counts {
            pub(super) fn read(&self) -> $name {
                $name { $($field: self.$field.load(std::sync::atomic::Ordering::Relaxed),)* }
            }
        }
    };
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* pub $field:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl $name {
            /// Every counter with its name.
            #[must_use]
            pub fn by_name(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field),)*]
            }
        }
    };
}
