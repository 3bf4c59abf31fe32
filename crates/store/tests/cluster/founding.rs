//! How a set begins, which replicas may take part, and what a replica without data may do in a set that has begun.

use super::world::{World, member};
use super::{done, ready};
use midflight_endpoint::MS;
use midflight_store::replica::{Event, Refusal, ReplicaConfig, Role};
use midflight_wire::store::Command;

/// Whether this replica ended with a message that contains these words.
fn has_failed(world: &World, of: u64, words: &[&str]) -> bool {
    let says = |event: &Event| match event {
        Event::NotFounded(why) => words.iter().all(|word| why.contains(word)),
        _ => false,
    };
    world.events.iter().any(|(_, id, event)| *id == of && says(event))
}

fn has_said(world: &World, of: u64, said: &Event) -> bool {
    world.events.iter().any(|(_, id, event)| *id == of && event == said)
}

/// The third of three replicas was down for the last acknowledged write; then the others went down. Returns the leader and the follower.
fn with_a_stale_third() -> (World, u64, u64, u64) {
    let (mut world, client) = ready(3);
    let leader = world.leader().unwrap();
    let (follower, third) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    world.kill(third);
    world.run(150 * MS);
    assert_eq!(world.write(1, client, 1, Command::Put, "acked", b"precious"), done(""));
    world.kill(follower);
    world.kill(leader);
    (world, leader, follower, third)
}

#[test]
fn r2_a_majority_that_lost_its_data_founds_no_store_without_the_third() {
    let (mut world, leader, wiped, third) = with_a_stale_third();
    for id in [wiped, third] {
        world.wipe(id);
        world.start(id);
    }
    world.run(500 * MS);
    assert_eq!(world.leader(), None);
    for id in [wiped, third] {
        assert!(has_said(&world, id, &Event::Founding(vec![leader])), "it says for whom it waits");
        assert_eq!(world.replica(id).status(0).role, Role::Founder);
    }
    world.start(leader);
    world.run(500 * MS);
    for id in [wiped, third] {
        assert!(has_failed(&world, id, &[&format!("replica {leader} has data")]), "{:?}", world.events);
        assert!(has_said(&world, leader, &Event::Refused { peer: id, refusal: Refusal::NoData }));
    }
    assert_eq!(world.leader(), None);
}

#[test]
fn r2_a_replica_that_has_some_files_left_and_no_state_does_not_vote_again() {
    let (mut world, _, wiped, _) = with_a_stale_third();
    world.keep_identity(wiped);
    world.change_config(wiped, |config| config.founds = false);
    assert!(world.try_start(wiped).unwrap_err().contains("there is no data"));
}

#[test]
fn a_founder_waits_for_all_others() {
    let mut world = World::prepared(3, |_| {});
    world.start(1);
    world.start(2);
    world.run(500 * MS);
    assert_eq!(world.leader(), None);
    assert!(has_said(&world, 1, &Event::Founding(vec![3])) && has_said(&world, 2, &Event::Founding(vec![3])));
    world.start(3);
    world.run(500 * MS);
    assert!(world.leader().is_some(), "{:?}", world.events);
    assert!((1..=3).all(|id| has_said(&world, id, &Event::Founded)));
}

/// R5: any of them may crash at any moment, and restarts.
#[test]
fn r5_a_founding_that_is_interrupted_goes_on() {
    for step in 0..40 {
        let mut world = World::new(3);
        let first = step % 3 + 1;
        world.run(step * 50_000);
        world.kill(first);
        world.run(MS);
        if step % 2 == 1 {
            world.kill(first % 3 + 1);
            world.start(first % 3 + 1);
        }
        world.start(first);
        world.run(500 * MS);
        assert!(world.leader().is_some(), "step {step}: {:?}", world.events);
        let client = world.open(1);
        assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""), "step {step}");
    }
}

/// R5: links come up while a batch is being written, so the origin is sent only later.
#[test]
fn r5_a_founding_goes_on_over_links_that_come_up_while_disks_are_busy() {
    let mut world = World::prepared(3, |config| config.founders = (1..=3).map(|id| (id, 70 + id)).collect());
    for id in 1..=3 {
        world.start(id);
        world.run(5 * MS);
        world.kill(id);
    }
    (1..=3).for_each(|id| world.start(id));
    let pairs = [(1, 2), (1, 3), (2, 3)];
    pairs.into_iter().for_each(|(a, b)| world.link(a, b, false));
    world.run(5 * MS);
    world.slow_disks = (1..=3).map(|id| (id, 20 * MS)).collect();
    (1..=3).for_each(|id| world.call(id, |replica, _| replica.seal()));
    assert!((1..=3).all(|id| !world.replica(id).is_safe()), "a batch is under way");
    pairs.into_iter().for_each(|(a, b)| world.link(a, b, true));
    world.run(1_000 * MS);
    assert!(world.leader().is_some(), "{:?}", world.events);
}

#[test]
fn r1_a_replica_with_data_of_a_former_store_takes_no_part() {
    let (mut world, client) = ready(3);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"former"), done(""));
    world.run(100 * MS);
    let former = world.files(3);
    for id in 1..=3 {
        world.kill(id);
        world.wipe(id);
    }
    (1..=2).for_each(|number| world.start_switch(number, 2));
    (1..=3).for_each(|id| world.start(id));
    world.run(500 * MS);
    let client = world.open(1);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"new"), done(""));
    world.kill(3);
    world.put_files(3, former);
    world.start(3);
    world.run(500 * MS);
    let refused = Event::Refused { peer: 3, refusal: Refusal::OtherStore };
    assert!(has_said(&world, 1, &refused) && has_said(&world, 2, &refused), "{:?}", world.events);
    for other in [1, 2] {
        assert!(has_said(&world, 3, &Event::Refused { peer: other, refusal: Refusal::OtherStore }));
        world.kill(other);
        world.run(300 * MS);
        assert_ne!(world.leader(), Some(3));
        world.start(other);
        world.run(300 * MS);
        assert_eq!(world.get(1, "a"), done("new"));
    }
    assert!(world.replica(3).counters().other_stores > 0);
}

#[test]
fn founders_with_other_members_do_not_begin() {
    let mut world = World::prepared(3, |config: &mut ReplicaConfig| {
        if config.id == 3 {
            config.initial[0].address.set_port(7009);
        }
    });
    (1..=3).for_each(|id| world.start(id));
    world.run(300 * MS);
    let differs = |event: &Event| matches!(event, Event::UnlikePeer { peer: 3, name: "replicas", .. });
    assert!(world.events.iter().any(|(_, id, event)| *id == 1 && differs(event)), "{:?}", world.events);
    assert_eq!(world.leader(), None);
}

#[test]
fn a_removed_replica_that_returns_hears_that_it_was_removed() {
    let (mut world, client) = ready(3);
    let leader = world.leader().unwrap();
    let gone = leader % 3 + 1;
    world.kill(gone);
    world.run(150 * MS);
    world.call(leader, |replica, now| replica.remove_member(now, gone)).unwrap();
    world.run(50 * MS);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    world.start(gone);
    world.run(50 * MS);
    let heard = world.events.iter().any(|(_, id, event)| *id == gone && matches!(event, Event::Removed(Some(_))));
    assert!(heard, "{:?}", world.events);
    assert_eq!(world.replica(gone).status(0).role, Role::Removed);
    assert_eq!(world.get(1, "a"), done("one"), "the others go on");
}

#[test]
fn a_replica_that_is_removed_while_it_runs_hears_it_at_once() {
    let (mut world, _) = ready(3);
    let leader = world.leader().unwrap();
    let gone = leader % 3 + 1;
    world.call(leader, |replica, now| replica.remove_member(now, gone)).unwrap();
    world.run(50 * MS);
    assert_eq!(world.replica(gone).status(0).role, Role::Removed, "{:?}", world.events);
    let told = world.events.iter().filter(|(_, id, event)| *id == gone && matches!(event, Event::Removed(_))).count();
    assert_eq!(told, 1, "once");
}

/// Three replicas, and replica 4 as a new member that has heard heartbeats and gets no snapshot yet. Returns the leader.
fn with_a_learner_without_snapshot() -> (World, u64) {
    let (mut world, _) = ready(3);
    let leader = world.leader().unwrap();
    world.start_outsider(4);
    world.run(10 * MS);
    world.mischief = Some(Box::new(|_| Vec::new()));
    world.call(leader, |replica, now| replica.add_member(now, member(4))).unwrap();
    world.run(100 * MS);
    assert_eq!((world.status(4).applied, world.status(4).term), (0, world.status(leader).term));
    (world, leader)
}

fn has_refused(world: &World) -> bool {
    world.events.iter().any(|(_, _, event)| matches!(event, Event::Refused { .. }))
}

#[test]
fn a_replica_that_waits_to_be_added_does_not_judge_founders() {
    let mut world = World::prepared(3, |_| {});
    world.start_outsider(4);
    world.start(1);
    world.run(50 * MS);
    assert!(!has_refused(&world), "{:?}", world.events);
}

/// R6: the next leader completes the addition of a member that the old one began.
#[test]
fn r6_a_learner_takes_its_first_snapshot_from_any_leader() {
    let (mut world, leader) = with_a_learner_without_snapshot();
    for other in (1..=3).filter(|id| *id != leader) {
        world.link(4, other, false);
        world.link(4, other, true);
    }
    world.run(10 * MS);
    assert!(!has_refused(&world), "{:?}", world.events);
    world.kill(leader);
    world.mischief = None;
    world.run(800 * MS);
    assert_eq!(world.status(4).role, Role::Follower, "{:?}", world.events);
}

#[test]
fn r6_a_learner_that_restarts_before_its_first_snapshot_goes_on_learning() {
    let (mut world, _) = with_a_learner_without_snapshot();
    world.kill(4);
    world.start(4);
    world.mischief = None;
    world.run(800 * MS);
    assert!(!has_refused(&world), "{:?}", world.events);
    assert!(!world.events.iter().any(|(_, _, event)| matches!(event, Event::Removed(_))), "nobody has removed it");
    assert_eq!(world.status(4).role, Role::Follower);
}
