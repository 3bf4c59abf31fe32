//! Kills the commands of this process after its death: another process, `/bin/sh` with a short script, reads a table of running commands.
//! See `docs/internals/commands.md`.

use super::marks::{Mark, VARIABLE};
use crate::driver::lock;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::Pid;
use std::fs::File;
use std::io::{self, Seek};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};

const SCRIPT: &str = include_str!("reaper.sh");
/// Divides the page size: a write within a page is atomic, even if this process is killed.
const RECORD_BYTES: usize = 64;
/// Offset of the process group in a line.
const GROUP_AT: usize = Mark::BYTES + 1;

/// The reaper of this process, shared by its executors while one of them may have commands.
static OF_THIS_PROCESS: Mutex<Weak<Reaper>> = Mutex::new(Weak::new());

#[derive(Debug)]
pub(crate) struct Reaper {
    /// Random; distinguishes the marks of this process.
    life: u64,
    table: File,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    process: Option<Child>,
    next: u64,
    /// Free lines that were used before.
    vacant: Vec<u64>,
    /// Lines ever used.
    lines: u64,
}

/// A command that the reaper would kill. Drop it between the command's end and the collection of its status, which frees the process id.
#[derive(Debug)]
pub(crate) struct Record {
    reaper: Arc<Reaper>,
    line: u64,
    mark: Mark,
}

impl Reaper {
    pub(crate) fn of_this_process() -> io::Result<Arc<Self>> {
        let mut shared = lock(&OF_THIS_PROCESS);
        if let Some(reaper) = shared.upgrade() {
            return Ok(reaper);
        }
        let table = File::from(memfd_create("midflight-commands", MemfdFlags::CLOEXEC)?);
        let reaper = Arc::new(Self { life: rand::random(), table, state: Mutex::default() });
        *shared = Arc::downgrade(&reaper);
        Ok(reaper)
    }

    /// Enters a command that is about to start with the mark in its environment.
    pub(crate) fn enter(self: &Arc<Self>) -> io::Result<Record> {
        let mut state = lock(&self.state);
        self.watch(&mut state)?;
        let mark = Mark { life: self.life, number: state.next };
        state.next += 1;
        let line = state.vacant.pop().unwrap_or_else(|| {
            state.lines += 1;
            state.lines - 1
        });
        drop(state);
        let record = Record { reaper: Arc::clone(self), line, mark };
        record.write(&format!("{mark:<width$}\n", width = RECORD_BYTES - 1), 0)?;
        Ok(record)
    }

    #[cfg(test)]
    pub(crate) fn process(&self) -> Option<Pid> {
        lock(&self.state).process.as_ref().map(Pid::from_child)
    }

    fn watch(&self, state: &mut State) -> io::Result<()> {
        if let Some(process) = &mut state.process
            && process.try_wait()?.is_none()
        {
            return Ok(());
        }
        // The process reads from the table's position, which an earlier one may have moved.
        (&self.table).rewind()?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "midflight-reaper"]).current_dir("/").process_group(0);
        // Otherwise an outer executor whose command this process is would kill the reaper by its mark.
        command.env_remove(VARIABLE).env("LC_ALL", "C");
        command.stdin(Stdio::piped()).stdout(self.table.try_clone()?).stderr(Stdio::null());
        state.process = Some(command.spawn()?);
        Ok(())
    }
}

impl Drop for Reaper {
    /// Killed, because closing its stdin may not end it: a forked program may hold the other end.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(mut process) = state.process.take() {
            let _ = process.kill().and_then(|()| process.wait()); // fails if it has ended
        }
    }
}

impl Record {
    pub(crate) fn mark(&self) -> Mark {
        self.mark
    }

    pub(crate) fn started(&self, group: Pid) -> io::Result<()> {
        self.write(&group.to_string(), GROUP_AT)
    }

    fn write(&self, text: &str, at: usize) -> io::Result<()> {
        self.reaper.table.write_all_at(text.as_bytes(), self.line * RECORD_BYTES as u64 + at as u64)
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // Overwrites an existing line of a file in memory, which cannot fail.
        let _ = self.write(&" ".repeat(RECORD_BYTES - 1), 0);
        lock(&self.reaper.state).vacant.push(self.line);
    }
}
