//! How many files this process may have open. The usual soft limit of 1,024 is for programs that use `select`, and too small for
//! one that runs hundreds of commands. Commands get the limit that this process was started with.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use std::sync::OnceLock;

/// The limit at the start, if it was raised.
static AT_START: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit to the hard one. For the start of a program.
pub fn raise_open_files() {
    let at_start = getrlimit(Resource::Nofile);
    // If it cannot be raised, the program can do less at a time.
    if setrlimit(Resource::Nofile, Rlimit { current: at_start.maximum, ..at_start }).is_ok() {
        let _ = AT_START.set(at_start); // raised before
    }
}

/// Gives a command that was just started the limit that this process had.
pub(crate) fn restore_open_files(command: Pid) {
    if let Some(at_start) = AT_START.get() {
        let _ = prlimit(Some(command), Resource::Nofile, *at_start); // it has ended already
    }
}
