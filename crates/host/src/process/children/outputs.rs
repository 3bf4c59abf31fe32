//! A child's output, handed to a listener as it comes. A thread drains the pipe, so the child never blocks.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const CHUNK_BYTES: usize = 16 << 10;
/// Most bytes read after the child has ended, in case another process keeps writing to the pipe.
const LEFT_BYTES: usize = 1 << 20;
/// Timeout for the last lines. The reading takes longer only if the listener blocks.
const LINES_PATIENCE: Duration = Duration::from_secs(1);
/// Silence after which a listener is called, if it asks for that.
const SILENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Receives a child's output. `()` ignores it.
pub trait Listener: Send + 'static {
    /// Called with the bytes of each read.
    fn heard(&mut self, bytes: &[u8]);

    /// Whether to call [`silent`](Self::silent) after a second without output.
    fn awaits_silence(&self) -> bool {
        false
    }

    /// A second has passed without output, or nothing more will be read.
    fn silent(&mut self) {}
}

impl Listener for () {
    fn heard(&mut self, _: &[u8]) {}
}

/// The output of one child. It is read until the pipe is closed, the child has ended, or this is dropped.
#[derive(Debug)]
pub struct Outputs {
    tail: Arc<Mutex<Vec<u8>>>,
    /// An eventfd: readable once the child has ended.
    end: Arc<OwnedFd>,
    read: Receiver<()>,
}

impl Outputs {
    /// Spawns a thread of this name that drains the pipe and keeps the last `tail_bytes`.
    ///
    /// # Errors
    /// If the process is at its limit of threads or descriptors.
    pub fn listen(
        thread: &str,
        pipe: impl Into<OwnedFd>,
        tail_bytes: usize,
        listener: impl Listener,
    ) -> io::Result<Self> {
        let end = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        let tail = Arc::<Mutex<Vec<u8>>>::default();
        let (reading, read) = channel();
        let mut reader =
            Reader { pipe: pipe.into(), end: Arc::clone(&end), tail: Arc::clone(&tail), tail_bytes, listener };
        std::thread::Builder::new().name(thread.into()).spawn(move || {
            let _reading = reading;
            reader.run();
            reader.listener.silent();
        })?;
        Ok(Self { tail, end, read })
    }

    /// The last lines of a child that has ended. Does not wait for another process that holds the pipe.
    #[must_use]
    pub fn last_lines(&self) -> String {
        self.ends();
        let _ = self.read.recv_timeout(LINES_PATIENCE); // a value, a closed channel and a timeout all end the wait
        String::from_utf8_lossy(&lock(&self.tail)).trim().to_owned()
    }

    fn ends(&self) {
        // Fails only if the counter would overflow, and then it is readable anyway.
        let _ = write(&*self.end, &1u64.to_ne_bytes());
    }
}

impl Drop for Outputs {
    fn drop(&mut self) {
        self.ends();
    }
}

struct Reader<L> {
    pipe: OwnedFd,
    end: Arc<OwnedFd>,
    tail: Arc<Mutex<Vec<u8>>>,
    tail_bytes: usize,
    listener: L,
}

impl<L: Listener> Reader<L> {
    /// Reads until the pipe is closed, or is empty after the child's end.
    fn run(&mut self) {
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut left: Option<usize> = None;
        loop {
            let mut fds = [PollFd::new(&self.pipe, PollFlags::IN), PollFd::new(&*self.end, PollFlags::IN)];
            let patience = self.listener.awaits_silence().then_some(&SILENCE);
            let polled = poll(&mut fds, patience);
            let (is_readable, has_ended) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
            match polled {
                Ok(0) => self.listener.silent(),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(_) => return,
            }
            // `end` became readable after the child's last write, so all its output is in the pipe.
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
                    self.keep(&buffer[..length]);
                    self.listener.heard(&buffer[..length]);
                }
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    fn keep(&self, bytes: &[u8]) {
        let mut tail = lock(&self.tail);
        tail.extend_from_slice(bytes);
        let excess = tail.len().saturating_sub(self.tail_bytes);
        tail.drain(..excess);
    }
}

/// Ignores poisoning: the bytes are consistent at every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Timeout of every wait in the tests.
    const PATIENCE: Duration = Duration::from_secs(60);
    const TAIL_BYTES: usize = 2 << 10;

    fn listen(listener: impl Listener) -> (Outputs, io::PipeWriter) {
        let (reader, writer) = io::pipe().unwrap();
        (Outputs::listen("test", reader, TAIL_BYTES, listener).unwrap(), writer)
    }

    #[test]
    fn the_last_lines_are_there_although_somebody_holds_the_pipe() {
        let (outputs, writer) = listen(());
        write(&writer, &[b'x'; TAIL_BYTES]).unwrap();
        write(&writer, b" the end\n").unwrap();
        let lines = outputs.last_lines();
        assert!(lines.len() <= TAIL_BYTES && lines.ends_with("x the end"), "{lines}");
        drop(writer);
    }

    #[test]
    fn somebody_who_writes_without_end_is_not_read_for_ever() {
        let (outputs, writer) = listen(());
        let (ended, refused) = channel();
        let line = [b'x'; CHUNK_BYTES];
        write(&writer, &line).unwrap();
        std::thread::spawn(move || {
            let error = loop {
                if let Err(error) = write(&writer, &line) {
                    break error;
                }
            };
            let _ = ended.send(error);
        });
        let _ = outputs.last_lines();
        assert_eq!(refused.recv_timeout(PATIENCE), Ok(Errno::PIPE));
        assert!(outputs.last_lines().ends_with('x'));
    }

    #[test]
    fn the_last_lines_are_there_although_the_listener_blocks() {
        struct Blocks(Receiver<()>);
        impl Listener for Blocks {
            fn heard(&mut self, _: &[u8]) {
                let _ = self.0.recv(); // until the test ends
            }
        }
        let (_ends, blocks) = channel();
        let (outputs, writer) = listen(Blocks(blocks));
        write(&writer, b"the end\n").unwrap();
        drop(writer);
        let deadline = Instant::now() + PATIENCE;
        while lock(&outputs.tail).is_empty() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(outputs.last_lines(), "the end");
    }

    #[test]
    fn a_listener_hears_all_and_then_the_silence() {
        struct Tells(std::sync::mpsc::Sender<String>);
        impl Listener for Tells {
            fn heard(&mut self, bytes: &[u8]) {
                let _ = self.0.send(String::from_utf8_lossy(bytes).into_owned()); // the test may have ended
            }

            fn silent(&mut self) {
                let _ = self.0.send("silence".into());
            }
        }
        let (told, tells) = channel();
        let (_outputs, writer) = listen(Tells(told));
        write(&writer, b"words").unwrap();
        drop(writer);
        assert_eq!(tells.recv_timeout(PATIENCE).as_deref(), Ok("words"));
        assert_eq!(tells.recv_timeout(PATIENCE).as_deref(), Ok("silence"));
    }
}
