//! Reads the input on its own thread, ahead of the session.

use super::session::Event;
use super::sources::{Entries, Entry};
use anyhow::Result;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Commands in a batch, and the bytes after which it ends.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 256 << 10;
/// Batches read ahead.
const AHEAD: usize = 4;

pub(super) struct Input {
    pending: VecDeque<Entry>,
    /// A permit to read one batch. `None` after the input's end, or when no more is wanted.
    permits: Option<Sender<()>>,
    /// Permits whose batch has not arrived.
    granted: usize,
    has_ended: bool,
}

impl Input {
    pub(super) fn read(entries: Entries, events: Sender<Event>) -> Result<Self> {
        let (permits, granted) = channel();
        // Never joined: it may block on input forever.
        std::thread::Builder::new().name("mf-input".into()).spawn(move || read(entries, &granted, &events))?;
        let mut input = Self { pending: VecDeque::new(), permits: Some(permits), granted: 0, has_ended: false };
        input.grant();
        Ok(input)
    }

    pub(super) fn add(&mut self, batch: Vec<Entry>) {
        self.granted -= 1;
        self.pending.extend(batch);
    }

    pub(super) fn end(&mut self) {
        self.has_ended = true;
        self.permits = None;
    }

    pub(super) fn next(&mut self) -> Option<Entry> {
        let entry = self.pending.pop_front();
        self.grant();
        entry
    }

    /// Returns what was read and not submitted.
    pub(super) fn abandon(&mut self) -> VecDeque<Entry> {
        self.permits = None;
        std::mem::take(&mut self.pending)
    }

    pub(super) fn is_read(&self) -> bool {
        self.has_ended
    }

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

/// The available commands, at least one, and how the input ended.
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
