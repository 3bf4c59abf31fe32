//! `exec` and `command`: run a `/bin/sh` command line in its own process group, and keep its outputs and status. A command has ended when
//! its process has exited and both outputs are closed, so background processes may prolong it until the timeout. See
//! `docs/internals/commands.md`.

mod capture;
pub(crate) mod marks;
mod plain;
pub(crate) mod reaper;
mod run;

use crate::blob::Piece;
use crate::clock;
use crate::disk::spill::SpillRoom;
use crate::driver::lock;
use crate::process::open_files::restore_open_files;
use crate::tasks::functions::{TaskContext, Value};
use crate::waker::Waker;
use capture::Kept;
use marks::Mark;
use midflight_tasks::executor::RunKey;
use midflight_tasks::functions::{ExecRequest, ExecResult};
use midflight_wire::tasks::RESULT_BLOB_MAX;
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

/// Limit of both outputs together: a result minus its head.
const OUTPUT_MAX: u64 = RESULT_BLOB_MAX as u64 - ExecResult::HEAD_MAX as u64;
/// Retry time while the system lacks descriptors, processes or memory.
const START_PATIENCE: Duration = Duration::from_secs(30);
const START_EVERY: Duration = Duration::from_millis(10);
const CODE_TIMED_OUT: i32 = 124;

#[derive(Debug)]
pub(crate) struct Processes {
    running: Mutex<Running>,
    /// Lives until all executors of this process have ended.
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
    pub(crate) fn new(outputs: Arc<SpillRoom>) -> Self {
        // If unreadable, results name no host.
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim_end().to_owned();
        let (running, reaper) = (Mutex::default(), Mutex::default());
        Self { running, reaper, outputs, host, not_kept: AtomicU64::new(0) }
    }

    pub(crate) fn not_kept(&self) -> u64 {
        self.not_kept.load(Relaxed)
    }

    pub(crate) fn kill_all(&self) {
        let mut running = lock(&self.running);
        running.refused = true;
        for command in running.commands.values() {
            let _ = kill_process_group(command.group, Signal::KILL); // fails if it has ended
        }
        let marks: HashSet<Mark> = running.commands.values().map(|command| command.mark).collect();
        drop(running);
        marks::kill_marked(&marks);
    }

    /// Ends the command of a cancelled run like a timeout.
    pub(crate) fn stop(&self, run: RunKey) {
        if let Some(command) = lock(&self.running).commands.get(&run) {
            command.stop.wake();
        }
    }

    /// Returns an encoded [`ExecResult`]; a cancelled command is an error.
    pub(crate) fn exec(&self, context: &TaskContext, command_line: &[u8]) -> Result<Value, String> {
        self.run(context, &ExecRequest::new(command_line))
    }

    /// Runs an encoded [`ExecRequest`]. The value is an encoded [`ExecResult`].
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

struct NotStarted {
    cause: io::Error,
    why: String,
}

impl NotStarted {
    fn new(what: &str, cause: io::Error) -> Self {
        Self { why: format!("{what}: {cause}"), cause }
    }

    /// The kernel's error does not distinguish a missing directory from a missing shell.
    fn of(cause: io::Error, request: &ExecRequest) -> Self {
        if let Some(directory) = &request.directory {
            let directory = Path::new(OsStr::from_bytes(directory));
            if let Err(cause) = std::fs::read_dir(directory) {
                return Self::new(&format!("cannot run in the directory {}", directory.display()), cause);
            }
        }
        Self::new("cannot start /bin/sh", cause)
    }

    fn may_pass(&self) -> bool {
        let lacks = [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM];
        self.cause.raw_os_error().is_some_and(|code| lacks.contains(&Errno::from_raw_os_error(code)))
    }
}

/// One piece of memory, unless an output is a file.
fn join(mut head: Vec<u8>, stdout: Kept, stderr: Kept) -> Value {
    if let (Kept::Memory(stdout), Kept::Memory(stderr)) = (&stdout, &stderr) {
        head.extend_from_slice(stdout);
        head.extend_from_slice(stderr);
        return Value::Bytes(head);
    }
    Value::Large(vec![Piece::Memory(Arc::new(head)), stdout.into(), stderr.into()].into())
}

/// Runs the program directly if a shell would do no more, else `/bin/sh -c`, which also handles programs that cannot be executed.
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

/// Sets process group, directory, pipes, and `MIDFLIGHT_ATTEMPT`, `MIDFLIGHT_JID`, `MIDFLIGHT_TID` and the counted resources.
fn furnish(command: &mut Command, context: &TaskContext, request: &ExecRequest, mark: Mark) {
    command.process_group(0);
    command.env("MIDFLIGHT_ATTEMPT", context.attempt.to_string());
    command.env("MIDFLIGHT_JID", context.jid.to_string()).env("MIDFLIGHT_TID", context.tid.to_string());
    command.envs(request.environment.iter().map(|(name, value)| (OsStr::from_bytes(name), OsStr::from_bytes(value))));
    command.envs(context.holding.environment()); // after the request's variables, which thus cannot override them
    command.env(marks::VARIABLE, mark.to_string());
    if let Some(directory) = &request.directory {
        command.current_dir(OsStr::from_bytes(directory));
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    restore_open_files(command);
}

#[cfg(test)]
pub(crate) mod tests;
