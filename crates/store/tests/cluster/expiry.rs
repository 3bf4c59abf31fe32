//! Keys that expire.

use super::world::World;
use super::{done, ready};
use midflight_endpoint::MS;
use midflight_wire::store::{ChangeCode, Command, ConditionCode, Status, Update};
use zerocopy::{FromZeros, IntoBytes};

fn none() -> Option<(Status, Vec<u8>)> {
    Some((Status::NotFound, Vec::new()))
}

/// Whether a key is gone for all replicas. Reads spread over them.
fn is_gone(world: &mut World, key: &str) -> bool {
    (0..10).all(|_| world.get(1, key) == none())
}

fn expired(world: &mut World) -> u64 {
    (1..=3).map(|id| world.replica(id).counters().expired).sum()
}

#[test]
fn r1_a_key_exists_until_its_time_and_soon_no_more() {
    let (mut world, client) = ready(3);
    world.put_for(1, client, 1, "a", b"one", 200);
    world.put_for(1, client, 2, "b", b"two", 100_000);
    world.run(150 * MS);
    assert_eq!(world.get(1, "a"), done("one"));
    world.run(80 * MS);
    assert!(is_gone(&mut world, "a"));
    assert_eq!((world.get(1, "b"), expired(&mut world)), (done("two"), 3));
}

#[test]
fn r1_a_key_that_got_another_value_stays() {
    let (mut world, client) = ready(3);
    world.put_for(1, client, 1, "a", b"one", 100);
    world.put_for(1, client, 2, "b", b"one", 100);
    world.put_for(1, client, 3, "c", b"one", 100);
    assert_eq!(world.write(1, client, 4, Command::Put, "a", b"two"), done(""));
    world.put_for(1, client, 5, "b", b"two", 100_000);
    assert_eq!(world.write(1, client, 6, Command::Incr, "c", &1i64.to_be_bytes()).unwrap().0, Status::NotANumber);
    world.run(200 * MS);
    assert_eq!((world.get(1, "a"), world.get(1, "b")), (done("two"), done("two")));
    assert!(is_gone(&mut world, "c"));
}

#[test]
fn r5_the_next_leader_removes_what_the_former_would_have() {
    let (mut world, client) = ready(3);
    world.put_for(1, client, 1, "a", b"one", 100);
    let leader = world.leader().unwrap();
    world.kill(leader);
    world.run(1_500 * MS);
    assert!(is_gone(&mut world, "a"));
    // And after a restart from its disk, one that knows it from the log.
    world.start(leader);
    world.run(300 * MS);
    world.put_for(1, client, 2, "b", b"two", 300);
    for id in 1..=3 {
        world.kill(id);
    }
    (1..=3).for_each(|id| world.start(id));
    world.run(2_000 * MS);
    assert!(is_gone(&mut world, "b"));
}

#[test]
fn r7_many_keys_that_expire_at_once_are_all_removed() {
    let (mut world, client) = ready(3);
    for number in 0..500u32 {
        world.put_for(1, client, u64::from(number) + 1, &format!("key {number}"), b"value", 4_000);
    }
    world.run(5_000 * MS);
    assert_eq!(expired(&mut world), 1_500, "each replica counts");
    let leader = world.leader().unwrap();
    assert_eq!(world.status(leader).keys, 0);
}

/// A late or forged copy does nothing, and no other write goes without a client id.
#[test]
fn r3_without_an_id_only_a_key_that_is_due_is_removed() {
    let (mut world, client) = ready(3);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    let mut update = Update::new_zeroed();
    (update.condition, update.change) = (ConditionCode::Due.into(), ChangeCode::Remove.into());
    let answer = world.write(1, 0, 1, Command::Update, "a", update.as_bytes());
    assert_eq!(answer.map(|(status, _)| status), Some(Status::Conflict));
    for condition in [ConditionCode::Always, ConditionCode::Present] {
        update.condition = condition.into();
        let answer = world.write(1, 0, 2, Command::Update, "a", update.as_bytes());
        assert_eq!(answer.map(|(status, _)| status), Some(Status::UnknownClient));
    }
    assert_eq!(world.get(1, "a"), done("one"));
}

#[test]
fn r7_keys_expire_though_there_is_room_for_no_other_client() {
    let mut world = World::with(3, |config| config.clients = 1);
    world.run(400 * MS);
    let client = world.open(1);
    world.put_for(1, client, 1, "a", b"one", 50);
    world.run(100 * MS);
    assert!(is_gone(&mut world, "a"));
}
