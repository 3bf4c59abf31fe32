//! Unparks a thread that waits for packets.

use crate::error::Error;
use midflight_endpoint::Nanos;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// An eventfd that a thread polls together with its socket. Waking it several times before the thread runs costs one system call.
#[derive(Debug)]
pub struct Waker {
    fd: OwnedFd,
    /// A wake-up was written, and the thread has not read it yet.
    pending: AtomicBool,
}

impl Waker {
    /// One that nobody waits for yet.
    ///
    /// # Errors
    /// If the system refuses a descriptor.
    pub fn new() -> Result<Self, Error> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        let fd = fd.map_err(|source| Error::Resources { what: "create an eventfd", source: source.into() })?;
        Ok(Self { fd, pending: AtomicBool::new(false) })
    }

    pub(crate) fn wake(&self) {
        if !self.pending.swap(true, Ordering::AcqRel) {
            // It fails only if the eventfd's counter would overflow, and a counter above zero wakes the thread anyway.
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }

    /// Sleeps until `readable` has something to read, someone wakes this, or `timeout` has passed.
    pub(crate) fn wait(&self, readable: &impl AsFd, timeout: Option<Nanos>) {
        self.poll(&mut [PollFd::new(&self.fd, PollFlags::IN), PollFd::new(readable, PollFlags::IN)], timeout);
    }

    /// The same, with a second descriptor to read from if there is one.
    pub(crate) fn wait_for_both(&self, readable: &impl AsFd, second: Option<BorrowedFd<'_>>, timeout: Option<Nanos>) {
        let Some(second) = second else { return self.wait(readable, timeout) };
        let fds = [self.fd.as_fd(), readable.as_fd(), second];
        self.poll(&mut fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)), timeout);
    }

    /// Sleeps until someone wakes this, or `timeout` has passed.
    pub(crate) fn sleep(&self, timeout: Nanos) {
        self.poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], Some(timeout));
    }

    /// To poll it with others: it is readable from the first wake-up on.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The first of `fds` is the eventfd.
    fn poll(&self, fds: &mut [PollFd<'_>], timeout: Option<Nanos>) {
        let timeout = timeout
            .map(|nanos| Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 });
        // A wait that a signal interrupts is a short wait: every caller checks again what it waits for.
        let woken = poll(fds, timeout.as_ref()).is_ok() && fds[0].revents().contains(PollFlags::IN);
        if woken {
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.fd, &mut count);
            // A swap and not a store: it makes visible what each thread did before its wake-up, also of those that wrote nothing.
            self.pending.swap(false, Ordering::AcqRel);
        }
    }
}
