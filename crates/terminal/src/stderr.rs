//! Writing to stderr. The standard library's `eprintln!` panics where stderr cannot be written (a full disk, a closed pipe), and
//! ends a command that does its work well. Nobody can be told that nobody can be told: these two go on, with the same names, so
//! that a crate that imports them cannot take the others by mistake:
//!
//! ```
//! #[macro_use(eprint, eprintln)]
//! extern crate midflight_terminal;
//! # fn main() {
//! eprintln!("run {} of {}", 1, 3);
//! # }
//! ```

use std::fmt::Arguments;
use std::io::Write;

/// Writes to stderr, if that is possible.
#[macro_export]
macro_rules! eprint {
    ($($text:tt)*) => { $crate::stderr::write(::std::format_args!($($text)*), "") };
}

/// Writes a line to stderr, if that is possible.
#[macro_export]
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::stderr::write(::std::format_args!($($text)*), "\n") };
}

/// What both macros do; the text leaves in one piece, so that lines of several threads or processes are not mixed.
pub fn write(text: Arguments<'_>, end: &str) {
    let _ = std::io::stderr().write_all(format!("{text}{end}").as_bytes());
}
