//! What workers write to their outputs: to this process's stderr, so much at once and so much a second.

use crate::driver::{lock, spawn};
use crate::error::Error;
use crate::waker::Waker;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a worker may write at once.
const BURST_BYTES: u64 = 1 << 20;
/// What it may write a second, in the long run.
const BYTES_PER_SECOND: u64 = 256 << 10;
/// Of what a dead worker wrote, for its client.
const TAIL_BYTES: usize = 2 << 10;
const CHUNK_BYTES: usize = 16 << 10;

/// The outputs of one worker.
#[derive(Debug)]
pub(super) struct Output {
    tail: Arc<Mutex<Vec<u8>>>,
    end: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

impl Output {
    /// Copies what comes out of the pipe.
    pub(super) fn copy(pipe: OwnedFd) -> Result<Self, Error> {
        let (tail, end) = (Arc::<Mutex<Vec<u8>>>::default(), Arc::new(Waker::new()?));
        let mut copier = Copier { pipe, end: Arc::clone(&end), tail: Arc::clone(&tail), allowance: Allowance::new() };
        let thread = Some(spawn("mf-python-out", move || copier.run())?);
        Ok(Self { tail, end, thread })
    }

    /// The worker has ended: the last lines that it wrote. Whoever has the pipe's other end still is not waited for.
    pub(super) fn last_lines(&mut self) -> String {
        self.end.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // it only copies
        }
        String::from_utf8_lossy(&lock(&self.tail)).trim().to_owned()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.end.wake();
    }
}

struct Copier {
    pipe: OwnedFd,
    end: Arc<Waker>,
    tail: Arc<Mutex<Vec<u8>>>,
    allowance: Allowance,
}

impl Copier {
    fn run(&mut self) {
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let mut fds =
                [PollFd::new(&self.pipe, PollFlags::IN), PollFd::from_borrowed_fd(self.end.as_fd(), PollFlags::IN)];
            if let Err(error) = poll(&mut fds, None)
                && error != Errno::INTR
            {
                return;
            }
            // The end comes after all that is in the pipe.
            if fds[0].revents().is_empty() {
                if !fds[1].revents().is_empty() {
                    return;
                }
                continue;
            }
            match read(self.pipe.as_fd(), &mut buffer[..]) {
                Ok(0) => return,
                Ok(length) => self.take(&buffer[..length]),
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let mut tail = lock(&self.tail);
        tail.extend_from_slice(bytes);
        let excess = tail.len().saturating_sub(TAIL_BYTES);
        tail.drain(..excess);
        drop(tail);
        match self.allowance.take(bytes.len() as u64, Instant::now()) {
            Taken::Allowed { dropped: 0 } => print(bytes),
            Taken::Allowed { dropped } => {
                tracing::warn!(
                    "{dropped} bytes that a Python worker wrote are dropped: it may write {BYTES_PER_SECOND} a second"
                );
                print(bytes);
            }
            Taken::Dropped => {}
        }
    }
}

/// Where stderr cannot be written there is nobody to tell.
fn print(bytes: &[u8]) {
    let _ = std::io::stderr().lock().write_all(bytes);
}

/// What may be written.
struct Allowance {
    left: u64,
    at: Instant,
    dropped: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Taken {
    /// `dropped`: bytes since the last ones that were allowed.
    Allowed {
        dropped: u64,
    },
    Dropped,
}

impl Allowance {
    fn new() -> Self {
        Self { left: BURST_BYTES, at: Instant::now(), dropped: 0 }
    }

    fn take(&mut self, bytes: u64, now: Instant) -> Taken {
        let since = now.saturating_duration_since(self.at);
        if since > Duration::from_millis(10) {
            let more = (since.as_secs_f64() * BYTES_PER_SECOND as f64) as u64;
            self.left = self.left.saturating_add(more).min(BURST_BYTES);
            self.at = now;
        }
        if self.left < bytes {
            self.dropped += bytes;
            return Taken::Dropped;
        }
        self.left -= bytes;
        Taken::Allowed { dropped: std::mem::take(&mut self.dropped) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_dropped_and_counted() {
        let mut allowance = Allowance::new();
        let now = allowance.at;
        assert_eq!(allowance.take(BURST_BYTES, now), Taken::Allowed { dropped: 0 });
        assert_eq!(allowance.take(1_000, now), Taken::Dropped);
        assert_eq!(allowance.take(500, now), Taken::Dropped);
        let later = now + Duration::from_secs(1);
        assert_eq!(allowance.take(BYTES_PER_SECOND, later), Taken::Allowed { dropped: 1_500 });
        assert_eq!(allowance.take(1, later), Taken::Dropped);
    }

    #[test]
    fn the_last_lines_are_there_although_somebody_holds_the_pipe() {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut output = Output::copy(reader.into()).unwrap();
        rustix::io::write(&writer, &[b'x'; TAIL_BYTES]).unwrap();
        rustix::io::write(&writer, b" the end\n").unwrap();
        let lines = output.last_lines();
        assert!(lines.len() <= TAIL_BYTES && lines.ends_with("x the end"), "{lines}");
        drop(writer);
    }
}
