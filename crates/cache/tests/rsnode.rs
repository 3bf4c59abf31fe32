//! An RSNode and its operator: requests, selections, and what answers teach.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use midflight_cache::rsnode::{RsNode, RsNodeConfig, RsNodeCounters};
use midflight_cache::select::{Algorithm, Candidates, Choice, Counts, Selector, Server, Status};
use midflight_endpoint::{Endpoint, MS, Nanos, SECOND};
use midflight_wire::cache::{Ends, Kind, NETRS_XOR, Netrs, NetrsRequest, NetrsResponse, Packet, ServerStatus, parse};
use std::net::SocketAddr;
use zerocopy::IntoBytes;

const GROUP: u32 = 7;

fn operator() -> SocketAddr {
    ([10, 9, 0, 1], 7900).into()
}

fn client() -> SocketAddr {
    ([10, 0, 1, 1], 7000).into()
}

fn server(number: u8) -> SocketAddr {
    ([10, 0, 2, number], 7800).into()
}

fn servers() -> Vec<SocketAddr> {
    (0..3).map(server).collect()
}

fn with(config: RsNodeConfig, selector: Box<dyn Selector + Send>) -> RsNode {
    let mut rsnode = RsNode::new(config, &servers(), 1, |count| {
        assert_eq!(count, 3);
        selector
    })
    .unwrap();
    rsnode.set_group(GROUP, &servers()).unwrap();
    rsnode
}

fn rsnode() -> RsNode {
    with(RsNodeConfig::new(operator()), Algorithm::LeastOutstanding.selector(3, 1))
}

fn request(number: u64, group: u32, backup: SocketAddr) -> Vec<u8> {
    let start = Netrs { rsnode: 300.into(), ..Netrs::new(Kind::Request) };
    let request = NetrsRequest { start, group: NetrsRequest::group_bytes(group) };
    let ends = Ends { client: client().into(), server: backup.into(), request: number.into(), tag: 0.into() };
    [request.as_bytes(), ends.as_bytes(), b"get k"].concat()
}

/// Transmitted datagrams: address, and bytes.
fn sent(rsnode: &mut RsNode, now: Nanos) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut buffer = Vec::new();
    std::iter::from_fn(|| rsnode.poll_transmit(now, &mut buffer).map(|to| (to, buffer.clone()))).collect()
}

fn ask(rsnode: &mut RsNode, now: Nanos, number: u64) -> (SocketAddr, Vec<u8>) {
    rsnode.handle(now, operator(), &request(number, GROUP, server(0)));
    let mut all = sent(rsnode, now);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// The operator's copy of the answer.
fn answer(asked: &[u8], status: &[u8]) -> Vec<u8> {
    let Ok(Packet::ForServer(Kind::Response, request, ends, _)) = parse(asked) else {
        panic!("no request to a server")
    };
    let start = Netrs { kind: Kind::Monitored as u8, ..request.start };
    let length = status.len() as u16;
    let response = NetrsResponse { start, marker: 1.into(), status_length: length.into() };
    [response.as_bytes(), status, ends.as_bytes(), b"value"].concat()
}

fn usual_status() -> Vec<u8> {
    ServerStatus { queue: 1.into(), sequence: 1.into(), service_us: 4_000.into() }.as_bytes().to_vec()
}

#[test]
fn n1_a_request_goes_to_the_server_that_was_chosen_and_its_answer_is_noted_once() {
    let mut rsnode = rsnode();
    let (to, bytes) = ask(&mut rsnode, MS, 1);
    let Ok(Packet::ForServer(kind, request, ends, asked)) = parse(&bytes) else { panic!("{bytes:02x?}") };
    assert_eq!((kind, asked), (Kind::Response, &b"get k"[..]));
    assert_eq!(request.start.kind, Kind::Response as u8 | NETRS_XOR, "f(RESPONSE)");
    assert_eq!((request.start.rsnode.get(), request.group()), (300, GROUP), "the label and the group stay");
    assert_eq!((SocketAddr::from(ends.server), SocketAddr::from(ends.client)), (to, client()));
    assert_eq!(rsnode.under_way(), 1);
    let answer = answer(&bytes, &usual_status());
    rsnode.handle(5 * MS, operator(), &answer);
    rsnode.handle(5 * MS, operator(), &answer);
    let counted = RsNodeCounters { selected: 1, answered: 1, unmatched: 1, ..RsNodeCounters::default() };
    assert_eq!((rsnode.counters(), rsnode.under_way()), (counted, 0));
    assert!(sent(&mut rsnode, 5 * MS).is_empty(), "a copy of an answer is dropped");
}

#[test]
fn n8_datagrams_of_others_and_packets_that_are_no_requests_or_answers_change_nothing() {
    let mut rsnode = rsnode();
    rsnode.handle(0, client(), &request(1, GROUP, server(0)));
    for bytes in [&b""[..], b"MFNR", Netrs::new(Kind::Version).as_bytes(), &[0; 200]] {
        rsnode.handle(0, operator(), bytes);
    }
    assert_eq!(rsnode.counters(), RsNodeCounters { foreign: 5, ..RsNodeCounters::default() });
    assert!(sent(&mut rsnode, 0).is_empty());
}

/// Blocks the first server until this time.
struct Gate(Nanos);

impl Selector for Gate {
    fn choose(&mut self, now: Nanos, candidates: &Candidates, _random: u64) -> Choice {
        let server = candidates.servers()[0];
        if server == Server(0) && now < self.0 { Choice::Wait(self.0) } else { Choice::Send(server) }
    }
    fn answered(&mut self, _now: Nanos, _server: Server, _took: Nanos, _status: Option<Status>) {}
    fn expired(&mut self, _now: Nanos, _server: Server) {}
    fn outstanding(&self, _server: Server) -> u32 {
        0
    }
    fn counts(&self) -> Counts {
        Counts::default()
    }
}

/// C3's rate control: a group's requests are sent in order, and overflow goes to their backups.
#[test]
fn requests_that_wait_are_sent_in_order_and_are_bounded() {
    let config = RsNodeConfig { waiting: 2, ..RsNodeConfig::new(operator()) };
    let mut rsnode = with(config, Box::new(Gate(10 * MS)));
    for number in 1..=3 {
        rsnode.handle(0, operator(), &request(number, GROUP, server(2)));
    }
    let degraded = sent(&mut rsnode, 0);
    assert_eq!(degraded.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [server(2)]);
    assert_eq!((rsnode.counters().waiting_full, rsnode.poll_timeout()), (1, Some(10 * MS)));
    rsnode.handle_timeout(10 * MS);
    let numbers = sent(&mut rsnode, 10 * MS).into_iter().map(|(to, bytes)| match parse(&bytes) {
        Ok(Packet::ForServer(Kind::Response, _, ends, _)) => (to, ends.request.get()),
        other => panic!("{other:?}"),
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [(server(0), 1), (server(0), 2)]);
}

/// A slow server's requests must not block those that another server could take.
#[test]
fn a_group_that_waits_does_not_hold_up_others_and_nobody_waits_for_long() {
    let mut rsnode = with(RsNodeConfig::new(operator()), Box::new(Gate(SECOND)));
    rsnode.set_group(8, &[server(1), server(2)]).unwrap();
    rsnode.handle(0, operator(), &request(1, GROUP, server(2)));
    rsnode.handle(MS, operator(), &request(2, 8, server(2)));
    assert_eq!(sent(&mut rsnode, MS).iter().map(|(to, _)| *to).collect::<Vec<_>>(), [server(1)]);
    assert_eq!(rsnode.poll_timeout(), Some(20 * MS));
    rsnode.handle_timeout(20 * MS);
    let all = sent(&mut rsnode, 20 * MS);
    assert_eq!(all.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [server(2)], "its backup");
    assert_eq!(rsnode.counters().held_too_long, 1);
}
