//! Writing to stderr. The standard library's `eprintln!` panics if stderr cannot be written (a full disk, a closed pipe), and so ends a
//! command whose work succeeds. These macros ignore the error, and hide the standard ones in a crate that imports them:
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

/// Writes to stderr; ignores errors.
#[macro_export]
macro_rules! eprint {
    ($($text:tt)*) => { $crate::stderr::write(::std::format_args!($($text)*), "") };
}

/// Writes a line to stderr; ignores errors.
#[macro_export]
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::stderr::write(::std::format_args!($($text)*), "\n") };
}

/// Implements both macros. Writes the text in one piece, so that lines of several threads or processes do not mix.
pub fn write(text: Arguments<'_>, end: &str) {
    let _ = std::io::stderr().write_all(format!("{text}{end}").as_bytes());
}
