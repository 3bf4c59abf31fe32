//! A worker process: start, calls and end.

use super::PythonOptions;
use super::cache::{Blob, Content};
use super::channel::{Channel, ChannelError, GRACE, Patience};
use super::counts::{Counters, count};
use super::frames::{FRAMES, Header, from, to};
use super::life::{Ended, Life};
use super::memory::{Memory, Reserved};
use super::output;
use super::places::Place;
use super::time_limit::TimeLimit;
use crate::process::children::Outputs;
use crate::process::open_files::restore_open_files;
use crate::tasks::exec::marks::{self, Mark};
use crate::tasks::exec::reaper::Record;
use crate::tasks::functions::TaskContext;
use crate::waker::Waker;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::HashMap;
use std::fmt::Display;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

const START_PATIENCE: Duration = Duration::from_secs(30);
/// Beyond any process; keeps reported sizes from overflowing the sum.
const OWN_BYTES_MAX: u64 = 1 << 47;
const BLOBS_MAX: usize = 1024;
/// Bytes of the number of calls that have begun, in front of their results so far.
const BEGUN_BYTES: usize = 4;

/// A running worker. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Process {
    /// `None` once ended.
    life: Option<Life>,
    channel: Channel,
    output: Outputs,
    pub(super) environment: Vec<(String, String)>,
    pub(super) hello: Hello,
    /// Digest of the installed packages, once known.
    digest: Option<u64>,
    /// Its blobs by number.
    has: HashMap<u32, Held>,
    memory: Arc<Memory>,
    counters: Arc<Counters>,
    /// The cache's number of evictions when the worker was last told of them.
    drops: u64,
    /// Number of tasks it was given; identifies the latest `call`.
    pub(super) tasks: u64,
    time_limit: TimeLimit,
    /// Its previous task was told to stop.
    was_stopped: bool,
}

#[derive(Debug)]
struct Held {
    /// Expires when the cache evicts the blob.
    blob: Weak<Blob>,
    /// Share of mapped content.
    _shared: Option<Arc<Reserved>>,
    /// Memory of its copy or of the unpickled objects.
    own: Reserved,
    /// Number of the task that last used it.
    used: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Hello {
    pub(super) python: (u8, u8),
    pub(super) about: String,
}

#[derive(Debug)]
pub(super) struct Done {
    pub(super) result: Vec<u8>,
    pub(super) has_raised: bool,
}

pub(super) struct Calls<'a> {
    pub(super) function: &'a Arc<Blob>,
    pub(super) shared: &'a [Arc<Blob>],
    pub(super) pickled: &'a [u8],
}

impl Calls<'_> {
    fn blobs(&self) -> impl Iterator<Item = &Arc<Blob>> {
        std::iter::once(self.function).chain(self.shared)
    }
}

pub(super) struct Start<'a> {
    pub(super) options: &'a PythonOptions,
    /// Whether modules may be imported from the working directory.
    pub(super) trusts_directory: bool,
    pub(super) memory: &'a Arc<Memory>,
    pub(super) counters: &'a Arc<Counters>,
}

impl Start<'_> {
    /// Starts a worker and waits for its hello. The error is one line that says what to do.
    pub(super) fn worker(
        &self,
        environment: Vec<(String, String)>,
        record: Record,
        place: Place,
    ) -> Result<Process, String> {
        let python = self.options.interpreter.display();
        let cannot = |what: &str, error: &dyn Display| format!("cannot {what} {python}: {error}");
        let (socket, other) = UnixStream::pair().map_err(|error| cannot("make a socket for", &error))?;
        let (outputs, pipe) = io::pipe().map_err(|error| cannot("make a pipe for", &error))?;
        let error_pipe = pipe.try_clone().map_err(|error| cannot("make a pipe for", &error))?;
        let mut command = self.command(&environment, record.mark());
        command.stdin(Stdio::from(OwnedFd::from(other))).stdout(pipe).stderr(error_pipe);
        let child = command
            .spawn()
            .map_err(|error| format!("cannot start {python}: {error}; give --python PYTHON or --venv DIR"))?;
        drop(command); // closes the pipe's other end
        let group = Pid::from_child(&child);
        if let Err(error) = record.started(group) {
            tracing::warn!("the group of a Python worker is not in the reaper's table: {error}");
        }
        let life = Life::new(child, record, place);
        let made = || -> Result<_, String> {
            socket.set_nonblocking(true).map_err(|error| cannot("use the socket of", &error))?;
            let pidfd = pidfd_open(group, PidfdFlags::empty()).map_err(|error| cannot("watch", &error))?;
            let stop = Waker::new().map_err(|error| cannot("watch", &error))?;
            let output =
                output::copy(outputs.into(), self.counters).map_err(|error| cannot("copy the outputs of", &error))?;
            Ok((Channel::new(socket, pidfd, group, stop), output))
        };
        let (channel, output) = match made() {
            Ok(made) => made,
            Err(error) => {
                life.discard();
                return Err(error);
            }
        };
        let mut process = Process {
            life: Some(life),
            channel,
            output,
            environment,
            hello: Hello::default(),
            digest: None,
            has: HashMap::new(),
            memory: Arc::clone(self.memory),
            counters: Arc::clone(self.counters),
            drops: 0,
            tasks: 0,
            time_limit: TimeLimit::default(),
            was_stopped: false,
        };
        match process.greeting() {
            Ok(hello) => process.hello = hello,
            Err(error) => return Err(process.not_started(error, &python.to_string())),
        }
        Ok(process)
    }

    fn command(&self, environment: &[(String, String)], mark: Mark) -> Command {
        let mut command = Command::new(&self.options.interpreter);
        // -P excludes the working directory; PYTHONSAFEPATH would also affect child processes.
        command.args(if self.trusts_directory { [].as_slice() } else { &["-P"] });
        command.args(["-m", "midflight.worker"]).process_group(0);
        command.env("PYTHONUNBUFFERED", "1").envs(environment.iter().map(|(name, value)| (name, value)));
        command.env(marks::VARIABLE, mark.to_string());
        restore_open_files(&mut command);
        command
    }
}

impl Process {
    fn greeting(&mut self) -> Result<Hello, ChannelError> {
        let patience = Patience { deadline: Some(Instant::now() + START_PATIENCE), task: None };
        let (header, body) = self.channel.receive(patience)?;
        if header.kind != from::HELLO || header.number != FRAMES {
            tracing::warn!("a Python worker speaks version {} of the frames, this executor {FRAMES}", header.number);
            return Err(ChannelError::InvalidAnswer);
        }
        let [major, minor, about @ ..] = body.as_slice() else { return Err(ChannelError::InvalidAnswer) };
        Ok(Hello { python: (*major, *minor), about: String::from_utf8_lossy(about).into_owned() })
    }

    fn not_started(&mut self, error: ChannelError, python: &str) -> String {
        let ended = self.end();
        let line = ended.last_line();
        match error {
            ChannelError::TimedOut => {
                format!("{python} -m midflight.worker did not start within {START_PATIENCE:?}: {line}")
            }
            ChannelError::InvalidAnswer => format!(
                "{python} -m midflight.worker is of another release ({line}): use one release of Midflight for executor and \
                 workers"
            ),
            _ if line.contains("No module named") && line.contains("midflight") => {
                format!(
                    "{python} has no package midflight: install it there (pip install ./python in the sources of Midflight, or \
                     the wheel of ./do wheel), or give --venv DIR"
                )
            }
            _ => format!("{python} -m midflight.worker did not start ({}): {line}", ended.how()),
        }
    }

    /// Mark and group, until it has ended.
    pub(super) fn names(&self) -> Option<(Mark, Pid)> {
        let life = self.life.as_ref()?;
        Some((life.mark()?, life.group()))
    }

    /// Wakes the worker when its task is cancelled.
    pub(super) fn stop(&self) -> Arc<Waker> {
        Arc::clone(self.channel.stop())
    }

    pub(super) fn is_alive(&self) -> bool {
        self.channel.is_quiet()
    }

    /// Begins a task. After an error in it, the worker must be ended.
    pub(super) fn begin(&mut self, timeout: Option<Duration>) {
        self.tasks += 1;
        self.time_limit = TimeLimit::new(timeout);
        self.was_stopped |= self.channel.begin();
    }

    /// The message if its task was told to stop at its timeout.
    pub(super) fn overtime(&self) -> Option<String> {
        self.channel.has_timed_out().then(|| self.time_limit.exceeded())
    }

    /// Digest of the installed packages, computed on first request.
    pub(super) fn digest(&mut self, context: &TaskContext) -> Result<u64, ChannelError> {
        if let Some(digest) = self.digest {
            return Ok(digest);
        }
        let patience = Patience { deadline: self.time_limit.deadline(), task: Some(context) };
        self.channel.send(&[&Header::alone(to::ENVIRONMENT, 0).encode()], patience)?;
        let (header, body) = self.channel.receive(patience)?;
        let digest = body.try_into().map(u64::from_le_bytes);
        match digest {
            Ok(digest) if header.kind == from::DIGEST => Ok(*self.digest.insert(digest)),
            _ => Err(ChannelError::InvalidAnswer),
        }
    }

    pub(super) fn call(&mut self, context: &TaskContext, calls: &Calls<'_>, drops: u64) -> Result<Done, ChannelError> {
        let patience = Patience { deadline: self.time_limit.deadline(), task: Some(context) };
        self.forget_dropped(drops, patience)?;
        let needed: Vec<u32> = calls.blobs().map(|blob| blob.number).collect();
        self.make_room(&needed, patience)?;
        for blob in calls.blobs() {
            self.provide(blob, patience)?;
        }
        let numbers: Vec<u8> = calls.blobs().flat_map(|blob| blob.number.to_le_bytes()).collect();
        let number = self.tasks as u32;
        let length = (numbers.len() + calls.pickled.len()) as u64;
        let says_when = if self.time_limit.waits_for_begin() { to::SAYS_WHEN } else { 0 };
        let was_stopped = if std::mem::take(&mut self.was_stopped) { to::WAS_STOPPED } else { 0 };
        let flag = says_when | was_stopped;
        let header = Header { kind: to::CALL, flag, count: calls.shared.len() as u16, number, length };
        self.channel.send(&[&header.encode(), &numbers, calls.pickled], patience)?;
        self.answer(context, number)
    }

    /// Handles the worker's messages until the call has ended.
    fn answer(&mut self, context: &TaskContext, number: u32) -> Result<Done, ChannelError> {
        let (mut lent, mut was_refused) = (None, false);
        loop {
            let patience = Patience { deadline: self.time_limit.deadline(), task: Some(context) };
            let (header, body) = self.channel.receive(patience)?;
            // Another number comes from a process forked by an earlier task.
            if header.number != number {
                return Err(ChannelError::InvalidAnswer);
            }
            match header.kind {
                from::DONE => return Ok(Done { result: body, has_raised: header.flag != 0 }),
                from::BEGUN if self.time_limit.waits_for_begin() => {
                    // After a timeout while loading, the limit must not restart.
                    if !self.channel.has_timed_out() {
                        self.time_limit.begin();
                    }
                }
                from::WAITS => {
                    if lent.is_none() {
                        let room = |slot| (slot, self.life.as_ref().map(Life::make_room));
                        lent = context.lend_slot().ok().map(room);
                    }
                    if header.flag == from::SILENT {
                        warn_of_refusal(lent.is_none(), &mut was_refused);
                    } else {
                        let flag = u8::from(lent.is_some());
                        self.channel.send(&[&Header { flag, ..Header::alone(to::LENT, number) }.encode()], patience)?;
                    }
                }
                from::GOES_ON => lent = None,
                from::LOADED => self.loaded(&body).ok_or(ChannelError::InvalidAnswer)?,
                // Without an earlier task, no imported module can be stale.
                from::STALE if self.tasks > 1 => return Err(ChannelError::Stale),
                from::NOT_BEGUN => {
                    // Without room for the results so far, what has not begun is given back without them.
                    let begun = body.first_chunk().map(|begun: &[u8; BEGUN_BYTES]| begun.to_vec());
                    if !context.give_back_part(body)
                        && let Some(begun) = begun
                    {
                        context.give_back_part(begun);
                    }
                }
                _ => return Err(ChannelError::InvalidAnswer),
            }
        }
    }

    /// Accounts for objects that the worker unpickled from a blob. `None`: invalid message.
    fn loaded(&mut self, body: &[u8]) -> Option<()> {
        let (blob, bytes) = body.split_first_chunk()?;
        let bytes = u64::from_le_bytes(bytes.try_into().ok()?).min(OWN_BYTES_MAX);
        self.has.get_mut(&u32::from_le_bytes(*blob))?.own = self.memory.reserve(bytes);
        Some(())
    }

    /// Makes the worker forget blobs evicted from the cache since the last time.
    pub(super) fn forget_dropped(&mut self, drops: u64, patience: Patience<'_>) -> Result<(), ChannelError> {
        if self.drops == drops {
            return Ok(());
        }
        self.drops = drops;
        let gone = self.has.iter().filter(|(_, held)| held.blob.strong_count() == 0).map(|(&number, _)| number);
        self.forget(&gone.collect::<Vec<_>>(), patience)
    }

    /// Makes the worker evict its least recently used blobs, except `needed`, until the limits are met.
    pub(super) fn make_room(&mut self, needed: &[u32], patience: Patience<'_>) -> Result<(), ChannelError> {
        while self.has.len() > BLOBS_MAX || self.memory.is_exceeded() {
            let others = self.has.iter().filter(|(number, _)| !needed.contains(number));
            let Some((&number, _)) = others.min_by_key(|(_, held)| held.used) else { break };
            self.forget(&[number], patience)?;
            count(&self.counters.copies_dropped);
        }
        Ok(())
    }

    fn forget(&mut self, numbers: &[u32], patience: Patience<'_>) -> Result<(), ChannelError> {
        let frames: Vec<u8> = numbers.iter().flat_map(|&number| Header::alone(to::DROP, number).encode()).collect();
        self.channel.send(&[&frames], patience)?;
        self.has.retain(|number, _| !numbers.contains(number));
        Ok(())
    }

    fn provide(&mut self, blob: &Arc<Blob>, patience: Patience<'_>) -> Result<(), ChannelError> {
        if let Some(held) = self.has.get_mut(&blob.number) {
            held.used = self.tasks;
            return Ok(());
        }
        let (shared, own) = match &blob.content {
            Content::Bytes(bytes) => {
                let header = Header { length: blob.length, ..Header::alone(to::BLOB, blob.number) };
                self.channel.send(&[&header.encode(), bytes], patience)?;
                (None, blob.length)
            }
            Content::Memory(memory) => {
                self.channel.send(&[&Header::alone(to::MEMORY, blob.number).encode()], patience)?;
                if self.channel.receive(patience)?.0.kind != from::READY {
                    return Err(ChannelError::InvalidAnswer);
                }
                self.channel.send_descriptor(memory, patience)?;
                (Some(Arc::clone(&blob.reserved)), 0)
            }
        };
        let (blob, number) = (Arc::downgrade(blob), blob.number);
        let held = Held { blob, _shared: shared, own: self.memory.reserve(own), used: self.tasks };
        self.has.insert(number, held);
        Ok(())
    }

    /// Lets the worker end by itself for a while, then kills it.
    pub(super) fn retire(mut self) {
        self.channel.close();
        self.channel.has_ended_within(GRACE); // killed in any case
        self.end();
    }

    /// Kills the worker and its descendants; returns how it ended.
    pub(super) fn end(&mut self) -> Ended {
        let Some(life) = self.life.take() else { return Ended::default() };
        let ended = life.end(&self.channel);
        Ended { lines: self.output.last_lines(), ..ended }
    }
}

/// Once per call: nothing else tells that it keeps its slot.
fn warn_of_refusal(is_refused: bool, was_refused: &mut bool) {
    if is_refused && !std::mem::replace(was_refused, true) {
        tracing::warn!(
            "a Python call with open calls keeps its slot, because as many calls of this executor wait for others as may: raise \
             `waiting` in [tasks.executors] of its configuration, or nest calls less deeply"
        );
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}
