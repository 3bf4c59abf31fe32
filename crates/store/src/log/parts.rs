use super::format::{Batch, PartHeader, Position, Reader, Record, Start};
use super::recover::{Files, NUMBER_MAX, Newest, check_identity, impossible, read_safe, value};
use super::{Cut, Identity, LogError};
use midflight_endpoint::File;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Parts<'a> {
    /// In order, without a gap.
    pub(super) kept: Vec<Scan<'a>>,
    /// What a crash left after them.
    pub(super) cut: Option<Cut>,
    /// The highest number of recoveries in any part.
    pub(super) run: u64,
    pub(super) known: Batch,
    /// The newest part that `File::Safe` names.
    pub(super) named: u64,
}

/// The end of the log, and the error if more had been durable.
struct Tear {
    at: Position,
    damage: LogError,
}

impl<'a> Parts<'a> {
    pub(super) fn read(identity: Identity, files: &'a Files, newest: Newest) -> Result<Self, LogError> {
        let mut known = Batch { safe: newest.safe, first: 1, snapshot: 0 };
        let told = read_safe(identity, files)?;
        known.learn(told);
        let mut parts = Self { kept: Vec::new(), cut: None, run: newest.run, known, named: told.safe.part };
        let mut scans = BTreeMap::new();
        for (&file, bytes) in files {
            let File::Log(number) = file else { continue };
            match Scan::read(identity, number, bytes) {
                Ok((scan, known)) => {
                    parts.run = parts.run.max(scan.run());
                    parts.known.learn(known);
                    scans.insert(number, Ok(scan));
                }
                Err(damaged @ LogError::Damaged { .. }) => drop(scans.insert(number, Err(damaged))),
                Err(refused) => return Err(refused),
            }
        }
        if parts.known.snapshot <= newest.number {
            parts.link(scans, newest)?;
        }
        Ok(parts)
    }

    /// Keeps the parts up to the end of the log. A part of an earlier run than one before it is a remnant of a cut.
    fn link(&mut self, scans: BTreeMap<u64, Result<Scan<'a>, LogError>>, newest: Newest) -> Result<(), LogError> {
        let (mut run, mut tear, mut dropped) = (0, None, 0);
        for scan in scans.into_iter().filter(|(number, _)| *number >= self.known.first).map(|(_, scan)| scan) {
            let scan = scan?;
            let cut_by_newest = scan.number >= newest.run_part && scan.header.run < newest.run;
            if scan.header.run < run || cut_by_newest {
                continue;
            }
            run = scan.run();
            tear = tear.or_else(|| self.tear_before(&scan, newest));
            if tear.is_some() {
                dropped += scan.bytes.len();
                continue;
            }
            tear = scan.tear();
            dropped += scan.bytes.len() - scan.good_bytes;
            self.kept.push(scan);
        }
        let end = self.end();
        let tear = tear.unwrap_or_else(|| {
            let is_gone = self.known.safe.part > end.part;
            let missing = LogError::Missing { file: File::Log(self.next()) };
            Tear { at: end, damage: if is_gone { missing } else { self.too_short() } }
        });
        if self.known.safe > tear.at {
            return Err(tear.damage);
        }
        let cut = Cut { file: File::Log(tear.at.part), offset: tear.at.offset, bytes: dropped as u64 };
        self.cut = Some(cut).filter(|cut| cut.bytes > 0);
        Ok(())
    }

    fn next(&self) -> u64 {
        self.kept.last().map_or(self.known.first, |last| last.number + 1)
    }

    fn tear_before(&self, scan: &Scan<'_>, newest: Newest) -> Option<Tear> {
        let (end, expected) = (self.end(), self.next());
        let begin = Position { part: expected, offset: 0 };
        if scan.number != expected {
            return Some(Tear { at: begin, damage: LogError::Missing { file: File::Log(expected) } });
        }
        if let Start::Snapshot { number, last } = scan.header.start
            && last.index > newest.index
        {
            return Some(Tear { at: begin, damage: LogError::Missing { file: File::Snapshot(number) } });
        }
        let goes_on = self.kept.is_empty() || scan.header.before == end.offset;
        (!goes_on).then(|| Tear { at: end, damage: self.too_short() })
    }

    /// The error if less is left than was durable.
    fn too_short(&self) -> LogError {
        let (end, why) = (self.end(), "it ends before what was once safe in it");
        LogError::Damaged { file: File::Log(end.part), offset: end.offset, why }
    }

    pub(super) fn end(&self) -> Position {
        self.kept.last().map_or(Position::default(), Scan::end)
    }
}

/// A part and its records up to the first bad one.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    pub(super) number: u64,
    pub(super) header: PartHeader,
    pub(super) records: Vec<(u64, Record<'a>)>,
    pub(super) good_bytes: usize,
    /// What is wrong there, unless it is the end of the file.
    bad: Option<&'static str>,
    pub(super) bytes: &'a [u8],
}

impl<'a> Scan<'a> {
    /// Also returns the merged knowledge of its batches.
    fn read(identity: Identity, number: u64, bytes: &'a [u8]) -> Result<(Self, Batch), LogError> {
        let file = File::Log(number);
        let mut reader = Reader::open(file, bytes)?;
        let header: PartHeader = value(&mut reader)?;
        check_identity(file, header.identity, identity)?;
        if number == 0 || number > NUMBER_MAX || !header.is_sane() {
            return Err(impossible(file));
        }
        let first_end = (reader.offset as u64).saturating_add(header.first_bytes);
        let (mut bad, mut known) = (None, Batch::default());
        let mut records: Vec<(u64, Record<'a>)> = Vec::new();
        while bad.is_none() && !reader.is_at_end() {
            let offset = reader.offset as u64;
            match reader.value() {
                Ok(record) => records.push((offset, record)),
                Err(why) => bad = Some(why),
            }
        }
        let good_bytes = reader.offset;
        if (good_bytes as u64) < first_end {
            let why = bad.unwrap_or("it ends within its first batch");
            return Err(LogError::Damaged { file, offset: good_bytes as u64, why });
        }
        let good = records.iter().filter_map(|(_, record)| record.batch());
        for batch in good.chain(reader.batches_beyond()) {
            if !batch.is_sane(number) {
                return Err(impossible(file));
            }
            known.learn(batch);
        }
        Ok((Self { number, header, records, good_bytes, bad, bytes }, known))
    }

    fn run(&self) -> u64 {
        let cuts = self.records.iter().filter_map(|(_, record)| match record {
            Record::Cut(run) => Some(*run),
            _ => None,
        });
        cuts.max().unwrap_or(0).max(self.header.run)
    }

    fn tear(&self) -> Option<Tear> {
        let (file, at) = (File::Log(self.number), self.end());
        self.bad.map(|why| Tear { at, damage: LogError::Damaged { file, offset: at.offset, why } })
    }

    pub(super) fn end(&self) -> Position {
        Position { part: self.number, offset: self.good_bytes as u64 }
    }
}
