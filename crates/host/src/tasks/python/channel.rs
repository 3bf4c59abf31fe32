//! The channel between executor and worker: frames over a socket, while the worker lives and its task is wanted.

use super::frames::{HEADER_BYTES, Header};
use crate::tasks::functions::TaskContext;
use crate::waker::Waker;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, sendmsg};
use rustix::process::{Pid, Signal, kill_process};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for a task to stop after SIGINT, and for a worker to end.
pub(super) const GRACE: Duration = Duration::from_secs(1);
/// Repeated, because a worker ignores SIGINT while it unpickles or imports.
const INTERRUPT_EVERY: Duration = Duration::from_millis(100);
/// Longest answer: that of a result by reference.
const ANSWER_MAX: u64 = midflight_wire::tasks::RESULT_BLOB_MAX as u64;
const BUFFER_BYTES: usize = 16 << 10;
/// Largest part of an answer that is allocated in advance.
const FIRST_ALLOCATION: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Channel {
    socket: UnixStream,
    pidfd: OwnedFd,
    worker: Pid,
    /// Woken when the task is cancelled.
    stop: Arc<Waker>,
    told: Option<StopRequest>,
    /// Bytes after the last frame.
    left: Vec<u8>,
    /// Reused for short frames.
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct StopRequest {
    /// The error if it does not stop.
    error: ChannelError,
    /// Time of the next SIGINT.
    again: Instant,
    /// Time to give up.
    until: Instant,
}

/// How long to wait, and for which cancellation.
#[derive(Clone, Copy)]
pub(super) struct Patience<'a> {
    /// When it passes, a task is told to stop.
    pub(super) deadline: Option<Instant>,
    pub(super) task: Option<&'a TaskContext>,
}

/// Why there is no answer. The worker must be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChannelError {
    /// Cancelled, and not stopped within [`GRACE`].
    Cancelled,
    /// No answer by the deadline; a task was told to stop, and did not within [`GRACE`].
    TimedOut,
    /// The worker died or closed the socket.
    Died,
    /// The worker's answer is invalid.
    InvalidAnswer,
    /// Modules that it imported have changed. It has not begun; another worker must run the calls.
    Stale,
}

impl Channel {
    pub(super) fn new(socket: UnixStream, pidfd: OwnedFd, worker: Pid, stop: Waker) -> Self {
        Self { socket, pidfd, worker, stop: Arc::new(stop), told: None, left: Vec::new(), buffer: Vec::new() }
    }

    pub(super) fn stop(&self) -> &Arc<Waker> {
        &self.stop
    }

    /// Begins a task. Returns whether the previous one was told to stop.
    pub(super) fn begin(&mut self) -> bool {
        self.told.take().is_some()
    }

    pub(super) fn has_timed_out(&self) -> bool {
        self.told.is_some_and(|told| told.error == ChannelError::TimedOut)
    }

    /// Whether the worker lives and is silent, as an idle one should.
    pub(super) fn is_quiet(&self) -> bool {
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN), PollFd::new(&self.socket, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.left.is_empty() && matches!(poll(&mut fds, Some(&now)), Ok(0))
    }

    pub(super) fn close(&self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both); // fails if the other end has left
    }

    pub(super) fn has_ended_within(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            let left = timespec(deadline.saturating_duration_since(Instant::now()));
            match poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&left)) {
                Ok(0) => return false,
                Ok(_) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Python closes the socket while it exits: wait for its status before killing it.
    fn died(&self) -> ChannelError {
        self.has_ended_within(GRACE);
        ChannelError::Died
    }

    pub(super) fn send(&mut self, parts: &[&[u8]], patience: Patience<'_>) -> Result<(), ChannelError> {
        let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut left = slices.as_mut_slice();
        while left.iter().any(|part| !part.is_empty()) {
            match sendmsg(&self.socket, left, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL) {
                Ok(sent) => IoSlice::advance_slices(&mut left, sent),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, patience)?,
                Err(_) => return Err(self.died()),
            }
        }
        Ok(())
    }

    pub(super) fn send_descriptor(&mut self, memory: &OwnedFd, patience: Patience<'_>) -> Result<(), ChannelError> {
        loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let fds = [memory.as_fd()];
            control.push(SendAncillaryMessage::ScmRights(&fds));
            match sendmsg(&self.socket, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, patience)?,
                Err(_) => return Err(self.died()),
            }
        }
    }

    /// Receives a frame. Short ones use a shared buffer.
    pub(super) fn receive(&mut self, patience: Patience<'_>) -> Result<(Header, Vec<u8>), ChannelError> {
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.clear();
        bytes.reserve(BUFFER_BYTES);
        bytes.append(&mut self.left);
        let frame = self.receive_with(&mut bytes, patience);
        self.buffer = bytes;
        frame
    }

    fn receive_with(&mut self, bytes: &mut Vec<u8>, patience: Patience<'_>) -> Result<(Header, Vec<u8>), ChannelError> {
        if bytes.is_empty() {
            self.wait(PollFlags::IN, patience)?;
        }
        while bytes.len() < HEADER_BYTES {
            self.read(bytes, patience)?;
        }
        let header = Header::decode(bytes.first_chunk().ok_or(ChannelError::InvalidAnswer)?);
        let length = usize::try_from(header.length).ok().filter(|_| header.length <= ANSWER_MAX);
        let length = length.ok_or(ChannelError::InvalidAnswer)?;
        let mut body = Vec::with_capacity(length.min(FIRST_ALLOCATION));
        body.extend_from_slice(&bytes[HEADER_BYTES..]);
        while body.len() < length {
            body.reserve((length - body.len()).min(body.len().max(BUFFER_BYTES)));
            self.read(&mut body, patience)?;
        }
        self.left = body.split_off(length);
        Ok((header, body))
    }

    fn read(&mut self, bytes: &mut Vec<u8>, patience: Patience<'_>) -> Result<(), ChannelError> {
        loop {
            match recv(&self.socket, rustix::buffer::spare_capacity(bytes), RecvFlags::empty()) {
                Ok((_, 0)) => return Err(self.died()),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::IN, patience)?,
                Err(_) => return Err(self.died()),
            }
        }
    }

    /// Waits for the socket or the end of the process. A stop request applies to the whole task, not only to this wait.
    fn wait(&mut self, ready: PollFlags, patience: Patience<'_>) -> Result<(), ChannelError> {
        loop {
            let mut fds = [
                PollFd::new(&self.socket, ready),
                PollFd::new(&self.pidfd, PollFlags::IN),
                PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN),
            ];
            let due = self.told.map(|told| told.again.min(told.until)).or(patience.deadline);
            let left = due.map(|due| timespec(due.saturating_duration_since(Instant::now())));
            let polled = poll(&mut fds, left.as_ref()); // an error is a signal
            let is_set = |fd: usize| polled.is_ok() && !fds[fd].revents().is_empty();
            let (is_ready, has_ended, is_stopped) = (is_set(0), is_set(1), is_set(2));
            if is_stopped {
                self.stop.sleep(0); // resets the wake-up, which may be that of the previous task
                if self.told.is_none() && patience.task.is_some_and(TaskContext::cancelled) {
                    self.told = Some(StopRequest::now(ChannelError::Cancelled));
                }
            }
            if is_ready {
                return Ok(());
            }
            if has_ended {
                return Err(ChannelError::Died);
            }
            match &mut self.told {
                Some(told) => {
                    let now = Instant::now();
                    if told.until <= now {
                        return Err(told.error);
                    }
                    if told.again <= now {
                        told.again = now + INTERRUPT_EVERY;
                        let _ = kill_process(self.worker, Signal::INT); // fails if it has ended
                    }
                }
                None if polled != Ok(0) => {}
                None if patience.task.is_some() => self.told = Some(StopRequest::now(ChannelError::TimedOut)),
                None => return Err(ChannelError::TimedOut),
            }
        }
    }
}

impl StopRequest {
    fn now(error: ChannelError) -> Self {
        let now = Instant::now();
        Self { error, again: now, until: now + GRACE }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::exec::tests::context;
    use rustix::process::{PidfdFlags, pidfd_open};
    use std::io::Read;
    use std::process::{Child, Command, Stdio};

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A process that ignores SIGINT, and both ends of a socket.
    fn deaf() -> (Child, Channel, UnixStream) {
        let script = "trap '' INT; echo ready; exec sleep 600";
        let mut child = Command::new("/bin/sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
        let (socket, other) = UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        let worker = Pid::from_child(&child);
        let pidfd = pidfd_open(worker, PidfdFlags::empty()).unwrap();
        (child, Channel::new(socket, pidfd, worker, Waker::new().unwrap()), other)
    }

    #[test]
    fn a_cancelling_that_comes_while_the_call_is_sent_holds_for_the_answer() {
        let (mut child, mut channel, mut other) = deaf();
        let context = context();
        context.cancellation().cancel();
        channel.stop().wake();
        channel.begin();
        // The worker reads everything and does not answer.
        let reads = std::thread::spawn(move || std::io::copy(&mut other, &mut std::io::sink()));
        let (ended, answer) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let patience = Patience { deadline: None, task: Some(&context) };
            let sent = channel.send(&[&vec![0; 16 << 20]], patience);
            let answer = channel.receive(patience).map(|_| ()).unwrap_err();
            let _ = ended.send((sent, answer));
        });
        assert_eq!(answer.recv_timeout(PATIENCE), Ok((Ok(()), ChannelError::Cancelled)));
        child.kill().and_then(|()| child.wait()).unwrap();
        reads.join().unwrap().unwrap();
    }
}
