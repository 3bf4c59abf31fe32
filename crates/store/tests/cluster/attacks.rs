//! Attackers who reach a replica without seeing its traffic, and operators' mistakes.

use super::world::{self, World, member};
use super::{done, ready};
use midflight_endpoint::{Endpoint, MS};
use midflight_store::replica::{ChangeError, Event, Replica, Role, Timing};
use midflight_wire::store::{
    Command, EndSession, FLAG_LEADER_ONLY, Operation, Request, State, Status, Write, key_hash,
};
use midflight_wire::{counting, store::Packet, store::parse};
use std::net::SocketAddr;
use zerocopy::{FromZeros, IntoBytes};

/// A READ as a switch sends it, but without the secret half of the incarnation.
fn read(replica: u64, sid: u64, seq: u64, index: u64, flags: u8) -> Vec<u8> {
    let mut request = Request::new(Operation::Read);
    (request.set, request.slot, request.flags) = (world::SET.into(), replica as u8 - 1, flags);
    (request.sid, request.seq, request.index) = (sid.into(), seq.into(), index.into());
    (request.hash, request.key_length) = (key_hash(b"a").into(), 1.into());
    [request.as_bytes(), b"a"].concat()
}

fn give(world: &mut World, replica: u64, from: SocketAddr, datagram: &[u8]) {
    assert!(parse(datagram).is_ok_and(|packet| matches!(packet, Packet::Read(..) | Packet::State(_))));
    world.call(replica, |replica: &mut Replica, now| replica.handle(now, from, datagram));
}

#[test]
fn r1_a_forged_read_commits_nothing() {
    let (mut world, client) = ready(3);
    let leader = world.leader().unwrap();
    (1..=3).filter(|id| *id != leader).for_each(|id| world.kill(id));
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"on one disk"), None);
    let before = world.replica(leader).status(0);
    assert!(before.committed < before.last_index);
    for from in ["6.6.6.6:666".parse().unwrap(), world::switch(1)] {
        let forged = read(leader, before.term << 32 | 1, 0, before.last_index, 0);
        give(&mut world, leader, from, &forged);
    }
    let after = world.replica(leader).status(0);
    assert_eq!((after.committed, after.keys), (before.committed, 0));
    assert_eq!(world.replica(leader).counters().foreign, 2);
}

/// Answers to forged addresses of hosts that do not exist would fill the send buffer.
#[test]
fn r5_a_stranger_gets_no_answer() {
    let (mut world, _) = ready(3);
    let leader = world.leader().unwrap();
    let stranger: SocketAddr = "10.0.0.200:9".parse().unwrap();
    let mut write = Request::new(Operation::Write);
    (write.set, write.slot) = (world::SET.into(), leader as u8 - 1);
    let write = [write.as_bytes(), Write::new_zeroed().as_bytes()].concat();
    let mut bad_hash = read(leader, 0, 0, 0, 0);
    *bad_hash.last_mut().unwrap() = b'b';
    let mut no_key = Request::new(Operation::Read);
    (no_key.set, no_key.slot) = (world::SET.into(), leader as u8 - 1);
    for datagram in [write, bad_hash, no_key.as_bytes().to_vec()] {
        let before = world.replica(leader).counters().foreign;
        let said = world.call(leader, |replica, now| {
            replica.handle(now, stranger, &datagram);
            let mut buffer = Vec::new();
            std::iter::from_fn(|| replica.poll_transmit(now, &mut buffer)).filter(|to| *to == stranger).count()
        });
        assert_eq!((said, world.replica(leader).counters().foreign), (0, before + 1));
    }
}

#[test]
fn r5_a_late_read_of_another_session_does_not_stop_writes() {
    let (mut world, client) = ready(3);
    let leader = world.leader().unwrap();
    let (sid, switch) = world.replica(leader).status(0).session.unwrap();
    world.call(leader, |replica, now| replica.flush(now)).unwrap();
    world.run(100 * MS);
    for sid in [sid, sid + 1] {
        give(&mut world, leader, switch, &read(leader, sid, 100_000, 5, FLAG_LEADER_ONLY));
    }
    world.run(100 * MS);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
}

#[test]
fn r5_forged_answers_of_a_switch_end_no_session() {
    let (mut world, _) = ready(3);
    let leader = world.leader().unwrap();
    let (_, switch) = world.replica(leader).status(0).session.unwrap();
    let before = world.replica(leader).counters().sessions;
    for sequence in 0x8000_0000..0x8000_0064 {
        let mut state = State::new(1, sequence);
        (state.set, state.incarnation, state.kgroup_bits) = (world::SET.into(), 0xbad.into(), 8);
        state.lease_us = ((Timing::default().session_lease / 1_000) as u32).into();
        give(&mut world, leader, switch, &counting(&state, 0));
        world.run(5 * MS);
    }
    assert_eq!(world.get(1, "a"), Some((Status::NotFound, Vec::new())));
    let counters = world.replica(leader).counters();
    assert_eq!((counters.sessions, counters.stray_answers, counters.unlike_switches), (before, 100, 0));
}

/// Each such switch is reported once; a forged answer must not use that up.
#[test]
fn r7_only_an_answer_to_a_question_shows_a_switch_to_be_unlike() {
    let (mut world, _) = ready(3);
    let leader = world.leader().unwrap();
    let (_, switch) = world.replica(leader).status(0).session.unwrap();
    let mut state = State::new(1, 0x8000_0000);
    (state.set, state.incarnation, state.kgroup_bits) = (world::SET.into(), 0xbad.into(), 8);
    give(&mut world, leader, switch, &counting(&state, 0));
    let counters = world.replica(leader).counters();
    assert_eq!((counters.stray_answers, counters.unlike_switches), (1, 0));
}

/// END_SESSION from an attacker who knows the incarnation, from the packets between replicas and switch.
fn end_session(world: &mut World, sid: u64) {
    let mut end = EndSession::new(0, 1);
    (end.incarnation, end.sid, end.set) = (world::incarnation(1, 1).into(), sid.into(), world::SET.into());
    world.inject(member(2).address, world::switch(1), counting(&end, 0));
}

#[test]
fn r5_a_switch_that_has_seen_a_higher_sid_of_this_term_gets_one_above_it() {
    let (mut world, client) = ready(3);
    let leader = world.leader().unwrap();
    let (sid, switch) = world.replica(leader).status(0).session.unwrap();
    assert_eq!(switch, world::switch(1));
    end_session(&mut world, sid + 1_000);
    world.run(200 * MS);
    assert_eq!(world.replica(leader).status(0).session, Some((sid + 1_001, switch)));
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
}

#[test]
fn r5_a_switch_that_has_seen_a_later_term_is_left_for_the_standby() {
    for forged in [u64::MAX, 1_000 << 32] {
        let (mut world, client) = ready(3);
        let leader = world.leader().unwrap();
        end_session(&mut world, forged);
        world.run(300 * MS);
        assert_eq!(world.write(2, client, 1, Command::Put, "a", b"one"), done(""), "{:?}", world.events);
        let counters = world.replica(leader).counters();
        assert_eq!((counters.sessions, counters.overtaken_switches), (2, 1));
        assert!(world.events.iter().any(|(_, _, event)| *event == Event::Overtaken(world::switch(1))));
    }
}

/// R7: ending sessions continuously does not fill the log with new ones.
#[test]
fn r7_sessions_that_are_ended_at_once_do_not_fill_the_log() {
    let (mut world, _) = ready(3);
    let leader = world.leader().unwrap();
    let before = world.replica(leader).status(0).last_index;
    for _ in 0..1_000 {
        if let Some((sid, _)) = world.replica(leader).status(0).session {
            end_session(&mut world, sid);
        }
        world.run(MS);
    }
    let entries = world.replica(leader).status(0).last_index - before;
    assert!((90..=155).contains(&entries), "some three entries a heartbeat of 20 ms: {entries}");
}

#[test]
fn a_replica_that_waits_to_be_added_waits() {
    let (mut world, _) = ready(3);
    world.start_outsider(4);
    world.run(20_000 * MS);
    assert_eq!(world.replica(4).status(0).role, Role::Outside);
}

#[test]
fn r5_a_leader_does_not_remove_itself() {
    let (mut world, client) = ready(3);
    let leader = world.leader().unwrap();
    let refused = world.call(leader, |replica, now| replica.remove_member(now, leader));
    assert_eq!(refused, Err(ChangeError::Itself(leader)));
    let nobody = world::member(9);
    let zero = world.call(leader, |replica, now| {
        replica.add_member(now, midflight_store::replica::Member { id: 0, slot: 4, ..nobody })
    });
    assert_eq!(zero, Err(ChangeError::NoId));
    let taken = midflight_store::replica::Member { id: 9, slot: 5, links: member(1).links, ..member(9) };
    let said = world.call(leader, |replica, now| replica.add_member(now, taken)).unwrap_err().to_string();
    assert!(said.contains("address for links") && said.contains("7001"), "{said}");
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
}
