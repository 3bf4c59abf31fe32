//! A worker process: its start, the frames to and from it, and its end.

use super::PythonOptions;
use super::cache::{Blob, Content};
use super::output::Output;
use crate::exec::marks::{self, Mark, kill_marked};
use crate::exec::reaper::Record;
use crate::functions::TaskContext;
use crate::open_files::restore_open_files;
use crate::waker::Waker;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, sendmsg};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, pidfd_open, waitid,
};
use std::collections::{HashMap, HashSet};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a worker may take to start.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// How long a task has after SIGINT, and a worker after its last one.
const GRACE: Duration = Duration::from_secs(1);
/// Version of the frames.
const FRAMES: u32 = 1;
const HEADER_BYTES: usize = 16;
/// The longest answer: what a result by reference may hold.
const ANSWER_MAX: u64 = midflight_wire::RESULT_BLOB_MAX as u64;
/// A short frame has at most so many bytes.
const BUFFER_BYTES: usize = 16 << 10;
/// The largest part of an answer that is allocated before it comes.
const FIRST_ALLOCATION: usize = 1 << 20;
/// Blobs that one worker may have.
const BLOBS_MAX: usize = 1024;

/// Kinds of frames.
mod kind {
    pub(super) const BLOB: u8 = 1;
    pub(super) const MEMORY: u8 = 2;
    pub(super) const DROP: u8 = 3;
    pub(super) const CALL: u8 = 4;
    pub(super) const HELLO: u8 = 1;
    pub(super) const READY: u8 = 2;
    pub(super) const DONE: u8 = 3;
}

/// A worker that runs. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    group: Pid,
    pidfd: OwnedFd,
    socket: UnixStream,
    /// Woken when its task is cancelled.
    pub(super) stop: Arc<Waker>,
    /// `None` when its status is collected.
    record: Option<Record>,
    output: Output,
    /// What of resources it has in its environment.
    pub(super) environment: Vec<(String, String)>,
    pub(super) hello: Hello,
    /// Blobs that it has, their length and when they were used.
    has: HashMap<u32, (u64, u64)>,
    has_bytes: u64,
    blob_bytes_max: u64,
    /// Tasks that it was given.
    pub(super) tasks: u64,
    buffer: Vec<u8>,
}

/// What a worker says of itself.
#[derive(Clone, Debug)]
pub(super) struct Hello {
    /// Major and minor version.
    pub(super) python: (u8, u8),
    /// Digest of the environment.
    pub(super) environment: u64,
    /// For people.
    pub(super) about: String,
}

/// An answer to calls.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) result: Vec<u8>,
    /// Whether one of the calls ended with an exception.
    pub(super) has_raised: bool,
}

/// Why there is no answer; the worker is to be ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Silent {
    /// It was told to stop, and did not in time.
    Cancelled,
    /// It has died, or sent what is no frame.
    Died,
    Late,
}

/// How a worker has ended.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) signal: Option<u8>,
    pub(super) code: i32,
    /// The last lines that it wrote.
    pub(super) lines: String,
}

/// A frame's header.
#[derive(Clone, Copy, Debug)]
struct Header {
    kind: u8,
    flag: u8,
    count: u16,
    number: u32,
    length: u64,
}

impl Header {
    fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = self.kind;
        bytes[1] = self.flag;
        bytes[2..4].copy_from_slice(&self.count.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; HEADER_BYTES]) -> Self {
        let [kind, flag, c0, c1, n0, n1, n2, n3, length @ ..] = *bytes;
        Self {
            kind,
            flag,
            count: u16::from_le_bytes([c0, c1]),
            number: u32::from_le_bytes([n0, n1, n2, n3]),
            length: u64::from_le_bytes(length),
        }
    }
}

/// Until when to wait, and for which cancelling.
#[derive(Clone, Copy)]
struct Patience<'a> {
    deadline: Option<Instant>,
    /// Of the task that runs.
    task: Option<&'a TaskContext>,
}

impl Process {
    /// Starts a worker and waits for its first word; else one line that says what to do.
    pub(super) fn start(
        options: &PythonOptions,
        environment: Vec<(String, String)>,
        record: Record,
    ) -> Result<Self, String> {
        let python = options.interpreter.display();
        let cannot = |what: &str, error: &dyn std::fmt::Display| format!("cannot {what} {python}: {error}");
        let (socket, other) = UnixStream::pair().map_err(|error| cannot("make a socket for", &error))?;
        let (outputs, pipe) = io::pipe().map_err(|error| cannot("make a pipe for", &error))?;
        let mut command = Command::new(&options.interpreter);
        command.args(["-m", "midflight.worker"]).process_group(0);
        command.env("PYTHONUNBUFFERED", "1").envs(environment.iter().map(|(name, value)| (name, value)));
        command.env(marks::VARIABLE, record.mark().to_string());
        let error_pipe = pipe.try_clone().map_err(|error| cannot("make a pipe for", &error))?;
        command.stdin(Stdio::from(OwnedFd::from(other))).stdout(pipe).stderr(error_pipe);
        restore_open_files(&mut command);
        let child = command
            .spawn()
            .map_err(|error| format!("cannot start {python}: {error}; give --python PYTHON or --venv DIR"))?;
        drop(command); // it has the pipe's other end
        let group = Pid::from_child(&child);
        if let Err(error) = record.started(group) {
            tracing::warn!("the group of a Python worker is not in the reaper's table: {error}");
        }
        let made = || -> Result<_, String> {
            socket.set_nonblocking(true).map_err(|error| cannot("use the socket of", &error))?;
            let pidfd = pidfd_open(group, PidfdFlags::empty()).map_err(|error| cannot("watch", &error))?;
            let stop = Waker::new().map_err(|error| cannot("watch", &error))?;
            let output = Output::copy(outputs.into()).map_err(|error| cannot("copy the outputs of", &error))?;
            Ok((pidfd, stop, output))
        };
        let (pidfd, stop, output) = match made() {
            Ok(made) => made,
            Err(error) => {
                let mut child = child;
                kill(group, record.mark());
                drop(record);
                let _ = child.wait(); // it was killed
                return Err(error);
            }
        };
        let hello = Hello { python: (0, 0), environment: 0, about: String::new() };
        let mut process = Self {
            child,
            group,
            pidfd,
            socket,
            stop: Arc::new(stop),
            record: Some(record),
            output,
            environment,
            hello,
            has: HashMap::new(),
            has_bytes: 0,
            blob_bytes_max: options.cache_bytes,
            tasks: 0,
            buffer: Vec::new(),
        };
        match process.greeting() {
            Ok(hello) => process.hello = hello,
            Err(silent) => return Err(process.not_started(silent, &python.to_string())),
        }
        Ok(process)
    }

    fn greeting(&mut self) -> Result<Hello, Silent> {
        let patience = Patience { deadline: Some(Instant::now() + START_PATIENCE), task: None };
        let (header, body) = self.receive(patience)?;
        let [major, minor, rest @ ..] = body.as_slice() else { return Err(Silent::Died) };
        let (environment, about) = rest.split_first_chunk().ok_or(Silent::Died)?;
        if header.kind != kind::HELLO || header.number != FRAMES {
            tracing::warn!("a Python worker speaks version {} of the frames, this executor {FRAMES}", header.number);
            return Err(Silent::Died);
        }
        let about = String::from_utf8_lossy(about).into_owned();
        Ok(Hello { python: (*major, *minor), environment: u64::from_le_bytes(*environment), about })
    }

    fn not_started(&mut self, silent: Silent, python: &str) -> String {
        let ended = self.end();
        if silent == Silent::Late {
            return format!(
                "{python} -m midflight.worker did not start within {START_PATIENCE:?}: {}",
                ended.last_line()
            );
        }
        let line = ended.last_line();
        if line.contains("No module named") && line.contains("midflight") {
            return format!("{python} has no package midflight: {python} -m pip install midflight, or give --venv DIR");
        }
        format!("{python} -m midflight.worker did not start ({}): {line}", ended.how())
    }

    pub(super) fn mark(&self) -> Option<Mark> {
        self.record.as_ref().map(Record::mark)
    }

    pub(super) fn group(&self) -> Pid {
        self.group
    }

    /// Whether it can be given a task.
    pub(super) fn is_alive(&self) -> bool {
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN), PollFd::new(&self.socket, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // An idle worker says nothing.
        matches!(poll(&mut fds, Some(&now)), Ok(0))
    }

    /// Has it do calls. After an error it must be ended.
    pub(super) fn call(
        &mut self,
        context: &TaskContext,
        function: &Blob,
        shared: &[Arc<Blob>],
        calls: &[u8],
    ) -> Result<Done, Silent> {
        self.tasks += 1;
        let patience = Patience { deadline: None, task: Some(context) };
        self.make_room(function, shared, patience)?;
        for blob in std::iter::once(function).chain(shared.iter().map(Arc::as_ref)) {
            self.provide(blob, patience)?;
        }
        let numbers: Vec<u8> = shared.iter().flat_map(|blob| blob.number.to_le_bytes()).collect();
        let length = (numbers.len() + calls.len()) as u64;
        let header =
            Header { kind: kind::CALL, flag: 0, count: shared.len() as u16, number: function.number, length }.encode();
        self.send(&[&header, &numbers, calls], patience)?;
        let (header, result) = self.receive(patience)?;
        if header.kind != kind::DONE {
            return Err(Silent::Died);
        }
        Ok(Done { result, has_raised: header.flag != 0 })
    }

    /// Has it forget what it used least recently, but nothing that this call needs.
    fn make_room(&mut self, function: &Blob, shared: &[Arc<Blob>], patience: Patience<'_>) -> Result<(), Silent> {
        while self.has.len() > BLOBS_MAX || self.has_bytes > self.blob_bytes_max {
            let needed = |number: u32| number == function.number || shared.iter().any(|blob| blob.number == number);
            let others = self.has.iter().filter(|(number, _)| !needed(**number));
            let Some((&number, &(length, _))) = others.min_by_key(|(_, (_, used))| *used) else { break };
            self.has.remove(&number);
            self.has_bytes -= length;
            self.send(&[&Header { kind: kind::DROP, flag: 0, count: 0, number, length: 0 }.encode()], patience)?;
        }
        Ok(())
    }

    /// Sends a blob that it lacks.
    fn provide(&mut self, blob: &Blob, patience: Patience<'_>) -> Result<(), Silent> {
        if let Some((_, used)) = self.has.get_mut(&blob.number) {
            *used = self.tasks;
            return Ok(());
        }
        let header = Header { kind: kind::BLOB, flag: 0, count: 0, number: blob.number, length: blob.length };
        match &blob.content {
            Content::Bytes(bytes) => self.send(&[&header.encode(), bytes], patience)?,
            Content::Memory(memory) => {
                self.send(&[&Header { kind: kind::MEMORY, ..header }.encode()], patience)?;
                if self.receive(patience)?.0.kind != kind::READY {
                    return Err(Silent::Died);
                }
                self.send_descriptor(memory, patience)?;
            }
        }
        self.has.insert(blob.number, (blob.length, self.tasks));
        self.has_bytes += blob.length;
        Ok(())
    }

    fn send_descriptor(&self, memory: &OwnedFd, patience: Patience<'_>) -> Result<(), Silent> {
        loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let fds = [memory.as_fd()];
            control.push(SendAncillaryMessage::ScmRights(&fds));
            match sendmsg(&self.socket, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, patience)?,
                Err(_) => return Err(Silent::Died),
            }
        }
    }

    fn send(&self, parts: &[&[u8]], patience: Patience<'_>) -> Result<(), Silent> {
        let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut left = slices.as_mut_slice();
        while left.iter().any(|part| !part.is_empty()) {
            match sendmsg(&self.socket, left, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL) {
                Ok(sent) => IoSlice::advance_slices(&mut left, sent),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, patience)?,
                Err(_) => return Err(Silent::Died),
            }
        }
        Ok(())
    }

    /// A frame. What is short comes in one piece, into a buffer that is used again.
    fn receive(&mut self, patience: Patience<'_>) -> Result<(Header, Vec<u8>), Silent> {
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.clear();
        bytes.reserve(BUFFER_BYTES);
        let frame = self.receive_with(&mut bytes, patience);
        self.buffer = bytes;
        frame
    }

    fn receive_with(&self, bytes: &mut Vec<u8>, patience: Patience<'_>) -> Result<(Header, Vec<u8>), Silent> {
        self.wait(PollFlags::IN, patience)?;
        while bytes.len() < HEADER_BYTES {
            self.read(bytes, patience)?;
        }
        let header = Header::decode(bytes.first_chunk().ok_or(Silent::Died)?);
        let length = usize::try_from(header.length).ok().filter(|_| header.length <= ANSWER_MAX).ok_or(Silent::Died)?;
        let mut body = Vec::with_capacity(length.min(FIRST_ALLOCATION));
        body.extend_from_slice(&bytes[HEADER_BYTES..]);
        while body.len() < length {
            body.reserve((length - body.len()).min(body.len().max(BUFFER_BYTES)));
            self.read(&mut body, patience)?;
        }
        // It was asked once.
        if body.len() == length { Ok((header, body)) } else { Err(Silent::Died) }
    }

    /// Appends what there is, as far as there is room for it; waits for it.
    fn read(&self, bytes: &mut Vec<u8>, patience: Patience<'_>) -> Result<(), Silent> {
        loop {
            match recv(&self.socket, rustix::buffer::spare_capacity(bytes), RecvFlags::empty()) {
                Ok((_, 0)) => return Err(Silent::Died),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::IN, patience)?,
                Err(_) => return Err(Silent::Died),
            }
        }
    }

    /// Waits until the socket is ready, or has nothing more because the process has ended.
    fn wait(&self, ready: PollFlags, patience: Patience<'_>) -> Result<(), Silent> {
        let mut deadline = patience.deadline;
        let mut told = false;
        loop {
            let mut fds = [
                PollFd::new(&self.socket, ready),
                PollFd::new(&self.pidfd, PollFlags::IN),
                PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN),
            ];
            let fds = if told { &mut fds[..2] } else { &mut fds[..] };
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let left = left.map(|left| Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 }));
            match poll(fds, left.as_ref()) {
                Ok(0) if told => return Err(Silent::Cancelled),
                Ok(0) => return Err(Silent::Late),
                Ok(_) | Err(_) => {} // an error: a signal
            }
            if !fds[0].revents().is_empty() {
                return Ok(());
            }
            if !fds[1].revents().is_empty() {
                return Err(Silent::Died);
            }
            if fds.get(2).is_some_and(|stop| !stop.revents().is_empty()) {
                self.stop.sleep(0); // takes the wake-up, which may be of the task before
                if patience.task.is_some_and(TaskContext::cancelled) {
                    told = true;
                    deadline = Some(Instant::now() + GRACE);
                    let _ = kill_process(self.group, Signal::INT); // an error means that it has ended
                }
            }
        }
    }

    /// Lets it end by itself, for a while, and kills what is left.
    pub(super) fn retire(mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both); // an error means that the other end is gone
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let grace = Timespec { tv_sec: GRACE.as_secs() as i64, tv_nsec: 0 };
        let _ = poll(&mut fds, Some(&grace)); // killed in any case
        self.end();
    }

    /// Kills it with all that it has started, and says how it ended.
    pub(super) fn end(&mut self) -> Ended {
        let Some(record) = self.record.take() else {
            return Ended { signal: None, code: 0, lines: String::new() };
        };
        // The process may have died by itself: then this kills what it left. Its number is its own until it is collected.
        kill(self.group, record.mark());
        let _ = waitid(WaitId::Pid(self.group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT); // an error: see below
        drop(record);
        let status = self.child.wait().ok();
        let signal = status.and_then(|status| status.signal()).and_then(|signal| u8::try_from(signal).ok());
        let code = status.and_then(|status| status.code()).unwrap_or(0);
        Ended { signal, code, lines: self.output.last_lines() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

fn kill(group: Pid, mark: Mark) {
    let _ = kill_process_group(group, Signal::KILL); // an error means that it has ended already
    kill_marked(&HashSet::from([mark]));
}

impl Ended {
    /// For people: "signal 11 (SIGSEGV)", "exit code 3".
    pub(super) fn how(&self) -> String {
        match self.signal {
            Some(signal) => match Signal::from_named_raw(signal.into()) {
                Some(named) => format!("signal {signal}, {named:?}"),
                None => format!("signal {signal}"),
            },
            None => format!("exit code {}", self.code),
        }
    }

    fn last_line(&self) -> &str {
        self.lines.lines().last().unwrap_or("it said nothing")
    }
}
