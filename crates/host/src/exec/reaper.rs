//! Kills the commands of this process when it has died, whatever ended it: another process, `/bin/sh` with a short script,
//! which reads a table of what runs. `docs/internals/commands.md` says what happens at each step, and why it is done so.

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
/// Bytes of a line in the table. It divides the size of a page: a write inside a page is done as a whole, or not at all,
/// even where this process is killed meanwhile.
const RECORD_BYTES: usize = 64;
/// Where the group stands in a line.
const GROUP_AT: usize = Mark::BYTES + 1;

/// The reaper of this process, shared by its executors, for as long as one of them has commands or may have some.
static OF_THIS_PROCESS: Mutex<Weak<Reaper>> = Mutex::new(Weak::new());

#[derive(Debug)]
pub(crate) struct Reaper {
    /// Random: distinguishes the marks of this process from those of all others.
    life: u64,
    table: File,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    process: Option<Child>,
    /// The number of the next mark.
    next: u64,
    /// Lines that were used and are free again.
    vacant: Vec<u64>,
    /// Lines that were ever used.
    lines: u64,
}

/// A line of the table: a command that the reaper would kill. Drop it when the command has ended, and before its status is
/// collected: after that its number may be that of another process.
#[derive(Debug)]
pub(crate) struct Record {
    reaper: Arc<Reaper>,
    line: u64,
    mark: Mark,
}

impl Reaper {
    /// The reaper of this process.
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

    /// Enters a command that is to be started now, with the mark in its environment.
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

    /// The process, if one was started.
    #[cfg(test)]
    pub(crate) fn process(&self) -> Option<Pid> {
        lock(&self.state).process.as_ref().map(Pid::from_child)
    }

    /// Starts the process unless it runs.
    fn watch(&self, state: &mut State) -> io::Result<()> {
        if let Some(process) = &mut state.process
            && process.try_wait()?.is_none()
        {
            return Ok(());
        }
        // The process reads from the table's own position: a former one may have moved it.
        (&self.table).rewind()?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "midflight-reaper"]).current_dir("/").process_group(0);
        // The mark would be there if this process itself is a command of another executor, which would kill the reaper.
        command.env_remove(VARIABLE).env("LC_ALL", "C");
        command.stdin(Stdio::piped()).stdout(self.table.try_clone()?).stderr(Stdio::null());
        state.process = Some(command.spawn()?);
        Ok(())
    }
}

impl Drop for Reaper {
    /// No command runs, so the process has nothing to do. Killing it is safer than closing its stdin: a program that forks may have
    /// copied the other end.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(mut process) = state.process.take() {
            let _ = process.kill().and_then(|()| process.wait()); // an error means that it has ended already
        }
    }
}

impl Record {
    pub(crate) fn mark(&self) -> Mark {
        self.mark
    }

    /// The command runs, as leader of this group.
    pub(crate) fn started(&self, group: Pid) -> io::Result<()> {
        self.write(&group.to_string(), GROUP_AT)
    }

    fn write(&self, text: &str, at: usize) -> io::Result<()> {
        self.reaper.table.write_all_at(text.as_bytes(), self.line * RECORD_BYTES as u64 + at as u64)
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // The file has this line already, in memory: writing it again cannot fail.
        let _ = self.write(&" ".repeat(RECORD_BYTES - 1), 0);
        lock(&self.reaper.state).vacant.push(self.line);
    }
}
