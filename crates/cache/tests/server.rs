//! The server: answers each request once, to the right receiver.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use midflight_cache::client::ANSWERED_MAX;
use midflight_cache::server::{AnswerError, Counters, Event, ServeKey, Server, ServerConfig, ServiceTime};
use midflight_endpoint::{Endpoint, MS, Nanos};
use midflight_wire::PACKET_MAX;
use midflight_wire::cache::{
    Ends, Kind, NETRS_VERSION, Netrs, NetrsRequest, NetrsResponse, Packet, ServerStatus, parse,
};
use std::net::SocketAddr;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

fn own() -> SocketAddr {
    ([10, 0, 2, 1], 7800).into()
}

fn operator() -> SocketAddr {
    ([10, 9, 0, 1], 7900).into()
}

fn selector() -> SocketAddr {
    ([10, 9, 1, 1], 7901).into()
}

fn client() -> SocketAddr {
    ([10, 0, 1, 1], 7000).into()
}

fn server_with(change: fn(&mut ServerConfig)) -> Server {
    let mut config = ServerConfig::new(own(), operator(), 9);
    config.senders = Some([operator().ip(), selector().ip()].into());
    change(&mut config);
    Server::new(config).unwrap()
}

fn server() -> Server {
    server_with(|config| (config.slots, config.queue_max) = (1, 2))
}

fn request(kind: Kind, number: u64, to: SocketAddr, cookie: Option<u64>) -> Vec<u8> {
    let start = Netrs { rsnode: 3.into(), retained: 44.into(), ..Netrs::for_server(kind) };
    let request = NetrsRequest { start, group: NetrsRequest::group_bytes(7) };
    let mut ends = Ends { server: to.into(), client: client().into(), request: number.into(), tag: 6.into() };
    if let Some(cookie) = cookie {
        ends.client = midflight_wire::Address::new_zeroed();
        ends.client.ip[..8].copy_from_slice(&cookie.to_be_bytes());
    }
    [request.as_bytes(), ends.as_bytes(), b"get k"].concat()
}

fn ask(server: &mut Server, now: Nanos, number: u64) {
    server.handle(now, selector(), &request(Kind::Response, number, own(), None));
}

/// Requests that the application is asked to serve.
fn serves(server: &mut Server) -> Vec<ServeKey> {
    let event = std::iter::from_fn(|| server.poll_event());
    let key = |event| match event {
        Event::Serve { key, group: 7, asked } if asked == b"get k" => Some(key),
        Event::TooLong { .. } => None,
        other => panic!("{other:?}"),
    };
    event.filter_map(key).collect()
}

/// A transmitted answer.
#[derive(Debug, PartialEq)]
struct Sent {
    to: SocketAddr,
    kind: Kind,
    number: u64,
    /// Queue, sequence, microseconds; `None`: a refusal.
    status: Option<(u16, u16, u32)>,
    bytes: Vec<u8>,
}

fn sent(server: &mut Server) -> Vec<Sent> {
    let mut buffer = Vec::new();
    std::iter::from_fn(|| {
        let to = server.poll_transmit(0, &mut buffer)?;
        let Ok(Packet::Response(kind, response, status, ends, bytes)) = parse(&buffer) else { panic!("{buffer:02x?}") };
        let NetrsResponse { start, marker, .. } = *response;
        assert_eq!((start.rsnode.get(), start.retained.get(), marker.get()), (3, 44, 0), "it repeats RID and RV");
        assert_eq!((SocketAddr::from(ends.server), ends.tag.get()), (own(), 6));
        let status = ServerStatus::ref_from_bytes(status).ok();
        let status = status.map(|said| (said.queue.get(), said.sequence.get(), said.service_us.get()));
        Some(Sent { to, kind, number: ends.request.get(), status, bytes: bytes.to_vec() })
    })
    .collect()
}

fn refused(to: SocketAddr, kind: Kind, number: u64) -> Sent {
    Sent { to, kind, number, status: None, bytes: Vec::new() }
}

#[test]
fn n1_an_answer_has_the_kind_of_its_request_and_goes_to_the_operator_of_its_rack() {
    let mut server = server();
    for (number, kind) in [(1, Kind::Response), (2, Kind::Monitored)] {
        server.handle(MS, selector(), &request(kind, number, own(), None));
        let key = serves(&mut server)[0];
        server.answer(4 * MS, key, b"value").unwrap();
        let status = Some((0, number as u16, 3_000));
        assert_eq!(sent(&mut server), [Sent { to: operator(), kind, number, status, bytes: b"value".to_vec() }]);
        assert_eq!(server.answer(5 * MS, key, b"value"), Err(AnswerError::NotServed));
    }
    assert_eq!((server.counters().answered, server.counters().late_answers), (2, 2));
}

#[test]
fn requests_wait_in_their_order_and_the_status_says_how_many() {
    let mut server = server();
    (1..=3).for_each(|number| ask(&mut server, 0, number));
    assert_eq!(server.load(), (2, 1));
    // Without the request that takes the free slot.
    for (number, waiting) in [(1, 1), (2, 0), (3, 0)] {
        let keys = serves(&mut server);
        assert_eq!(keys.len(), 1, "one slot");
        server.answer(number * MS, keys[0], b"v").unwrap();
        let answers = sent(&mut server);
        assert_eq!((answers[0].number, answers[0].status), (number, Some((waiting, number as u16, 1_000))));
    }
    assert_eq!(server.poll_timeout(), None);
}

#[test]
fn a_request_without_room_is_refused_past_the_selector() {
    let mut server = server();
    (1..=3).for_each(|number| ask(&mut server, 0, number));
    ask(&mut server, 0, 4);
    assert_eq!(sent(&mut server), [refused(operator(), Kind::Monitored, 4)]);
    assert_eq!((server.counters().queue_full, server.load()), (1, (2, 1)));
}

#[test]
fn what_the_application_gives_up_is_refused() {
    let mut server = server();
    (1..=2).for_each(|number| ask(&mut server, 0, number));
    let first = serves(&mut server)[0];
    server.give_up(MS, first).unwrap();
    assert_eq!(sent(&mut server), [refused(operator(), Kind::Monitored, 1)]);
    assert_eq!((serves(&mut server).len(), server.counters().given_up), (1, 1));
    assert_eq!(server.give_up(MS, first), Err(AnswerError::NotServed));
}

#[test]
fn n8_what_is_not_for_it_changes_nothing_and_is_counted() {
    let mut server = server();
    let good = request(Kind::Response, 1, own(), None);
    server.handle(0, client(), &good);
    server.handle(0, selector(), &request(Kind::Response, 1, client(), None));
    server.handle(0, selector(), &good[..50]);
    let mut bare = good.clone();
    bare[7] = Kind::Request as u8;
    server.handle(0, selector(), &bare);
    let mut newer = good.clone();
    newer[6] = NETRS_VERSION + 1;
    server.handle(0, client(), &newer);
    let counted = Counters {
        foreign: 1,
        other_server: 1,
        malformed: 1,
        not_for_server: 1,
        other_version: 1,
        ..Counters::default()
    };
    assert_eq!((server.counters(), serves(&mut server)), (counted, vec![]));
    let mut buffer = Vec::new();
    assert_eq!(server.poll_transmit(0, &mut buffer), Some(client()));
    assert!(matches!(parse(&buffer), Ok(Packet::Version(said)) if said.version == NETRS_VERSION));
    server.handle(0, client(), &buffer);
    assert_eq!(server.poll_transmit(0, &mut buffer), None, "VERSION is never answered");
}

#[test]
fn the_status_is_never_one_that_nobody_believes() {
    let mut server = server_with(|config| config.service_time = ServiceTime::Mean);
    let mut service = |begin: Nanos, took: Nanos| {
        ask(&mut server, begin, 1);
        let key = serves(&mut server)[0];
        server.answer(begin + took, key, b"v").unwrap();
        sent(&mut server)[0].status.unwrap().2
    };
    assert_eq!(service(0, 0), 1, "0 means that it is not known");
    assert_eq!(service(1, 8 * MS), 1_000, "a mean");
    assert_eq!(service(2, 8 * MS), 1_875);
}

#[test]
fn the_longest_answer_is_a_datagram() {
    let mut server = server();
    ask(&mut server, 0, 1);
    let key = serves(&mut server)[0];
    let long = vec![1; ANSWERED_MAX + 1];
    assert_eq!(server.answer(0, key, &long), Err(AnswerError::TooLong(long.len())));
    server.answer(0, key, &long[1..]).unwrap();
    let mut buffer = Vec::new();
    server.poll_transmit(0, &mut buffer).unwrap();
    assert!(buffer.len() <= PACKET_MAX && parse(&buffer).is_ok());
}
