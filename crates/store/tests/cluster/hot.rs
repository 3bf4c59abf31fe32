//! R6: keys that are read and written often. A reply that shows a later write than its READ expected reaches the client if that write is
//! the last one.

use super::ready;
use super::world::{Replies, World};
use midflight_endpoint::{MS, Nanos};
use midflight_wire::store::Command;

const KEYS: u64 = 8;
/// Interval of READs.
const EVERY: Nanos = MS / 50;
const TIME: Nanos = 250 * MS;

/// READs of hot keys, and a write to one of them every `between`. A replica takes datagrams every `turn`, unless 0.
fn load(between: Nanos, turn: Nanos) -> Replies {
    let (mut world, client) = ready(3);
    let key = |number: u64| format!("key {}", number % KEYS);
    let leader = world.leader().unwrap();
    let follower = if leader == 1 { 2 } else { 1 };
    world.replies = Replies::default();
    world.replies.leader = leader as u8 - 1;
    if turn > 0 {
        world.slow.insert(follower, turn);
    }
    let writes = TIME / between;
    for number in 1..=writes {
        world.begin_write(1, client, number, Command::Put, &key(number * 7 / 3), b"value");
        read(&mut world, between, key);
    }
    assert_eq!(world.leader(), Some(leader));
    std::mem::take(&mut world.replies)
}

fn read(world: &mut World, time: Nanos, key: impl Fn(u64) -> String) {
    for number in 0..time / EVERY {
        world.read_often(1, &key(number * 5 / 2), EVERY, EVERY);
    }
}

/// Replies that the switch would turn back if they repeated their READ's SEQ.
fn without(replies: &Replies) -> u64 {
    replies.turned_back + replies.passed_later
}

#[test]
fn r6_replies_that_show_the_last_write_are_not_turned_back() {
    println!(
        "a write each ms | one replica's turn, ms | passed | turned back with the READ's SEQ | with the last write's"
    );
    for (between, turn) in [(MS, 0), (MS, MS), (MS, 4 * MS), (5 * MS, 0), (5 * MS, MS), (5 * MS, 4 * MS)] {
        let replies = load(between, turn);
        let (before, after) = (without(&replies), replies.turned_back);
        println!("{} | {} | {} | {before} | {after}", between / MS, turn / MS, replies.passed);
        assert!(replies.passed > 1000, "{replies:?}");
        if turn > 2 * MS {
            assert!(after < before / 2, "a slow replica applies writes before it answers READs: {before}, {after}");
        }
    }
}
