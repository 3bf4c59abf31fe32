//! The log against a model, through crashes, flipped bits and cuts.

use super::format::{Batch, PartHeader, Position, Record, SafeHeader, Start, Writer};
use super::*;
use midflight_endpoint::Change;
use proptest::prelude::*;
use std::collections::BTreeMap;

const IDENTITY: Identity = Identity { cluster: 0xc1, node: 3, set: 7 };
const VOTERS: [u64; 3] = [1, 2, 3];
const DIRECTORY_NUMBER: u64 = 77;
const SMALL: Options = Options { part_bytes: 400, keep_entries: 3 };

type Files = BTreeMap<File, Vec<u8>>;

fn apply(files: &mut Files, change: &Change) {
    match change {
        Change::Append { file, bytes } => files.entry(*file).or_default().extend(bytes),
        Change::Replace { file, bytes } => drop(files.insert(*file, bytes.clone())),
        Change::Remove { file } => drop(files.remove(file)),
    }
}

fn recover(files: &Files) -> Result<Recovered, LogError> {
    let mut recovered = Log::recover(IDENTITY, files.clone().into_iter().collect(), DIRECTORY_NUMBER)?;
    recovered.log.set_options(SMALL);
    Ok(recovered)
}

fn entry(index: u64, term: u64, bytes: usize) -> Entry {
    Entry { index, term, data: vec![index as u8; bytes].into(), ..Entry::default() }
}

fn hard_state(term: u64, vote: u64, commit: u64) -> HardState {
    HardState { term, vote, commit, ..HardState::default() }
}

fn snapshot(index: u64, term: u64) -> Snapshot {
    let mut snapshot = Snapshot::default();
    (snapshot.mut_metadata().index, snapshot.mut_metadata().term) = (index, term);
    snapshot.mut_metadata().mut_conf_state().voters = VOTERS.to_vec();
    snapshot
}

/// The parts of the snapshot with this index.
fn parts(index: u64) -> Vec<Vec<u8>> {
    (0..index % 4).map(|part| vec![index as u8; (index + part) as usize % 50]).collect()
}

/// What Raft can observe of a log.
#[derive(Clone, Debug, PartialEq)]
struct Content {
    state: HardState,
    snapshot: Option<Snapshot>,
    /// Entries after the snapshot.
    entries: Vec<Entry>,
}

impl Content {
    fn of(log: &Log) -> Self {
        let first = log.snapshot_index() + 1;
        let entries = log.entries(first, log.last_index() + 1, None).unwrap();
        Self { state: log.hard_state().clone(), snapshot: log.snapshot.clone(), entries }
    }
}

struct Machine {
    log: Log,
    safe_files: Files,
    /// Not durable yet.
    waiting: Vec<Persist>,
    contents: Vec<Content>,
    safe: Content,
    /// All entries ever appended.
    ever: Vec<Entry>,
    /// Offset of the last append.
    last_append: Option<usize>,
}

impl Machine {
    fn new() -> Self {
        Self::with(Files::new()).unwrap()
    }

    fn with(safe_files: Files) -> Result<Self, LogError> {
        let Recovered { log, snapshot, .. } = recover(&safe_files)?;
        if let Some(Stored { snapshot, parts: found }) = snapshot {
            assert_eq!(found, parts(snapshot.get_metadata().index), "its data");
        }
        let safe = Content::of(&log);
        Ok(Self {
            log,
            safe_files,
            waiting: Vec::new(),
            contents: Vec::new(),
            safe,
            ever: Vec::new(),
            last_append: None,
        })
    }

    fn hand_out(&mut self) {
        while let Some(batch) = self.log.poll_persist() {
            self.waiting.push(batch);
            self.contents.push(Content::of(&self.log));
        }
    }

    /// Makes the first `count` batches durable.
    fn sync(&mut self, count: usize) {
        let count = count.min(self.waiting.len());
        for batch in self.waiting.drain(..count) {
            for change in &batch.changes {
                if let Change::Append { file, .. } = change {
                    self.last_append = self.safe_files.get(file).map(Vec::len);
                }
                apply(&mut self.safe_files, change);
            }
            self.log.persisted(batch.id);
        }
        if let Some(safe) = self.contents.drain(..count).next_back() {
            self.safe = safe;
        }
    }

    /// Runs until nothing is left to write.
    fn settle(&mut self) {
        self.hand_out();
        while !self.waiting.is_empty() {
            self.sync(usize::MAX);
            self.hand_out();
        }
    }

    fn set_state(&mut self, term: u64, vote: u64, commit: u64) {
        let before = self.log.hard_state();
        let vote = if before.term == term && before.vote != 0 { before.vote } else { vote };
        self.log.set_hard_state(&hard_state(term, vote, commit));
    }

    fn last_term(&self) -> u64 {
        self.log.term(self.log.last_index()).unwrap()
    }

    fn append(&mut self, back: u64, count: u64, bytes: usize) {
        let commit = self.log.hard_state().commit;
        let begin = (self.log.last_index() + 1).saturating_sub(back).max(commit + 1);
        let overwrites = begin <= self.log.last_index();
        let term = self.last_term().max(self.log.hard_state().term) + u64::from(overwrites);
        self.set_state(term.max(1), 0, commit);
        let entries: Vec<_> = (begin..begin + count).map(|index| entry(index, term.max(1), bytes)).collect();
        self.ever.extend_from_slice(&entries);
        self.log.append(&entries);
    }

    fn commit(&mut self, ahead: u64, vote: u64) {
        let HardState { term, commit, .. } = *self.log.hard_state();
        self.set_state(term, vote, (commit + ahead).min(self.log.last_index()));
    }

    fn write(&mut self, snapshot: &Snapshot) {
        self.log.begin_snapshot(snapshot.get_metadata());
        self.hand_out();
        for part in parts(snapshot.get_metadata().index) {
            self.log.write_snapshot(&part);
            self.hand_out();
        }
    }

    fn compact(&mut self) {
        let commit = self.log.hard_state().commit;
        if let Ok(term) = self.log.term(commit) {
            self.write(&snapshot(commit, term));
            self.log.compact(snapshot(commit, term), u64::MAX);
            self.log.trim(usize::MAX);
        }
    }

    /// Begins a snapshot that is dropped or superseded.
    fn draft(&mut self, is_dropped: bool) {
        self.write(&snapshot(self.log.hard_state().commit + 3, self.last_term() + 1));
        if is_dropped {
            self.log.drop_snapshot();
        }
    }

    fn install(&mut self, ahead: u64) {
        let index = self.log.hard_state().commit + ahead;
        let term = self.last_term().max(self.log.hard_state().term) + 1;
        self.write(&snapshot(index, term));
        self.set_state(term, 0, index);
        self.log.install(snapshot(index, term));
    }
}

/// For each change in the batches that are not durable: whether it survives, how much of an append survives, and the garbage after it.
#[derive(Clone, Debug)]
struct Fate {
    survives: bool,
    share: usize,
    garbage: Vec<u8>,
}

fn crash(machine: &Machine, fates: &[Fate]) -> Files {
    let mut files = machine.safe_files.clone();
    let mut torn = std::collections::BTreeSet::new();
    let changes = machine.waiting.iter().flat_map(|batch| &batch.changes);
    for (change, fate) in changes.zip(fates.iter().cycle()) {
        match change {
            _ if !fate.survives => match change {
                Change::Append { file, .. } => drop(torn.insert(*file)),
                Change::Replace { file, .. } | Change::Remove { file } => drop(torn.insert(*file)),
            },
            Change::Append { file, .. } | Change::Replace { file, .. } | Change::Remove { file }
                if torn.contains(file) => {}
            Change::Append { file, bytes } => {
                let kept = fate.share % (bytes.len() + 1);
                let stored = files.entry(*file).or_default();
                stored.extend(&bytes[..kept]);
                if kept < bytes.len() {
                    stored.extend(&fate.garbage);
                    torn.insert(*file);
                }
            }
            Change::Replace { .. } | Change::Remove { .. } => apply(&mut files, change),
        }
    }
    files
}

#[derive(Clone, Debug)]
enum Step {
    Append(u64, u64, usize),
    Commit(u64, u64),
    Compact,
    Install(u64),
    Draft(bool),
    HandOut,
    Sync(usize),
    Settle,
    Crash(Vec<Fate>),
}

fn any_step() -> impl Strategy<Value = Step> {
    let fate = (any::<bool>(), any::<usize>(), proptest::collection::vec(any::<u8>(), 0..30));
    let fate = fate.prop_map(|(survives, share, garbage)| Fate { survives, share, garbage });
    prop_oneof![
        6 => (0u64..4, 1u64..5, 0usize..60).prop_map(|(back, count, bytes)| Step::Append(back, count, bytes)),
        3 => (0u64..5, 0u64..4).prop_map(|(ahead, vote)| Step::Commit(ahead, vote)),
        1 => Just(Step::Compact),
        1 => (1u64..8).prop_map(Step::Install),
        1 => any::<bool>().prop_map(Step::Draft),
        5 => Just(Step::HandOut),
        3 => (0usize..3).prop_map(Step::Sync),
        1 => Just(Step::Settle),
        1 => proptest::collection::vec(fate, 1..6).prop_map(Step::Crash),
    ]
}

/// What was durable is still there, unless a later batch replaced it.
fn check_nothing_is_lost(machine: &Machine, log: &Log) -> Result<(), TestCaseError> {
    let (safe, found) = (&machine.safe, Content::of(log));
    prop_assert!((found.state.term, found.state.commit) >= (safe.state.term, 0));
    let voted = found.state.term > safe.state.term || safe.state.vote == 0 || found.state.vote != 0;
    prop_assert!(voted, "{:?} forgets the vote of {:?}", found.state, safe.state);
    prop_assert!(log.snapshot_index() >= machine.safe.snapshot.as_ref().map_or(0, |s| s.get_metadata().index));
    prop_assert!(found.state.commit >= safe.state.commit);
    prop_assert!(found.state.commit <= log.last_index() && found.state.commit >= log.snapshot_index());
    for expected in &safe.entries {
        let may_be_replaced = |content: &Content| {
            content.entries.iter().any(|e| e.index <= expected.index && e.term > expected.term)
                || content
                    .snapshot
                    .as_ref()
                    .is_some_and(|s| s.get_metadata().index >= expected.index || s.get_metadata().term > expected.term)
        };
        let there = found.entries.iter().any(|entry| entry == expected);
        prop_assert!(there || machine.contents.iter().any(may_be_replaced), "{expected:?} is lost");
    }
    for entry in &found.entries {
        prop_assert!(machine.ever.contains(entry), "{entry:?} was never there");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn r2_nothing_that_was_safe_is_lost_in_a_crash(steps in proptest::collection::vec(any_step(), 1..60)) {
        let mut machine = Machine::new();
        for step in steps {
            match step {
                Step::Append(back, count, bytes) => machine.append(back, count, bytes),
                Step::Commit(ahead, vote) => machine.commit(ahead, vote),
                Step::Compact => machine.compact(),
                Step::Install(ahead) => machine.install(ahead),
                Step::Draft(is_dropped) => machine.draft(is_dropped),
                Step::HandOut => machine.hand_out(),
                Step::Sync(count) => machine.sync(count),
                Step::Settle => machine.settle(),
                Step::Crash(fates) => {
                    let files = crash(&machine, &fates);
                    let next = Machine::with(files.clone());
                    let next = next.map_err(|error| TestCaseError::fail(format!("{error}")))?;
                    check_nothing_is_lost(&machine, &next.log)?;
                    prop_assert_eq!(Content::of(&Machine::with(files).unwrap().log), next.safe.clone(), "read again");
                    machine = Machine { ever: machine.ever, ..next };
                }
            }
        }
        machine.settle();
        let again = Machine::with(machine.safe_files.clone()).unwrap();
        prop_assert_eq!(Content::of(&again.log), Content::of(&machine.log));
        prop_assert_eq!(machine.log.unsafe_bytes(), 0);
    }
}

fn settled() -> Machine {
    let mut machine = Machine::new();
    for round in 0..6 {
        machine.append(round % 3, 4, 30);
        machine.commit(3, 2);
        machine.settle();
    }
    machine.compact();
    for _ in 0..6 {
        machine.append(2, 5, 40);
        machine.settle();
    }
    machine.append(0, 1, 5);
    machine.settle();
    machine
}

/// Start of the last batch, which no later batch confirms.
fn last_batch(machine: &Machine) -> (File, usize) {
    let file = *machine.safe_files.keys().rfind(|file| matches!(file, File::Log(_))).unwrap();
    (file, machine.last_append.unwrap())
}

#[test]
fn a_flipped_bit_is_named_or_takes_only_the_last_batch() {
    let machine = settled();
    let (content, (last, begin)) = (Content::of(&machine.log), last_batch(&machine));
    for (&file, bytes) in &machine.safe_files {
        for bit in 0..bytes.len() * 8 {
            let mut files = machine.safe_files.clone();
            files.get_mut(&file).unwrap()[bit / 8] ^= 1 << (bit % 8);
            match recover(&files) {
                Ok(Recovered { cut: Some(cut), .. }) => {
                    assert!(file == last && bit / 8 >= begin, "bit {bit} of {file:?} is taken for a torn end");
                    assert!(cut.file == last && (begin..=bit / 8).contains(&(cut.offset as usize)), "{cut:?}");
                    assert_eq!(cut.offset + cut.bytes, bytes.len() as u64);
                }
                Ok(recovered) => assert_eq!(Content::of(&recovered.log), content, "bit {bit} of {file:?}"),
                Err(LogError::Damaged { file: named, offset, .. }) => {
                    assert!(
                        named == file && offset as usize <= bit / 8,
                        "bit {bit} of {file:?}: {offset} of {named:?}"
                    );
                }
                Err(error) => panic!("bit {bit} of {file:?}: {error}"),
            }
        }
    }
}

#[test]
fn a_log_of_any_length_is_cut_or_refused() {
    let machine = settled();
    let (last, begin) = last_batch(&machine);
    for (&file, bytes) in machine.safe_files.iter().filter(|(file, _)| matches!(file, File::Log(_))) {
        for length in 0..bytes.len() {
            let mut files = machine.safe_files.clone();
            files.get_mut(&file).unwrap().truncate(length);
            match recover(&files) {
                Ok(recovered) => {
                    assert!(file == last && length >= begin, "{length} bytes of {file:?}");
                    assert!(recovered.cut.is_none_or(|cut| (cut.offset + cut.bytes) as usize == length));
                    assert_eq!(recovered.log.last_index(), machine.log.last_index() - 1);
                }
                Err(error) => {
                    assert!(matches!(error, LogError::Damaged { file: named, .. } if named == file), "{error}")
                }
            }
        }
    }
}

#[test]
fn a_file_that_was_safe_is_missed() {
    let machine = settled();
    assert!(machine.safe_files.len() > 4, "several parts");
    for &file in machine.safe_files.keys().filter(|file| **file != File::Safe) {
        let mut files = machine.safe_files.clone();
        files.remove(&file);
        let missing = recover(&files).map(|recovered| recovered.cut);
        assert_eq!(missing.unwrap_err(), LogError::Missing { file });
    }
}

/// Also after a crash: others know what was found.
#[test]
fn r2_the_newest_part_is_missed_when_it_was_found_once() {
    let mut machine = Machine::new();
    machine.append(0, 5, 30);
    machine.hand_out();
    machine.sync(1);
    let mut machine = Machine::with(machine.safe_files).unwrap();
    machine.settle();
    let mut files = machine.safe_files;
    assert!(files.remove(&File::Log(1)).is_some());
    assert_eq!(recover(&files).map(|recovered| recovered.cut), Err(LogError::Missing { file: File::Log(1) }));
}

#[test]
fn without_the_file_that_names_the_newest_part_nothing_is_lost() {
    let machine = settled();
    let mut files = machine.safe_files.clone();
    assert!(files.remove(&File::Safe).is_some());
    let mut again = Machine::with(files).unwrap();
    assert_eq!(Content::of(&again.log), Content::of(&machine.log));
    again.settle();
    assert!(again.safe_files.contains_key(&File::Safe), "it is made again");
}

#[test]
fn another_nodes_directory_and_a_newer_version_are_refused() {
    let files = settled().safe_files;
    let ours = Identity { node: 4, ..IDENTITY };
    let other =
        Log::recover(ours, files.clone().into_iter().collect(), DIRECTORY_NUMBER).map(|recovered| recovered.cut);
    assert!(matches!(other, Err(LogError::OtherIdentity { found: IDENTITY, .. })), "{other:?}");
    for &file in files.keys() {
        let mut newer = files.clone();
        let bytes = newer.get_mut(&file).unwrap();
        bytes[8] += 1;
        let checksum = crc32c::crc32c(&bytes[..12]).to_le_bytes();
        bytes[12..16].copy_from_slice(&checksum);
        let refused = recover(&newer).map(|recovered| recovered.cut);
        assert_eq!(refused, Err(LogError::NewerVersion { file, version: 2, ours: 1 }));
    }
}

/// A part cannot know what only a later one could. If recovery believed it, it would skip all following parts.
#[test]
fn a_batch_that_needs_only_later_parts_is_damage() {
    for known in [
        Batch { first: 2_005_535, ..Batch::default() },
        Batch { first: 3, safe: Position { part: 2, offset: 0 }, ..Batch::default() },
        Batch { safe: Position { part: 8, offset: 0 }, ..Batch::default() },
    ] {
        let mut writer = Writer::create(File::Log(7));
        let start = Start::After(Point::default());
        writer.value(&PartHeader { identity: IDENTITY, run: 0, before: 0, start, first_bytes: 0 });
        writer.value(&Record::Batch(known));
        let refused = recover(&Files::from([(File::Log(7), writer.finish())])).unwrap_err();
        assert!(matches!(refused, LogError::Damaged { file: File::Log(7), .. }), "{known:?}: {refused}");
    }
    let mut writer = Writer::create(File::Safe);
    let known = Batch { first: 2, safe: Position { part: 1, offset: 50 }, ..Batch::default() };
    writer.value(&SafeHeader { identity: IDENTITY, known });
    let refused = recover(&Files::from([(File::Safe, writer.finish())])).unwrap_err();
    assert!(matches!(refused, LogError::Damaged { file: File::Safe, .. }), "{refused}");
}

#[test]
fn a_directory_keeps_the_number_that_was_drawn_first() {
    let mut machine = Machine::new();
    machine.settle();
    let files: Vec<_> = machine.safe_files.into_iter().collect();
    let number = |files| Log::recover(IDENTITY, files, DIRECTORY_NUMBER + 1).unwrap().log.number();
    assert_eq!((number(files), number(Vec::new())), (DIRECTORY_NUMBER, DIRECTORY_NUMBER + 1));
}

#[test]
fn raft_reads_what_is_kept() {
    use raft::Storage;
    let mut machine = Machine::new();
    machine.append(0, 10, 0);
    machine.commit(10, 0);
    assert_eq!(Storage::snapshot(&machine.log, 0, 1), Err(StorageError::SnapshotTemporarilyUnavailable.into()));
    machine.compact();
    let log = &machine.log;
    assert_eq!((log.first_index(), log.last_index(), log.snapshot_index()), (8, 10, 10), "three are kept");
    assert_eq!(
        (log.term(7), log.term(6), log.term(11)),
        (Ok(1), Err(StorageError::Compacted), Err(StorageError::Unavailable))
    );
    assert_eq!(log.entries(7, 9, None), Err(StorageError::Compacted));
    assert_eq!(log.entries(8, 12, None), Err(StorageError::Unavailable));
    assert_eq!(log.entries(8, 11, Some(1)).unwrap().len(), 1);
    assert_eq!(Storage::snapshot(log, 10, 1).unwrap().get_metadata().index, 10);
    assert_eq!(Storage::snapshot(log, 11, 1), Err(StorageError::SnapshotTemporarilyUnavailable.into()));
}

#[test]
fn r2_a_log_that_was_sealed_is_not_shortened_unnoticed() {
    let mut machine = Machine::new();
    for _ in 0..3 {
        machine.append(0, 3, 20);
        machine.settle();
    }
    let last = |files: &Files| *files.keys().rfind(|file| matches!(file, File::Log(_))).unwrap();
    for is_sealed in [false, true] {
        if is_sealed {
            machine.log.seal();
            machine.settle();
        }
        let files = machine.safe_files.clone();
        let file = last(&files);
        assert!(recover(&files).unwrap().cut.is_none());
        let noticed = |length: &usize| {
            let mut short = files.clone();
            short.get_mut(&file).unwrap().truncate(*length);
            recover(&short).is_err_and(|error| matches!(error, LogError::Damaged { file: of, .. } if of == file))
        };
        let length = files[&file].len();
        assert_eq!((0..length).all(|length| noticed(&length)), is_sealed);
    }
    // The next start continues after the seal.
    let mut again = Machine::with(machine.safe_files.clone()).unwrap();
    again.append(0, 3, 20);
    again.settle();
    assert!(recover(&again.safe_files).unwrap().cut.is_none());
}

#[test]
fn old_files_are_removed_once_nobody_needs_them() {
    let mut machine = Machine::new();
    for _ in 0..50 {
        machine.append(0, 5, 20);
        machine.commit(5, 0);
        machine.compact();
        machine.settle();
    }
    let count = |which: fn(&File) -> bool| machine.safe_files.keys().filter(|file| which(file)).count();
    assert_eq!(count(|file| matches!(file, File::Snapshot(_))), 1);
    assert!(count(|file| matches!(file, File::Log(_))) <= 3);
}
