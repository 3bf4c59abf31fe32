//! Requests by datagram, with a correct backend.

use crate::asker::{Asker, Back, Stream, bytes_of, bytes_of_request, get, set};
use crate::scripted::{ScriptedBackend, Talk, answer, behaves};
use crate::{PATIENCE, loopback, options, start, wait_for, wait_until};
use midflight_cache::client::{Client, ClientConfig, Event, Read};
use midflight_cache::select::Algorithm;
use midflight_endpoint::Endpoint;
use midflight_host::cache::agent::AgentOptions;
use midflight_host::clock;
use midflight_wire::PACKET_MAX;
use midflight_wire::cache::backend::{BackendAnswer, parse_answer};
use midflight_wire::cache::{Ends, Kind, Netrs, NetrsRequest, NetrsResponse, Packet, parse};
use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use zerocopy::{FromZeros, IntoBytes};

#[test]
fn a_value_a_missing_key_and_what_it_counts() {
    let backend = ScriptedBackend::start(|_, talk| behaves(talk));
    let agent = start(options(&backend.memcached()));
    let mut asker = Asker::new(agent.local_addr());
    assert_eq!(asker.get("one"), bytes_of(&BackendAnswer::Value { value: b"one", flags: 0 }));
    assert_eq!(asker.get("missing"), bytes_of(&BackendAnswer::Missing));
    let report = agent.report();
    assert_eq!((report.counters.values, report.counters.missing), (1, 1));
    assert_eq!((report.server.answered, report.server.cookies, report.served), (2, 1, 0));
    assert!(report.backend_is_gone.is_none() && report.service_time.is_some(), "{report:?}");
    assert_eq!(backend.connections(), 1, "the one that the start made");
}

#[test]
fn the_client_gets_a_value() {
    let backend = ScriptedBackend::start(|_, talk| behaves(talk));
    let agent = start(options(&backend.memcached()));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let servers = [agent.local_addr()];
    let mut client =
        Client::direct(ClientConfig::new(7), &servers, |count| Algorithm::LeastOutstanding.selector(count, 1)).unwrap();
    let asked = bytes_of_request(&get("one"));
    client.submit(clock::now(), Read { group: 1, backups: servers.to_vec(), asked }).unwrap();
    let (mut packet, mut buffer, deadline) = (Vec::new(), [0; 2_048], Instant::now() + PATIENCE);
    let outcome = loop {
        assert!(Instant::now() < deadline);
        while let Some(to) = client.poll_transmit(clock::now(), &mut packet) {
            socket.send_to(&packet, to).unwrap();
        }
        if let Ok((length, from)) = socket.recv_from(&mut buffer) {
            client.handle(clock::now(), from, &buffer[..length]);
        }
        client.handle_timeout(clock::now());
        if let Some(Event::Done { outcome, .. }) = client.poll_event() {
            break outcome.unwrap();
        }
    };
    assert_eq!(outcome.bytes, bytes_of(&BackendAnswer::Value { value: b"one", flags: 0 }));
}

#[test]
fn a_value_that_does_not_fit_is_told_of_by_its_length() {
    let backend = ScriptedBackend::start(|_, talk| {
        while let Some(line) = talk.line() {
            let key = line.strip_prefix("get ").unwrap().to_owned();
            talk.value(&key, vec![b'x'; key.parse().unwrap()]);
        }
    });
    for datagram_max in [PACKET_MAX, 512] {
        let agent = start(AgentOptions { datagram_max, ..options(&backend.memcached()) });
        let mut asker = Asker::new(agent.local_addr());
        let fits = datagram_max - 152;
        let bytes = asker.get(&fits.to_string());
        assert_eq!(
            parse_answer(&bytes).unwrap().unwrap().0,
            BackendAnswer::Value { value: &vec![b'x'; fits], flags: 0 }
        );
        for length in [fits + 1, 1 << 20] {
            assert_eq!(asker.get(&length.to_string()), bytes_of(&BackendAnswer::Long { length: length as u32 }));
        }
        assert_eq!((agent.report().counters.values, agent.report().counters.long_values), (1, 2));
    }
}

#[test]
fn n8_what_is_no_get_is_refused_and_counted_by_its_name() {
    let backend = ScriptedBackend::start(|_, talk| behaves(talk));
    let agent = start(options(&backend.memcached()));
    let mut asker = Asker::new(agent.local_addr());
    assert_eq!(asker.ask_bytes(b""), Back::Refused);
    assert_eq!(asker.ask_bytes(b"get one\r\n"), Back::Refused);
    let two = [bytes_of_request(&get("one")), bytes_of_request(&get("two"))].concat();
    assert_eq!(asker.ask_bytes(&two), Back::Refused, "more than one request");
    assert_eq!(asker.ask(&set("one", b"1")), Back::Refused);
    let mut newer = bytes_of_request(&get("one"));
    newer[4] = 2;
    let Back::Answered(_, told) = asker.ask_bytes(&newer) else { panic!("refused") };
    assert_eq!(told, bytes_of(&BackendAnswer::OtherVersion { version: 1 }));
    let counters = agent.report().counters;
    assert_eq!((counters.malformed_questions, counters.not_get, counters.other_version), (3, 1, 1));
    assert_eq!(asker.get("one"), bytes_of(&BackendAnswer::Value { value: b"one", flags: 0 }));
}

fn slow(talk: &mut Talk) {
    while let Some(line) = talk.line() {
        std::thread::sleep(Duration::from_millis(50));
        answer(talk, &line);
    }
}

#[test]
fn the_status_tells_of_the_queue_and_the_service_time() {
    let backend = ScriptedBackend::start(|_, talk| slow(talk));
    let agent = start(AgentOptions { slots: 2, ..options(&backend.memcached()) });
    let mut asker = Asker::new(agent.local_addr());
    for _ in 0..6 {
        asker.send(&bytes_of_request(&get("one")));
    }
    let answers: Vec<_> = (0..6).map(|_| asker.answer().1.status()).collect();
    let queues: Vec<_> = answers.iter().map(|status| status.queue.get()).collect();
    assert_eq!(queues, [3, 2, 1, 0, 0, 0]);
    assert!(answers.iter().all(|status| (50_000..290_000).contains(&status.service_us.get())), "{answers:?}");
    assert_eq!(backend.connections(), 2, "as many as slots");
}

#[test]
fn a_queue_that_is_full_refuses_at_once() {
    let backend = ScriptedBackend::start(|_, talk| slow(talk));
    let agent = start(AgentOptions { slots: 1, queue_max: 1, ..options(&backend.memcached()) });
    let mut asker = Asker::new(agent.local_addr());
    for _ in 0..3 {
        asker.send(&bytes_of_request(&get("one")));
    }
    assert_eq!(asker.answer(), (4, Back::Refused));
    assert_eq!(agent.report().server.queue_full, 1);
}

/// A request forwarded by an operator: the answer goes to the rack's operator, and only known addresses may send such requests.
#[test]
fn an_answer_goes_to_the_operator_and_foreign_requests_are_dropped() {
    let backend = ScriptedBackend::start(|_, talk| behaves(talk));
    let operator = UdpSocket::bind("127.0.0.2:0").unwrap();
    operator.set_read_timeout(Some(PATIENCE)).unwrap();
    let senders = Some(BTreeSet::from([operator.local_addr().unwrap().ip()]));
    let options = AgentOptions { operator: operator.local_addr().ok(), senders, ..options(&backend.memcached()) };
    let agent = start(options);
    let ends = Ends { server: agent.local_addr().into(), request: 5.into(), ..Ends::new_zeroed() };
    let request = NetrsRequest { start: Netrs::for_server(Kind::Response), group: [0; 3] };
    let datagram = [request.as_bytes(), ends.as_bytes(), &bytes_of_request(&get("one"))].concat();
    let foreign = UdpSocket::bind(loopback()).unwrap();
    foreign.send_to(&datagram, agent.local_addr()).unwrap();
    wait_until("it is dropped", || agent.report().server.foreign == 1, || format!("{:?}", agent.report()));
    operator.send_to(&datagram, agent.local_addr()).unwrap();
    let mut buffer = [0; 2_048];
    let length = operator.recv(&mut buffer).unwrap();
    let Ok(Packet::Response(Kind::Response, response, _, ends, told)) = parse(&buffer[..length]) else { panic!() };
    assert_eq!((size_of::<NetrsResponse>(), response.status_length.get()), (16, 8));
    assert_eq!((ends.request.get(), told), (5, &bytes_of(&BackendAnswer::Value { value: b"one", flags: 0 })[..]));
    assert_eq!(agent.report().counters.values, 1);
}

#[test]
fn an_agent_without_an_operator_takes_direct_requests_only() {
    let backend = ScriptedBackend::start(|_, talk| behaves(talk));
    let agent = start(options(&backend.memcached()));
    let ends = Ends { server: agent.local_addr().into(), ..Ends::new_zeroed() };
    let request = NetrsRequest { start: Netrs::for_server(Kind::Monitored), group: [0; 3] };
    let datagram = [request.as_bytes(), ends.as_bytes(), &bytes_of_request(&get("one"))].concat();
    UdpSocket::bind(loopback()).unwrap().send_to(&datagram, agent.local_addr()).unwrap();
    wait_until("it is dropped", || agent.report().server.foreign == 1, || format!("{:?}", agent.report()));
}

#[test]
fn the_load_of_the_last_second_is_known() {
    let backend = ScriptedBackend::start(|_, talk| slow(talk));
    let agent = start(AgentOptions { slots: 1, ..options(&backend.memcached()) });
    let mut asker = Asker::new(agent.local_addr());
    wait_until(
        "a busy second",
        || {
            (0..8).for_each(|_| drop(asker_of(&agent).get("one")));
            agent.report().load.utilization > 0.5
        },
        || format!("{:?}", agent.report()),
    );
    let load = agent.report().load;
    assert!(load.answered_per_s > 5.0 && load.answered_per_s <= 20.5 && load.utilization <= 1.0, "{load:?}");
    assert_eq!(asker.get("missing"), bytes_of(&BackendAnswer::Missing));
    assert!(agent.silent_for() < Duration::from_secs(1));
}

fn asker_of(agent: &midflight_host::cache::agent::Agent) -> Asker {
    Asker::new(agent.local_addr())
}

/// Requests at the backend are answered; queued ones are refused, so that their clients ask another replica at once.
#[test]
fn an_agent_that_ends_answers_what_it_has_begun() {
    let backend = ScriptedBackend::start(|_, talk| slow(talk));
    let agent = start(AgentOptions { slots: 1, ..options(&backend.memcached()) });
    let mut asker = Asker::new(agent.local_addr());
    for _ in 0..3 {
        asker.send(&bytes_of_request(&get("one")));
    }
    wait_until("one is served, two wait", || agent.report().waiting == 2, || format!("{:?}", agent.report()));
    agent.finish();
    let (number, back) = asker.answer();
    assert_eq!((number, back.status().queue.get()), (2, 1));
    assert_eq!([asker.answer(), asker.answer()], [(3, Back::Refused), (4, Back::Refused)]);
}

/// Ends a flood even if the test fails.
struct EndOfFlood<'a>(&'a AtomicBool);

impl Drop for EndOfFlood<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// While a client floods, its datagrams are counted, streams are served, and the agent reports that it lives.
#[test]
fn n8_a_client_that_floods_keeps_nobody_out() {
    let backend = ScriptedBackend::start(|_, talk| behaves(talk));
    let agent = start(AgentOptions { backend_timeout: Duration::from_secs(10), ..options(&backend.memcached()) });
    let (ends, address) = (AtomicBool::new(false), agent.local_addr());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let socket = UdpSocket::bind(loopback()).unwrap();
            while !ends.load(Relaxed) {
                // Fails if the kernel's buffer is full.
                let _ = socket.send_to(&[0xaa; 200], address);
            }
        });
        let _end = EndOfFlood(&ends);
        wait_until("it floods", || agent.report().server.malformed > 1_000, || format!("{:?}", agent.report()));
        let mut stream = Stream::connect(address);
        for _ in 0..50 {
            assert_eq!(stream.ask(&get("one")), bytes_of(&BackendAnswer::Value { value: b"one", flags: 0 }));
        }
        assert!(agent.silent_for() < Duration::from_secs(2), "{:?}", agent.silent_for());
    });
}

#[test]
fn wrong_options_are_named() {
    let error = |change: fn(&mut AgentOptions)| {
        let mut options = options("memcached://127.0.0.1:1");
        change(&mut options);
        midflight_host::cache::agent::Agent::start(options, || {}).unwrap_err().to_string()
    };
    assert!(error(|o| o.address = ([0, 0, 0, 0], 0).into()).contains("listen on the one that operators send to"));
    assert!(error(|o| o.slots = 0).starts_with("`slots` is 0"));
    assert!(error(|o| o.datagram_max = 1_400).starts_with("`datagram_max` is 1400: set it to 256 to 1232"));
    assert!(error(|o| o.backend_timeout = Duration::ZERO).starts_with("`backend_timeout` is 0ns"));
    assert!(error(|o| o.stream_slots = 0).starts_with("`stream_slots` is 0"));
}

#[test]
fn an_address_in_use_is_named() {
    let backend = ScriptedBackend::start(|_, talk| behaves(talk));
    let agent = start(options(&backend.memcached()));
    let taken = AgentOptions { address: agent.local_addr(), ..options(&backend.memcached()) };
    let error = midflight_host::cache::agent::Agent::start(taken, || {}).unwrap_err().to_string();
    assert!(error.contains(&agent.local_addr().to_string()) && error.contains("another process"), "{error}");
    wait_for(&agent, "it is not disturbed", |counters| counters.backend_gone == 0);
}
