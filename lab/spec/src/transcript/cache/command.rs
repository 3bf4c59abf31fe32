//! Turns a transcript's command into a datagram.

use super::super::vocabulary::{Moment, Sending};
use super::super::words::number;
use super::changes::{self, Changes};
use super::names::Names;
use super::rules::parse_marker;
use midflight_dataplane::cache::CacheConfig;
use midflight_wire::Address;
use midflight_wire::cache::{Ends, Kind, NETRS_XOR, Netrs, NetrsRequest, NetrsResponse, ServerStatus};
use std::net::SocketAddr;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

type Now<'a> = Moment<'a, CacheConfig>;

/// What a selector writes into a request to recognise its answer.
const RETAINED: u16 = 0x5107;

pub(super) fn parse(line: &str, names: &mut Names, moment: &Now<'_>) -> Result<Sending, String> {
    let (said, changes) = line.split_once('|').unwrap_or((line, ""));
    let changes = changes::parse(changes, names)?;
    let (who, rest) = said.trim().split_once(' ').unwrap_or((said.trim(), ""));
    let from = names.anybody(who)?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let mut datagram = match words[..] {
        ["asks", group, "backup", backup] => {
            let client = cookie_place(from, &changes, moment);
            let start = Netrs { rsnode: changes.rsnode.unwrap_or(0).into(), ..Netrs::new(Kind::Request) };
            request(start, number(group)?, client, names.anybody(backup)?, names.next_request())
        }
        ["passes", group, "of", client, "rsnode", id, "backup", backup] => {
            let start = Netrs { rsnode: number::<u16>(id)?.into(), ..Netrs::new(Kind::Request) };
            let client = names.anybody(client)?.into();
            request(start, number(group)?, client, names.anybody(backup)?, names.next_request())
        }
        ["answers", request] => answer(names.asked(number(request)?)?, from, None, &changes)?,
        ["returns", request, "of", server, "marker", marker] => {
            let marker = Some(parse_marker(marker)?);
            answer(names.asked(number(request)?)?, names.anybody(server)?, marker, &changes)?
        }
        _ => {
            return Err("say: <client> asks <group> backup <server>; \
                        <operator> passes <group> of <client> rsnode <id> backup <server>; \
                        <server> answers <request>; <operator> returns <request> of <server> marker <pod>.<rack>"
                .to_owned());
        }
    };
    for &(offset, value) in &changes.bytes {
        *datagram.get_mut(offset).ok_or("the datagram has no such byte")? = value;
    }
    datagram.resize(datagram.len().saturating_add_signed(changes.resize), 0);
    Ok(Sending { from: changes.from.unwrap_or(from), datagram, counter: None, every: changes.every })
}

fn request(start: Netrs, group: u32, client: Address, backup: SocketAddr, number: u64) -> Vec<u8> {
    let request = NetrsRequest { start, group: NetrsRequest::group_bytes(group) };
    let ends = Ends { client, server: backup.into(), request: number.into(), tag: 0.into() };
    [request.as_bytes(), ends.as_bytes(), b"get k"].concat()
}

/// The cookie, in the field where the operator writes the client's address.
fn cookie_place(from: SocketAddr, changes: &Changes, moment: &Now<'_>) -> Address {
    let mut place = Address::new_zeroed();
    let cookie = changes.cookie.value(from, moment.config.cookie_ns, moment);
    place.ip[..8].copy_from_slice(&cookie.to_be_bytes());
    place
}

/// A server's answer to a request as it left the operator: by its magic field, or sent on by a selector. With a marker:
/// passed on by another operator.
fn answer(asked: &[u8], server: SocketAddr, marker: Option<u32>, changes: &Changes) -> Result<Vec<u8>, String> {
    let (asked, rest) = NetrsRequest::ref_from_prefix(asked).map_err(|_| "it was no request")?;
    let (ends, _) = Ends::ref_from_prefix(rest).map_err(|_| "it was no request")?;
    let mut start = asked.start;
    if start.kind & NETRS_XOR != 0 {
        start.kind &= !NETRS_XOR;
    } else {
        (start.kind, start.retained) = (Kind::Response as u8, RETAINED.into());
    }
    if changes.is_noted {
        start.kind = Kind::Monitored as u8;
    }
    start.rsnode = changes.rsnode.map_or(start.rsnode, Into::into);
    let status = ServerStatus { queue: 1.into(), sequence: 2.into(), service_us: 4_000.into() };
    let length = changes.status.unwrap_or(size_of::<ServerStatus>() as u16);
    let mut status = status.as_bytes().to_vec();
    status.resize(length.into(), 0);
    let response = NetrsResponse { start, marker: marker.unwrap_or(0).into(), status_length: length.into() };
    let ends = Ends { server: server.into(), ..*ends };
    Ok([response.as_bytes(), &status, ends.as_bytes(), b"value"].concat())
}
