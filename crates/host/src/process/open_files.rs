//! Limit of open files. The usual soft limit of 1,024 is too low for hundreds of concurrent commands. Commands get the original limit, for
//! programs that use `select`.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

/// Descriptors per command: pipes, output files, eventfd, pidfd, connections for argument and result, and those of its start.
const A_COMMAND: u64 = 16;
/// Descriptors for everything else.
const ELSE: u64 = 512;

/// The original limit, if it was raised.
static AT_START: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit, up to the hard one, if `commands` concurrent commands need it. Child processes inherit it, except those of the
/// functions `exec` and `command`.
pub fn raise_open_files(commands: u32) {
    let wanted = ELSE + A_COMMAND * u64::from(commands);
    let at_start = getrlimit(Resource::Nofile);
    // `None`: unlimited.
    let Some(current) = at_start.current.filter(|&current| current < wanted) else { return };
    let raised = at_start.maximum.map_or(wanted, |most| most.min(wanted)).max(current);
    // If this fails, fewer commands can run at a time.
    if setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..at_start }).is_ok() {
        AT_START.get_or_init(|| at_start);
    }
}

pub(crate) fn restore_open_files(command: &mut Command) {
    if let Some(&at_start) = AT_START.get() {
        // SAFETY: async-signal-safe between fork and exec: system calls only, no allocation.
        unsafe {
            command.pre_exec(move || {
                let now = getrlimit(Resource::Nofile);
                Ok(setrlimit(Resource::Nofile, Rlimit { current: at_start.current, ..now })?)
            });
        }
    }
}
