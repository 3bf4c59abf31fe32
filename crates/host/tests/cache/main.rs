//! A client of a cache against scripted agents, directly and through an operator.

#![allow(clippy::unwrap_used, reason = "tests may, in helpers too")]

mod agent;
mod operator;

use agent::{Agent, Answers, DATAGRAM_VALUE_MAX, bytes_of};
use midflight_cache::keyspace::Keyspace;
use midflight_host::Error;
use midflight_host::cache::{
    Algorithm, CacheBuilder, CacheClient, CacheError, ServerError, SetOptions, VALUE_MAX, Value, WriteError,
};
use midflight_wire::cache::backend::{BACKEND_VERSION, BackendAnswer, BackendReject};
use operator::{Operator, Place};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9);

fn agents(count: usize) -> Vec<Agent> {
    (0..count).map(|_| Agent::start(NOWHERE)).collect()
}

fn addresses(agents: &[Agent]) -> Vec<SocketAddr> {
    agents.iter().map(|agent| agent.address).collect()
}

fn direct(agents: &[Agent]) -> CacheBuilder {
    CacheClient::builder().direct(Algorithm::LeastOutstanding, 1).servers(addresses(agents))
}

fn value(bytes: &[u8], flags: u32) -> Value {
    Value { bytes: bytes.to_vec(), flags }
}

fn behind_operator(is_degraded: bool) -> (Vec<Agent>, Operator) {
    let place = Place::new();
    let agents: Vec<_> = (0..4).map(|_| Agent::start(place.address())).collect();
    let keyspace = Keyspace::new(&addresses(&agents), 3, 0).unwrap();
    let operator = place.start(&keyspace, &addresses(&agents), is_degraded);
    (agents, operator)
}

fn write_error(outcome: Result<impl std::fmt::Debug, Error>) -> WriteError {
    match outcome {
        Err(Error::Cache(CacheError::Write(error))) => error,
        other => panic!("{other:?}"),
    }
}

fn sets_gets_and_deletes(client: &CacheClient, agents: &[Agent]) {
    assert_eq!(client.get("greeting").unwrap(), None);
    client.set_with("greeting", "hello", SetOptions::default().flags(7).expiry(Duration::from_secs(60))).unwrap();
    let has = |agent: &&Agent| agent.backend().get(&b"greeting"[..]) == Some(&(b"hello".to_vec(), 7, 60));
    let mut have: Vec<SocketAddr> = agents.iter().filter(has).map(|agent| agent.address).collect();
    let mut servers = client.servers_of("greeting").unwrap().to_vec();
    have.sort_unstable();
    servers.sort_unstable();
    assert_eq!((have.len(), have), (3, servers));
    for _ in 0..50 {
        assert_eq!(client.get("greeting").unwrap(), Some(value(b"hello", 7)));
    }
    client.set("empty", "").unwrap();
    assert_eq!(client.get("empty").unwrap(), Some(value(b"", 0)));
    assert!(client.delete("greeting").unwrap());
    assert!(!client.delete("greeting").unwrap());
    assert_eq!(client.get("greeting").unwrap(), None);
    // Too long for a datagram.
    for length in [DATAGRAM_VALUE_MAX, DATAGRAM_VALUE_MAX + 1, 100_000, VALUE_MAX] {
        let long: Vec<u8> = (0..length).map(|n| n as u8).collect();
        client.set_with("long", &long, SetOptions::default().flags(3)).unwrap();
        assert_eq!(client.get("long").unwrap(), Some(value(&long, 3)), "{length} bytes");
    }
    let counts = client.counts().cache;
    assert_eq!((counts.long, counts.sets, counts.deletes, counts.failed_writes), (3, 6, 2, 0));
    assert_eq!((counts.values, counts.missing), (55, 2));
    assert!((3..=4).contains(&counts.connections), "one to each server of a key, which is kept: {counts:?}");
}

#[test]
fn values_are_set_at_all_servers_of_a_key_and_got_from_one() {
    let agents = agents(4);
    let client = direct(&agents).connect_lazy().unwrap();
    sets_gets_and_deletes(&client, &agents);
    assert!(agents.iter().filter(|agent| agent.asked() > 0).count() >= 3, "gets go to all");
}

#[test]
fn n1_an_operator_selects_for_its_clients() {
    let (agents, operator) = behind_operator(false);
    let client = CacheClient::builder().operator(operator.address).servers(addresses(&agents)).connect_lazy().unwrap();
    sets_gets_and_deletes(&client, &agents);
    assert!(agents.iter().filter(|agent| agent.asked() > 0).count() >= 3, "gets go to all");
}

/// N3: without a selector, or with one that knows other servers, a get goes to a backup.
#[test]
fn n3_gets_reach_a_replica_without_a_selector() {
    let (agents, operator) = behind_operator(true);
    let builder = CacheClient::builder().operator(operator.address).servers(addresses(&agents));
    sets_gets_and_deletes(&builder.clone().connect_lazy().unwrap(), &agents);
    drop((agents, operator));

    let (agents, operator) = behind_operator(false);
    let builder = CacheClient::builder().operator(operator.address).servers(addresses(&agents));
    sets_gets_and_deletes(&builder.version(1).connect_lazy().unwrap(), &agents);
}

/// N8: the servers changed but the version did not. A server that is no longer a replica of the key may be selected; its value must not be
/// returned.
#[test]
fn n8_a_server_that_is_no_replica_of_the_key_is_not_believed() {
    let place = Place::new();
    let agents: Vec<_> = (0..4).map(|_| Agent::start(place.address())).collect();
    let all = addresses(&agents);
    let operator = place.start(&Keyspace::new(&all, 4, 0).unwrap(), &all, false);
    let client = CacheClient::builder().operator(operator.address).servers(all[..3].to_vec()).connect_lazy().unwrap();
    client.set("key", "new").unwrap();
    agents[3].backend().insert(b"key".to_vec(), (b"old".to_vec(), 0, 0));
    for _ in 0..40 {
        assert_eq!(client.get("key").unwrap(), Some(value(b"new", 0)));
    }
    assert!(client.counts().cache.foreign_servers > 0, "{:?}", client.counts().cache);
}

#[test]
fn a_server_that_is_down_costs_no_get_and_writes_name_it() {
    let mut agents = agents(3);
    let client = direct(&agents).connect_lazy().unwrap();
    client.set("key", "old").unwrap();
    let down = agents.remove(0).address;
    for _ in 0..20 {
        assert_eq!(client.get("key").unwrap(), Some(value(b"old", 0)));
    }
    let error = write_error(client.set("key", "new"));
    let failed: Vec<_> =
        error.failed.iter().map(|failed| (failed.server, failed.why.clone(), failed.has_forgotten)).collect();
    assert_eq!(failed, [(down, ServerError::Unreachable(ErrorKind::ConnectionRefused), false)]);
    assert_eq!(error.done.iter().copied().collect::<BTreeSet<_>>(), addresses(&agents).into_iter().collect());
    assert_eq!(client.get("key").unwrap(), Some(value(b"new", 0)), "those that have it answer with it");
    let error = write_error(client.delete("key"));
    assert_eq!((error.done.len(), error.failed.len(), error.failed[0].server), (2, 1, down));
    assert_eq!(client.counts().cache.failed_writes, 2);
}

#[test]
fn a_server_that_refuses_a_set_forgets_what_it_had() {
    let agents = agents(3);
    let client = direct(&agents).connect_lazy().unwrap();
    client.set("key", "old").unwrap();
    agents[1].by_stream(Answers::RefusesSets);
    let error = write_error(client.set("key", "new"));
    assert_eq!(error.done.len(), 2);
    assert_eq!(error.failed[0].server, agents[1].address);
    assert_eq!(error.failed[0].why, ServerError::Refused("the backend is full".into()));
    assert!(error.failed[0].has_forgotten);
    assert!(agents[1].backend().is_empty(), "it does not answer with the old value");
    let counts = client.counts().cache;
    assert_eq!((counts.refused, counts.forgotten, counts.connections), (1, 1, 3));
}

#[test]
fn a_server_that_stalls_holds_a_write_no_longer_than_its_timeout() {
    let agents = agents(3);
    let client = direct(&agents).timeout(Duration::from_millis(200)).connect_lazy().unwrap();
    agents[2].by_stream(Answers::Stalls);
    let error = write_error(client.set("key", "new"));
    assert_eq!((error.done.len(), &error.failed[0].why), (2, &ServerError::TimedOut));
    agents[2].by_stream(Answers::Closes);
    let error = write_error(client.set("key", "new"));
    assert_eq!((error.done.len(), &error.failed[0].why), (2, &ServerError::Closed));
}

#[test]
fn n8_garbage_is_never_a_value() {
    let agents = agents(3);
    let client = direct(&agents).connect_lazy().unwrap();
    client.set_with("key", "right", SetOptions::default().flags(5)).unwrap();
    let other = BACKEND_VERSION + 1;
    let value_and_more = [bytes_of(&BackendAnswer::Value { value: b"wrong", flags: 0 }), b"more".to_vec()].concat();
    let (garbage, version) =
        (b"VALUE key 0 5\r\nwrong\r\nEND\r\n".to_vec(), bytes_of(&BackendAnswer::OtherVersion { version: other }));
    let refused = bytes_of(&BackendAnswer::Refused { why: "the backend does not answer" });
    for (agent, bytes) in agents.iter().zip([garbage.clone(), version, value_and_more]) {
        agent.by_datagram(Answers::Bytes(bytes));
    }
    for _ in 0..30 {
        assert_eq!(client.get("key").unwrap(), Some(value(b"right", 5)), "over TCP, from one of the others");
    }
    let counts = client.counts().cache;
    assert!([counts.garbage, counts.other_version, counts.unfit].iter().all(|&count| count > 0), "{counts:?}");
    assert_eq!(counts.garbage + counts.other_version + counts.unfit, 30);

    // No server has an answer: the error lists each server's.
    agents.iter().for_each(|agent| agent.by_datagram(Answers::Bytes(refused.clone())));
    agents[0].by_stream(Answers::Bytes(garbage));
    agents[1].by_stream(Answers::Closes);
    agents[2].by_stream(Answers::Bytes(bytes_of(&BackendAnswer::Long { length: 5 })));
    let Err(Error::Cache(CacheError::Unusable(why))) = client.get("key") else { panic!("a value") };
    assert_eq!(why.iter().map(|(server, _)| *server).collect::<BTreeSet<_>>().len(), 3, "{why:?}");
    assert_eq!(why[0].1, ServerError::Refused("the backend does not answer".into()), "what the datagram said");
    let streams = [ServerError::Garbage(BackendReject::BadMagic), ServerError::Closed, ServerError::Unfit];
    assert!(why[1..].iter().all(|(_, why)| streams.contains(why)), "{why:?}");
}

#[test]
fn a_long_value_comes_from_another_replica_if_the_first_fails() {
    let agents = agents(3);
    let client = direct(&agents).connect_lazy().unwrap();
    let long = vec![b'x'; 50_000];
    client.set("long", &long).unwrap();
    agents[0].by_stream(Answers::Closes);
    agents[1].by_stream(Answers::Bytes(bytes_of(&BackendAnswer::Done)));
    // Which server answers first is random.
    for _ in 0..100 {
        assert_eq!(client.get("long").unwrap(), Some(value(&long, 0)));
    }
    // Deleted in between: a valid answer.
    agents[2].by_stream(Answers::Bytes(bytes_of(&BackendAnswer::Missing)));
    assert_eq!(client.get("long").unwrap(), None);
    let counts = client.counts().cache;
    assert!(counts.closed + counts.kept_closed > 0 && counts.unfit > 0, "{counts:?}");
}

#[test]
fn connections_that_servers_close_are_opened_again() {
    let agents = agents(3);
    let client = direct(&agents).connect_lazy().unwrap();
    for agent in &agents {
        agent.shared.closes_when_idle.store(true, Ordering::Relaxed);
    }
    for n in 0..10 {
        client.set(format!("key{n}"), "value").unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    let counts = client.counts().cache;
    assert_eq!((counts.connections, counts.failed_writes), (30, 0), "{counts:?}");
    assert!(counts.kept_closed >= 20, "{counts:?}");
}

#[test]
fn what_is_no_key_or_too_long_is_refused_before_anything_is_sent() {
    let agents = agents(1);
    let client = direct(&agents).connect_lazy().unwrap();
    for key in [&b""[..], b"two words", b"line\n", b"\x7f", &[b'k'; 251]] {
        let refused = [
            client.get(key).unwrap_err(),
            client.set(key, "").unwrap_err(),
            client.delete(key).unwrap_err(),
            client.submit_get(key).unwrap_err(),
        ];
        let is_refused =
            |error: &Error| matches!(error, Error::Invalid(why) if why.starts_with("this cannot be a key"));
        assert!(refused.iter().all(is_refused), "{refused:?}");
    }
    let long = vec![0; VALUE_MAX + 1];
    assert!(
        matches!(client.set("key", &long), Err(Error::Invalid(why)) if why.starts_with("the value has 1048577 bytes"))
    );
    assert_eq!((client.open(), client.counts().protocol.submitted, client.counts().cache.connections), (0, 0, 0));
    client.set([b'k'; 250], "longest").unwrap();
    assert_eq!(client.get([b'k'; 250]).unwrap(), Some(value(b"longest", 0)));
}

#[test]
fn many_gets_may_be_under_way_and_each_ends_once() {
    let agents = agents(3);
    let clients = [(); 2].map(|()| direct(&agents).connect_lazy().unwrap());
    for n in 0..20 {
        let bytes = if n % 5 == 0 { vec![n; 2_000] } else { vec![n] };
        clients[0].set_with(format!("key{n}"), bytes, SetOptions::default().flags(n.into())).unwrap();
    }
    let (sender, outcomes) = std::sync::mpsc::channel();
    for tag in 0..400 {
        let sender = sender.clone();
        let sink = move |outcome| sender.send((tag, outcome)).unwrap();
        clients[tag % 2].submit_get_to(format!("key{}", tag % 20), sink).unwrap();
    }
    let mut ended = BTreeSet::new();
    while ended.len() < 400 {
        let (tag, outcome) = outcomes.recv_timeout(Duration::from_secs(10)).expect("all end");
        assert_eq!(outcome.unwrap().unwrap().flags as usize, tag % 20);
        assert!(ended.insert(tag), "once");
    }
    assert!(outcomes.recv_timeout(Duration::from_millis(20)).is_err());
    assert_eq!(clients.each_ref().map(CacheClient::open), [0, 0]);
}

#[test]
fn as_many_gets_as_are_admitted_and_no_more() {
    let client = CacheClient::builder().operator(NOWHERE).server(NOWHERE).in_flight(2).connect_lazy().unwrap();
    let mut handles: Vec<_> = (0..10).map(|_| client.submit_get("key").unwrap()).collect();
    assert_eq!(client.submit_get("key").unwrap_err(), Error::TooManyOpen { open: 10, asked: 1, max: 10 });
    assert_eq!(client.open(), 10);
    assert!(handles[0].wait_timeout(Duration::from_millis(1)).is_none());
    client.close();
    assert!(handles.into_iter().all(|handle| handle.wait() == Err(Error::Closed)));
}

#[test]
fn a_get_that_nobody_answers_fails_in_time() {
    let timeout = Duration::from_millis(100);
    let client = CacheClient::builder().operator(NOWHERE).server(NOWHERE).timeout(timeout).connect_lazy().unwrap();
    assert_eq!(client.get("key"), Err(CacheError::TimedOut.into()));
}

#[test]
fn connect_returns_once_a_server_has_answered() {
    let agents = agents(3);
    let client = direct(&agents).connect().unwrap();
    assert_eq!(client.counts().cache.missing, 1, "of a key that nobody has set");
    let within = Duration::from_millis(50);
    let nowhere = CacheClient::builder().operator(NOWHERE).server(NOWHERE).connect_timeout(within);
    assert_eq!(nowhere.connect().unwrap_err(), Error::NotConnected { addresses: vec![NOWHERE], within });
}

/// Closed while a long value is fetched from a silent server.
#[test]
fn a_client_that_is_closed_waits_for_nobody() {
    let agents = agents(1);
    let client = direct(&agents).timeout(Duration::from_secs(60)).connect_lazy().unwrap();
    client.set("long", vec![0; 5_000]).unwrap();
    agents[0].by_stream(Answers::Stalls);
    let handles: Vec<_> = (0..12).map(|_| client.submit_get("long").unwrap()).collect();
    while client.counts().cache.long < 12 {
        std::thread::sleep(Duration::from_millis(1));
    }
    client.close();
    for handle in handles {
        assert_ne!(handle.wait().unwrap_err(), CacheError::TimedOut.into());
    }
}

#[test]
fn a_client_says_what_is_missing() {
    let error = |builder: CacheBuilder| builder.connect_lazy().unwrap_err().to_string();
    let builder = || CacheClient::builder().server(NOWHERE);
    assert!(error(builder()).starts_with("say who selects"));
    assert!(error(builder().operator(NOWHERE).direct(Algorithm::C3, 1)).starts_with("say who selects"));
    assert!(error(CacheClient::builder().operator(NOWHERE)).starts_with("0 replicas of each key on 0 servers"));
    assert!(error(builder().operator(NOWHERE).replicas(2)).starts_with("2 replicas of each key on 1 servers"));
    assert!(error(builder().server(NOWHERE).operator(NOWHERE)).contains("is there twice"));
    assert!(error(builder().operator(NOWHERE).version(5_000)).starts_with("version 5000"));
    assert!(error(builder().operator(NOWHERE).in_flight(0)).starts_with("`under_way_max` is 0"));
    for timeout in [Duration::ZERO, Duration::MAX] {
        assert!(error(builder().operator(NOWHERE).timeout(timeout)).contains("must be 1 ms to 1 h"));
    }
}
