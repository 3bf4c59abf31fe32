//! Wakes a thread that waits for packets.

use crate::error::Error;
use midflight_endpoint::Nanos;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// An eventfd, polled together with a socket. Repeated wake-ups before the thread runs cost one system call.
#[derive(Debug)]
pub struct Waker {
    fd: OwnedFd,
    /// A wake-up was written but not yet read.
    pending: AtomicBool,
}

impl Waker {
    /// A new waker.
    ///
    /// # Errors
    ///
    /// If the system refuses a descriptor.
    pub fn new() -> Result<Self, Error> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        let fd = fd.map_err(|error| Error::resources("create an eventfd")(error.into()))?;
        Ok(Self { fd, pending: AtomicBool::new(false) })
    }

    pub(crate) fn wake(&self) {
        if !self.pending.swap(true, Ordering::AcqRel) {
            // Fails only if the counter would overflow, and then the thread wakes anyway.
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }

    pub(crate) fn wait(&self, readable: &impl AsFd, timeout: Option<Nanos>) {
        self.poll(&mut [PollFd::new(&self.fd, PollFlags::IN), PollFd::new(readable, PollFlags::IN)], timeout);
    }

    pub(crate) fn wait_for_both(&self, readable: &impl AsFd, second: Option<BorrowedFd<'_>>, timeout: Option<Nanos>) {
        let Some(second) = second else { return self.wait(readable, timeout) };
        let fds = [self.fd.as_fd(), readable.as_fd(), second];
        self.poll(&mut fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)), timeout);
    }

    pub(crate) fn sleep(&self, timeout: Nanos) {
        self.poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], Some(timeout));
    }

    /// Readable after a wake-up, to be polled with other descriptors.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// `fds[0]` must be the eventfd.
    fn poll(&self, fds: &mut [PollFd<'_>], timeout: Option<Nanos>) {
        let timeout = timeout
            .map(|nanos| Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 });
        // A signal ends the wait early; every caller checks its condition again.
        let woken = poll(fds, timeout.as_ref()).is_ok() && fds[0].revents().contains(PollFlags::IN);
        if woken {
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.fd, &mut count);
            // A swap acquires what each waking thread did before, even those that wrote nothing; a store would not.
            self.pending.swap(false, Ordering::AcqRel);
        }
    }
}
