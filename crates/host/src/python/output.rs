//! What workers write to their outputs: to this process's stderr, so much at once and so much a second.

use super::counts::Counters;
use crate::driver::{lock, spawn};
use crate::error::Error;
use crate::waker::Waker;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What a worker may write at once.
const BURST_BYTES: u64 = 1 << 20;
/// What it may write a second, in the long run.
const BYTES_PER_SECOND: u64 = 256 << 10;
/// Of what a dead worker wrote, for its client.
const TAIL_BYTES: usize = 2 << 10;
const CHUNK_BYTES: usize = 16 << 10;

/// What may be in the pipe when the worker has ended, at most: nobody who goes on writing is read for longer.
const LEFT_BYTES: usize = 1 << 20;
/// How long the last lines are waited for. Longer only where nobody reads this process's stderr.
const LINES_PATIENCE: Duration = Duration::from_secs(1);
/// After so much silence it is said what was dropped.
const SILENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The outputs of one worker.
#[derive(Debug)]
pub(super) struct Output {
    tail: Arc<Mutex<Vec<u8>>>,
    end: Arc<Waker>,
    /// Closed when all is copied.
    copied: Receiver<()>,
}

/// Where outputs go.
trait Sink {
    fn print(&mut self, bytes: &[u8]);
    /// So many bytes of a worker are not printed, because it wrote too much.
    fn dropped(&mut self, bytes: u64);
}

/// This process's stderr, and a counter of what is dropped.
struct Stderr(Arc<Counters>);

impl Sink for Stderr {
    fn print(&mut self, bytes: &[u8]) {
        let _ = std::io::stderr().lock().write_all(bytes); // where it cannot be written there is nobody to tell
    }

    fn dropped(&mut self, bytes: u64) {
        self.0.output_dropped.fetch_add(bytes, Ordering::Relaxed);
        tracing::warn!(
            "{bytes} bytes that a Python worker wrote are dropped: it may write {BYTES_PER_SECOND} a second"
        );
    }
}

impl Output {
    /// Copies what comes out of the pipe.
    pub(super) fn copy(pipe: OwnedFd, counters: &Arc<Counters>) -> Result<Self, Error> {
        Self::copy_to(Stderr(Arc::clone(counters)), pipe)
    }

    fn copy_to(sink: impl Sink + Send + 'static, pipe: OwnedFd) -> Result<Self, Error> {
        let (tail, end) = (Arc::<Mutex<Vec<u8>>>::default(), Arc::new(Waker::new()?));
        let (copying, copied) = channel();
        let mut copier =
            Copier { pipe, end: Arc::clone(&end), tail: Arc::clone(&tail), allowance: Allowance::new(), sink };
        spawn("mf-python-out", move || {
            let _copying = copying;
            copier.run();
        })?;
        Ok(Self { tail, end, copied })
    }

    /// The worker has ended: the last lines that it wrote. Whoever has the pipe's other end still is not waited for.
    pub(super) fn last_lines(&self) -> String {
        self.end.wake();
        let _ = self.copied.recv_timeout(LINES_PATIENCE); // it comes, or is closed, or is late
        String::from_utf8_lossy(&lock(&self.tail)).trim().to_owned()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.end.wake();
    }
}

struct Copier<S> {
    pipe: OwnedFd,
    end: Arc<Waker>,
    tail: Arc<Mutex<Vec<u8>>>,
    allowance: Allowance,
    sink: S,
}

impl<S: Sink> Copier<S> {
    fn run(&mut self) {
        self.copy();
        self.say_dropped();
    }

    /// Until the pipe is closed, or is empty after the worker's end.
    fn copy(&mut self) {
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut left: Option<usize> = None;
        loop {
            let mut fds =
                [PollFd::new(&self.pipe, PollFlags::IN), PollFd::from_borrowed_fd(self.end.as_fd(), PollFlags::IN)];
            let patience = (self.allowance.dropped > 0).then_some(&SILENCE);
            let polled = poll(&mut fds, patience);
            let (is_readable, has_ended) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
            match polled {
                Ok(0) => self.say_dropped(),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(_) => return,
            }
            // The end comes after all that is in the pipe.
            if has_ended {
                left.get_or_insert(LEFT_BYTES);
                if !is_readable || left == Some(0) {
                    return;
                }
            }
            if !is_readable {
                continue;
            }
            match read(self.pipe.as_fd(), &mut buffer[..]) {
                Ok(0) => return,
                Ok(length) => {
                    left = left.map(|left| left.saturating_sub(length));
                    self.take(&buffer[..length]);
                }
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
        if self.allowance.takes(bytes.len() as u64, Instant::now()) {
            self.say_dropped();
            self.sink.print(bytes);
        }
    }

    fn say_dropped(&mut self) {
        let dropped = std::mem::take(&mut self.allowance.dropped);
        if dropped > 0 {
            self.sink.dropped(dropped);
        }
    }
}

/// What may be written.
struct Allowance {
    left: u64,
    at: Instant,
    /// Bytes that were not allowed, and of which nothing was said yet.
    dropped: u64,
}

impl Allowance {
    fn new() -> Self {
        Self { left: BURST_BYTES, at: Instant::now(), dropped: 0 }
    }

    /// Whether so many bytes may be written now.
    fn takes(&mut self, bytes: u64, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.at);
        if since > Duration::from_millis(10) {
            let more = (since.as_secs_f64() * BYTES_PER_SECOND as f64) as u64;
            self.left = self.left.saturating_add(more).min(BURST_BYTES);
            self.at = now;
        }
        if self.left < bytes {
            self.dropped += bytes;
            return false;
        }
        self.left -= bytes;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No test waits longer for anything.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Tells a test what was dropped.
    struct Told(std::sync::mpsc::Sender<u64>);

    impl Sink for Told {
        fn print(&mut self, _: &[u8]) {}

        fn dropped(&mut self, bytes: u64) {
            let _ = self.0.send(bytes); // the test may have ended
        }
    }

    #[test]
    fn too_much_is_dropped_and_counted() {
        let mut allowance = Allowance::new();
        let now = allowance.at;
        assert!(allowance.takes(BURST_BYTES, now));
        assert!(!allowance.takes(1_000, now));
        assert!(!allowance.takes(500, now));
        let later = now + Duration::from_secs(1);
        assert!(allowance.takes(BYTES_PER_SECOND, later));
        assert!(!allowance.takes(1, later));
        assert_eq!(allowance.dropped, 1_501);
    }

    #[test]
    fn what_is_dropped_last_is_said_also_where_nothing_follows() {
        for ends in [false, true] {
            let (reader, writer) = std::io::pipe().unwrap();
            let (told, dropped) = channel();
            let output = Output::copy_to(Told(told), reader.into()).unwrap();
            for _ in 0..4 * BURST_BYTES / CHUNK_BYTES as u64 {
                rustix::io::write(&writer, &[b'x'; CHUNK_BYTES]).unwrap();
            }
            if ends {
                drop((writer, output));
            }
            assert!(dropped.recv_timeout(PATIENCE).unwrap() > 0, "ends: {ends}");
        }
    }

    #[test]
    fn the_last_lines_are_there_although_somebody_holds_the_pipe() {
        let (reader, writer) = std::io::pipe().unwrap();
        let (told, _dropped) = channel();
        let output = Output::copy_to(Told(told), reader.into()).unwrap();
        rustix::io::write(&writer, &[b'x'; TAIL_BYTES]).unwrap();
        rustix::io::write(&writer, b" the end\n").unwrap();
        let lines = output.last_lines();
        assert!(lines.len() <= TAIL_BYTES && lines.ends_with("x the end"), "{lines}");
        drop(writer);
    }

    #[test]
    fn somebody_who_writes_without_end_is_not_read_for_ever() {
        let (reader, writer) = std::io::pipe().unwrap();
        let (told, _dropped) = channel();
        let output = Output::copy_to(Told(told), reader.into()).unwrap();
        let (ended, refused) = channel();
        let line = [b'x'; CHUNK_BYTES];
        rustix::io::write(&writer, &line).unwrap();
        std::thread::spawn(move || {
            let error = loop {
                if let Err(error) = rustix::io::write(&writer, &line) {
                    break error;
                }
            };
            let _ = ended.send(error);
        });
        output.last_lines();
        assert_eq!(refused.recv_timeout(PATIENCE), Ok(Errno::PIPE));
        assert!(output.last_lines().ends_with('x'));
    }

    #[test]
    fn last_lines_are_there_although_nobody_reads_stderr() {
        struct Blocked(Receiver<()>);
        impl Sink for Blocked {
            fn print(&mut self, _: &[u8]) {
                let _ = self.0.recv(); // until the test ends
            }

            fn dropped(&mut self, _: u64) {}
        }
        let (_ends, blocks) = channel();
        let (reader, writer) = std::io::pipe().unwrap();
        let output = Output::copy_to(Blocked(blocks), reader.into()).unwrap();
        rustix::io::write(&writer, b"the end\n").unwrap();
        drop(writer);
        let deadline = Instant::now() + PATIENCE;
        while lock(&output.tail).is_empty() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(output.last_lines(), "the end");
    }
}
