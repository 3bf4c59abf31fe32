//! How many files this process may have open. The usual soft limit of 1,024 is for programs that use `select`, and too small for
//! one that runs hundreds of commands at a time. Commands have the limit that this process was started with.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

/// What one command takes: two pipes, the files of two outputs, an eventfd, a handle of the process, connections for its argument and
/// result, and what starting takes; then its outputs, as long as somebody has to wait for them.
const A_COMMAND: u64 = 16;
/// What all else takes.
const ELSE: u64 = 512;

/// The limit at the start, if it was raised.
static AT_START: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit, as far as the hard one allows, if so many commands at a time need it. For a program that runs commands:
/// those that it starts by itself, unlike the functions `exec` and `command`, inherit what it has raised.
pub fn raise_open_files(commands: u32) {
    let wanted = ELSE + A_COMMAND * u64::from(commands);
    let at_start = getrlimit(Resource::Nofile);
    // None: without a limit.
    let Some(current) = at_start.current.filter(|&current| current < wanted) else { return };
    let raised = at_start.maximum.map_or(wanted, |most| most.min(wanted)).max(current);
    // Where that fails, fewer commands run at a time.
    if setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..at_start }).is_ok() {
        AT_START.get_or_init(|| at_start);
    }
}

/// Gives a command the limit that this process was started with.
pub(crate) fn restore_open_files(command: &mut Command) {
    if let Some(&at_start) = AT_START.get() {
        // SAFETY: between fork and exec there is one system call, which allocates nothing.
        unsafe {
            command.pre_exec(move || {
                let now = getrlimit(Resource::Nofile);
                Ok(setrlimit(Resource::Nofile, Rlimit { current: at_start.current, ..now })?)
            });
        }
    }
}
