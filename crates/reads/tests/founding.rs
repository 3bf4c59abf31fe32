//! A set begins with replicas that write their first state. A crash on the way leaves any part of it.

#![allow(clippy::unwrap_used, reason = "tests may")]

use midflight_endpoint::{Change, Durable, File, MS, Nanos};
use midflight_reads::replica::{Member, Replica, ReplicaConfig, StartError};
use std::collections::BTreeMap;
use std::net::SocketAddr;

const NOW: Nanos = 1_000 * MS;

type Files = BTreeMap<File, Vec<u8>>;

fn config(founds: bool) -> ReplicaConfig {
    let member = |id: u64| {
        let at = |port| SocketAddr::from(([10, 0, 0, id as u8], port));
        Member { id, slot: id as u8 - 1, address: at(7000), links: at(7001) }
    };
    let switches = vec![SocketAddr::from(([10, 0, 1, 1], 7700))];
    ReplicaConfig { founds, ..ReplicaConfig::new(42, 3, 1, (1..=3).map(member).collect(), switches, 7) }
}

fn start(files: &Files, founds: bool) -> Result<Replica, StartError> {
    Replica::new(config(founds), files.iter().map(|(file, bytes)| (*file, bytes.clone())).collect(), NOW)
}

/// Its members, and where its log ends: term and index.
fn begun(replica: &Replica) -> (usize, u64, u64) {
    let status = replica.status(NOW);
    (status.members.len(), status.term, status.last_index)
}

fn write(files: &mut Files, change: Change) {
    match change {
        Change::Append { file, bytes } => files.entry(file).or_default().extend(bytes),
        Change::Replace { file, bytes } => drop(files.insert(file, bytes)),
        Change::Remove { file } => drop(files.remove(&file)),
    }
}

fn write_all(files: &mut Files, replica: &mut Replica) {
    while let Some(batch) = replica.poll_persist() {
        batch.changes.into_iter().for_each(|change| write(files, change));
        replica.persisted(NOW, batch.id);
    }
}

/// What a crash may leave of the first batch: any of its files, each as a whole or, where it was appended to, in part.
fn left_by_crashes() -> Vec<Files> {
    let changes = start(&Files::new(), true).unwrap().poll_persist().unwrap().changes;
    let (mut states, mut whole) = (vec![Files::new()], Files::new());
    for change in &changes {
        for mut files in states.clone() {
            if let Change::Append { file, bytes } = change {
                if files.get(file) != whole.get(file) {
                    continue; // It would follow nothing.
                }
                for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
                    let mut partly = files.clone();
                    write(&mut partly, Change::Append { file: *file, bytes: bytes[..cut].to_vec() });
                    states.push(partly);
                }
            }
            write(&mut files, change.clone());
            states.push(files);
        }
        write(&mut whole, change.clone());
    }
    states
}

#[test]
fn r2_a_replica_that_was_killed_in_its_first_batch_begins_again() {
    let states = left_by_crashes();
    assert!(states.len() > 30, "{}", states.len());
    for mut files in states {
        let mut replica = start(&files, true).unwrap();
        assert_eq!(begun(&replica), (3, 1, 1), "{files:?}");
        write_all(&mut files, &mut replica);
        let again = start(&files, false).unwrap();
        assert_eq!(begun(&again), (3, 1, 1), "{files:?}");
    }
}

#[test]
fn r2_a_replica_that_has_begun_is_not_founded_again() {
    let mut files = Files::new();
    let mut first = start(&files, true).unwrap();
    write_all(&mut files, &mut first);
    let kept = files.clone();
    let mut again = start(&files, true).unwrap();
    assert_eq!(begun(&again), (3, 1, 1));
    write_all(&mut files, &mut again);
    assert!(kept.iter().all(|(file, bytes)| files.get(file) == Some(bytes)), "nothing is written anew");
    assert!(matches!(start(&Files::new(), false), Err(StartError::NoFiles(1))));
}
