//! What goes to stdout.

use anyhow::{Context, Result};
use std::io::{ErrorKind, Write};

/// Writes `text` at once. `println!` panics where that fails; here a full disk is an error of one line, and a reader that
/// went away wants nothing more.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write the output"),
    }
}
