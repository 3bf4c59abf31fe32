//! Full disks: which operations continue, depending on whose disk is full.

use super::world::World;
use super::{done, ready};
use midflight_endpoint::MS;
use midflight_store::client::StoreError;
use midflight_store::replica::Event;
use midflight_wire::store::{Command, Status};

fn refused() -> Option<(Status, Vec<u8>)> {
    Some((Status::DiskFull, Vec::new()))
}

fn set_room(world: &mut World, id: u64, has_room: bool) {
    world.call(id, |replica, now| replica.set_disk_room(now, has_room));
    world.run(5 * MS);
}

#[test]
fn r5_where_a_majority_of_disks_is_full_reads_and_deletes_go_on() {
    let (mut world, client) = ready(3);
    let leader = world.leader().unwrap();
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    assert_eq!(world.write(1, client, 2, Command::Put, "b", b"two"), done(""));
    let followers: Vec<u64> = (1..=3).filter(|&id| id != leader).collect();
    for id in &followers {
        set_room(&mut world, *id, false);
    }
    assert_eq!(world.write(1, client, 3, Command::Put, "a", b"three"), refused());
    assert_eq!(world.write(1, client, 4, Command::Incr, "n", &1i64.to_be_bytes()), refused());
    assert_eq!(world.get(1, "a"), done("one"));
    let other = world.open(1);
    assert_eq!(world.write(1, other, 1, Command::Delete, "b", b""), done(""), "a new client deletes, too");
    assert_eq!(world.get(1, "b"), Some((Status::NotFound, Vec::new())));
    assert_eq!(world.replica(leader).counters().writes_without_room, 2);
    set_room(&mut world, followers[0], true);
    assert_eq!(world.write(1, client, 5, Command::Put, "a", b"three"), done(""));
    assert_eq!(world.leader(), Some(leader), "its own disk has room");
}

/// The client has repeated the write before it got the refusal, or the network has.
#[test]
fn r3_a_copy_of_a_refused_write_may_run_when_there_is_room() {
    let (mut world, client) = ready(3);
    let followers: Vec<u64> = (1..=3).filter(|&id| Some(id) != world.leader()).collect();
    followers.iter().for_each(|id| set_room(&mut world, *id, false));
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), refused());
    set_room(&mut world, followers[0], true);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    assert!(StoreError::DiskFull.is_unknown());
}

#[test]
fn r5_a_full_follower_stops_nothing() {
    let (mut world, client) = ready(3);
    let follower = world.leader().unwrap() % 3 + 1;
    set_room(&mut world, follower, false);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
}

/// If a majority has room, a leader without room hands over and writes continue.
#[test]
fn r5_a_full_leader_hands_over_to_one_with_room() {
    let (mut world, client) = ready(3);
    let leader = world.leader().unwrap();
    let full = leader % 3 + 1;
    set_room(&mut world, leader, false);
    world.run(500 * MS);
    let next = world.leader().unwrap();
    assert_ne!(next, leader);
    assert!(world.events.iter().any(|(_, id, event)| *id == leader && *event == Event::FullDisk(next)));
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    // With a second full disk, no majority has room. The next leader knows the first one from its reports.
    let second = if next == full { full % 3 + 1 } else { full };
    assert_ne!(second, leader);
    set_room(&mut world, second, false);
    assert_eq!(world.write(1, client, 2, Command::Put, "a", b"two"), refused());
}

/// Each new leader must first hear whose disk has room.
#[test]
fn r5_full_leaders_do_not_hand_over_to_each_other() {
    let (mut world, client) = ready(3);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    let leader = world.leader().unwrap();
    (1..=3).filter(|&id| id != leader).for_each(|id| set_room(&mut world, id, false));
    set_room(&mut world, leader, false);
    world.kill(leader);
    world.events.clear();
    world.run(2_000 * MS);
    let elections = world.events.iter().filter(|(_, _, event)| matches!(event, Event::Leads(_))).count();
    assert_eq!(elections, 1, "{:?}", world.events);
    assert_eq!(world.get(1, "a"), done("one"));
    assert_eq!(world.write(1, client, 2, Command::Put, "a", b"two"), refused());
}

#[test]
fn r5_a_set_of_one_with_a_full_disk_serves_reads_and_deletes() {
    let (mut world, client) = ready(1);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    set_room(&mut world, 1, false);
    assert_eq!(world.write(1, client, 2, Command::Put, "b", b"two"), refused());
    assert_eq!(world.get(1, "a"), done("one"));
    assert_eq!(world.write(1, client, 3, Command::Delete, "a", b""), done(""));
}

/// A snapshot needs as much room again. Deletes make it small enough for the reserve.
#[test]
fn r5_a_full_disk_makes_a_snapshot_only_of_a_small_store() {
    let mut world = World::with(1, |config| config.snapshot_after = 1 << 30);
    world.run(400 * MS);
    let client = world.open(1);
    let value = vec![b'x'; 1000];
    for number in 1..=5_000 {
        let key = format!("key-{number}");
        world.begin_write(1, client, number, Command::Put, &key, &value);
        if number % 100 == 0 {
            world.run(10 * MS);
        }
    }
    world.run(100 * MS);
    assert_eq!(world.replica(1).status(0).keys, 5_000);
    set_room(&mut world, 1, false);
    world.run(500 * MS);
    assert_eq!(world.replica(1).counters().snapshots, 0);
    for number in 5_001..=7_000 {
        let key = format!("key-{}", number - 5_000);
        world.begin_write(1, client, number, Command::Delete, &key, b"");
        if number % 100 == 0 {
            world.run(10 * MS);
        }
    }
    world.run(500 * MS);
    let status = world.replica(1).status(0);
    assert_eq!(world.replica(1).counters().snapshots, 1, "{status:?}");
}
