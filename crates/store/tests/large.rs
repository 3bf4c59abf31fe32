//! A store of maximal size: no turn of a replica takes long while it takes, sends and receives a snapshot.
//!
//! `cargo test --release -p midflight-store --features replica --test large -- --ignored --nocapture`

#![allow(clippy::unwrap_used, reason = "tests may")]

#[path = "cluster/world/mod.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod world;

use midflight_endpoint::MS;
use midflight_wire::store::{Command, Status};
use std::time::Duration;
use world::World;

/// Longest turn in processor time; less than a lease. At worst, most of it is the allocator and the kernel searching memory after half a
/// million values were freed.
const TURN_MAX: Duration = Duration::from_millis(100);
const VALUE: [u8; 1000] = [b'x'; 1000];

#[test]
#[ignore = "needs a release build, a minute and 6 GiB of memory"]
fn r7_the_largest_store_stops_no_heartbeat() {
    let bytes = 512 << 20;
    let mut world = World::with(3, |config| config.store_bytes = bytes);
    world.run(400 * MS);
    let (client, leader) = (world.open(1), world.leader().unwrap());
    let late = leader % 3 + 1;
    world.kill(late);
    let mut number = 0;
    let full = loop {
        number += 1;
        let (status, _) = world.write(1, client, number, Command::Put, &format!("key-{number}"), &VALUE).unwrap();
        if status != Status::Done {
            break status;
        }
    };
    assert_eq!(full, Status::Full);
    let mut longest = vec![world.longest];
    println!("{number} keys written, the longest turn took {:?}", std::mem::take(&mut world.longest));
    let keys = world.replica(leader).status(0).keys;
    world.start(late);
    let elections = |world: &mut World| (1..=3).map(|id| world.replica(id).counters().elections).sum::<u64>();
    let before = elections(&mut world);
    world.run(20_000 * MS);
    assert_eq!(world.replica(late).status(0).keys, keys, "{:?}", world.replica(late).counters());
    assert_eq!(elections(&mut world), before);
    longest.push(world.longest);
    println!("{keys} keys sent, the longest turn took {:?}", std::mem::take(&mut world.longest));
    world.call(leader, |replica, now| replica.flush(now)).unwrap();
    world.run(2000 * MS);
    assert_eq!(world.replica(late).status(0).keys, 0);
    longest.push(world.longest);
    println!("all removed, the longest turn took {:?}", std::mem::take(&mut world.longest));
    assert!(longest.iter().all(|(time, _)| *time < TURN_MAX), "{longest:?}");
}
