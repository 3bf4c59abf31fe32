//! R6, and load: how READs are distributed over replicas.

use super::world::World;
use super::{done, ready};
use midflight_dataplane::store::Policy;
use midflight_endpoint::{MS, Nanos};
use midflight_wire::store::Command;

const EVERY: Nanos = MS / 10;

/// A set with a key, its leader, and its two followers.
fn set(policy: Policy) -> (World, u64, [u64; 2]) {
    let (mut world, client) = ready(3);
    world.change_policy(1, policy);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    let leader = world.leader().unwrap();
    let followers: Vec<u64> = (1..=3).filter(|id| *id != leader).collect();
    (world, leader, followers.try_into().unwrap())
}

/// READs served by each replica.
fn served(world: &mut World) -> [f64; 3] {
    [1, 2, 3].map(|id| world.replica(id).counters().reads_served as f64)
}

/// READs served by each replica in one second.
fn served_in_a_second(world: &mut World) -> [f64; 3] {
    assert_eq!(world.get(1, "a"), done("one"), "it gets a cookie, too");
    let before = served(world);
    world.read_often(1, "a", EVERY, 1000 * MS);
    let after = served(world);
    [0, 1, 2].map(|i| after[i] - before[i])
}

fn of(served: [f64; 3], id: u64) -> f64 {
    served[id as usize - 1]
}

#[test]
fn r6_a_slow_replica_gets_fewer_reads_and_all_of_them_again_when_it_has_recovered() {
    let (mut world, leader, [slow, fast]) = set(Policy::LoadAware);
    world.slow.insert(slow, 10 * MS);
    world.read_often(1, "a", EVERY, 5000 * MS);
    let shares = served_in_a_second(&mut world);
    assert!(of(shares, slow) < of(shares, fast) / 2.0, "replica {slow} is slow: {shares:?}");
    assert!(of(shares, slow) > of(shares, fast) / 200.0, "it gets some, or nobody saw it recover: {shares:?}");
    assert!(of(shares, leader) > of(shares, fast) * 0.8, "{shares:?}");

    world.slow.clear();
    world.read_often(1, "a", EVERY, 10_000 * MS);
    let shares = served_in_a_second(&mut world);
    assert!(of(shares, slow) > of(shares, fast) * 0.7, "replica {slow} has recovered: {shares:?}");
}

#[test]
fn r6_without_load_awareness_all_get_the_same() {
    let (mut world, _, [slow, fast]) = set(Policy::Random);
    world.slow.insert(slow, 10 * MS);
    world.read_often(1, "a", EVERY, 3000 * MS);
    let shares = served_in_a_second(&mut world);
    assert!(of(shares, slow) > of(shares, fast) * 0.9, "{shares:?}");
    // The weights were always sent; the policy makes them count.
    world.change_policy(1, Policy::LoadAware);
    let shares = served_in_a_second(&mut world);
    assert!(of(shares, slow) < of(shares, fast) * 0.7, "{shares:?}");
}

/// All READs pass the switch while a write is in flight, which takes a disk and four networks.
#[test]
fn r6_the_leader_is_avoided_and_the_slow_follower_gets_fewer() {
    let (mut world, leader, [slow, fast]) = set(Policy::LoadAwareLeaderAvoidance);
    world.slow.insert(slow, 10 * MS);
    let client = world.open(1);
    let mut number = 0;
    let mut rounds = |world: &mut World, rounds: u64| {
        for _ in 0..rounds {
            number += 1;
            world.begin_write(1, client, number, Command::Put, "b", b"two");
            world.read_often(1, "a", MS / 100, 4 * MS / 10);
            world.run(25 * MS);
        }
    };
    rounds(&mut world, 200);
    let before = served(&mut world);
    rounds(&mut world, 100);
    let after = served(&mut world);
    let shares = [0, 1, 2].map(|i| after[i] - before[i]);
    // A few: a HEARTBEAT sent just before the write arrived reports that none is in flight.
    assert!(of(shares, leader) < of(shares, fast) / 50.0, "{shares:?}");
    assert!(of(shares, slow) < of(shares, fast) / 2.0, "{shares:?}");
}
