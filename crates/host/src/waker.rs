//! Wakes a thread that waits for packets.

use midflight_endpoint::Nanos;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// An eventfd that a thread waits for together with its socket. Waking it twice before it reads costs one system call.
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
        self.poll(&mut [PollFd::new(&self.fd, PollFlags::IN), PollFd::new(readable, PollFlags::IN)], timeout);
    }

    /// As `wait`, for something else to read too.
    pub(crate) fn wait_too(&self, readable: &impl AsFd, too: Option<BorrowedFd<'_>>, timeout: Option<Nanos>) {
        let Some(too) = too else { return self.wait(readable, timeout) };
        let fds = [self.fd.as_fd(), readable.as_fd(), too];
        self.poll(&mut fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)), timeout);
    }

    /// Sleeps until someone wakes this, or `timeout` has passed.
    pub(crate) fn sleep(&self, timeout: Nanos) {
        self.poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], Some(timeout));
    }

    /// The first of `fds` is this one's.
    fn poll(&self, fds: &mut [PollFd<'_>], timeout: Option<Nanos>) {
        let timeout = timeout
            .map(|nanos| Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 });
        // An interrupted wait is a short wait: every caller checks everything again.
        let woken = poll(fds, timeout.as_ref()).is_ok() && fds[0].revents().contains(PollFlags::IN);
        if woken {
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.fd, &mut count);
            // A swap, to see all that was done before each wake-up that this one stands for.
            self.pending.swap(false, Ordering::AcqRel);
        }
    }
}
