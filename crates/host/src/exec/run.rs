//! One command, from its start to its end.

use super::capture::{Capture, Took};
use super::marks::{Mark, kill_marked};
use super::reaper::Record;
use crate::spill::SpillRoom;
use crate::waker::Waker;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid};
use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a command that is ended early has after SIGTERM, before SIGKILL.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// A command that runs.
#[derive(Debug)]
pub(super) struct Run {
    child: Child,
    group: Pid,
    record: Record,
    capture: Capture,
    /// `None` when it has been heeded.
    stop: Option<Arc<Waker>>,
    began: Instant,
}

/// Why a command was ended before it ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Early {
    TimedOut,
    /// Its task is cancelled.
    Stopped,
    /// Its outputs could not be kept.
    NotKept,
}

/// How its process ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Status {
    /// The exit code, or 128 + the signal.
    pub(super) code: i32,
    pub(super) signal: Option<u8>,
}

/// Why a wait is over.
#[derive(Clone, Copy, Debug)]
enum Woken {
    Ended,
    Late,
    Stopped,
    NotKept,
}

impl Run {
    /// A command that was started as leader of a process group.
    pub(super) fn new(mut child: Child, record: Record, outputs: Arc<SpillRoom>, stop: Arc<Waker>) -> Self {
        let group = Pid::from_child(&child);
        if let Err(error) = record.started(group) {
            // If this process dies, the reaper still finds the command by its mark.
            tracing::warn!("the group of a command is not in the reaper's table: {error}");
        }
        let capture = Capture::new(&mut child, outputs);
        Self { child, group, record, capture, stop: Some(stop), began: Instant::now() }
    }

    pub(super) fn mark(&self) -> Mark {
        self.record.mark()
    }

    pub(super) fn group(&self) -> Pid {
        self.group
    }

    /// Waits until it has ended, and ends it early if it must be. Its status is still to be collected.
    pub(super) fn wait_to_end(&mut self, timeout: Option<Duration>) -> Option<Early> {
        // No deadline where the clock does not reach that far.
        let deadline = timeout.and_then(|timeout| self.began.checked_add(timeout));
        let early = match self.wait(deadline) {
            Woken::Ended => return None,
            Woken::Late => Early::TimedOut,
            Woken::Stopped => Early::Stopped,
            Woken::NotKept => Early::NotKept,
        };
        self.stop = None;
        self.signal(Signal::TERM);
        self.wait(Some(Instant::now() + GRACE));
        // What ignored SIGTERM, also where the process itself has ended: its number is its own until its status is collected.
        self.signal(Signal::KILL);
        kill_marked(&HashSet::from([self.mark()]));
        self.capture.let_go();
        Some(early)
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.group, signal); // an error means that all of it has ended
    }

    /// Waits until it has ended or the deadline has passed, or an output cannot be kept.
    fn wait(&mut self, deadline: Option<Instant>) -> Woken {
        while self.capture.is_open() {
            match self.capture.wait(deadline, self.stop.as_deref()) {
                Took::Something => {}
                Took::Late => return Woken::Late,
                Took::Stopped => return Woken::Stopped,
                Took::Lost => return Woken::NotKept,
            }
        }
        self.wait_for_process(deadline)
    }

    /// Waits until its process has exited, or the deadline has passed.
    fn wait_for_process(&self, deadline: Option<Instant>) -> Woken {
        if self.exited(WaitIdOptions::NOHANG) {
            return Woken::Ended;
        }
        let Ok(pidfd) = pidfd_open(self.group, PidfdFlags::empty()) else {
            self.exited(WaitIdOptions::empty()); // too many files are open: then nothing else ends the wait
            return Woken::Ended;
        };
        loop {
            let fds = std::iter::once(pidfd.as_fd()).chain(self.stop.as_deref().map(Waker::as_fd));
            let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            let ready = poll(&mut fds, deadline.map(until).as_ref());
            if self.exited(WaitIdOptions::NOHANG) {
                return Woken::Ended;
            }
            match ready {
                Ok(0) => return Woken::Late,
                Ok(_) if fds.get(1).is_some_and(|stop| !stop.revents().is_empty()) => return Woken::Stopped,
                Ok(_) | Err(_) => {} // interrupted
            }
        }
    }

    /// Whether its process has exited, or waits until it has. Its status stays to be collected.
    fn exited(&self, how: WaitIdOptions) -> bool {
        loop {
            match waitid(WaitId::Pid(self.group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | how) {
                Err(Errno::INTR) => {}
                Ok(None) => return false,
                Ok(Some(_)) | Err(_) => return true, // an error: collecting the status will say which
            }
        }
    }

    /// Waits for its process and collects its status. `unlist` is called when it has exited, while its number is still its own.
    pub(super) fn collect(self, unlist: impl FnOnce()) -> io::Result<(Status, Capture)> {
        self.exited(WaitIdOptions::empty());
        let Self { mut child, record, capture, .. } = self;
        unlist();
        drop(record);
        Ok((child.wait()?.into(), capture))
    }
}

impl From<ExitStatus> for Status {
    fn from(status: ExitStatus) -> Self {
        let signal = status.signal();
        Self {
            code: status.code().unwrap_or_else(|| 128 + signal.unwrap_or(0)),
            signal: signal.and_then(|signal| u8::try_from(signal).ok()),
        }
    }
}

/// The time that is left.
pub(super) fn until(deadline: Instant) -> Timespec {
    let left = deadline.saturating_duration_since(Instant::now());
    // Nobody waits for longer than the kernel's clock can say.
    Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
}
