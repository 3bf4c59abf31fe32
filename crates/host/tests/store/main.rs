//! A store of three replicas and a switch in this process, with real sockets and disks.

#![allow(clippy::unwrap_used, reason = "tests may, in helpers too")]

mod direct;
mod world;

use midflight_host::store::Cas;
use midflight_host::store::replica::{ReplicaOrder, ReplicaProcess};
use midflight_store::replica::{Member, Role};
use world::{World, wait_until};

#[test]
fn r1_r3_several_threads_read_and_write_through_the_switch() {
    let world = World::start("store-threads");
    let client = world.client();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut last = 0;
                for _ in 0..200 {
                    let sum = client.incr("sum", 1).unwrap();
                    assert!(sum > last);
                    let text = client.get("sum").unwrap().unwrap();
                    last = String::from_utf8(text).unwrap().parse().unwrap();
                    assert!(last >= sum, "an old value");
                }
            });
        }
    });
    assert_eq!(client.cas("sum", "800", "done"), Ok(Cas::Done));
    let put = |i: u32| client.put(format!("key {i}"), i.to_string()).unwrap();
    (0..100).for_each(put);
    let is_there = |i: u32| assert_eq!(client.get(format!("key {i}")), Ok(Some(i.to_string().into_bytes())));
    (0..100).for_each(is_there);
    let served = |replica: &Option<ReplicaProcess>| replica.as_ref().unwrap().report().counters.reads_served;
    wait_until("followers have served reads", || {
        world.replicas.iter().filter(|replica| served(replica) > 0).count() > 1
    });
}

#[test]
fn r2_r5_what_was_acknowledged_survives_the_leader_and_a_restart_of_all() {
    let mut world = World::start("store-restart");
    let client = world.client();
    client.put("a", "1").unwrap();
    let leader = world.leader();
    world.replicas[leader] = None;
    assert_eq!(client.get("a"), Ok(Some(b"1".to_vec())));
    assert_eq!(client.incr("a", 1), Ok(2));
    world.replicas.fill_with(|| None);
    (0..3).for_each(|i| world.start_replica(i));
    assert_eq!(client.get("a"), Ok(Some(b"2".to_vec())));
    assert_eq!(client.incr("a", 1), Ok(3));
}

#[test]
fn r2_a_replica_without_its_disk_comes_back_under_a_new_identity() {
    let mut world = World::start("store-join");
    let client = world.client();
    client.put("a", "1").unwrap();
    let leader = world.leader();
    let lost = (leader + 1) % 3;
    world.replicas[lost] = None;
    let order = |order| world.replicas[leader].as_ref().unwrap().order(order);
    order(ReplicaOrder::Remove(world.members[lost].id)).unwrap();
    let members = || world.replicas[leader].as_ref().unwrap().report().status.members;
    wait_until("the lost one is no member", || members().len() == 2);

    let new = Member { id: 4, slot: lost as u8, ..world.members[lost].clone() };
    let mut options = world.options(&new, Vec::new());
    options.config.contacts = world.members.clone();
    let joined = ReplicaProcess::start(options, || ()).unwrap();
    assert_eq!(joined.report().status.role, Role::Outside);
    order(ReplicaOrder::Add(new)).unwrap();
    wait_until("the new one has all data", || {
        let status = joined.report().status;
        status.role == Role::Follower && status.keys == 1
    });
    let error = order(ReplicaOrder::Remove(9)).unwrap_err().to_string();
    assert!(error.starts_with("no member has the id 9"), "{error}");
    world.replicas[(leader + 2) % 3] = None;
    assert_eq!(client.incr("a", 1), Ok(2), "the new one is of the quorum");
}

#[test]
fn r5_a_replica_that_was_away_gets_a_snapshot_in_parts_while_the_store_goes_on() {
    let mut world = World::with("store-snapshot", 256 << 10);
    let leader = world.leader();
    let away = (leader + 1) % 3;
    world.replicas[away] = None;
    let client = world.client();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let client = &client;
            let put = move |i: usize| client.put(format!("key {thread} {i}"), vec![b'x'; 1000]).unwrap();
            scope.spawn(move || (0..250).for_each(put));
        }
    });
    let report = |world: &World, i: usize| world.replicas[i].as_ref().unwrap().report();
    let elections = |world: &World| report(world, leader).counters.elections;
    let before = elections(&world);
    world.start_replica(away);
    wait_until("it has all data", || {
        client.put("beat", "x").unwrap();
        report(&world, away).status.keys == 2001
    });
    let counters = report(&world, away).counters;
    assert!(counters.restored > 0, "{counters:?}");
    assert_eq!(elections(&world), before);
    world.replicas.fill_with(|| None);
    (0..3).for_each(|i| world.start_replica(i));
    assert_eq!(client.get("key 7 249").unwrap().map(|value| value.len()), Some(1000), "it is on the disk");
}

#[test]
fn r5_a_hand_over_is_answered_when_another_replica_leads() {
    let world = World::start("store-transfer");
    let leader = world.leader();
    let next = (leader + 1) % 3;
    let order = |order| world.replicas[leader].as_ref().unwrap().order(order);
    let to = world.members[next].id;
    wait_until("it is heard", || order(ReplicaOrder::Transfer(to)).is_ok());
    wait_until("it leads", || world.replicas[next].as_ref().unwrap().report().status.role == Role::Leader);
    let error = order(ReplicaOrder::Transfer(to)).unwrap_err().to_string();
    assert!(error.contains("does not lead"), "{error}");
}

#[test]
fn r7_a_directory_of_another_replica_is_refused() {
    let mut world = World::start("store-foreign");
    world.leader();
    let twice = world.options(&world.members[0], world.members.clone());
    let error = ReplicaProcess::start(twice, || ()).unwrap_err().to_string();
    assert!(error.starts_with("another process uses the data directory"), "{error}");
    world.replicas.fill_with(|| None);
    let mut foreign = world.options(&world.members[0], world.members.clone());
    foreign.data = world.data.join("2");
    let error = ReplicaProcess::start(foreign, || ()).unwrap_err().to_string();
    assert!(error.contains("/2: the file ") && error.contains("give this node its own data directory"), "{error}");
}
