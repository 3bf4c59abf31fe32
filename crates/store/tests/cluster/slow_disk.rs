//! A leader's slow disk: what waits for it, and what does not.

use super::world::World;
use super::{done, ready};
use midflight_endpoint::{MS, Nanos};
use midflight_store::replica::Event;
use midflight_wire::store::Command;

const SLOW: Nanos = 100 * MS;

/// A set whose leader's disk takes this long.
fn with_slow_leader(disk: Nanos) -> (World, u64, u64) {
    let (mut world, client) = ready(3);
    let leader = world.leader().unwrap();
    world.slow_disks.insert(leader, disk);
    (world, client, leader)
}

#[test]
fn r5_a_slow_disk_of_the_leader_delays_neither_writes_nor_reads() {
    let (mut world, client, _) = with_slow_leader(SLOW);
    for number in 1..=10 {
        let value = number.to_string();
        // Each is answered within 5 ms.
        assert_eq!(world.write(1, client, number, Command::Put, "a", value.as_bytes()), done(""));
        assert_eq!(world.get(1, "a"), done(&value));
    }
}

#[test]
fn a_lone_write_costs_the_leader_one_sync() {
    let (mut world, client) = ready(3);
    let leader = world.leader().unwrap();
    let before = world.batches[&leader];
    for number in 1..=5 {
        assert_eq!(world.write(1, client, number, Command::Put, "a", b"one"), done(""));
    }
    assert_eq!(world.batches[&leader] - before, 5);
}

fn hand_overs(world: &World) -> usize {
    world.events.iter().filter(|(_, _, event)| matches!(event, Event::SlowDisk(_))).count()
}

/// Writes every 10 ms. Returns the number of answers.
fn write_for(world: &mut World, client: u64, time: Nanos) -> u64 {
    let end = world.now + time;
    let mut number = 0;
    let mut answered = 0;
    while world.now < end {
        number += 1;
        answered += u64::from(world.write(1, client, number, Command::Put, "a", b"one") == done(""));
        world.run(5 * MS);
    }
    answered
}

#[test]
fn r5_a_leader_with_a_slow_disk_hands_over_to_one_with_a_fast_disk() {
    let (mut world, client, leader) = with_slow_leader(SLOW);
    write_for(&mut world, client, 2_000 * MS);
    assert_eq!(hand_overs(&world), 1, "{:?}", world.events);
    assert_ne!(world.leader().unwrap(), leader);
    write_for(&mut world, client, 2_000 * MS);
    assert_eq!(hand_overs(&world), 1, "its disk is fast");
}

/// The disk completes no write.
#[test]
fn r5_a_leader_whose_disk_hangs_hands_over() {
    let (mut world, client, leader) = with_slow_leader(1_000_000 * MS);
    write_for(&mut world, client, 2_000 * MS);
    assert_eq!(hand_overs(&world), 1, "{:?}", world.events);
    assert_ne!(world.leader().unwrap(), leader);
}

#[test]
fn a_leader_whose_disk_is_as_slow_as_the_others_stays() {
    let (mut world, client, leader) = with_slow_leader(SLOW);
    world.slow_disks = (1..=3).map(|id| (id, SLOW)).collect();
    write_for(&mut world, client, 3_000 * MS);
    assert_eq!((hand_overs(&world), world.leader()), (0, Some(leader)));
}

/// A snapshot waits until the entries that it contains are durable.
#[test]
fn r2_a_snapshot_of_what_is_applied_waits_until_it_is_on_disk() {
    let mut world = World::with(3, |config| config.snapshot_after = 16 << 10);
    world.run(400 * MS);
    let client = world.open(1);
    let leader = world.leader().unwrap();
    world.slow_disks.insert(leader, SLOW);
    for number in 1..=100 {
        let key = format!("key-{number}");
        assert_eq!(world.write(1, client, number, Command::Put, &key, &[b'x'; 1000]), done(""));
    }
    world.run(2_000 * MS);
    assert!(world.replica(leader).counters().snapshots > 0);
    world.kill(leader);
    world.start(leader);
    world.run(1_000 * MS);
    assert_eq!(world.replica(leader).status(0).keys, 100);
}
