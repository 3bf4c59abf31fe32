//! Writes the outputs of commands, on a thread of its own: in the order of the input, or as they come. What has to wait is kept in
//! memory up to a bound, and in a temporary file beyond it.

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

/// Bytes of outputs in memory that wait to be written.
const MEMORY_MAX: usize = 16 << 20;
/// Bytes that are written at once.
const CHUNK: usize = 64 << 10;

/// All that a command leaves to be written.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// Before each line.
    pub tag: Option<Vec<u8>>,
    pub captured: Captured,
    /// A message for people, behind stderr; empty for none.
    pub note: String,
    /// Its line in the joblog; empty for none.
    pub log: Vec<u8>,
    /// For the message if the joblog cannot be written.
    pub number: u64,
}

/// An output that waits.
#[derive(Debug)]
struct Held {
    body: Body,
    /// Of the parts of the body.
    lengths: [usize; PARTS],
    /// The outputs, where they are not in the body, because they came in a file.
    file: Option<Captured>,
    is_tagged: bool,
    note: String,
    number: u64,
}

/// The parts of a body.
const PARTS: usize = 4;
const TAG: usize = 0;
const STDOUT: usize = 1;
const STDERR: usize = 2;
const LOG: usize = 3;

#[derive(Debug)]
enum Body {
    Memory([Vec<u8>; PARTS]),
    /// One part behind the other.
    Spilled(Part),
}

/// How outputs are written.
pub(super) struct Settings {
    /// In the order of the input.
    pub is_ordered: bool,
    /// No new command starts while so many outputs that wait are files of their own.
    pub files_max: usize,
    pub joblog: Option<Joblog>,
    pub progress: Arc<Progress>,
    pub events: Sender<Event>,
}

/// The queue before the writer.
pub(super) struct Outputs {
    shared: Arc<Shared>,
    is_ordered: bool,
    files_max: usize,
    writer: JoinHandle<Result<Written>>,
}

/// What became of the outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    All,
    /// The reader has closed the pipe, as `| head` does.
    Unread,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    memory: AtomicUsize,
    /// Outputs in files of their own.
    files: AtomicUsize,
    spill: Spill,
}

#[derive(Default)]
struct Queue {
    ready: VecDeque<Held>,
    /// By place, those that wait for one before them.
    early: BTreeMap<u64, Held>,
    /// The place of the next output.
    next: u64,
    /// Outputs that are written.
    written: u64,
    /// Somebody waits for room.
    wants_room: bool,
    is_closed: bool,
}

impl Queue {
    fn next_in_order(&mut self) -> Option<Held> {
        let held = self.early.remove(&self.next)?;
        self.next += 1;
        Some(held)
    }

    /// Nothing has to be written before this one. Where it has nothing itself, the writer need not know.
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
    /// Starts the writer; the temporary file will be in this directory.
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

    /// Takes the output of the command at this place; places count from 0 and have no gaps.
    ///
    /// # Errors
    /// Where the output cannot be kept. The place counts as filled then, with `failed` of the error's text.
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

    /// Whether the writer takes this output next, so that it need not wait anywhere. At most one is.
    fn is_next(&self, place: u64) -> bool {
        let queue = self.shared.queue();
        queue.ready.is_empty() && (!self.is_ordered || place == queue.next)
    }

    fn in_memory(&self, held: Held) -> Held {
        self.shared.memory.fetch_add(held.lengths.iter().sum(), Relaxed);
        held
    }

    /// The place behind the last that there is room for, where so many may wait; none while too many of them are open files. Asks
    /// for an [`Event::Room`] when there is more.
    pub(super) fn room(&self, window: u64) -> u64 {
        let mut queue = self.shared.queue();
        queue.wants_room = true;
        if self.shared.files.load(Relaxed) < self.files_max { queue.written + window } else { 0 }
    }

    /// Writes all that it has, up to a place that was never filled.
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
    /// Why the joblog could not be written, and the commands that are missing there.
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

    /// All that can be written now; `None` after the last.
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

    /// The joblog's lines come last: what it lists has been written.
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
                let _ = writeln!(err, "midflight: {}", held.note); // for people: nobody needs it to be kept
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

    /// Writes a part of the body, or of the file in its place.
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
