//! One command, from its start to its end.

use super::capture::{Capture, Took};
use super::marks::{Mark, kill_marked};
use super::reaper::Record;
use crate::disk::spill::SpillRoom;
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

/// Time between SIGTERM and SIGKILL.
pub(super) const GRACE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Run {
    child: Child,
    group: Pid,
    record: Record,
    capture: Capture,
    /// `None` after it was obeyed.
    stop: Option<Arc<Waker>>,
    began: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Early {
    TimedOut,
    Stopped,
    NotKept,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Status {
    /// Exit code, or 128 + signal.
    pub(super) code: i32,
    pub(super) signal: Option<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Woken {
    Ended,
    Late,
    Stopped,
    NotKept,
}

impl Run {
    pub(super) fn new(mut child: Child, record: Record, outputs: Arc<SpillRoom>, stop: Arc<Waker>) -> Self {
        let group = Pid::from_child(&child);
        if let Err(error) = record.started(group) {
            // The reaper still finds the command by its mark.
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

    /// Waits for the end, or ends the command early. Its status is collected later.
    pub(super) fn wait_to_end(&mut self, timeout: Option<Duration>) -> Option<Early> {
        // No deadline beyond the clock's range.
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
        // Also for the group of an ended process, whose id stays reserved until its status is collected.
        self.signal(Signal::KILL);
        kill_marked(&HashSet::from([self.mark()]));
        self.capture.let_go();
        Some(early)
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.group, signal); // fails if the whole group has ended
    }

    /// Waits for the end or the deadline, or until an output cannot be kept.
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

    fn wait_for_process(&self, deadline: Option<Instant>) -> Woken {
        if self.exited(WaitIdOptions::NOHANG) {
            return Woken::Ended;
        }
        let Ok(pidfd) = pidfd_open(self.group, PidfdFlags::empty()) else {
            self.exited(WaitIdOptions::empty()); // too many open files: wait without a deadline
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

    /// Whether the process has exited; waits unless `how` has NOHANG. Does not collect its status.
    fn exited(&self, how: WaitIdOptions) -> bool {
        loop {
            match waitid(WaitId::Pid(self.group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | how) {
                Err(Errno::INTR) => {}
                Ok(None) => return false,
                Ok(Some(_)) | Err(_) => return true, // collecting the status will report an error
            }
        }
    }

    /// Collects the status. `unlist` runs before the process id can be reused.
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

/// The time left.
pub(super) fn until(deadline: Instant) -> Timespec {
    let left = deadline.saturating_duration_since(Instant::now());
    // Beyond the kernel's range: for ever.
    Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
}
