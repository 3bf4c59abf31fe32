//! Follower reads, by leases and by read index, with leader changes and late peer messages.

use super::modes::{followers, ready};
use super::world::{self, World};
use super::{done, switch};
use midflight_endpoint::{Endpoint, Lane, Link, Linked, MS, Nanos};
use midflight_store::replica::{Mode, Role};
use midflight_wire::store::{Command, FLAG_ANY_REPLICA, Operation, Packet, Request, Status, key_hash, parse};
use zerocopy::IntoBytes;

/// A message this late does not arrive within a test.
const NEVER: Nanos = 60_000 * MS;

fn sid(world: &mut World) -> u64 {
    let leader = world.leader().unwrap();
    world.replica(leader).status(0).session.unwrap().0
}

/// A replica's immediate answer to a READ of the key "a" that the switch may send to any replica; `None`: it waits.
fn answer_of(world: &mut World, replica: u64, sid: u64) -> Option<(Status, Vec<u8>)> {
    let mut request = Request::new(Operation::Read);
    request.header.epoch = (world::incarnation(1, 1) as u32).into();
    (request.set, request.slot, request.flags) = (world::SET.into(), replica as u8 - 1, FLAG_ANY_REPLICA);
    (request.sid, request.hash, request.key_length) = (sid.into(), key_hash(b"a").into(), 1.into());
    let datagram = [request.as_bytes(), b"a"].concat();
    world.call(replica, |replica, now| {
        replica.handle(now, switch(1), &datagram);
        let mut buffer = Vec::new();
        while replica.poll_transmit(now, &mut buffer).is_some() {
            if let Ok(Packet::ReadReply(reply, _, _, value)) = parse(&buffer) {
                return Some((Status::from_number(reply.status).unwrap(), value.to_vec()));
            }
        }
        None
    })
}

fn behind() -> Option<(Status, Vec<u8>)> {
    Some((Status::Behind, Vec::new()))
}

/// Raft's messages end with 0; all others end with 1 and begin with their kind.
fn is_raft(peer_message: &[u8]) -> bool {
    peer_message.last() == Some(&0)
}

fn is_lease(peer_message: &[u8]) -> bool {
    !is_raft(peer_message) && peer_message[0] == 6
}

/// R1: a lease runs from its request. If it ran from a late grant, it would outlast what the leader assumes.
#[test]
fn r1_a_lease_that_comes_late_ends_no_later() {
    let (mut world, client) = ready(Mode::FollowerLease, 3);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    let (sid, leader, [late, _]) = (sid(&mut world), world.leader().unwrap(), followers(&world));
    let is_on_its_way = move |from, to| (from, to) == (leader, late);
    let later = move |from, to, peer_message: &[u8]| {
        if is_on_its_way(from, to) && is_lease(peer_message) { 70 * MS } else { 0 }
    };
    world.delay = Some(Box::new(later));
    world.run(200 * MS);
    let last = move |from, to, peer_message: &[u8]| match is_on_its_way(from, to) {
        true if is_lease(peer_message) => 70 * MS,
        true => NEVER,
        false => 0,
    };
    world.delay = Some(Box::new(last));
    assert_eq!(answer_of(&mut world, late, sid), done("one"), "it holds a lease");
    world.run(80 * MS);
    assert_eq!(answer_of(&mut world, late, sid), done("one"), "the last one has come");
    world.run(30 * MS);
    assert_eq!(world.write(1, client, 2, Command::Put, "a", b"two"), done(""), "the leader has waited it out");
    assert_eq!(answer_of(&mut world, late, sid), behind());
}

/// R1: a new leader answers no write while a former leader's lease may be valid.
#[test]
fn r1_a_holder_that_missed_the_hand_over_shows_nothing_old() {
    let (mut world, client) = ready(Mode::FollowerLease, 3);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    world.run(50 * MS);
    let (sid, leader, [next, cut]) = (sid(&mut world), world.leader().unwrap(), followers(&world));
    [leader, next].into_iter().for_each(|peer| world.link(peer, cut, false));
    world.call(leader, |replica, now| replica.transfer(now, next)).unwrap();
    let (mut served, mut is_done) = (0, false);
    for _ in 0..30 {
        is_done |= world.write(1, client, 2, Command::Put, "a", b"two") == done("");
        let answer = answer_of(&mut world, cut, sid);
        assert!(!is_done || answer == behind(), "{answer:?} after the write of the new leader");
        served += u32::from(answer == done("one"));
    }
    assert!(is_done && served > 5, "it had a lease: {served}");
    assert_eq!(world.leader(), Some(next));
}

/// R1: a leader that has been replaced without knowing it answers no question.
#[test]
fn r1_a_question_waits_for_a_round_where_the_leader_has_no_lease() {
    // With rarer heartbeats, a leader that hears no follower stays longer.
    let mut world = World::with(5, |config| {
        config.mode = Mode::FollowerReadIndex;
        config.timing.heartbeat = 45 * MS;
    });
    world.run(500 * MS);
    let client = world.open(1);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    world.run(50 * MS);
    let (old_sid, leader) = (sid(&mut world), world.leader().unwrap());
    let asks = if leader == 5 { 4 } else { 5 };
    for other in (1..=5).filter(|id| ![leader, asks].contains(id)) {
        [leader, asks].into_iter().for_each(|id| world.link(id, other, false));
    }
    while world.write(1, client, 2, Command::Put, "a", b"two") != done("") {
        assert_eq!(world.replica(leader).status(0).role, Role::Leader, "the others are too slow for this test");
    }
    let before = *world.replica(asks).counters();
    assert_eq!(answer_of(&mut world, asks, old_sid), None, "it asks");
    world.run(10 * MS);
    assert_eq!(world.replica(leader).status(0).role, Role::Leader, "it was asked when it believed that it leads");
    world.run(200 * MS);
    let after = *world.replica(asks).counters();
    assert_eq!((after.reads_served, after.reads_refused), (before.reads_served, before.reads_refused + 1));
}

/// R5: a follower that knows the index but does not get the entries refuses, like one that does not get the index.
#[test]
fn r5_a_read_whose_index_does_not_come_is_refused() {
    let (mut world, client) = ready(Mode::FollowerReadIndex, 3);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    let (sid, leader, [late, _]) = (sid(&mut world), world.leader().unwrap(), followers(&world));
    let no_entries = move |from, to, peer_message: &[u8]| {
        if (from, to) == (leader, late) && is_raft(peer_message) { NEVER } else { 0 }
    };
    world.delay = Some(Box::new(no_entries));
    assert_eq!(world.write(1, client, 2, Command::Put, "a", b"two"), done(""));
    let before = *world.replica(late).counters();
    assert_eq!(answer_of(&mut world, late, sid), None, "it asks");
    world.run(10 * MS);
    assert_eq!(world.replica(late).status(0).reads_waiting, 1, "for an entry that does not come");
    world.run(70 * MS);
    assert_eq!(world.replica(late).status(0).reads_waiting, 0);
    let after = *world.replica(late).counters();
    assert_eq!((after.reads_served, after.reads_refused), (before.reads_served, before.reads_refused + 1));
}

/// R6: an append of a former leader, which Raft refuses, revokes no lease.
#[test]
fn r6_a_late_append_of_a_former_leader_revokes_nothing() {
    let (mut world, client) = ready(Mode::FollowerLease, 3);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    world.run(50 * MS);
    let (former, [other, holder]) = (world.leader().unwrap(), followers(&world));
    world.link(former, other, false);
    world.delay = Some(Box::new(move |from, to, _| if (from, to) == (former, holder) { 600 * MS } else { 0 }));
    for number in 2..=30 {
        world.begin_write(1, client, number, Command::Put, "a", b"lost");
    }
    world.run(500 * MS);
    let (leader, sid) = (world.leader().unwrap(), sid(&mut world));
    assert_ne!(leader, former);
    let follower = if leader == holder { other } else { holder };
    assert_eq!(follower, holder, "the one that gets late messages does not lead");
    assert_eq!(answer_of(&mut world, holder, sid), done("one"), "it holds a lease");
    world.run(300 * MS);
    assert_eq!(answer_of(&mut world, holder, sid), done("one"), "and holds it still");
}

/// R7: no number from a peer stops a replica, or keeps it from serving.
#[test]
fn r7_numbers_of_peers_at_their_ends_do_no_harm() {
    for mode in [Mode::FollowerLease, Mode::FollowerReadIndex] {
        let (mut world, client) = ready(mode, 3);
        assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
        let term = world.replica(1).status(0).term;
        let values = [0, 1, term, u64::MAX];
        for (to, peer) in [(1, 2), (2, 3), (3, 1), (2, 1), (3, 2), (1, 3)] {
            let link = Link { peer, lane: Lane::Prompt, generation: 2 };
            for [one, two, three] in
                values.into_iter().flat_map(|a| values.map(|b| values.map(|c| [a, b, c]))).flatten()
            {
                let peer_messages = [
                    postcard::to_allocvec(&(5u8, one, two)),
                    postcard::to_allocvec(&(6u8, one, two, three)),
                    postcard::to_allocvec(&(7u8, one)),
                    postcard::to_allocvec(&(8u8, one, two)),
                ];
                for mut peer_message in peer_messages.map(Result::unwrap) {
                    peer_message.push(1);
                    world.call(to, |replica, now| replica.handle_message(now, link, &peer_message));
                }
            }
        }
        world.run(150 * MS);
        let foreign = (1..=3).map(|id| world.replica(id).counters().foreign_messages).sum::<u64>();
        assert_eq!(foreign, 0, "all messages were read");
        assert_eq!(world.write(1, client, 2, Command::Put, "a", b"two"), done(""));
        (0..20).for_each(|_| assert_eq!(world.get(1, "a"), done("two")));
    }
}

/// R5: a holder that requests leases but acknowledges nothing delays writes by one lease at most.
#[test]
fn r5_a_holder_that_only_asks_loses_its_lease() {
    let (mut world, client) = ready(Mode::FollowerLease, 3);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    world.run(50 * MS);
    let (sid, leader, [mute, _]) = (sid(&mut world), world.leader().unwrap(), followers(&world));
    let no_answers = move |from, to, peer_message: &[u8]| {
        if (from, to) == (mute, leader) && is_raft(peer_message) { NEVER } else { 0 }
    };
    world.delay = Some(Box::new(no_answers));
    assert_eq!(world.write(1, client, 2, Command::Put, "a", b"two"), None, "a holder has not acknowledged");
    world.run(130 * MS);
    for number in 3..=20 {
        assert_eq!(world.write(1, client, number, Command::Put, "a", b"two"), done(""));
        assert_eq!(answer_of(&mut world, mute, sid), behind());
    }
    assert_eq!(world.leader(), Some(leader));
}

/// R1: a holder that was removed without knowing it shows nothing old.
#[test]
fn r1_the_lease_of_a_removed_holder_is_waited_out() {
    let (mut world, client) = ready(Mode::FollowerLease, 3);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    world.run(50 * MS);
    let (sid, leader, [removed, _]) = (sid(&mut world), world.leader().unwrap(), followers(&world));
    world.call(leader, |replica, now| replica.remove_member(now, removed)).unwrap();
    // The entry arrives; the commit index does not.
    world.delay = Some(Box::new(move |from, to, _| if (from, to) == (leader, removed) { NEVER } else { 0 }));
    world.run(2 * MS);
    assert_eq!(world.replica(leader).members().len(), 2, "it has acknowledged its removal");
    let (mut served, mut is_done) = (0, false);
    for _ in 0..30 {
        is_done |= world.write(1, client, 2, Command::Put, "a", b"two") == done("");
        let answer = answer_of(&mut world, removed, sid);
        assert!(!is_done || answer != done("one"), "after the write");
        served += u32::from(answer == done("one"));
    }
    assert!(is_done && served > 5, "it had a lease: {served}");
}
