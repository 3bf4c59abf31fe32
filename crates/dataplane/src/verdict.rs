//! Drop reasons, as in `verdict.h` and each program's header.

/// Defines a program's drop reasons: the common ones, then its own, each with class, name and text.
#[macro_export]
macro_rules! verdicts {
    ($(#[$doc:meta])* $name:ident { $($own:tt)* }) => {
        $crate::verdicts! { @all $(#[$doc])* $name {
            Ok Taken "ok" "taken",
            Forwarded Taken "forwarded" "taken, and forwarded to another address",
            Truncated Refused "truncated" "shorter than its header and its records",
            Trailing Refused "trailing" "longer than its header and its records",
            BadMagic Refused "bad_magic" "not a Midflight packet",
            BadVersion Refused "bad_version" "a version of the format that this switch does not speak; answered by VERSION",
            UnknownKey Refused "unknown_key" "signed with a key: this switch has none",
            UnknownOperation Refused "unknown_operation" "an operation that does not exist",
            NotForSwitch Refused "not_for_switch" "an operation that is never sent to a switch",
            BadCount Refused "bad_count" "no records, or more than the operation may carry",
            NoCookie Refused "no_cookie" "without the cookie of its identity and address; answered by COOKIE",
            $($own)*
        } }
    };
    (@all $(#[$doc:meta])* $name:ident { $($variant:ident $class:ident $text_name:literal $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum $name { $(#[doc = $text] $variant,)* }

        impl $name {
            /// All drop reasons by number.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// Number of drop reasons.
            pub const COUNT: usize = Self::ALL.len();

            /// Name in metrics and transcripts.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text_name,)* }
            }

            /// Meaning, for users.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl $crate::program::Verdict for $name {
            const ALL: &'static [Self] = Self::ALL;

            fn name(self) -> &'static str {
                Self::name(self)
            }

            fn class(self) -> $crate::program::Class {
                match self { $(Self::$variant => $crate::program::Class::$class,)* }
            }
        }
    };
}

/// The number of BAD_VERSION in all programs.
pub const BAD_VERSION: usize = 5;

/// Asserts that names, classes, texts and order are those of `verdict.h` and of a program's header.
#[cfg(test)]
pub(crate) fn assert_listed<V: crate::program::Verdict>(own: &str, text: fn(V) -> &'static str) {
    let common = include_str!("../../../dataplane/include/midflight/verdict.h");
    let listed = |line: &str| {
        let (name, rest) = line.trim().strip_prefix("X(")?.split_once(", ")?;
        let (class, rest) = rest.split_once(", \"")?;
        Some((name.to_lowercase(), class.to_lowercase(), rest.split_once('"')?.0.to_owned()))
    };
    let of_c: Vec<_> = common.lines().chain(own.lines()).filter_map(listed).collect();
    let of_rust =
        V::ALL.iter().map(|&v| (v.name().to_owned(), format!("{:?}", v.class()).to_lowercase(), text(v).to_owned()));
    assert_eq!(of_c, of_rust.collect::<Vec<_>>());
}
