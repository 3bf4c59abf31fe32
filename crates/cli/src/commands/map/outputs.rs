//! Writes outputs on its own thread, in input order or as they come. Waiting outputs are in memory up to a bound, then in a temporary file.

use super::captured::{Captured, Stream};
use super::joblog::Joblog;
use super::session::Event;
use super::spill::{Part, Spill};
use super::tag::Tagged;
use anyhow::{Context, Result};
use midflight_terminal::progress::Progress;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Bytes of waiting outputs in memory.
const MEMORY_MAX: usize = 16 << 20;
const CHUNK: usize = 64 << 10;

/// Everything to write for one command.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// Written before each line.
    pub tag: Option<Vec<u8>>,
    pub captured: Captured,
    /// Printed after stderr; may be empty.
    pub note: String,
    /// The joblog's line; may be empty.
    pub log: Vec<u8>,
    /// Command number, for the message if the joblog cannot be written.
    pub number: u64,
}

/// An output that waits.
#[derive(Debug)]
struct Held {
    body: Body,
    lengths: [usize; PARTS],
    /// Set if the outputs arrived in a file, not in the body.
    file: Option<Captured>,
    is_tagged: bool,
    note: String,
    number: u64,
}

const PARTS: usize = 4;
const TAG: usize = 0;
const STDOUT: usize = 1;
const STDERR: usize = 2;
const LOG: usize = 3;

#[derive(Debug)]
enum Body {
    Memory([Vec<u8>; PARTS]),
    /// The parts, one after another.
    Spilled(Part),
}

pub(super) struct Settings {
    pub is_ordered: bool,
    /// While this many waiting outputs are files of their own, no command starts.
    pub files_max: usize,
    pub joblog: Option<Joblog>,
    pub progress: Arc<Progress>,
    pub events: Sender<Event>,
}

pub(super) struct Outputs {
    shared: Arc<Shared>,
    is_ordered: bool,
    files_max: usize,
    writer: JoinHandle<Result<Written>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    All,
    /// The reader closed the pipe, as `| head` does.
    Unread,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    memory: AtomicUsize,
    /// Waiting outputs that are files of their own.
    files: AtomicUsize,
    spill: Spill,
}

#[derive(Default)]
struct Queue {
    ready: VecDeque<Held>,
    /// Outputs that wait for an earlier one, by input position.
    early: BTreeMap<u64, Held>,
    next: u64,
    written: u64,
    wants_room: bool,
    is_closed: bool,
}

impl Queue {
    fn next_in_order(&mut self) -> Option<Held> {
        let held = self.early.remove(&self.next)?;
        self.next += 1;
        Some(held)
    }

    /// Passes an output on once all earlier places are filled. Skips an empty one.
    fn release(&mut self, held: Held) {
        if held.is_empty() {
            self.written += 1;
        } else {
            self.ready.push_back(held);
        }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outputs {
    /// `directory` is for the temporary file.
    pub(super) fn start(directory: &Path, settings: Settings) -> Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
            memory: AtomicUsize::new(0),
            files: AtomicUsize::new(0),
            spill: Spill::new(directory),
        });
        let (is_ordered, files_max) = (settings.is_ordered, settings.files_max);
        let stdout = std::io::stdout().as_fd().try_clone_to_owned().context("cannot write the output")?;
        let writer = Writer {
            shared: Arc::clone(&shared),
            stdout: BufWriter::with_capacity(CHUNK, File::from(stdout)),
            settings,
            unlogged: None,
        };
        let writer = std::thread::Builder::new().name("mf-output".into()).spawn(move || writer.run())?;
        Ok(Self { shared, is_ordered, files_max, writer })
    }

    /// Places count from 0 without gaps.
    ///
    /// # Errors
    /// If the output cannot be kept. The place is then filled with `failed` of the error's text.
    pub(super) fn put(&self, place: u64, output: Output, failed: impl FnOnce(&str) -> Output) -> Result<(), String> {
        let (held, result) = match self.hold(place, output) {
            Ok(held) => (held, Ok(())),
            Err(error) => (self.in_memory(Held::new(failed(&error))), Err(error)),
        };
        let mut queue = self.shared.queue();
        let before = queue.ready.len();
        if self.is_ordered {
            queue.early.insert(place, held);
            while let Some(held) = queue.next_in_order() {
                queue.release(held);
            }
        } else {
            queue.release(held);
        }
        if queue.ready.len() == before {
            return result;
        }
        drop(queue);
        self.shared.changed.notify_one();
        result
    }

    fn hold(&self, place: u64, output: Output) -> Result<Held, String> {
        let held = Held::new(output);
        self.shared.files.fetch_add(usize::from(held.file.is_some()), Relaxed);
        let bytes = held.lengths.iter().sum::<usize>();
        let Body::Memory(parts) = &held.body else { return Ok(held) };
        if bytes == 0 || self.shared.memory.load(Relaxed) + bytes <= MEMORY_MAX {
            return Ok(self.in_memory(held));
        }
        let spill = &self.shared.spill;
        match spill.store(parts.each_ref().map(Vec::as_slice)) {
            Ok(part) => Ok(Held { body: Body::Spilled(part), ..held }),
            Err(_) if self.is_next(place) => Ok(self.in_memory(held)),
            Err(error) => {
                let directory = spill.directory().display();
                Err(format!(
                    "its {bytes} bytes of output cannot be kept in {directory}: {error}; make room there, or give --tmpdir"
                ))
            }
        }
    }

    /// Whether the writer takes this output next, so that it need not be kept.
    fn is_next(&self, place: u64) -> bool {
        let queue = self.shared.queue();
        queue.ready.is_empty() && (!self.is_ordered || place == queue.next)
    }

    fn in_memory(&self, held: Held) -> Held {
        self.shared.memory.fetch_add(held.lengths.iter().sum(), Relaxed);
        held
    }

    /// The end of the places with room; no room while too many waiting outputs are open files. Requests an [`Event::Room`] for later.
    pub(super) fn room(&self, window: u64) -> u64 {
        let mut queue = self.shared.queue();
        queue.wants_room = true;
        if self.shared.files.load(Relaxed) < self.files_max { queue.written + window } else { 0 }
    }

    /// Writes everything up to the first unfilled place.
    pub(super) fn finish(self) -> Result<Written> {
        self.shared.queue().is_closed = true;
        self.shared.changed.notify_one();
        self.writer.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the thread that writes the output panicked")))
    }
}

struct Writer {
    shared: Arc<Shared>,
    stdout: BufWriter<File>,
    settings: Settings,
    /// The error, and the missing commands.
    unlogged: Option<(std::io::Error, super::report::Numbers)>,
}

impl Writer {
    fn run(mut self) -> Result<Written> {
        let progress = Arc::clone(&self.settings.progress);
        while let Some(batch) = self.next() {
            let count = batch.len() as u64;
            if let Err(error) = progress.aside(|| self.write_all(batch)) {
                let _ = self.settings.events.send(Event::Unwritten); // the session may be over
                return match error.kind() {
                    ErrorKind::BrokenPipe => Ok(Written::Unread),
                    _ => Err(error).context("cannot write the output"),
                };
            }
            let mut queue = self.shared.queue();
            queue.written += count;
            if std::mem::take(&mut queue.wants_room) {
                let _ = self.settings.events.send(Event::Room);
            }
        }
        match self.unlogged {
            None => Ok(Written::All),
            Some((error, numbers)) => Err(error).with_context(|| {
                let log = self.settings.joblog.as_ref().map(|log| log.path().display().to_string()).unwrap_or_default();
                format!("cannot write the joblog {log}, in which commands that ran are missing: {numbers}; make room, then go on with --resume")
            }),
        }
    }

    /// Blocks; `None` after the last.
    fn next(&self) -> Option<VecDeque<Held>> {
        let mut queue = self.shared.queue();
        while queue.ready.is_empty() {
            if queue.is_closed {
                return None;
            }
            queue = self.shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        Some(std::mem::take(&mut queue.ready))
    }

    /// The joblog lists only outputs that were written.
    fn write_all(&mut self, batch: VecDeque<Held>) -> std::io::Result<()> {
        let mut logged = Vec::new();
        for held in batch {
            self.write(&held)?;
            if held.lengths[LOG] > 0 && self.settings.joblog.is_some() {
                logged.push((held.number, held.part(LOG)?));
            }
            match &held.body {
                Body::Memory(_) => drop(self.shared.memory.fetch_sub(held.lengths.iter().sum(), Relaxed)),
                Body::Spilled(part) => self.shared.spill.release(part),
            }
            self.shared.files.fetch_sub(usize::from(held.file.is_some()), Relaxed);
        }
        self.stdout.flush()?;
        for (number, line) in logged {
            self.log(number, &line);
        }
        Ok(())
    }

    fn write(&mut self, held: &Held) -> std::io::Result<()> {
        let tag = held.is_tagged.then(|| held.part(TAG)).transpose()?;
        held.copy(STDOUT, &mut Tagged::new(&mut self.stdout, tag.as_deref()))?;
        if held.lengths[STDERR] > 0 || held.file.is_some() || !held.note.is_empty() {
            self.stdout.flush()?; // both may be one terminal
            let mut err = std::io::stderr().lock();
            held.copy(STDERR, &mut Tagged::new(&mut err, tag.as_deref()))?;
            if !held.note.is_empty() {
                let _ = writeln!(err, "midflight: {}", held.note); // best effort
            }
        }
        Ok(())
    }

    fn log(&mut self, number: u64, line: &[u8]) {
        let Some(joblog) = &mut self.settings.joblog else { return };
        if let Some((_, numbers)) = &mut self.unlogged {
            numbers.add(number);
        } else if let Err(error) = joblog.add(line) {
            let mut numbers = super::report::Numbers::default();
            numbers.add(number);
            self.unlogged = Some((error, numbers));
            let _ = self.settings.events.send(Event::Unlogged); // the session may be over
        }
    }
}

impl Held {
    fn new(output: Output) -> Self {
        let Output { tag, captured, note, log, number } = output;
        let (stdout, stderr, file) = match captured {
            Captured::Memory { stdout, stderr } => (stdout, stderr, None),
            file @ Captured::File { .. } => (Vec::new(), Vec::new(), Some(file)),
        };
        let has_lines = !stdout.is_empty() || !stderr.is_empty() || file.is_some();
        let tag = tag.filter(|_| has_lines);
        let is_tagged = tag.is_some();
        let parts = [tag.unwrap_or_default(), stdout, stderr, log];
        Self { lengths: parts.each_ref().map(Vec::len), body: Body::Memory(parts), file, is_tagged, note, number }
    }

    fn is_empty(&self) -> bool {
        self.lengths == [0; PARTS] && self.file.is_none() && self.note.is_empty()
    }

    /// Writes a part of the body, or of the file that replaces it.
    fn copy(&self, which: usize, to: &mut impl Write) -> std::io::Result<()> {
        match (&self.file, which) {
            (Some(file), STDOUT) => return file.copy(Stream::Stdout, to),
            (Some(file), STDERR) => return file.copy(Stream::Stderr, to),
            _ => {}
        }
        let mut left = self.lengths[which];
        let spilled = match &self.body {
            Body::Memory(parts) => return to.write_all(&parts[which]),
            Body::Spilled(spilled) => spilled,
        };
        let mut at: u64 = self.lengths[..which].iter().map(|&length| length as u64).sum();
        let mut buffer = vec![0; CHUNK.min(left)];
        while left > 0 {
            let chunk = &mut buffer[..CHUNK.min(left)];
            spilled.read(at, chunk)?;
            to.write_all(chunk)?;
            at += chunk.len() as u64;
            left -= chunk.len();
        }
        Ok(())
    }

    /// A part of the body that is known to be small.
    fn part(&self, which: usize) -> std::io::Result<Vec<u8>> {
        let mut part = Vec::with_capacity(self.lengths[which]);
        self.copy(which, &mut part)?;
        Ok(part)
    }
}
