use super::codec::{self, Blob, ConfMirror, EntryMirror};
use super::format::{
    Batch, Birth, PartHeader, Piece, Point, Position, Record, SafeHeader, SnapshotHeader, SnapshotPlace, Start, State,
    Writer,
};
use super::{Identity, recover};
use midflight_endpoint::{Change, File, Persist};
use raft::prelude::{Entry, HardState, SnapshotMetadata};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) number: u64,
    pub(super) highest: u64,
}

/// What to do once a batch is durable.
#[derive(Debug)]
enum Then {
    /// Snapshot `snapshot` is durable, so entries below `floor` and parts below `part` are no longer needed.
    Forget { snapshot: u64, floor: u64, part: u64 },
    /// These files are no longer needed.
    Remove(Vec<File>),
}

/// A snapshot in progress. Until its end is durable, recovery ignores its file.
#[derive(Debug)]
struct Draft {
    number: u64,
    offset: u64,
    last: Point,
    written: u64,
    safe: u64,
}

/// A batch that may not be durable yet.
#[derive(Debug)]
struct UnderWay {
    id: u64,
    draft: (u64, u64),
    bytes: usize,
    end: Position,
    then: Vec<Then>,
}

#[derive(Debug)]
pub(super) struct Disk {
    identity: Identity,
    run: u64,
    run_part: u64,
    pub(super) part_bytes: u64,
    last_id: u64,
    /// Changes that must precede all others.
    repairs: Vec<Change>,
    /// Record payloads of the entries to write, and the last entry's place.
    entries: Vec<Vec<u8>>,
    last_entry: Point,
    highest: u64,
    /// Write the log even if there are no entries.
    is_due: bool,
    next_part: Option<Start>,
    draft: Option<Draft>,
    /// Pending changes to the draft's file, and what to do once the snapshot is complete.
    pieces: Vec<Change>,
    whole: Option<Then>,
    /// Upper bound of the snapshot numbers on disk.
    last_snapshot: u64,
    snapshots: VecDeque<u64>,
    parts: VecDeque<Part>,
    /// What the next batch says about files, besides what is durable.
    known: Batch,
    named: u64,
    /// `File::Safe` must record the end of the log.
    seals: bool,
    retired: Vec<File>,
    /// Files to remove now.
    removals: Vec<File>,
    end: Position,
    written: Point,
    under_way: VecDeque<UnderWay>,
    unsafe_bytes: usize,
}

impl Disk {
    pub(super) fn new(identity: Identity, disk: u64) -> Self {
        Self { repairs: vec![birth(identity, disk)], ..Self::empty(identity, 0) }
    }

    fn empty(identity: Identity, run: u64) -> Self {
        Self {
            identity,
            run,
            run_part: 1,
            part_bytes: 0,
            last_id: 0,
            repairs: Vec::new(),
            entries: Vec::new(),
            last_entry: Point::default(),
            highest: 0,
            is_due: false,
            next_part: Some(Start::After(Point::default())),
            draft: None,
            pieces: Vec::new(),
            whole: None,
            last_snapshot: 0,
            snapshots: VecDeque::new(),
            parts: VecDeque::new(),
            known: Batch { first: 1, ..Batch::default() },
            named: 0,
            seals: false,
            retired: Vec::new(),
            removals: Vec::new(),
            end: Position::default(),
            written: Point::default(),
            under_way: VecDeque::new(),
            unsafe_bytes: 0,
        }
    }

    /// A recovered node. Starts a new part, so that nothing is appended to what a crash left.
    pub(super) fn after(identity: Identity, left: recover::Left) -> Self {
        let recover::Left { run, repairs, retired, parts, end, known, named, start, snapshot, last_snapshot } = left;
        let (Start::After(written) | Start::Snapshot { last: written, .. }) = start;
        let (is_due, next_part) = (!repairs.is_empty() || !retired.is_empty(), Some(start));
        let snapshots = (snapshot > 0).then_some(snapshot).into_iter().collect();
        let (run_part, parts) = (end.part + 1, parts.into());
        Self {
            run_part,
            repairs,
            retired,
            is_due,
            next_part,
            last_snapshot,
            snapshots,
            parts,
            known,
            named,
            end,
            written,
            ..Self::empty(identity, run)
        }
    }

    pub(super) fn append(&mut self, entries: &[Entry]) {
        for entry in entries {
            let mut payload = Vec::new();
            codec::write(&Record::Entry(EntryMirror::of(entry)), &mut payload);
            self.entries.push(payload);
            self.highest = self.highest.max(entry.index);
            self.last_entry = Point::of(entry);
        }
        self.is_due |= !entries.is_empty();
    }

    pub(super) fn state_changed(&mut self) {
        self.is_due = true;
    }

    /// Begins a snapshot; drops an unfinished one.
    pub(super) fn begin_snapshot(&mut self, metadata: &SnapshotMetadata) {
        self.drop_draft();
        self.last_snapshot += 1;
        let number = self.last_snapshot;
        let mut writer = Writer::create(File::Snapshot(number));
        let Self { identity, run, run_part, .. } = *self;
        writer.value(&SnapshotHeader { identity, run, run_part, safe: self.known.safe });
        let last = Point { index: metadata.index, term: metadata.term };
        let members = ConfMirror::of(metadata.get_conf_state());
        writer.value(&Piece::Place(SnapshotPlace { last, members }));
        self.draft = Some(Draft { number, offset: writer.offset(), last, written: 0, safe: 0 });
        self.pieces.push(Change::Replace { file: File::Snapshot(number), bytes: writer.finish() });
    }

    pub(super) fn write_snapshot(&mut self, part: &[u8]) {
        self.write_piece(&Piece::Part(Blob(part)));
    }

    fn write_piece(&mut self, piece: &Piece<'_>) {
        let Some(draft) = &mut self.draft else { return };
        let file = File::Snapshot(draft.number);
        let mut writer = Writer::append(file, draft.offset);
        writer.value(piece);
        draft.offset = writer.offset();
        draft.written += u64::from(matches!(piece, Piece::Part(_)));
        self.pieces.push(Change::Append { file, bytes: writer.finish() });
    }

    /// Parts of the draft: written, durable.
    pub(super) fn draft(&self) -> Option<(u64, u64)> {
        self.draft.as_ref().map(|draft| (draft.written, draft.safe))
    }

    pub(super) fn drop_draft(&mut self) {
        let Some(draft) = self.draft.take() else { return };
        self.pieces.clear();
        self.removals.push(File::Snapshot(draft.number));
    }

    /// Completes the draft, if it is the snapshot of `last`. Entries below `floor` are no longer needed; if it `replaces` the log, all
    /// earlier entries are void.
    pub(super) fn end_snapshot(&mut self, last: Point, floor: u64, replaces: bool) -> bool {
        if self.draft.as_ref().is_none_or(|draft| draft.last != last) {
            return false;
        }
        let parts = self.draft.as_ref().map_or(0, |draft| draft.written);
        self.write_piece(&Piece::End { parts });
        let Some(Draft { number, .. }) = self.draft.take() else { return false };
        if replaces {
            self.void(number, last);
        }
        let part = if replaces { self.end.part + 1 } else { 0 };
        self.next_part.get_or_insert(Start::After(self.written));
        self.is_due = true;
        self.snapshots.push_back(number);
        self.whole = Some(Then::Forget { snapshot: number, floor, part });
        true
    }

    fn void(&mut self, number: u64, last: Point) {
        self.entries.clear();
        (self.highest, self.last_entry) = (0, Point::default());
        self.next_part = Some(Start::Snapshot { number, last });
        self.written = last;
    }

    /// All changes since the last call. `state` is Raft's current state.
    pub(super) fn poll(&mut self, state: &HardState) -> Option<Persist> {
        let mut then = Vec::new();
        let mut changes = std::mem::take(&mut self.repairs);
        self.write(state, &mut changes, &mut then);
        if changes.is_empty() {
            return None;
        }
        self.last_id += 1;
        let bytes = changes.iter().map(bytes_of).sum();
        self.unsafe_bytes += bytes;
        let draft = self.draft.as_ref().map_or((0, 0), |draft| (draft.number, draft.written));
        self.under_way.push_back(UnderWay { id: self.last_id, draft, bytes, end: self.end, then });
        Some(Persist { id: self.last_id, changes })
    }

    fn write(&mut self, state: &HardState, changes: &mut Vec<Change>, then: &mut Vec<Then>) {
        changes.append(&mut self.pieces);
        then.extend(self.whole.take());
        if std::mem::take(&mut self.is_due) {
            changes.push(self.write_log(state));
            if !self.retired.is_empty() {
                then.push(Then::Remove(std::mem::take(&mut self.retired)));
            }
        }
        changes.extend(self.removals.drain(..).map(|file| Change::Remove { file }));
        // After the part was made, not with it: a crash could keep this file and lose the part.
        if self.known.safe.part > self.named || std::mem::take(&mut self.seals) {
            self.named = self.known.safe.part;
            changes.push(self.write_safe());
        }
    }

    fn write_safe(&self) -> Change {
        let mut writer = Writer::create(File::Safe);
        writer.value(&SafeHeader { identity: self.identity, known: self.known });
        Change::Replace { file: File::Safe, bytes: writer.finish() }
    }

    fn write_log(&mut self, state: &HardState) -> Change {
        let mut payloads = [Record::Batch(self.known), Record::State(State::of(state))].map(|record| {
            let mut payload = Vec::new();
            codec::write(&record, &mut payload);
            payload
        });
        let is_full = self.end.offset >= self.part_bytes;
        let start = self.next_part.take().or_else(|| is_full.then_some(Start::After(self.written)));
        let payloads = payloads.iter_mut().map(std::mem::take).chain(std::mem::take(&mut self.entries));
        let change = self.write_payloads(start, &payloads.collect::<Vec<_>>());
        if let Some(part) = self.parts.back_mut() {
            part.highest = part.highest.max(std::mem::take(&mut self.highest));
        }
        if self.last_entry.index > 0 {
            self.written = std::mem::take(&mut self.last_entry);
        }
        change
    }

    fn write_payloads(&mut self, start: Option<Start>, payloads: &[Vec<u8>]) -> Change {
        let mut writer = match start {
            Some(start) => self.begin_part(start, Writer::length_of(payloads)),
            None => Writer::append(File::Log(self.end.part), self.end.offset),
        };
        for payload in payloads {
            writer.record(|buffer| buffer.extend_from_slice(payload));
        }
        self.end.offset = writer.offset();
        let (file, bytes) = (File::Log(self.end.part), writer.finish());
        match start {
            Some(_) => Change::Replace { file, bytes },
            None => Change::Append { file, bytes },
        }
    }

    fn begin_part(&mut self, start: Start, first_bytes: u64) -> Writer {
        let (identity, run, before) = (self.identity, self.run, self.end.offset);
        let number = self.end.part + 1;
        self.end.part = number;
        self.parts.push_back(Part { number, highest: 0 });
        let mut writer = Writer::create(File::Log(number));
        writer.value(&PartHeader { identity, run, before, start, first_bytes });
        writer
    }

    pub(super) fn persisted(&mut self, id: u64) {
        while self.under_way.front().is_some_and(|batch| batch.id <= id) {
            let Some(batch) = self.under_way.pop_front() else { return };
            self.unsafe_bytes -= batch.bytes;
            self.known.safe = batch.end;
            if let Some(draft) = self.draft.as_mut().filter(|draft| draft.number == batch.draft.0) {
                draft.safe = batch.draft.1;
            }
            for then in batch.then {
                match then {
                    Then::Forget { snapshot, floor, part } => self.forget(snapshot, floor, part),
                    Then::Remove(files) => self.removals.extend(files),
                }
            }
        }
    }

    /// Retires older snapshots and parts that are no longer needed. They are removed after the log says so, because recovery reports a
    /// missing file.
    fn forget(&mut self, snapshot: u64, floor: u64, part: u64) {
        while self.snapshots.front().is_some_and(|&number| number < snapshot) {
            self.retired.extend(self.snapshots.pop_front().map(File::Snapshot));
        }
        // Keep the part that is durable to its current end: it holds Raft's state.
        let safe = self.known.safe.part;
        let is_needless = |oldest: &mut Part| oldest.number < safe && (oldest.number < part || oldest.highest < floor);
        while let Some(oldest) = self.parts.pop_front_if(is_needless) {
            self.retired.push(File::Log(oldest.number));
        }
        let first = self.parts.front().map_or(self.known.first, |part| part.number);
        self.known = Batch { first, snapshot, ..self.known };
        self.is_due = true;
    }

    /// Lets the next batch record the end of the log, unless the log grows first.
    pub(super) fn seal(&mut self) {
        self.seals = self.is_safe() && self.known.safe == self.end && self.end.part > 0;
    }

    pub(super) fn is_safe(&self) -> bool {
        let is_written = self.repairs.is_empty() && self.pieces.is_empty() && !self.is_due;
        is_written && self.under_way.is_empty()
    }

    pub(super) fn unsafe_bytes(&self) -> usize {
        self.unsafe_bytes
    }
}

pub(super) fn birth(identity: Identity, disk: u64) -> Change {
    let mut writer = Writer::create(File::Identity);
    writer.value(&Birth { identity, disk });
    Change::Replace { file: File::Identity, bytes: writer.finish() }
}

fn bytes_of(change: &Change) -> usize {
    match change {
        Change::Append { bytes, .. } | Change::Replace { bytes, .. } => bytes.len(),
        Change::Remove { .. } => 0,
    }
}
