//! Reads the input on a thread of its own, as far ahead as the session allows.

use super::session::Event;
use super::sources::{Entries, Entry};
use anyhow::Result;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Commands of one batch, and the bytes after which it ends.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 256 << 10;
/// Batches that are read ahead.
const AHEAD: usize = 4;

/// What has been read, and the reader's permits.
pub(super) struct Input {
    /// Not submitted yet.
    pending: VecDeque<Entry>,
    /// Each lets the reader read a batch. Nobody holds them after the input's end, or when no more is wanted.
    permits: Option<Sender<()>>,
    /// Permits whose batch has not come.
    granted: usize,
    has_ended: bool,
}

impl Input {
    /// Starts the reader.
    pub(super) fn read(entries: Entries, events: Sender<Event>) -> Result<Self> {
        let (permits, granted) = channel();
        // It may wait for input for ever, so nobody waits for its end.
        std::thread::Builder::new().name("mf-input".into()).spawn(move || read(entries, &granted, &events))?;
        let mut input = Self { pending: VecDeque::new(), permits: Some(permits), granted: 0, has_ended: false };
        input.grant();
        Ok(input)
    }

    /// Another batch came.
    pub(super) fn add(&mut self, batch: Vec<Entry>) {
        self.granted -= 1;
        self.pending.extend(batch);
    }

    /// Nothing comes any more.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
        self.permits = None;
    }

    /// The next command.
    pub(super) fn next(&mut self) -> Option<Entry> {
        let entry = self.pending.pop_front();
        self.grant();
        entry
    }

    /// All that has been read; nothing more is wanted.
    pub(super) fn abandon(&mut self) -> VecDeque<Entry> {
        self.permits = None;
        std::mem::take(&mut self.pending)
    }

    /// Whether all of it has been read.
    pub(super) fn is_read(&self) -> bool {
        self.has_ended
    }

    /// Commands that wait here.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    fn grant(&mut self) {
        while let Some(permits) = &self.permits
            && self.pending.len().div_ceil(BATCH) + self.granted < AHEAD
            && permits.send(()).is_ok()
        {
            self.granted += 1;
        }
    }
}

fn read(mut entries: Entries, permits: &Receiver<()>, events: &Sender<Event>) {
    while permits.recv().is_ok() {
        let (batch, ended) = batch(&mut entries);
        if events.send(Event::Input(batch)).is_err() {
            return; // the session is over
        }
        if let Some(end) = ended {
            let _ = events.send(Event::InputEnded(end)); // as above
            return;
        }
    }
}

/// What is there, at least one command; and how the input ended, if it did.
fn batch(entries: &mut Entries) -> (Vec<Entry>, Option<Result<()>>) {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    loop {
        match entries.next() {
            Ok(Some(entry)) => {
                bytes += entry.arguments.iter().map(Vec::len).sum::<usize>();
                batch.push(entry);
            }
            Ok(None) => return (batch, Some(Ok(()))),
            Err(error) => return (batch, Some(Err(error))),
        }
        if batch.len() >= BATCH || bytes >= BATCH_BYTES || !entries.is_ready() {
            return (batch, None);
        }
    }
}
