//! The outputs of a command: in memory, and in a file if long.

use super::OUTPUT_MAX;
use super::run::until;
use crate::blob::Piece;
use crate::disk::spill::{SpillFile, SpillRoom};
use crate::waker::Waker;
use midflight_tasks::functions::OUTPUT_NOT_KEPT;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::sync::Arc;
use std::time::Instant;

/// Longest output kept in memory, in bytes.
const MEMORY_MAX: usize = 512 << 10;
const PIPE_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Capture {
    streams: [Stream; 2],
    room: Arc<SpillRoom>,
    /// Empty until something arrives: many commands write nothing.
    buffer: Vec<u8>,
    /// Why an output could not be kept; later output is dropped.
    lost: Option<String>,
}

#[derive(Debug)]
struct Stream {
    /// `None` once closed.
    pipe: Option<OwnedFd>,
    kept: Kept,
}

#[derive(Debug)]
pub(super) enum Kept {
    Memory(Vec<u8>),
    File(SpillFile),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Took {
    Something,
    Late,
    Stopped,
    /// An output cannot be kept; [`Capture::into_kept`] says why.
    Lost,
}

impl Capture {
    /// Takes the child's pipes.
    pub(super) fn new(child: &mut Child, room: Arc<SpillRoom>) -> Self {
        let pipes = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
        let streams = pipes.map(|pipe| Stream { pipe, kept: Kept::Memory(Vec::new()) });
        Self { streams, room, buffer: Vec::new(), lost: None }
    }

    pub(super) fn is_open(&self) -> bool {
        self.streams.iter().any(|stream| stream.pipe.is_some())
    }

    /// Waits for output and reads it; returns early on `stop` or at the deadline.
    pub(super) fn wait(&mut self, deadline: Option<Instant>, stop: Option<&Waker>) -> Took {
        let open = self.streams.iter().filter_map(|stream| stream.pipe.as_ref()).map(AsFd::as_fd);
        let fds = open.chain(stop.map(Waker::as_fd));
        let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        match poll(&mut fds, deadline.map(until).as_ref()) {
            Err(_interrupted) => return Took::Something,
            Ok(0) => return Took::Late,
            Ok(_) => {}
        }
        let mut events = fds.iter().map(PollFd::revents).collect::<Vec<_>>().into_iter();
        let had = self.lost.is_some();
        for index in 0..self.streams.len() {
            if self.streams[index].pipe.is_some()
                && let Some(events) = events.next()
            {
                self.take(index, events);
            }
        }
        match () {
            () if self.lost.is_some() && !had => Took::Lost,
            () if events.next().is_some_and(|stop| !stop.is_empty()) => Took::Stopped,
            () => Took::Something,
        }
    }

    fn take(&mut self, index: usize, events: PollFlags) {
        let Stream { pipe, kept } = &mut self.streams[index];
        if !events.contains(PollFlags::IN) {
            if !events.is_empty() {
                *pipe = None;
            }
            return;
        }
        self.buffer.resize(PIPE_BYTES, 0);
        match pipe.as_ref().map_or(Ok(0), |pipe| read(pipe, &mut self.buffer[..])) {
            Ok(0) => *pipe = None,
            Ok(length) if self.lost.is_none() => {
                if let Err(why) = kept.append(&self.buffer[..length], &self.room) {
                    self.lose(why);
                } else if self.streams.iter().map(|stream| stream.kept.len()).sum::<u64>() > OUTPUT_MAX {
                    self.lose(format!("it is longer than {OUTPUT_MAX} bytes"));
                }
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => *pipe = None,
        }
    }

    fn lose(&mut self, why: String) {
        self.lost = Some(why);
        for stream in &mut self.streams {
            stream.kept = Kept::Memory(Vec::new());
        }
    }

    /// Reads what the pipes hold and closes them, whichever processes have the write ends.
    pub(super) fn let_go(&mut self) {
        self.wait(Some(Instant::now()), None);
        for stream in &mut self.streams {
            stream.pipe = None;
        }
    }

    /// Returns stdout and stderr.
    pub(super) fn into_kept(self) -> Result<(Kept, Kept), String> {
        if let Some(why) = self.lost {
            return Err(format!("{OUTPUT_NOT_KEPT}, and the command was ended: {why}; let it write to a file"));
        }
        let [stdout, stderr] = self.streams.map(|stream| stream.kept);
        Ok((stdout, stderr))
    }
}

impl Kept {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(file) => file.len(),
        }
    }

    fn append(&mut self, bytes: &[u8], room: &Arc<SpillRoom>) -> Result<(), String> {
        match self {
            Self::Memory(memory) if memory.len() + bytes.len() <= MEMORY_MAX => memory.extend_from_slice(bytes),
            Self::Memory(memory) => {
                let spill = |memory: &[u8]| {
                    let mut file = room.file()?;
                    file.append(memory)?;
                    file.append(bytes)?;
                    Ok(file)
                };
                *self = Self::File(spill(memory).map_err(|error: crate::disk::spill::SpillError| error.to_string())?);
            }
            Self::File(file) => file.append(bytes).map_err(|error| error.to_string())?,
        }
        Ok(())
    }
}

impl From<Kept> for Piece {
    fn from(kept: Kept) -> Self {
        match kept {
            Kept::Memory(bytes) => Self::Memory(Arc::new(bytes)),
            Kept::File(file) => Self::File(file),
        }
    }
}
