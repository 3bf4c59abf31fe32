//! Replicas and switches together.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod attacks;
mod balance;
mod changes;
mod direct;
mod expiry;
mod followers;
mod founding;
mod full_disk;
mod hot;
mod modes;
mod outages;
mod slow_disk;
mod snapshots;
mod world;

use midflight_endpoint::MS;
use midflight_wire::store::{Command, Status};
use world::{World, member, switch};

fn done(value: &str) -> Option<(Status, Vec<u8>)> {
    Some((Status::Done, value.as_bytes().to_vec()))
}

/// A set with a session and a client.
fn ready(replicas: u64) -> (World, u64) {
    let mut world = World::new(replicas);
    world.run(400 * MS);
    assert!(world.leader().is_some(), "{:?}", world.events);
    let client = world.open(1);
    (world, client)
}

/// R6: each switch regularly hears each replica, by packets that cannot be forged. A switch in the kernel sends READs where the last such
/// packet came from.
#[test]
fn r6_every_switch_knows_where_every_replica_is() {
    let (mut world, _) = ready(3);
    world.run(500 * MS);
    for (number, id) in [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)] {
        let heard = world.known.get(&(switch(number), member(id).address)).copied().unwrap_or(0);
        assert!(heard + 150 * MS > world.now, "switch {number} has not heard of replica {id} for long");
    }
}

#[test]
fn r5_a_set_of_one_works() {
    let (mut world, client) = ready(1);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    assert_eq!(world.get(1, "a"), done("one"));
}

#[test]
fn r5_the_leader_moves_to_the_standby_switch() {
    let (mut world, client) = ready(3);
    assert_eq!(world.get(2, "a"), Some((Status::Inactive, Vec::new())), "r4");
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    world.stop_switch(1);
    world.run(250 * MS);
    assert_eq!(world.get(2, "a"), done("one"), "{:?}", world.events);
    world.start_switch(1, 2);
    world.run(100 * MS);
    assert_eq!(world.get(1, "a"), Some((Status::Inactive, Vec::new())), "it stays where it is");
    assert_eq!(world.write(2, client, 2, Command::Put, "a", b"two"), done(""));
}

#[test]
fn flush_removes_all_data_between_two_sessions() {
    let (mut world, client) = ready(3);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    assert_eq!(world.get(1, "a"), done("one"));
    let leader = world.leader().unwrap();
    world.call(leader, |replica, now| replica.flush(now)).unwrap();
    world.run(20 * MS);
    for _ in 0..10 {
        assert_eq!(world.get(1, "a"), Some((Status::NotFound, Vec::new())));
    }
    assert_eq!(world.write(1, client, 2, Command::Put, "a", b"two"), done(""), "clients are known, still");
}

/// Each `midflight store put` opens an id and uses it once.
#[test]
fn r7_ids_that_were_used_once_make_room_within_a_minute() {
    let mut world = World::with(3, |config| config.clients = 2);
    world.run(400 * MS);
    let used = [world.open(1), world.open(1)];
    for id in used {
        assert_eq!(world.write(1, id, 1, Command::Put, "a", b"one"), done(""));
    }
    world.run(60_000 * MS);
    let third = world.open(1);
    assert!(!used.contains(&third));
    assert_eq!(world.write(1, third, 1, Command::Put, "a", b"two"), done(""));
    let forgotten = world.write(1, used[0], 1, Command::Put, "a", b"one").map(|(status, _)| status);
    assert_eq!(forgotten, Some(Status::UnknownClient), "R3: what comes late never runs");
}

/// A client that opens ids without end adds nothing to the log once it has its share.
#[test]
fn r7_an_opening_that_is_refused_is_not_logged() {
    let mut world = World::with(3, |config| config.clients = 18);
    world.run(400 * MS);
    let opened =
        (1..=40).filter(|&number| matches!(world.write(1, 0, number, Command::Open, "", b""), Some((Status::Done, _))));
    assert_eq!(opened.count(), 16, "its share");
    let leader = world.leader().unwrap();
    let last = world.replica(leader).status(0).last_index;
    for number in 41..=140 {
        assert_eq!(world.write(1, 0, number, Command::Open, "", b""), Some((Status::ClientsFull, Vec::new())));
    }
    for number in 141..=240 {
        world.begin_write(1, 0, number, Command::Open, "", b"");
    }
    world.run(10 * MS);
    assert_eq!(world.replica(leader).status(0).last_index, last);
}

/// Openings in flight have no id yet. Together they get no more than the share.
#[test]
fn r7_openings_that_come_at_once_are_refused_before_they_are_logged() {
    let mut world = World::with(3, |config| config.clients = 18);
    world.run(400 * MS);
    world.open(1);
    let leader = world.leader().unwrap();
    let last = world.replica(leader).status(0).last_index;
    for number in 2..=200 {
        world.begin_write(1, 0, number, Command::Open, "", b"");
    }
    world.run(10 * MS);
    let status = world.replica(leader).status(0);
    assert_eq!((status.clients, status.last_index - last), (16, 15));
}
