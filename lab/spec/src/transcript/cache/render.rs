//! Prints what an operator sends and counts.

use super::super::vocabulary::Moment;
use super::names::Names;
use midflight_dataplane::Cookies;
use midflight_dataplane::cache::{CacheConfig, Stats};
use midflight_wire::cache::{Ends, ILLEGAL_RSNODE, Kind, NO_RSNODE, Netrs, NetrsRequest, NetrsResponse, Packet, parse};
use std::net::SocketAddr;

pub(super) fn kind(sent: &[u8]) -> &'static str {
    match parse(sent) {
        Ok(Packet::Request(..)) => "REQUEST",
        Ok(Packet::ForServer(Kind::Response, ..)) => "f(RESPONSE)",
        Ok(Packet::ForServer(Kind::Monitored, ..)) => "f(MONITORED)",
        Ok(Packet::ForServer(..)) => "f(DIRECT)",
        Ok(Packet::Response(Kind::Response, ..)) => "RESPONSE",
        Ok(Packet::Response(Kind::Monitored, ..)) => "MONITORED",
        Ok(Packet::Response(..)) => "DIRECT",
        Ok(Packet::Cookie(..)) => "COOKIE",
        Ok(Packet::Version(_)) => "VERSION",
        Err(_) => "NOTHING THAT CAN BE READ",
    }
}

pub(super) fn datagram(to: SocketAddr, sent: &[u8], names: &Names, moment: &Moment<'_, CacheConfig>) -> String {
    let head = format!("-> {} {}", names.at(to), kind(sent));
    let (number, clauses) = match parse(sent) {
        Ok(Packet::Request(request, ends, _) | Packet::ForServer(_, request, ends, _)) => {
            (ends.request, request_clauses(request, ends, names))
        }
        Ok(Packet::Response(_, response, status, ends, _)) => {
            (ends.request, response_clauses(response, status, ends, names))
        }
        Ok(Packet::Cookie(_, ends)) => (ends.request, cookie_clauses(to, ends, moment)),
        _ => return head,
    };
    let head = format!("{head} {number}");
    if clauses.is_empty() { head } else { format!("{head}: {}", clauses.join(", ")) }
}

fn rsnode(start: &Netrs) -> String {
    match start.rsnode.get() {
        NO_RSNODE => "not labelled".to_owned(),
        ILLEGAL_RSNODE => "degraded".to_owned(),
        id => format!("rsnode {id}"),
    }
}

fn request_clauses(request: &NetrsRequest, ends: &Ends, names: &Names) -> Vec<String> {
    vec![
        rsnode(&request.start),
        format!("group {}", request.group()),
        format!("of {}", names.at(ends.client.into())),
        format!("backup {}", names.at(ends.server.into())),
    ]
}

fn response_clauses(response: &NetrsResponse, status: &[u8], ends: &Ends, names: &Names) -> Vec<String> {
    let marker = response.marker.get();
    vec![
        rsnode(&response.start),
        format!("marker {}.{}", marker >> 16, marker & 0xffff),
        format!("{} bytes of status", status.len()),
        format!("of {}", names.at(ends.server.into())),
    ]
}

/// Empty if the cookie is right.
fn cookie_clauses(to: SocketAddr, ends: &Ends, moment: &Moment<'_, CacheConfig>) -> Vec<String> {
    let cookie = ends.client.ip.first_chunk().map_or(0, |cookie| u64::from_be_bytes(*cookie));
    let right = Cookies::new(moment.secret, moment.config.cookie_ns).give(moment.now_ns, 0, to);
    (cookie != right).then(|| format!("COOKIE {cookie:x}")).into_iter().collect()
}

pub(super) fn stats(stats: &Stats) -> Vec<String> {
    let all = [
        ("labelled", stats.labelled),
        ("degraded", stats.degraded),
        ("without RSNode", stats.without_rsnode),
        ("selected", stats.selected),
        ("copied", stats.copied),
        ("not copied", stats.not_copied),
        ("delivered", stats.delivered),
    ];
    let some: Vec<String> =
        all.iter().filter(|(_, count)| *count != 0).map(|(name, count)| format!("{name} {count}")).collect();
    vec![if some.is_empty() { "nothing".to_owned() } else { some.join(", ") }]
}
