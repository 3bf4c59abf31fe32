//! The read modes: their guarantees, and a replica in another mode than the others.

use super::{World, done};
use crate::world::member;
use midflight_endpoint::MS;
use midflight_store::replica::{ChangeError, ConfigError, Event, Mode, Replica, ReplicaConfig, StartError, Timing};
use midflight_wire::store::{Command, Status};

/// A set in this mode with a session, a client and leases.
pub(crate) fn ready(mode: Mode, replicas: u64) -> (World, u64) {
    let mut world = World::with(replicas, |config| config.mode = mode);
    world.run(500 * MS);
    assert!(world.leader().is_some(), "{mode:?}: {:?}", world.events);
    let client = world.open(1);
    (world, client)
}

fn served(world: &mut World, replicas: u64) -> Vec<u64> {
    (1..=replicas).map(|id| world.replica(id).counters().reads_served).collect()
}

pub(crate) fn followers(world: &World) -> [u64; 2] {
    let leader = world.leader().unwrap();
    [leader % 3 + 1, (leader + 1) % 3 + 1]
}

#[test]
fn r1_in_every_mode_what_was_written_is_read_by_whom_the_mode_says() {
    for mode in Mode::ALL {
        let replicas = if mode == Mode::Unreplicated { 1 } else { 3 };
        let (mut world, client) = ready(mode, replicas);
        for number in 1..=20 {
            let value = format!("{number}");
            assert_eq!(world.write(1, client, number, Command::Put, "a", value.as_bytes()), done(""), "{mode:?}");
            (0..3).for_each(|_| assert_eq!(world.get(1, "a"), done(&value), "{mode:?}"));
        }
        let (leader, served) = (world.leader().unwrap(), served(&mut world, replicas));
        let by_all = mode == Mode::Flair || mode.uses_any_replica();
        let by_followers = (1..=replicas).filter(|id| *id != leader).all(|id| served[id as usize - 1] > 5);
        assert!(served[leader as usize - 1] > 5, "{mode:?}: {served:?}");
        assert_eq!(by_followers && replicas > 1, by_all, "{mode:?}: {served:?}");
    }
}

/// Index reads continue during a write. (In FLAIR, all reads of its key group then go to the leader.)
#[test]
fn r6_by_read_index_followers_serve_while_writes_are_under_way() {
    let (mut world, client) = ready(Mode::FollowerReadIndex, 3);
    for number in 1..=100 {
        world.begin_write(1, client, number, Command::Put, "a", b"x");
        world.read_often(1, "a", MS / 10, MS / 5);
    }
    let [one, other] = followers(&world).map(|id| *world.replica(id).counters());
    assert!(one.reads_served > 30 && other.reads_served > 30, "{one:?}\n{other:?}");
    assert_eq!((one.reads_refused, other.reads_refused), (0, 0));
}

/// A follower without an answer refuses after three heartbeats, and the leader serves.
#[test]
fn r5_by_read_index_a_follower_without_its_leader_refuses() {
    let (mut world, client) = ready(Mode::FollowerReadIndex, 3);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    let (leader, [cut, _]) = (world.leader().unwrap(), followers(&world));
    world.link(leader, cut, false);
    world.read_often(1, "a", MS, 40 * MS);
    assert!(world.replica(cut).counters().reads_refused > 0);
    world.run(100 * MS);
    assert_eq!(world.replica(cut).status(0).reads_waiting, 0);
    assert_eq!(world.get(1, "a"), done("one"));
}

/// A write revokes the leases of its own key group only.
#[test]
fn r6_other_key_groups_keep_their_leases() {
    let (mut world, client) = ready(Mode::FollowerLease, 3);
    assert_eq!(world.write(1, client, 1, Command::Put, "b", b"x"), done(""));
    let refused = |world: &mut World| followers(world).map(|id| world.replica(id).counters().reads_refused);
    let before = refused(&mut world);
    for number in 2..=50 {
        world.begin_write(1, client, number, Command::Put, "a", b"x");
        world.read_often(1, "b", MS / 10, MS);
    }
    assert_eq!(refused(&mut world), before);
    for number in 51..=100 {
        world.begin_write(1, client, number, Command::Put, "a", b"x");
        world.read_often(1, "a", MS / 10, MS);
    }
    assert_ne!(refused(&mut world), before, "those of the written one go to the leader meanwhile");
}

/// R1, R5: a new leader waits exactly until the old leader's leases have expired.
#[test]
fn r5_a_new_leader_waits_out_former_leases() {
    let (mut world, client) = ready(Mode::FollowerLease, 3);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    let leader = world.leader().unwrap();
    world.call(leader, |replica, now| replica.transfer(now, leader % 3 + 1)).unwrap();
    let lease = Timing::default().leader_lease;
    world.run(lease - 10 * MS);
    assert_eq!(world.leader(), None, "leases of the former leader may hold");
    world.run(40 * MS);
    assert_eq!(world.leader(), Some(leader % 3 + 1));
    world.kill(leader % 3 + 1);
    world.run(300 * MS);
    assert_eq!(world.write(1, client, 2, Command::Put, "a", b"two"), done(""), "r5: within 300 ms");
    assert_eq!(world.get(1, "a"), done("two"));
}

#[test]
fn r6_flushed_data_is_in_no_lease() {
    let (mut world, client) = ready(Mode::FollowerLease, 3);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    let leader = world.leader().unwrap();
    world.call(leader, |replica, now| replica.flush(now)).unwrap();
    world.run(300 * MS);
    for _ in 0..20 {
        assert_eq!(world.get(1, "a"), Some((Status::NotFound, Vec::new())));
    }
}

#[test]
fn r7_a_mode_that_the_others_do_not_share_is_told_and_the_set_serves_on() {
    let (mut world, client) = ready(Mode::FollowerLease, 3);
    let leader = world.leader().unwrap();
    let wrong = leader % 3 + 1;
    world.kill(wrong);
    world.change_config(wrong, |config| config.mode = Mode::Flair);
    world.start(wrong);
    let before = world.replica(wrong).status(0).last_index;
    world.run(500 * MS);
    let (ours, theirs) = ("follower-lease".into(), "flair".into());
    let told = Event::UnlikePeer { peer: wrong, name: "reads", ours, theirs };
    assert!(world.events.iter().any(|(_, id, event)| *id == leader && *event == told), "{:?}", world.events);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    assert_eq!(world.replica(wrong).status(0).last_index, before, "it takes nothing");
    (0..20).for_each(|_| assert_eq!(world.get(1, "a"), done("one")));
}

#[test]
fn r7_what_replicates_nothing_has_one_replica() {
    let config = |members: u64| {
        let members = (1..=members).map(member).collect();
        let mut config = ReplicaConfig::new(5, 3, 1, members, vec![crate::switch(1)], 1);
        (config.mode, config.founds) = (Mode::Unreplicated, true);
        config
    };
    for members in [0, 3] {
        let error = Replica::new(config(members), Vec::new(), MS).err().unwrap();
        assert!(matches!(error, StartError::Config(ConfigError::Replicated(n)) if n as u64 == members), "{error}");
        assert!(error.to_string().contains(&format!("exactly one replica, and this one has {members}")), "{error}");
    }
    let (mut world, client) = ready(Mode::Unreplicated, 1);
    let refused = world.call(1, |replica, now| replica.add_member(now, member(2)));
    assert_eq!(refused, Err(ChangeError::Unreplicated));
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""), "it serves on");
}
