//! Writing to stdout.

use anyhow::{Context, Result};
use std::io::{ErrorKind, Write};

/// Writes what stands beside the results: with --json stdout belongs to them, and this goes to stderr.
pub fn print_beside(json: bool, text: &str) -> Result<()> {
    if json {
        eprint!("{text}");
        return Ok(());
    }
    print(text)
}

/// Writes `text` at once. `println!` panics on errors; here a full disk gives a one-line error, and a closed pipe is no
/// error.
pub fn print(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

/// The same of bytes that may be no text.
pub fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write the output"),
    }
}
