//! Packets for benchmarks of a rack's operator, with clients and a server in the rack, and another operator.

use anyhow::{Context, Result};
use midflight_dataplane::Cookies;
use midflight_dataplane::cache::{CacheConfig, Rule, RuleOrder, Selection};
use midflight_wire::Address;
use midflight_wire::cache::{Ends, Kind, Netrs, NetrsRequest, NetrsResponse, Packet, ServerStatus, parse};
use std::net::SocketAddr;
use zerocopy::{FromZeros, IntoBytes};

pub(super) const SECRET: u128 = 0x5eed;
/// Packets per timed block.
pub(super) const BLOCK: u32 = 4_096;
pub(super) const NOW: u64 = 20_000_000_000;
/// Hosts of a traffic group, each with one port.
pub(super) const CLIENTS: u32 = 64;
/// Payloads of a request and its response.
const ASKED: [u8; 40] = [7; 40];
const ANSWERED: [u8; 64] = [8; 64];
/// Ids of RSNodes: this operator, and another.
const HERE: u16 = 1;
const ELSEWHERE: u16 = 2;
/// Servers to select from, three per replica group.
pub(super) const SERVERS: u8 = 100;
const REPLICA_GROUPS: u32 = 1_024;
/// Algorithms of an operator that selects in its core, with the names of their results.
pub(super) const SELECTIONS: [(Selection, &str); 4] = [
    (Selection::Random, "random"),
    (Selection::LeastOutstanding, "least_outstanding"),
    (Selection::PowerOfTwo, "power_of_two"),
    (Selection::C3, "c3"),
];

pub(super) type From = (SocketAddr, Vec<u8>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// A request of this rack goes to its RSNode, another operator.
    Label,
    /// A request of a group without an RSNode goes to its backup.
    Degrade,
    /// A request of another operator goes to the selector process.
    ToSelector,
    /// A response of this rack's server is marked and goes to its RSNode.
    Mark,
    /// At the RSNode: the selector gets a copy of a response, the client the response.
    Copy,
    /// A response of another operator goes to its client.
    Deliver,
}

impl Case {
    /// All cases, with the names of their results.
    pub(super) const ALL: [(Self, &str); 6] = [
        (Self::Label, "label_ns"),
        (Self::Degrade, "degrade_ns"),
        (Self::ToSelector, "to_selector_ns"),
        (Self::Mark, "mark_ns"),
        (Self::Copy, "copy_ns"),
        (Self::Deliver, "deliver_ns"),
    ];

    pub(super) fn packets(self) -> Vec<From> {
        (0..BLOCK).map(|i| self.packet(i)).collect()
    }

    fn packet(self, i: u32) -> From {
        match self {
            Self::Label => (client(0, i), request(0, i)),
            Self::Degrade => (client(2, i), request(2, i)),
            Self::ToSelector => (other_operator(), labelled(i)),
            Self::Mark => (server(), answer(Kind::Response, ELSEWHERE, i)),
            Self::Copy => (server(), answer(Kind::Response, HERE, i)),
            Self::Deliver => (other_operator(), answer(Kind::Monitored, ELSEWHERE, i)),
        }
    }
}

pub(super) fn config() -> CacheConfig {
    CacheConfig { cookie_ns: NOW / 2, ..CacheConfig::default() }
}

/// Selects in its core, as an RSNode of the other operator's rack.
pub(super) fn choosing(selection: Selection) -> CacheConfig {
    CacheConfig { selection, ..config() }
}

/// The usual rules, all servers, and replica groups of three.
pub(super) fn choosing_orders() -> Vec<RuleOrder> {
    let servers = (0..SERVERS).map(|number| Rule::Server { address: chosen(number), rack: 0 });
    let groups = (0..REPLICA_GROUPS).map(|group| {
        let at = |i: u32| chosen(((group * 37 + i * 29) % u32::from(SERVERS)) as u8);
        RuleOrder::replica_group(group, &[at(0), at(1), at(2)])
    });
    rules().into_iter().chain(servers).map(RuleOrder::from).chain(groups).collect()
}

pub(super) fn chosen(number: u8) -> SocketAddr {
    ([10, 1, 1, number], 7800).into()
}

/// Requests of this rack's clients, for a server that this operator selects.
pub(super) fn to_choose() -> Vec<From> {
    (0..BLOCK).map(|i| (client(1, i), request(1, i))).collect()
}

/// The response of the server to which a request was sent.
pub(super) fn answer_to(sent: &[u8], i: u32) -> Result<From> {
    let Ok(Packet::ForServer(Kind::Response, asked, ends, _)) = parse(sent) else {
        anyhow::bail!("it was not sent to a server")
    };
    let start = Netrs { kind: Kind::Response as u8, ..asked.start };
    let service_us = 1_000 + i % 4_096;
    let status =
        ServerStatus { queue: ((i % 8) as u16).into(), sequence: (i as u16).into(), service_us: service_us.into() };
    let length = u16::try_from(size_of::<ServerStatus>()).context("a short status")?;
    let response = NetrsResponse { start, marker: 0.into(), status_length: length.into() };
    Ok((ends.server.into(), [response.as_bytes(), status.as_bytes(), ends.as_bytes(), &ANSWERED].concat()))
}

/// Rules of rack 0's operator. The RSNodes of its groups 0 to 2: another operator, this one, none.
pub(super) fn rules() -> Vec<Rule> {
    let hosts = (0..3).flat_map(|group| (0..CLIENTS).map(move |i| (group, client(group, i))));
    let hosts = hosts.map(|(group, address)| Rule::Host { ip: address.ip(), rack: 0, group: Some(u16::from(group)) });
    [
        Rule::Own { rack: Some(0), selector: Some(([10, 9, 0, 2], 7901).into()) },
        Rule::Rack { rack: 0, operator: Some(([10, 9, 0, 1], 7900).into()), marker: 1 << 16 },
        Rule::Rack { rack: 1, operator: Some(other_operator()), marker: 2 << 16 },
        Rule::Operator(other_operator()),
        Rule::Server { address: server(), rack: 0 },
        Rule::Serve(HERE),
        Rule::RsNode { id: ELSEWHERE, operator: Some(other_operator()) },
        Rule::Group { group: 0, rsnode: Some(ELSEWHERE) },
        Rule::Group { group: 1, rsnode: Some(HERE) },
        Rule::Group { group: 2, rsnode: None },
    ]
    .into_iter()
    .chain(hosts)
    .collect()
}

pub(super) fn client(group: u8, i: u32) -> SocketAddr {
    ([10, 0, group, 1 + (i % CLIENTS) as u8], 7000).into()
}

pub(super) fn server() -> SocketAddr {
    ([10, 1, 0, 1], 7800).into()
}

pub(super) fn other_operator() -> SocketAddr {
    ([10, 9, 0, 3], 7900).into()
}

/// A client's request, with its cookie.
pub(super) fn request(group: u8, i: u32) -> Vec<u8> {
    proven(client(group, i), i)
}

/// A request from this address, with a cookie.
pub(super) fn proven(from: SocketAddr, i: u32) -> Vec<u8> {
    let mut place = Address::new_zeroed();
    let cookie = Cookies::new(SECRET, config().cookie_ns).give(NOW, 0, from);
    place.ip[..8].copy_from_slice(&cookie.to_be_bytes());
    of(Netrs::new(Kind::Request), place, i)
}

/// A request of another rack's client, labelled by its operator.
fn labelled(i: u32) -> Vec<u8> {
    let start = Netrs { rsnode: HERE.into(), ..Netrs::new(Kind::Request) };
    of(start, client(1, i).into(), i)
}

fn of(start: Netrs, client: Address, i: u32) -> Vec<u8> {
    let request = NetrsRequest { start, group: NetrsRequest::group_bytes(i % REPLICA_GROUPS) };
    let ends = Ends { client, server: server().into(), request: u64::from(i).into(), tag: 0.into() };
    [request.as_bytes(), ends.as_bytes(), &ASKED].concat()
}

fn answer(kind: Kind, rsnode: u16, i: u32) -> Vec<u8> {
    let start = Netrs { rsnode: rsnode.into(), ..Netrs::new(kind) };
    let ends =
        Ends { client: client(0, i).into(), server: server().into(), request: u64::from(i).into(), tag: 0.into() };
    let status = ServerStatus { queue: 1.into(), sequence: (i as u16).into(), service_us: 4_000.into() };
    let length = size_of::<ServerStatus>() as u16;
    let response = NetrsResponse { start, marker: (2 << 16).into(), status_length: length.into() };
    [response.as_bytes(), status.as_bytes(), ends.as_bytes(), &ANSWERED].concat()
}
