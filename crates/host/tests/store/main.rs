//! A store of three replicas and a switch in this process, with real sockets and disks.

#![allow(clippy::unwrap_used, reason = "tests may, in helpers too")]

mod direct;
mod world;

use midflight_host::Error;
use midflight_host::store::replica::{ReplicaOrder, ReplicaProcess};
use midflight_host::store::{Answer, Cas, Operation, Reached, StoreClient, StoreError};
use midflight_store::replica::Role;
use std::net::UdpSocket;
use std::time::Duration;
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
    assert_eq!(client.create("sum", "new"), Ok(Some("done".into())));
    assert_eq!(client.create("new", "one"), Ok(None));
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

#[test]
fn operations_that_are_not_waited_for_end_by_themselves() {
    let world = World::start("store-handles");
    let client = world.client();
    let put = |key: u8| client.submit(Operation::Put { key: vec![b'k', key], value: vec![key] }).unwrap();
    let handles: Vec<_> = (0..100).map(put).collect();
    wait_until("all have ended", || handles.iter().all(|handle| handle.has_ended()));
    assert_eq!(client.open(), 0);
    for mut handle in handles {
        assert_eq!(handle.wait_timeout(Duration::ZERO), Some(Ok(Answer::Done)));
        assert_eq!(handle.wait(), Err(Error::Taken), "an outcome is given once");
    }
}

#[test]
fn connect_returns_once_the_store_has_answered() {
    let world = World::start("store-connects");
    assert!(world.client().counts().protocol.submitted > 0);
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let within = Duration::from_millis(50);
    let error = StoreClient::builder().switch(nobody).connect_timeout(within).connect().unwrap_err();
    assert_eq!(error, Error::NotConnected { addresses: vec![nobody], within });
}

#[test]
fn what_has_no_answer_fails_in_time_and_at_the_latest_when_the_client_closes() {
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = StoreClient::builder().switch(nobody).timeout(Duration::from_millis(200)).connect_lazy().unwrap();
    let error = client.put("a", "1").unwrap_err();
    assert_eq!(
        error,
        StoreError::TimedOut { was_sent: false, reached: Reached::Nobody }.into(),
        "its client id was never opened"
    );
    assert!(!error.is_unknown());
    let mut read = client.submit(Operation::Get { key: b"a".to_vec() }).unwrap();
    assert_eq!(read.wait_timeout(Duration::from_millis(1)), None);
    client.close();
    assert_eq!(read.wait(), Err(Error::Closed));
}
