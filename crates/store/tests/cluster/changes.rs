//! Changes of members and of the leader by an operator.

use super::ready;
use super::world::{World, member};
use midflight_endpoint::MS;
use midflight_store::replica::{ChangeError, Event, HandOverError, Member, ReplicaConfig, Role, Timing};
use midflight_wire::store::{Command, Status};

/// Three replicas with a leader; the first of its followers is dead.
fn with_one_dead() -> (World, u64, u64, u64) {
    let (mut world, _) = ready(3);
    let leader = world.leader().unwrap();
    let (dead, alive) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    world.kill(dead);
    world.run(150 * MS);
    (world, leader, dead, alive)
}

#[test]
fn r5_a_member_is_not_added_if_the_set_could_not_decide_any_more() {
    let (mut world, leader, dead, _) = with_one_dead();
    let refused = world.call(leader, |replica, now| replica.add_member(now, member(4))).unwrap_err();
    assert_eq!(refused, ChangeError::TooFew { members: 4, needed: 3, heard: 2, silent: vec![dead, 4] });
    let said = refused.to_string();
    assert!(said.contains("need 3") && said.contains("start replica") && said.contains("or remove it first"), "{said}");
    world.call(leader, |replica, now| replica.remove_member(now, dead)).unwrap();
    world.run(20 * MS);
    world.call(leader, |replica, now| replica.add_member(now, member(4))).unwrap();
}

#[test]
fn r5_a_set_of_one_grows_only_by_a_replica_that_runs() {
    let (mut world, _) = ready(1);
    let refused = world.call(1, |replica, now| replica.add_member(now, member(2)));
    assert_eq!(refused, Err(ChangeError::TooFew { members: 2, needed: 2, heard: 1, silent: vec![2] }));
    world.start_outsider(2);
    world.run(10 * MS);
    world.call(1, |replica, now| replica.add_member(now, member(2))).unwrap();
    world.run(200 * MS);
    assert_eq!(world.replica(2).members().len(), 2);
}

fn outcome(world: &World, of: u64) -> Option<Result<(), HandOverError>> {
    world.events.iter().find_map(|(_, id, event)| match event {
        Event::HandedOver(outcome) if *id == of => Some(*outcome),
        _ => None,
    })
}

#[test]
fn a_hand_over_says_that_it_is_done() {
    let (mut world, _) = ready(3);
    let leader = world.leader().unwrap();
    world.call(leader, |replica, now| replica.transfer(now, leader % 3 + 1)).unwrap();
    world.run(100 * MS);
    assert_eq!(outcome(&world, leader), Some(Ok(())));
}

#[test]
fn a_hand_over_to_a_replica_that_is_silent_is_refused() {
    let (mut world, leader, dead, alive) = with_one_dead();
    assert_eq!(world.call(leader, |replica, now| replica.transfer(now, dead)), Err(ChangeError::Silent(dead)));
    assert!(world.replica(leader).status(0).session.is_some(), "the session goes on");
    world.call(leader, |replica, now| replica.transfer(now, alive)).unwrap();
    assert_eq!(world.call(leader, |replica, now| replica.transfer(now, alive)), Err(ChangeError::HandsOver));
}

#[test]
fn a_hand_over_that_fails_says_so_in_time() {
    let (mut world, _) = ready(3);
    let leader = world.leader().unwrap();
    let to = leader % 3 + 1;
    world.call(leader, |replica, now| replica.transfer(now, to)).unwrap();
    world.kill(to);
    world.run(10 * Timing::default().promise);
    assert!(matches!(outcome(&world, leader), Some(Err(HandOverError::Other(id))) if id != to), "{:?}", world.events);
    let (mut world, _) = ready(3);
    let leader = world.leader().unwrap();
    world.call(leader, |replica, now| replica.transfer(now, leader % 3 + 1)).unwrap();
    (1..=3).filter(|id| *id != leader).for_each(|id| world.kill(id));
    world.run(10 * Timing::default().promise);
    assert_eq!(outcome(&world, leader), Some(Err(HandOverError::NoLeader)));
}

#[test]
fn r4_replicas_with_other_times_do_not_work_together() {
    let (mut world, _) = ready(3);
    world.kill(3);
    world.change_config(3, |config| config.timing.session_lease += MS);
    world.start(3);
    world.run(400 * MS);
    let leader = world.leader().unwrap();
    let told =
        Event::UnlikePeer { peer: 3, name: "session_lease, in us,", ours: "120000".into(), theirs: "121000".into() };
    assert!(world.events.iter().any(|(_, id, event)| *id == leader && *event == told), "{:?}", world.events);
    assert!(world.replica(3).counters().unlike_peers > 0);
}

#[test]
fn replicas_with_other_frozen_bounds_do_not_work_together() {
    let wrong = |config: &mut ReplicaConfig| config.store_bytes = if config.id == 3 { 5 << 20 } else { 6 << 20 };
    let mut world = World::with(3, wrong);
    world.run(400 * MS);
    assert_eq!(world.leader(), None, "they found nothing together");
    let [ours, theirs] = [6 << 20, 5 << 20].map(|bytes: u64| bytes.to_string());
    let told = Event::UnlikePeer { peer: 3, name: "store_bytes", ours, theirs };
    assert!(world.events.iter().any(|(_, id, event)| *id == 1 && *event == told), "{:?}", world.events);
    assert_eq!(world.replica(3).status(0).committed, 0, "it takes nothing");
    assert!(world.replica(3).counters().unlike_peers > 0);
}

#[test]
fn a_change_that_is_made_already_is_refused_and_the_set_serves_on() {
    let (mut world, client) = ready(3);
    let leader = world.leader().unwrap();
    let gone = leader % 3 + 1;
    let taken = ChangeError::Taken { what: "id", which: gone.to_string() };
    assert_eq!(world.call(leader, |replica, now| replica.add_member(now, member(gone))), Err(taken));
    world.call(leader, |replica, now| replica.remove_member(now, gone)).unwrap();
    let twice = world.call(leader, |replica, now| replica.remove_member(now, gone));
    assert_eq!(twice, Err(ChangeError::Busy { learner: None }), "the first one is under way");
    world.run(50 * MS);
    let twice = world.call(leader, |replica, now| replica.remove_member(now, gone));
    assert_eq!(twice, Err(ChangeError::NoMember(gone)));
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), Some((Status::Done, Vec::new())));
}

/// A new member runs, but is no longer heard. It is removed after a second.
fn with_a_learner_that_dies(replicas: u64) -> (World, u64) {
    let mut world = World::with(replicas, |config| config.learn_within = 1_000 * MS);
    world.run(400 * MS);
    let leader = world.leader().unwrap();
    world.start_outsider(9);
    world.run(10 * MS);
    world.call(leader, |replica, now| replica.add_member(now, Member { slot: 7, ..member(9) })).unwrap();
    world.kill(9);
    (world, leader)
}

#[test]
fn r5_a_new_member_has_no_vote_until_it_has_caught_up() {
    let (mut world, leader) = with_a_learner_that_dies(1);
    world.run(100 * MS);
    let client = world.open(1);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), Some((Status::Done, Vec::new())));
    assert_eq!(world.replica(leader).members().len(), 2);
    assert_eq!(world.call(leader, |replica, now| replica.transfer(now, 9)), Err(ChangeError::Learns(9)));
    world.start(9);
    world.run(200 * MS);
    assert_eq!(world.replica(9).status(0).role, Role::Follower);
    assert_eq!(world.replica(9).status(0).keys, 1);
}

#[test]
fn r5_a_member_that_never_catches_up_is_removed_again() {
    let (mut world, leader) = with_a_learner_that_dies(3);
    world.run(900 * MS);
    let busy = world.call(leader, |replica, now| replica.remove_member(now, leader % 3 + 1)).unwrap_err();
    assert_eq!(busy, ChangeError::Busy { learner: Some(9) });
    assert!(busy.to_string().contains("remove replica 9, which has not caught up"), "{busy}");
    assert_eq!(world.replica(leader).members().len(), 4);
    world.run(200 * MS);
    assert!(world.events.iter().any(|(_, id, event)| *id == leader && *event == Event::LeftBehind(9)));
    assert_eq!(world.replica(leader).members().len(), 3);
    let client = world.open(1);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), Some((Status::Done, Vec::new())));
    world.call(leader, |replica, now| replica.remove_member(now, leader % 3 + 1)).unwrap();
}
