//! Wakes a thread that waits for packets.

use midflight_tasks::Nanos;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// An eventfd that a thread waits for together with its socket. Waking twice before it looked costs one system call.
#[derive(Debug)]
pub(crate) struct Waker {
    fd: OwnedFd,
    pending: AtomicBool,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { fd: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?, pending: AtomicBool::new(false) })
    }

    pub(crate) fn wake(&self) {
        if !self.pending.swap(true, Ordering::AcqRel) {
            // Fails only where the counter would overflow, and then the thread is woken anyway.
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }

    /// Sleeps until `readable` has something to read, someone wakes this, or `timeout` has passed.
    pub(crate) fn wait(&self, readable: &impl AsFd, timeout: Option<Nanos>) {
        let timeout = timeout
            .map(|nanos| Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 });
        let mut fds = [PollFd::new(readable, PollFlags::IN), PollFd::new(&self.fd, PollFlags::IN)];
        // An interrupted wait is a short wait: every caller looks at everything again.
        let woken = poll(&mut fds, timeout.as_ref()).is_ok() && fds[1].revents().contains(PollFlags::IN);
        if woken {
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.fd, &mut count);
            self.pending.store(false, Ordering::Release);
        }
    }
}
