//! A set begins with replicas that write their founding state. A crash may leave any part of it.

#![allow(clippy::unwrap_used, reason = "tests may")]

use midflight_endpoint::{Change, Durable, File, Lane, Link, Linked, MS, Nanos};
use midflight_store::replica::{Member, Replica, ReplicaConfig, Role, StartError};
use std::collections::BTreeMap;
use std::net::SocketAddr;

const NOW: Nanos = 1_000 * MS;

type Files = BTreeMap<File, Vec<u8>>;

fn config(id: u64, founds: bool) -> ReplicaConfig {
    let member = |id: u64| {
        let at = |port| SocketAddr::from(([10, 0, 0, id as u8], port));
        Member { id, slot: id as u8 - 1, address: at(7000), links: at(7001) }
    };
    let switches = vec![SocketAddr::from(([10, 0, 1, 1], 7700))];
    ReplicaConfig { founds, ..ReplicaConfig::new(42, 3, id, (1..=3).map(member).collect(), switches, 7) }
}

fn start(files: &Files, founds: bool) -> Result<Replica, StartError> {
    Replica::new(config(1, founds), files.iter().map(|(file, bytes)| (*file, bytes.clone())).collect(), NOW)
}

/// Its number of members, and term and index of the end of its log.
fn begun(replica: &Replica) -> (usize, u64, u64) {
    let status = replica.status(NOW);
    (status.members.len(), status.term, status.last_index)
}

fn write(files: &mut Files, change: &Change) {
    match change {
        Change::Append { file, bytes } => files.entry(*file).or_default().extend(bytes),
        Change::Replace { file, bytes } => drop(files.insert(*file, bytes.clone())),
        Change::Remove { file } => drop(files.remove(file)),
    }
}

fn link(peer: u64) -> Link {
    Link { peer, lane: Lane::Prompt, generation: 1 }
}

/// All batches of one of three founders.
fn batches_of_a_founding() -> Vec<Vec<Change>> {
    let mut replicas: Vec<Replica> =
        (1..=3).map(|id| Replica::new(config(id, true), Vec::new(), NOW).unwrap()).collect();
    for (replica, id) in replicas.iter_mut().zip(1..) {
        (1..=3).filter(|peer| *peer != id).for_each(|peer| replica.link_up(NOW, link(peer)));
    }
    let (mut batches, mut buffer, mut is_busy) = (Vec::new(), Vec::new(), true);
    while std::mem::take(&mut is_busy) {
        for id in 1..=3u64 {
            let own = id as usize - 1;
            while let Some(batch) = replicas[own].poll_persist() {
                is_busy = true;
                replicas[own].persisted(NOW, batch.id);
                batches.extend((id == 1).then_some(batch.changes));
            }
            for peer in (1..=3).filter(|peer| *peer != id) {
                while replicas[own].poll_message(NOW, link(peer), &mut buffer) {
                    is_busy = true;
                    replicas[peer as usize - 1].handle_message(NOW, link(id), &buffer);
                }
            }
        }
    }
    assert!(replicas.iter().all(|replica| begun(replica) == (3, 1, 1) && replica.status(NOW).role == Role::Follower));
    batches
}

/// What a crash may leave of a batch: any of its files, complete or, if appended to, in part.
fn left_of(before: &Files, changes: &[Change]) -> Vec<Files> {
    let (mut states, mut whole) = (vec![before.clone()], before.clone());
    for change in changes {
        for mut files in states.clone() {
            if let Change::Append { file, bytes } = change {
                if files.get(file) != whole.get(file) {
                    continue; // It would follow nothing.
                }
                for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
                    let mut partly = files.clone();
                    write(&mut partly, &Change::Append { file: *file, bytes: bytes[..cut].to_vec() });
                    states.push(partly);
                }
            }
            write(&mut files, change);
            states.push(files);
        }
        write(&mut whole, change);
    }
    states
}

#[test]
fn r2_a_founder_that_is_killed_in_any_batch_founds_on_or_has_begun() {
    let batches = batches_of_a_founding();
    let (mut before, mut states) = (Files::new(), 0);
    for batch in &batches {
        for mut files in left_of(&before, batch) {
            states += 1;
            let mut replica = start(&files, true).unwrap();
            assert!([(0, 0, 0), (3, 1, 1)].contains(&begun(&replica)), "{files:?}");
            assert_eq!(replica.status(NOW).role, Role::Founder, "{files:?}");
            let is_blank = begun(&replica).0 == 0;
            while let Some(batch) = replica.poll_persist() {
                batch.changes.iter().for_each(|change| write(&mut files, change));
                replica.persisted(NOW, batch.id);
            }
            let again = start(&files, false).map(|replica| begun(&replica));
            assert!(matches!(again, Err(StartError::NoFiles(1))) == is_blank, "{again:?}: {files:?}");
        }
        batch.iter().for_each(|change| write(&mut before, change));
    }
    assert!(states > 30, "{states}");
    assert_eq!(begun(&start(&before, false).unwrap()), (3, 1, 1));
}

#[test]
fn r2_a_replica_without_data_starts_only_for_a_new_store() {
    assert!(matches!(start(&Files::new(), false), Err(StartError::NoFiles(1))));
    let mut files = Files::new();
    batches_of_a_founding().iter().flatten().for_each(|change| write(&mut files, change));
    files.retain(|file, _| *file == File::Identity);
    assert!(matches!(start(&files, false), Err(StartError::NoFiles(1))), "whose directory it is, is no data");
}
