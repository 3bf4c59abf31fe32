//! `exec`: runs a command line by `/bin/sh -c`, in a process group of its own, and captures its output and exit status. It has ended
//! when both outputs are closed and the shell has exited, so it waits for background processes that keep an output open.

use crate::driver::lock;
use crate::functions::TaskContext;
use midflight_tasks::executor::RunKey;
use midflight_tasks::functions::ExecResult;
use midflight_wire::BLOB_MAX;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::HashMap;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// What both outputs together may hold; the rest of the largest result is for the exit code and the note on the cut.
const OUTPUT_MAX: usize = BLOB_MAX as usize - 256;
const READ_BYTES: usize = 64 << 10;
/// How often to check whether a process whose outputs are closed has ended: at first, and at most.
const REAP_FIRST: Duration = Duration::from_micros(50);
const REAP_MAX: Duration = Duration::from_millis(20);

/// The processes of one executor.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    groups: Mutex<Groups>,
    cut_bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct Groups {
    running: HashMap<RunKey, Pid>,
    refused: bool,
}

impl Processes {
    /// Bytes of output beyond the bound, dropped.
    pub(crate) fn cut_bytes(&self) -> u64 {
        self.cut_bytes.load(Relaxed)
    }

    /// Kills all process groups and refuses new ones.
    pub(crate) fn kill_all(&self) {
        let mut groups = lock(&self.groups);
        groups.refused = true;
        for group in groups.running.values() {
            let _ = kill_process_group(*group, Signal::KILL); // an error means that it has ended already
        }
    }

    /// Kills the process group of a run, if it has one: its task is cancelled.
    pub(crate) fn kill(&self, run: RunKey) {
        if let Some(group) = lock(&self.groups).running.get(&run) {
            let _ = kill_process_group(*group, Signal::KILL); // as above
        }
    }

    /// Runs a command line; the value is an encoded [`ExecResult`]. The command finds its task in its environment:
    /// `MIDFLIGHT_ATTEMPT`, `MIDFLIGHT_JID`, `MIDFLIGHT_TID`. One that was killed because its task is cancelled is an error.
    pub(crate) fn exec(&self, context: &TaskContext, command_line: &[u8]) -> Result<Vec<u8>, String> {
        if lock(&self.groups).refused {
            return Err("the executor is ending".to_owned());
        }
        let mut child = self.spawn(context, command_line)?;
        let mut output = Output::default();
        output.read_all(&mut child);
        let status =
            self.reap(context.run, &mut child).map_err(|error| format!("cannot wait for the command: {error}"))?;
        if output.cut > 0 {
            self.cut_bytes.fetch_add(output.cut, Relaxed);
            let note = format!("\nmidflight: {} bytes of output beyond {OUTPUT_MAX} were dropped\n", output.cut);
            output.stderr.extend_from_slice(note.as_bytes());
        }
        if status.code().is_none() && context.cancelled() {
            return Err("cancelled".to_owned());
        }
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Ok(ExecResult { code, stdout: output.stdout, stderr: output.stderr }.encode())
    }

    fn spawn(&self, context: &TaskContext, command_line: &[u8]) -> Result<Child, String> {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(std::ffi::OsStr::from_bytes(command_line)).process_group(0);
        command.env("MIDFLIGHT_ATTEMPT", context.attempt.to_string());
        command.env("MIDFLIGHT_JID", context.jid.to_string()).env("MIDFLIGHT_TID", context.tid.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| format!("cannot start /bin/sh: {error}"))?;
        let mut groups = lock(&self.groups);
        if let Some(group) = group_of(&child) {
            groups.running.insert(context.run, group);
            if groups.refused || context.cancelled() {
                let _ = kill_process_group(group, Signal::KILL); // `kill_all` or `kill` came before it was listed
            }
        }
        Ok(child)
    }

    /// Removes a group from the list at the moment at which its number becomes free.
    fn reap(&self, run: RunKey, child: &mut Child) -> std::io::Result<ExitStatus> {
        let mut pause = REAP_FIRST;
        loop {
            let mut groups = lock(&self.groups);
            let ended = child.try_wait();
            if !matches!(ended, Ok(None)) {
                groups.running.remove(&run);
                return ended.and_then(|status| status.ok_or_else(|| std::io::ErrorKind::NotFound.into()));
            }
            drop(groups);
            std::thread::sleep(pause);
            pause = (pause * 2).min(REAP_MAX);
        }
    }
}

fn group_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

#[derive(Default)]
struct Output {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    cut: u64,
}

impl Output {
    /// Until both are closed.
    fn read_all(&mut self, child: &mut Child) {
        let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
        let mut buffer = vec![0; READ_BYTES];
        while stdout.is_some() || stderr.is_some() {
            let mut fds = Vec::with_capacity(2);
            fds.extend(stdout.as_ref().map(|out| PollFd::from_borrowed_fd(out.as_fd(), PollFlags::IN)));
            fds.extend(stderr.as_ref().map(|err| PollFd::from_borrowed_fd(err.as_fd(), PollFlags::IN)));
            if poll(&mut fds, None).is_err() {
                continue; // interrupted
            }
            let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
            let out_ready = stdout.is_some() && ready.next().unwrap_or(false);
            let err_ready = stderr.is_some() && ready.next().unwrap_or(false);
            let room = OUTPUT_MAX - self.stdout.len() - self.stderr.len();
            if out_ready {
                read_once(&mut stdout, &mut self.stdout, &mut buffer, room, &mut self.cut);
            }
            let room = OUTPUT_MAX - self.stdout.len() - self.stderr.len();
            if err_ready {
                read_once(&mut stderr, &mut self.stderr, &mut buffer, room, &mut self.cut);
            }
        }
    }
}

/// Reads what is there; closes `pipe` at its end.
fn read_once<R: Read>(pipe: &mut Option<R>, kept: &mut Vec<u8>, buffer: &mut [u8], room: usize, cut: &mut u64) {
    let Some(reader) = pipe else { return };
    match reader.read(buffer) {
        Ok(0) => *pipe = None,
        Ok(length) => {
            kept.extend_from_slice(&buffer[..length.min(room)]);
            *cut += length.saturating_sub(room) as u64;
        }
        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
        Err(_) => *pipe = None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cancellation::CancellationToken;

    /// Of a task that is not cancelled yet.
    pub(crate) fn context() -> TaskContext {
        let (client, run) = (([127, 0, 0, 1], 1).into(), RunKey { slot: 3, run: 4 });
        let cancellation = CancellationToken::default();
        TaskContext { attempt: 2, uid: 1, jid: 7, tid: 9, priority: 4, client, asked: 0, run, cancellation }
    }

    fn exec(command_line: &str) -> ExecResult {
        ExecResult::decode(&Processes::default().exec(&context(), command_line.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn a_command_knows_its_attempt_and_its_name() {
        assert_eq!(exec("echo $MIDFLIGHT_ATTEMPT $MIDFLIGHT_JID $MIDFLIGHT_TID").stdout, b"2 7 9\n");
    }

    #[test]
    fn outputs_and_the_exit_code_are_captured() {
        let result = exec("echo out; echo err >&2; exit 3");
        assert_eq!(result, ExecResult { code: 3, stdout: b"out\n".to_vec(), stderr: b"err\n".to_vec() });
        assert_eq!(exec("kill -TERM $$").code, 128 + 15);
    }

    #[test]
    fn output_beyond_the_bound_is_dropped_and_said() {
        let processes = Processes::default();
        let result = processes.exec(&context(), b"head -c 70000000 /dev/zero; echo late >&2").unwrap();
        assert!(result.len() <= BLOB_MAX as usize);
        let result = ExecResult::decode(&result).unwrap();
        assert_eq!((result.code, result.stdout.len()), (0, OUTPUT_MAX));
        assert!(String::from_utf8_lossy(&result.stderr).contains("were dropped"));
        assert_eq!(processes.cut_bytes(), 70_000_000 + 5 - OUTPUT_MAX as u64);
    }

    #[test]
    fn a_cancelled_command_is_killed_with_its_group_even_before_it_is_listed() {
        let (processes, context) = (Processes::default(), context());
        let result = std::thread::scope(|scope| {
            let running = scope.spawn(|| processes.exec(&context, b"sleep 100 & sleep 100"));
            while lock(&processes.groups).running.is_empty() {
                std::thread::yield_now();
            }
            context.cancellation.cancel();
            processes.kill(RunKey { slot: 3, run: 3 }); // another run of the slot
            processes.kill(context.run);
            running.join().unwrap()
        });
        assert_eq!(result.unwrap_err(), "cancelled");
        assert_eq!(processes.exec(&context, b"sleep 100").unwrap_err(), "cancelled");
    }

    #[test]
    fn killing_ends_the_whole_group_and_refuses_more() {
        let processes = Processes::default();
        let result = std::thread::scope(|scope| {
            let running = scope.spawn(|| processes.exec(&context(), b"sleep 100 & sleep 100"));
            while lock(&processes.groups).running.is_empty() {
                std::thread::yield_now();
            }
            processes.kill_all();
            running.join().unwrap().unwrap()
        });
        assert_eq!(ExecResult::decode(&result).unwrap().code, 128 + 9);
        assert!(processes.exec(&context(), b"true").is_err());
        assert!(lock(&processes.groups).running.is_empty());
    }
}
