//! Random bytes as the files of a replica's directory: recovery never panics, and a second recovery reads back what the first
//! wrote.
//!
//! The input is a list of files: kind and number, length (u16), bytes. If the kind asks for it, the target corrects the
//! checksums, so that recovery reaches what follows them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midflight_endpoint::{Change, File};
use midflight_store::log::{Identity, Log, Recovered};
use std::collections::BTreeMap;

/// Zero, as in the files that a fuzzer begins with.
const IDENTITY: Identity = Identity { cluster: 0, node: 0, set: 0 };
/// Batches for repair, removal and the end; more mean an endless loop.
const BATCHES_MAX: u64 = 10;

fuzz_target!(|input: &[u8]| {
    let mut files = files(input);
    let Ok(first) = Log::recover(IDENTITY, files.clone().into_iter().collect(), 7) else { return };
    let Recovered { mut log, snapshot, .. } = first;
    while let Some(batch) = log.poll_persist() {
        assert!(batch.id < BATCHES_MAX, "a log that never stops writing");
        batch.changes.into_iter().for_each(|change| apply(&mut files, change));
        log.persisted(batch.id);
    }
    let again = Log::recover(IDENTITY, files.into_iter().collect(), 8).expect("what it wrote itself");
    assert!(again.cut.is_none() && again.snapshot == snapshot);
    assert_eq!(again.log.hard_state(), log.hard_state());
    let entries = |log: &Log| (log.first_index(), log.entries(log.first_index(), log.last_index() + 1, None).ok());
    assert_eq!(entries(&again.log), entries(&log));
});

fn files(mut input: &[u8]) -> BTreeMap<File, Vec<u8>> {
    let mut files = BTreeMap::new();
    while let [kind, low, high, rest @ ..] = input {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (bytes, rest) = rest.split_at(length);
        let number = u64::from(kind >> 3 & 7);
        let file = match kind & 3 {
            0 if number == 0 => File::Identity,
            0 => File::Safe,
            1 | 2 => File::Log(number),
            _ => File::Snapshot(number),
        };
        let bytes = if kind & 4 == 0 { bytes.to_vec() } else { midflight_store::log::sealed(file, bytes) };
        files.insert(file, bytes);
        input = rest;
    }
    files
}

fn apply(files: &mut BTreeMap<File, Vec<u8>>, change: Change) {
    match change {
        Change::Append { file, bytes } => files.entry(file).or_default().extend(bytes),
        Change::Replace { file, bytes } => drop(files.insert(file, bytes)),
        Change::Remove { file } => drop(files.remove(&file)),
    }
}
