//! R5 if a process is alive, but some of its packets are lost.

use super::world::{World, member, switch};
use super::{done, ready};
use midflight_endpoint::{MS, Nanos};
use midflight_wire::store::{Command, Status};

/// Repeats the test at twelve phases of the heartbeat. Prints the longest time that it returns.
fn for_each_phase(test: impl Fn(&mut World, u64) -> Nanos) {
    let mut longest = 0;
    for phase in 0..12 {
        let (mut world, client) = ready(3);
        assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
        world.run(phase * 7 * MS / 2);
        longest = longest.max(test(&mut world, client));
    }
    println!("{} ms at the longest", longest / MS);
}

/// The leader can send, but receives nothing. Its followers would wait as long as they hear it.
#[test]
fn r5_a_leader_that_hears_nobody_is_replaced_within_300_ms() {
    for_each_phase(|world, client| {
        let leader = world.leader().unwrap();
        world.begin_write(1, client, 2, Command::Put, "b", b"two");
        world.run(MS / 10);
        let to = member(leader).address;
        world.cut = Some(Box::new(move |_, receiver| receiver == to));
        let outage = world.wait_for_write(1, client, 3);
        assert!(outage <= 300 * MS, "{} ms: {:?}", outage / MS, world.events);
        assert_eq!(world.get(1, "a"), done("one"));
        outage
    });
}

/// The same for packets from switches only.
#[test]
fn r5_a_leader_that_hears_no_switch_is_replaced_within_300_ms() {
    for_each_phase(|world, client| {
        let leader = world.leader().unwrap();
        let to = member(leader).address;
        let switches = [switch(1), switch(2)];
        world.cut = Some(Box::new(move |from, receiver| receiver == to && switches.contains(&from)));
        let outage = world.wait_for_write(1, client, 3);
        assert!(outage <= 300 * MS, "{} ms: {:?}", outage / MS, world.events);
        assert_eq!(world.get(1, "a"), done("one"));
        outage
    });
}

/// The leader stays if no other member would do better, because each election costs a term and a log entry.
#[test]
fn r5_without_any_switch_the_leader_stays() {
    let (mut world, client) = ready(3);
    let term = world.replica(1).status(0).term;
    [1, 2].into_iter().for_each(|number| world.stop_switch(number));
    world.run(10_000 * MS);
    let elections = world.replica(1).status(0).term - term;
    assert!(elections <= 1, "{elections} elections in 10 s");
    world.start_switch(2, 2);
    let outage = world.wait_for_write(2, client, 1);
    assert!(outage <= 100 * MS, "{} ms", outage / MS);
}

/// Clients report in their requests that no switch serves them. A standby that tells the leader gets the session.
#[test]
fn r5_the_session_moves_to_the_standby_that_clients_reach() {
    for_each_phase(|world, client| {
        world.run(1_000 * MS);
        assert_eq!(world.get(2, "a"), Some((Status::Inactive, Vec::new())));
        world.run(200 * MS);
        assert_eq!(world.get(2, "a"), Some((Status::Inactive, Vec::new())), "a client that only looks for the session");
        let begun = world.now;
        while world.get_unserved(2, "a") != done("one") {
            assert!(world.now < begun + 100 * MS, "{:?}", world.events);
        }
        assert_eq!(world.get(1, "a"), Some((Status::Inactive, Vec::new())), "R4");
        let moved = world.now - begun;
        assert_eq!(world.write(2, client, 2, Command::Put, "a", b"two"), done(""));
        moved
    });
}

/// Clients that reach one switch each are served in turn: no client can keep the session, and it moves at most once a second.
#[test]
fn r5_clients_that_reach_different_switches_take_turns_of_a_second() {
    let (mut world, _) = ready(3);
    let begun = world.now;
    let mut served = [0, 0];
    while world.now < begun + 10_000 * MS {
        for at in [1, 2] {
            served[at as usize - 1] += u32::from(matches!(world.get_unserved(at, "a"), Some((Status::NotFound, _))));
        }
        world.run(5 * MS);
    }
    let moves: u64 = (1..=3).map(|id| world.replica(id).counters().sessions).sum();
    assert!((8..=12).contains(&moves), "{moves}");
    assert!(served.iter().all(|&reads| reads > 200), "{served:?}");
}
