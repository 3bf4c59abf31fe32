//! `exec` and `command`: run a command line of `/bin/sh`, in a process group of its own, and keep its outputs and what
//! ended it. It has ended when both outputs are closed and its process has exited, so it waits for background processes that
//! keep an output open, until the request's timeout. `docs/internals/commands.md` says what happens when a process dies.

mod capture;
pub(crate) mod marks;
mod plain;
pub(crate) mod reaper;
mod run;

use crate::blob::Piece;
use crate::clock;
use crate::driver::lock;
use crate::functions::{TaskContext, Value};
use crate::open_files::restore_open_files;
use crate::spill::SpillRoom;
use crate::waker::Waker;
use capture::Kept;
use marks::Mark;
use midflight_tasks::executor::RunKey;
use midflight_tasks::functions::{ExecRequest, ExecResult};
use midflight_wire::RESULT_BLOB_MAX;
use reaper::{Reaper, Record};
use run::{Early, Run};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What both outputs together may hold: the rest of the largest result is for what comes before them.
const OUTPUT_MAX: u64 = RESULT_BLOB_MAX as u64 - ExecResult::HEAD_MAX as u64;
/// How long a command waits to be started while the system has no file descriptor, process or memory for it: others end.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// Between two attempts to start it.
const START_EVERY: Duration = Duration::from_millis(10);
/// The exit code of a command that its timeout ended, as of timeout(1).
const CODE_TIMED_OUT: i32 = 124;

/// The processes of one executor.
#[derive(Debug)]
pub(crate) struct Processes {
    running: Mutex<Running>,
    /// Lives until this executor and all others of this process have ended.
    reaper: Mutex<Option<Arc<Reaper>>>,
    outputs: Arc<SpillRoom>,
    host: String,
    not_kept: AtomicU64,
}

#[derive(Debug, Default)]
struct Running {
    commands: HashMap<RunKey, Listed>,
    refused: bool,
}

#[derive(Debug)]
struct Listed {
    mark: Mark,
    group: Pid,
    stop: Arc<Waker>,
}

impl Processes {
    /// Outputs that are too large for the memory go to files in `outputs`.
    pub(crate) fn new(outputs: Arc<SpillRoom>) -> Self {
        // Without a name the results have none.
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim_end().to_owned();
        let (running, reaper) = (Mutex::default(), Mutex::default());
        Self { running, reaper, outputs, host, not_kept: AtomicU64::new(0) }
    }

    /// Commands that failed because their outputs could not be kept whole.
    pub(crate) fn not_kept(&self) -> u64 {
        self.not_kept.load(Relaxed)
    }

    /// Kills all commands and refuses new ones.
    pub(crate) fn kill_all(&self) {
        let mut running = lock(&self.running);
        running.refused = true;
        for command in running.commands.values() {
            let _ = kill_process_group(command.group, Signal::KILL); // an error means that it has ended already
        }
        let marks: HashSet<Mark> = running.commands.values().map(|command| command.mark).collect();
        drop(running);
        marks::kill_marked(&marks);
    }

    /// Ends the command of a run, if it has one, as a timeout does: its task is cancelled.
    pub(crate) fn stop(&self, run: RunKey) {
        if let Some(command) = lock(&self.running).commands.get(&run) {
            command.stop.wake();
        }
    }

    /// Runs a command line; the value is an encoded [`ExecResult`]. One that was ended because its task is cancelled is an error.
    pub(crate) fn exec(&self, context: &TaskContext, command_line: &[u8]) -> Result<Value, String> {
        self.run(context, &ExecRequest::new(command_line))
    }

    /// Runs an encoded [`ExecRequest`]; the value is an encoded [`ExecResult`].
    pub(crate) fn command(&self, context: &TaskContext, request: &[u8]) -> Result<Value, String> {
        self.run(context, &ExecRequest::decode(request).map_err(|error| error.to_string())?)
    }

    fn run(&self, context: &TaskContext, request: &ExecRequest) -> Result<Value, String> {
        request.check().map_err(|error| error.to_string())?;
        let (started, began) = (clock::unix(), clock::now());
        let mut run = self.start(context, request)?;
        let early = run.wait_to_end(request.timeout);
        let ended = run.collect(|| {
            lock(&self.running).commands.remove(&context.run);
        });
        let (status, capture) = ended.map_err(|error| format!("cannot collect the command's exit code: {error}"))?;
        let (stdout, stderr) = capture.into_kept().inspect_err(|_told_by_caller| {
            self.not_kept.fetch_add(1, Relaxed);
        })?;
        if early == Some(Early::Stopped) {
            return Err("cancelled".to_owned());
        }
        let signal = status.signal;
        let timed_out = early == Some(Early::TimedOut);
        let code = if timed_out { CODE_TIMED_OUT } else { status.code };
        let run_time = Duration::from_nanos(clock::now().saturating_sub(began));
        let head =
            ExecResult { code, signal, timed_out, host: self.host.clone(), started, run_time, ..Default::default() };
        Ok(join(head.encode_head(stdout.len() as u32), stdout, stderr))
    }

    /// Starts it, as soon as the system has room for another one.
    fn start(&self, context: &TaskContext, request: &ExecRequest) -> Result<Run, String> {
        let deadline = Instant::now() + START_PATIENCE;
        loop {
            if lock(&self.running).refused {
                return Err("the executor is ending".to_owned());
            }
            match self.try_to_start(context, request) {
                Err(why) if why.may_pass() && !context.cancelled() && Instant::now() < deadline => {
                    std::thread::sleep(START_EVERY);
                }
                started => return started.map_err(|not| not.why),
            }
        }
    }

    fn try_to_start(&self, context: &TaskContext, request: &ExecRequest) -> Result<Run, NotStarted> {
        let record = self.enter().map_err(|cause| NotStarted::new("cannot watch over commands", cause))?;
        let stop = Waker::new().map_err(|error| NotStarted::new("cannot watch over a command", error.into_io()))?;
        let stop = Arc::new(stop);
        let child = spawn(context, request, record.mark()).map_err(|cause| NotStarted::of(cause, request))?;
        let run = Run::new(child, record, Arc::clone(&self.outputs), Arc::clone(&stop));
        let mut running = lock(&self.running);
        if context.cancelled() {
            stop.wake(); // `stop` came before it was listed
        }
        running.commands.insert(context.run, Listed { mark: run.mark(), group: run.group(), stop });
        if running.refused {
            let _ = kill_process_group(run.group(), Signal::KILL); // `kill_all` came before it was listed
        }
        Ok(run)
    }

    fn enter(&self) -> io::Result<Record> {
        let mut reaper = lock(&self.reaper);
        let reaper = match &mut *reaper {
            Some(reaper) => reaper,
            none => none.insert(Reaper::of_this_process()?),
        };
        reaper.enter()
    }
}

/// Why a command was not started.
struct NotStarted {
    cause: io::Error,
    why: String,
}

impl NotStarted {
    fn new(what: &str, cause: io::Error) -> Self {
        Self { why: format!("{what}: {cause}"), cause }
    }

    /// Starting the shell has failed. The kernel's error does not say whether it means the directory or the shell.
    fn of(cause: io::Error, request: &ExecRequest) -> Self {
        if let Some(directory) = &request.directory {
            let directory = Path::new(OsStr::from_bytes(directory));
            if let Err(cause) = std::fs::read_dir(directory) {
                return Self::new(&format!("cannot run in the directory {}", directory.display()), cause);
            }
        }
        Self::new("cannot start /bin/sh", cause)
    }

    /// Whether the system lacks something that it will have again when other commands have ended.
    fn may_pass(&self) -> bool {
        let lacks = [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM];
        self.cause.raw_os_error().is_some_and(|code| lacks.contains(&Errno::from_raw_os_error(code)))
    }
}

/// In one piece where nothing of it is a file.
fn join(mut head: Vec<u8>, stdout: Kept, stderr: Kept) -> Value {
    if let (Kept::Memory(stdout), Kept::Memory(stderr)) = (&stdout, &stderr) {
        head.extend_from_slice(stdout);
        head.extend_from_slice(stderr);
        return Value::Bytes(head);
    }
    Value::Large(vec![Piece::Memory(Arc::new(head)), stdout.into(), stderr.into()].into())
}

/// Starts a command: by itself where that is all a shell would do, else by `/bin/sh -c`. The shell also gets what cannot be
/// executed, because its messages and exit codes are known.
fn spawn(context: &TaskContext, request: &ExecRequest, mark: Mark) -> io::Result<Child> {
    if let Some(plain) = plain::plain(request) {
        let mut command = Command::new(plain.words[0]);
        command.args(&plain.words[1..]);
        furnish(&mut command, context, request, mark);
        command.envs(plain.working_directory.map(|directory| ("PWD", directory)));
        if let Ok(child) = command.spawn() {
            return Ok(child);
        }
    }
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(OsStr::from_bytes(&request.command_line));
    furnish(&mut command, context, request, mark);
    command.spawn()
}

/// What every command gets: a group of its own, its directory, two pipes, and its task in its environment: `MIDFLIGHT_ATTEMPT`,
/// `MIDFLIGHT_JID`, `MIDFLIGHT_TID`, and what it has of counted resources.
fn furnish(command: &mut Command, context: &TaskContext, request: &ExecRequest, mark: Mark) {
    command.process_group(0);
    command.env("MIDFLIGHT_ATTEMPT", context.attempt.to_string());
    command.env("MIDFLIGHT_JID", context.jid.to_string()).env("MIDFLIGHT_TID", context.tid.to_string());
    command.envs(request.environment.iter().map(|(name, value)| (OsStr::from_bytes(name), OsStr::from_bytes(value))));
    command.envs(context.holding.environment()); // a request cannot choose its own
    command.env(marks::VARIABLE, mark.to_string());
    if let Some(directory) = &request.directory {
        command.current_dir(OsStr::from_bytes(directory));
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    restore_open_files(command);
}

#[cfg(test)]
pub(crate) mod tests;
