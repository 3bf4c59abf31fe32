//! Checks a datagram before any table look-up, and extracts the fields for the tables.

use super::{of_address, of_wire};
use midflight_dataplane::cache::{Stats, Verdict};
use midflight_rmt::cache::{Came, Kind};
use midflight_wire::PACKET_MAX;
use midflight_wire::cache::{
    Ends, Kind as WireKind, NETRS_MAGIC, NETRS_VERSION, NETRS_XOR, Netrs, Packet, Reject, parse,
};
use std::net::SocketAddr;
use zerocopy::FromBytes;

/// A datagram for the tables.
pub(super) struct Parsed {
    pub(super) came: Came,
    /// The bytes of a request's cookie.
    pub(super) cookie: u64,
    pub(super) request: u64,
}

/// Reads a datagram, and counts it under its kind. BAD_VERSION must be answered by VERSION.
pub(super) fn read(from: SocketAddr, datagram: &[u8], stats: &mut Stats) -> Result<Parsed, Verdict> {
    let kind = kind(datagram)?;
    stats.packets[kind as usize] += 1;
    if matches!(kind, WireKind::Version | WireKind::Cookie | WireKind::Direct) {
        return Err(Verdict::NotForSwitch);
    }
    match parse(datagram) {
        Ok(Packet::Request(request, ends, _)) => Ok(parsed(from, Kind::Request, &request.start, 0, ends)),
        Ok(Packet::Response(kind, response, _, ends, _)) => {
            let kind = if kind == WireKind::Response { Kind::Response } else { Kind::Monitored };
            Ok(parsed(from, kind, &response.start, response.marker.get(), ends))
        }
        Err(Reject::Truncated) => Err(Verdict::Truncated),
        Err(Reject::LongStatus) => Err(Verdict::LongStatus),
        _ => Err(Verdict::NotForSwitch),
    }
}

fn parsed(from: SocketAddr, kind: Kind, start: &Netrs, marker: u32, ends: &Ends) -> Parsed {
    let came = Came {
        kind,
        rsnode: start.rsnode.get(),
        marker,
        source: of_address(from),
        client: of_wire(&ends.client),
        server: of_wire(&ends.server),
        is_known: false,
    };
    let cookie = ends.client.ip.first_chunk().map_or(0, |cookie| u64::from_be_bytes(*cookie));
    Parsed { came, cookie, request: ends.request.get() }
}

/// The kind of a datagram whose start is right, and that is not on its way to a server.
fn kind(datagram: &[u8]) -> Result<WireKind, Verdict> {
    let (start, _) = Netrs::ref_from_prefix(datagram).map_err(|_| Verdict::Truncated)?;
    if start.magic.get() != NETRS_MAGIC {
        return Err(Verdict::BadMagic);
    }
    if datagram.len() > PACKET_MAX {
        return Err(Verdict::Trailing);
    }
    // Whatever its version: two operators that answered each other's VERSION would never stop.
    if start.kind == WireKind::Version as u8 {
        return Err(Verdict::NotForSwitch);
    }
    if start.version != NETRS_VERSION {
        return Err(Verdict::BadVersion);
    }
    let kind = WireKind::from_number(start.kind & !NETRS_XOR).ok_or(Verdict::UnknownOperation)?;
    if start.kind & NETRS_XOR != 0 { Err(Verdict::NotForSwitch) } else { Ok(kind) }
}
