use super::LogError;
use super::format::{PREAMBLE_BYTES, Point, Record, Start};
use super::parts::Scan;
use super::recover::NUMBER_MAX;
use midflight_endpoint::File;
use raft::prelude::{Entry, HardState, Snapshot};
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct Replayed {
    pub(super) state: HardState,
    pub(super) before: Point,
    pub(super) entries: VecDeque<Entry>,
    /// The snapshot has replaced everything in the parts.
    pub(super) is_blank: bool,
    /// The highest entry index in each part.
    pub(super) highest: Vec<u64>,
}

pub(super) fn replay(parts: Vec<Scan<'_>>, snapshot: Option<&Snapshot>) -> Result<Replayed, LogError> {
    let mut replayed = Replayed::default();
    let first = parts.first().map_or(1, |part| part.number);
    for part in parts {
        replayed.part(part)?;
    }
    replayed.meet(snapshot, first)?;
    replayed.make_consistent(snapshot);
    Ok(replayed)
}

impl Replayed {
    pub(super) fn last(&self) -> Point {
        self.entries.back().map_or(self.before, Point::of)
    }

    fn part(&mut self, part: Scan<'_>) -> Result<(), LogError> {
        match part.header.start {
            Start::After(last) if self.highest.is_empty() => self.before = last,
            Start::After(_) => {}
            Start::Snapshot { last, .. } => self.restart(last),
        }
        self.highest.push(0);
        for (offset, record) in part.records {
            match record {
                Record::Batch(_) | Record::Cut(_) => {}
                Record::State(state) => self.state = state.into_hard_state(),
                Record::Entry(entry) => {
                    let why = "no such entry follows the one before";
                    let damaged = LogError::Damaged { file: File::Log(part.number), offset, why };
                    self.entry(entry.into_entry()).ok_or(damaged)?;
                }
            }
        }
        Ok(())
    }

    fn restart(&mut self, last: Point) {
        self.before = last;
        self.entries.clear();
        self.highest.fill(0);
    }

    fn entry(&mut self, entry: Entry) -> Option<()> {
        if !(1..=NUMBER_MAX).contains(&entry.index) || entry.index > self.last().index + 1 {
            return None;
        }
        if let Some(highest) = self.highest.last_mut() {
            *highest = (*highest).max(entry.index);
        }
        if entry.index <= self.before.index {
            // The part with the entry that this one replaced is gone, so the snapshot contains both.
            self.before = Point::of(&entry);
            self.entries.clear();
            return Some(());
        }
        self.entries.truncate((entry.index - self.before.index - 1) as usize);
        self.entries.push_back(entry);
        Some(())
    }

    /// Joins the log and the snapshot: the log continues after it, or is replaced.
    fn meet(&mut self, snapshot: Option<&Snapshot>, first: u64) -> Result<(), LogError> {
        let begins = self.before.index;
        let Some(snapshot) = snapshot.map(Snapshot::get_metadata) else {
            return if begins == 0 { Ok(()) } else { Err(LogError::Missing { file: File::Snapshot(1) }) };
        };
        if snapshot.index < begins {
            let why = "it begins behind the newest snapshot";
            return Err(LogError::Damaged { file: File::Log(first), offset: PREAMBLE_BYTES as u64, why });
        }
        let end = Point { index: snapshot.index, term: snapshot.term };
        let met = match snapshot.index - begins {
            0 => Some(self.before),
            distance => self.entries.get(distance as usize - 1).map(Point::of),
        };
        if met != Some(end) {
            self.restart(end);
            self.is_blank = true;
        }
        Ok(())
    }

    /// Corrects Raft's state: it may name entries that a crash lost, or lack what came after it.
    fn make_consistent(&mut self, snapshot: Option<&Snapshot>) {
        let (last, snapshot) = (self.last(), snapshot.map_or(0, |snapshot| snapshot.get_metadata().index));
        self.state.commit = self.state.commit.clamp(snapshot, last.index);
        if self.state.term < last.term {
            (self.state.term, self.state.vote) = (last.term, 0);
        }
    }
}
