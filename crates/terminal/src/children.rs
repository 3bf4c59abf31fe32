//! Processes that belong to this one.

use rustix::process::{Signal, set_parent_process_death_signal};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The process will be killed when this one ends, however it ends. To be started by the main thread: the kernel looks at the thread
/// that has started it.
pub fn end_with_this_process(command: &mut Command) {
    // SAFETY: between fork and exec there is one system call, which allocates nothing.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
}
