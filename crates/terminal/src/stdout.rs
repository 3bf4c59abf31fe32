//! Writing to stdout.

use anyhow::{Context, Result};
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// The C library calls it before `main`, and so before Rust opens /dev/null in place of a closed stdout.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK_AT_THE_START: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: F_GETFD only checks whether the descriptor is open.
    let is_closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
    WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}

/// Whether this process was started without a stdout (`>&-`), so that all output vanishes without an error.
#[must_use]
pub fn was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}

/// Writes text that is no result: to stderr with `--json`, because stdout then has only the results.
pub fn print_beside(json: bool, text: &str) -> Result<()> {
    if json {
        eprint!("{text}");
        return Ok(());
    }
    print(text)
}

/// Writes `text` at once. `println!` panics on errors; here a full disk is a one-line error, and a closed pipe is none.
pub fn print(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

/// As [`print()`], for bytes that may be no text.
pub fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write the output"),
    }
}
