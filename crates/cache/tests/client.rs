//! The client: exactly one event per read, whatever happens to messages.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use midflight_cache::client::{
    ASKED_MAX, Answer, Client, ClientConfig, Counters, Event, Failure, Read, ReadKey, SubmitError,
};
use midflight_cache::select::{Algorithm, Server};
use midflight_endpoint::{Endpoint, MS, Nanos, SECOND};
use midflight_wire::cache::{Ends, Kind, NETRS_VERSION, Netrs, NetrsResponse, Packet, ServerStatus, parse};
use std::net::SocketAddr;
use zerocopy::{FromZeros, IntoBytes};

const GROUP: u32 = 7;

fn operator() -> SocketAddr {
    ([10, 9, 0, 1], 7900).into()
}

fn server(number: u8) -> SocketAddr {
    ([10, 0, 2, number], 7800).into()
}

fn read() -> Read {
    Read { group: GROUP, backups: (0..3).map(server).collect(), asked: b"get k".to_vec() }
}

fn client_with(change: fn(&mut ClientConfig)) -> Client {
    let mut config = ClientConfig::new(1);
    change(&mut config);
    Client::new(config, operator()).unwrap()
}

fn client() -> Client {
    client_with(|_| {})
}

fn direct() -> Client {
    let servers: Vec<_> = (0..3).map(server).collect();
    let mut client =
        Client::direct(ClientConfig::new(1), &servers, |n| Algorithm::LeastOutstanding.selector(n, 1)).unwrap();
    client.set_group(GROUP, &servers).unwrap();
    client
}

/// A transmitted request.
#[derive(Clone, Debug)]
struct Sent {
    to: SocketAddr,
    start: Netrs,
    group: u32,
    ends: Ends,
    asked: Vec<u8>,
}

impl Sent {
    fn names(&self) -> SocketAddr {
        self.ends.server.into()
    }

    fn cookie(&self) -> u64 {
        u64::from_be_bytes(self.ends.client.ip[..8].try_into().unwrap())
    }

    fn answer(&self, kind: Kind, status: &[u8], answered: &[u8]) -> Vec<u8> {
        let start = Netrs { kind: kind as u8, ..self.start };
        let response = NetrsResponse { start, marker: 1.into(), status_length: (status.len() as u16).into() };
        [response.as_bytes(), status, self.ends.as_bytes(), answered].concat()
    }

    fn cookie_answer(&self, cookie: u64) -> Vec<u8> {
        let mut ends = Ends { request: self.ends.request, ..Ends::new_zeroed() };
        ends.client.ip[..8].copy_from_slice(&cookie.to_be_bytes());
        [Netrs::new(Kind::Cookie).as_bytes(), ends.as_bytes()].concat()
    }
}

fn sent(client: &mut Client, now: Nanos) -> Vec<Sent> {
    let mut buffer = Vec::new();
    std::iter::from_fn(|| {
        let to = client.poll_transmit(now, &mut buffer)?;
        let (request, ends, asked) = match parse(&buffer) {
            Ok(Packet::Request(request, ends, asked)) | Ok(Packet::ForServer(_, request, ends, asked)) => {
                (request, ends, asked)
            }
            other => panic!("{other:?}"),
        };
        Some(Sent { to, start: request.start, group: request.group(), ends: *ends, asked: asked.to_vec() })
    })
    .collect()
}

fn one(client: &mut Client, now: Nanos) -> Sent {
    let mut all = sent(client, now);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn events(client: &mut Client) -> Vec<Event> {
    std::iter::from_fn(|| client.poll_event()).collect()
}

fn done(key: ReadKey, server: SocketAddr, sends: u32) -> Event {
    Event::Done { key, outcome: Ok(Answer { server, bytes: b"value".to_vec(), sends }) }
}

fn status() -> Vec<u8> {
    ServerStatus { queue: 1.into(), sequence: 1.into(), service_us: 4_000.into() }.as_bytes().to_vec()
}

/// Runs the timers up to a time; returns what the client sends.
fn run(client: &mut Client, until: Nanos) -> Vec<(Nanos, Sent)> {
    let mut all = Vec::new();
    while let Some(at) = client.poll_timeout().filter(|&at| at <= until) {
        client.handle_timeout(at);
        all.extend(sent(client, at).into_iter().map(|sent| (at, sent)));
    }
    all
}

#[test]
fn n2_a_read_goes_to_the_operator_without_a_label_and_ends_once() {
    let mut client = client();
    let key = client.submit(0, read()).unwrap();
    let request = one(&mut client, 0);
    assert_eq!((request.to, request.group, &request.asked[..]), (operator(), GROUP, &b"get k"[..]));
    assert_eq!((request.start.kind, request.start.rsnode.get()), (Kind::Request as u8, 0));
    assert_eq!((request.names(), request.ends.request.get()), (server(0), key.0));
    let answer = request.answer(Kind::Monitored, &status(), b"value");
    client.handle(MS, operator(), &answer);
    client.handle(MS, operator(), &answer);
    assert_eq!(events(&mut client), [done(key, server(0), 1)], "a copy says nothing");
    let counters = client.counters();
    assert_eq!((counters.answered, counters.unexpected, client.open()), (1, 1, 0));
    assert_eq!((client.poll_timeout(), client.round_trip()), (None, Some(MS)));
}

#[test]
fn a_cookie_is_asked_for_once_and_used_from_then_on() {
    let mut client = client();
    client.submit(0, read()).unwrap();
    let request = one(&mut client, 0);
    assert_eq!(request.cookie(), 0);
    client.handle(MS, operator(), &request.cookie_answer(77));
    let again = one(&mut client, MS);
    assert_eq!((again.cookie(), again.ends.request, again.names()), (77, request.ends.request, server(0)));
    // An operator that accepts no cookie causes no endless loop.
    client.handle(2 * MS, operator(), &again.cookie_answer(78));
    assert!(sent(&mut client, 2 * MS).is_empty());
    client.submit(2 * MS, read()).unwrap();
    assert_eq!(one(&mut client, 2 * MS).cookie(), 77);
    let counters = client.counters();
    assert_eq!((counters.with_cookie, counters.cookies_ignored, counters.repeated), (1, 1, 0));
    // After the timeout it is.
    let (_, later) = run(&mut client, SECOND).remove(0);
    client.handle(SECOND, operator(), &later.cookie_answer(79));
    assert_eq!(one(&mut client, SECOND).cookie(), 79);
}

#[test]
fn n3_without_an_answer_the_next_replicas_are_named_more_and_more_rarely() {
    let mut client = client();
    let key = client.submit(0, read()).unwrap();
    let first = one(&mut client, 0);
    let repeats = run(&mut client, 9 * SECOND);
    assert!(repeats.iter().all(|(_, repeat)| repeat.ends.request == first.ends.request));
    let names: Vec<_> = repeats.iter().take(4).map(|(_, repeat)| repeat.names()).collect();
    assert_eq!(names, [server(1), server(2), server(0), server(1)]);
    let waits: Vec<_> = repeats.iter().take(4).map(|(at, _)| at / MS).collect();
    assert_eq!(waits, [100, 300, 700, 1_500], "100 ms, doubled each time");
    assert!(repeats.windows(2).skip(4).all(|pair| pair[1].0 - pair[0].0 == SECOND), "1 s at most");
    // The answer to the first transmission counts, however late.
    client.handle(9 * SECOND, operator(), &first.answer(Kind::Monitored, &status(), b"value"));
    assert_eq!(events(&mut client), [done(key, server(0), 1 + repeats.len() as u32)]);
    assert_eq!(client.round_trip(), None, "of what was sent more often it is not known which was answered");
}

#[test]
fn a_read_fails_at_its_deadline_and_is_sent_a_bounded_number_of_times() {
    let mut client = client_with(|config| (config.sends_max, config.timeout) = (3, 5 * SECOND));
    let key = client.submit(0, read()).unwrap();
    assert_eq!(sent(&mut client, 0).len(), 1);
    assert_eq!(run(&mut client, 20 * SECOND).len(), 2);
    assert_eq!(events(&mut client), [Event::Done { key, outcome: Err(Failure::TimedOut) }]);
    let counters = client.counters();
    assert_eq!((counters.failed, counters.timed_out, counters.sent, client.open()), (1, 1, 3, 0));
}

#[test]
fn a_refused_read_is_sent_to_another_replica_after_a_pause() {
    let mut client = client_with(|config| config.sends_max = 2);
    let key = client.submit(0, read()).unwrap();
    let first = one(&mut client, 0);
    let refusal = first.answer(Kind::Monitored, &[], &[]);
    client.handle(MS, operator(), &refusal);
    client.handle(MS, operator(), &refusal);
    assert_eq!((client.counters().refused, client.counters().unexpected), (1, 1), "its copy does nothing");
    let (at, again) = run(&mut client, 50 * MS).remove(0);
    assert!((MS..=2 * MS).contains(&at), "{at}");
    assert_eq!(again.names(), server(1));
    client.handle(3 * MS, operator(), &again.answer(Kind::Monitored, &[], &[]));
    assert_eq!(events(&mut client), [Event::Done { key, outcome: Err(Failure::Refused) }]);
    assert_eq!(client.counters().refused_to_the_end, 1);
}

#[test]
fn n8_what_is_not_for_it_changes_nothing_and_is_counted() {
    let mut client = client();
    client.submit(0, read()).unwrap();
    let request = one(&mut client, 0);
    let answer = request.answer(Kind::Monitored, &status(), b"value");
    let other = Sent { ends: Ends { request: 5.into(), ..request.ends }, ..request.clone() };
    client.handle(1, server(0), &answer);
    client.handle(1, operator(), &request.answer(Kind::Direct, &status(), b"value"));
    client.handle(1, operator(), &request.answer(Kind::Response, &status(), b"value"));
    client.handle(1, operator(), &answer[..40]);
    client.handle(1, operator(), &other.answer(Kind::Monitored, &status(), b"value"));
    client.handle(1, operator(), &other.cookie_answer(9));
    client.handle(1, server(0), &request.cookie_answer(9));
    let mut newer = answer.clone();
    newer[6] = NETRS_VERSION + 1;
    client.handle(1, operator(), &newer);
    client.handle(1, operator(), &newer);
    client.handle(1, server(0), &newer);
    let counted = Counters {
        submitted: 1,
        sent: 1,
        foreign: 2,
        not_for_client: 2,
        malformed: 1,
        unexpected: 1,
        cookies_ignored: 1,
        other_version: 3,
        ..Counters::default()
    };
    assert_eq!(client.counters(), counted);
    assert_eq!(events(&mut client), [Event::OtherVersion { at: operator(), version: NETRS_VERSION + 1 }]);
    assert!(sent(&mut client, 1).is_empty());
    client.handle(2, operator(), &answer);
    assert_eq!(events(&mut client).len(), 1, "it still waits");
}

#[test]
fn bounds_are_told_and_the_next_read_gets_its_turn() {
    let mut client = client_with(|config| (config.under_way_max, config.queued_max) = (2, 1));
    let keys: Vec<_> = (0..3).map(|_| client.submit(0, read()).unwrap()).collect();
    assert_eq!(client.submit(0, read()), Err(SubmitError::QueueFull(1)));
    let under_way = sent(&mut client, 0);
    assert_eq!(under_way.len(), 2);
    client.handle(1, operator(), &under_way[0].answer(Kind::Monitored, &status(), b"value"));
    assert_eq!(one(&mut client, 1).ends.request.get(), keys[2].0);
    assert_eq!(client.submit(1, Read { group: 1 << 24, ..read() }), Err(SubmitError::Group(1 << 24)));
    assert_eq!(client.submit(1, Read { backups: Vec::new(), ..read() }), Err(SubmitError::Backups(0)));
    let long = Read { asked: vec![0; ASKED_MAX + 1], ..read() };
    assert_eq!(client.submit(1, long), Err(SubmitError::TooLong(ASKED_MAX + 1)));
    client.submit(1, Read { asked: vec![0; ASKED_MAX], ..read() }).unwrap();
}

#[test]
fn a_read_that_never_had_its_turn_fails_too() {
    let mut client = client_with(|config| (config.under_way_max, config.queued_max) = (1, 2));
    let keys = [0, SECOND, SECOND].map(|now| client.submit(now, read()).unwrap());
    assert_eq!(client.submit(SECOND, read()), Err(SubmitError::QueueFull(2)));
    assert_eq!(sent(&mut client, SECOND).len(), 1);
    run(&mut client, 10 * SECOND);
    let failed = |key| Event::Done { key, outcome: Err(Failure::TimedOut) };
    assert_eq!(events(&mut client), [failed(keys[0])]);
    // The second one has its turn, but its operator is silent, and the third one still waits.
    assert_eq!(client.submit(10 * SECOND, read()).map(|_| client.open()), Ok(3));
    run(&mut client, 60 * SECOND);
    assert_eq!((events(&mut client).len(), client.open(), client.poll_timeout()), (3, 0, None));
    let refilled = (0..3).map(|_| client.submit(60 * SECOND, read()).is_ok());
    assert!(refilled.eq([true; 3]), "nothing of the ended reads is left in the queue");
}

#[test]
fn direct_reads_go_to_the_server_that_its_selector_chooses() {
    let mut client = direct();
    let keys: Vec<_> = (0..3).map(|_| client.submit(0, read()).unwrap()).collect();
    let requests = sent(&mut client, 0);
    let mut to: Vec<_> = requests.iter().map(|request| request.to).collect();
    to.sort_unstable();
    assert_eq!(to, [server(0), server(1), server(2)], "least outstanding");
    assert!(requests.iter().all(|request| request.names() == request.to));
    assert_eq!(client.under_way(), 3);
    let first = &requests[0];
    let answer = first.answer(Kind::Direct, &status(), b"value");
    let elsewhere = requests.iter().find(|request| request.to != first.to).unwrap();
    client.handle(MS, elsewhere.to, &answer);
    assert_eq!((client.counters().foreign, client.under_way()), (1, 3), "another server's");
    client.handle(MS, first.to, &answer);
    client.handle(MS, first.to, &answer);
    assert_eq!(events(&mut client), [done(keys[0], first.to, 1)]);
    assert_eq!((client.under_way(), client.counters().unmatched), (2, 1));
    let selector = client.selector().unwrap();
    let outstanding: u32 = (0..3).map(|n| selector.outstanding(Server(n))).sum();
    assert_eq!(outstanding, 2);
}

#[test]
fn direct_attempts_expire_whatever_became_of_their_reads() {
    let mut client = direct();
    let key = client.submit(0, read()).unwrap();
    let first = one(&mut client, 0);
    let (at, second) = run(&mut client, 100 * MS).remove(0);
    assert_ne!(first.to, second.to, "the first counts as outstanding");
    client.handle(at + MS, second.to, &second.answer(Kind::Direct, &status(), b"value"));
    assert_eq!(events(&mut client), [done(key, second.to, 2)]);
    assert_eq!(client.under_way(), 1, "the first server may still work on it");
    assert!(run(&mut client, 2 * SECOND).is_empty());
    assert_eq!((client.under_way(), client.counters().expired), (0, 1));
    assert_eq!(client.poll_timeout(), None);
}

#[test]
fn direct_each_server_has_a_cookie_and_no_attempt_is_counted_twice_for_it() {
    let mut client = direct();
    client.submit(0, read()).unwrap();
    let request = one(&mut client, 0);
    client.handle(MS, request.to, &request.cookie_answer(5));
    let again = one(&mut client, MS);
    assert_eq!((again.cookie(), again.to, again.start.retained), (5, request.to, request.start.retained));
    assert_eq!(client.under_way(), 1);
    client.submit(MS, read()).unwrap();
    let other = one(&mut client, MS);
    assert_ne!(other.to, request.to);
    assert_eq!(other.cookie(), 0);
}

#[test]
fn n3_direct_reads_of_an_unknown_group_go_to_their_backup() {
    let mut client = direct();
    client.submit(0, Read { group: 8, ..read() }).unwrap();
    let request = one(&mut client, 0);
    assert_eq!((request.to, client.under_way(), client.counters().unknown_group), (server(0), 0, 1));
    client.handle(MS, request.to, &request.answer(Kind::Direct, &status(), b"value"));
    assert_eq!(events(&mut client).len(), 1);
    // A backup that is not a server gets no request.
    client.submit(MS, Read { group: 8, backups: vec![operator(), server(1)], ..read() }).unwrap();
    assert_eq!((one(&mut client, MS).to, client.counters().unknown_server), (server(1), 0));
    let key = client.submit(MS, Read { group: 8, backups: vec![operator()], ..read() }).unwrap();
    assert_eq!((sent(&mut client, MS).len(), client.counters().unknown_server), (0, 1));
    run(&mut client, 11 * SECOND);
    assert!(events(&mut client).contains(&Event::Done { key, outcome: Err(Failure::TimedOut) }));
}

#[test]
fn direct_a_read_that_rate_control_holds_waits_or_fails() {
    let mut config = ClientConfig::new(1);
    config.timeout = 50 * MS;
    let select = |n| Algorithm::C3RateControl.selector(n, 1);
    let mut client = Client::direct(config, &[server(0)], select).unwrap();
    client.set_group(GROUP, &[server(0)]).unwrap();
    let alone = Read { backups: vec![server(0)], ..read() };
    for _ in 0..40 {
        client.submit(0, alone.clone()).unwrap();
    }
    let at_once = sent(&mut client, 0).len();
    assert!((1..40).contains(&at_once) && client.counters().held > 0, "{at_once}");
    run(&mut client, SECOND);
    assert_eq!(events(&mut client).len(), 40);
    assert_eq!(client.open(), 0);
}
