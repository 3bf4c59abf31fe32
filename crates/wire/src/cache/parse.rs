//! Parses datagrams. Checks every length before it reads what follows.

use super::layout::*;
use super::{Kind, NETRS_MAGIC, NETRS_STATUS_MAX, NETRS_VERSION, NETRS_XOR};
use crate::PACKET_MAX;
use zerocopy::FromBytes;

/// Why a datagram is malformed, with the names of `verdict.h` and `cache_verdict.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Reject {
    /// Shorter than its parts.
    #[error("truncated")]
    Truncated,
    /// Longer than the largest datagram.
    #[error("trailing")]
    Trailing,
    /// Not a NetRS packet.
    #[error("bad_magic")]
    BadMagic,
    /// Another version of the format, with its number.
    #[error("bad_version")]
    BadVersion(u8),
    /// An undefined kind.
    #[error("unknown_operation")]
    UnknownOperation,
    /// A status that exceeds the bound.
    #[error("long_status")]
    LongStatus,
}

/// A well-formed packet, borrowed from its datagram.
#[derive(Clone, Copy, Debug)]
pub enum Packet<'a> {
    /// To an operator: the request, its ends, and the application's request.
    Request(&'a NetrsRequest, &'a Ends, &'a [u8]),
    /// To a server, with the kind of its response; the same parts.
    ForServer(Kind, &'a NetrsRequest, &'a Ends, &'a [u8]),
    /// A RESPONSE, MONITORED or DIRECT with its status, ends, and the application's response.
    Response(Kind, &'a NetrsResponse, &'a [u8], &'a Ends, &'a [u8]),
    /// The cookie is in the place of the client's address.
    Cookie(&'a Netrs, &'a Ends),
    /// The sender uses another version.
    Version(&'a Netrs),
}

/// Parses a datagram.
///
/// # Errors
/// A [`Reject`] if the datagram is malformed.
pub fn parse(datagram: &[u8]) -> Result<Packet<'_>, Reject> {
    let (start, rest) = Netrs::ref_from_prefix(datagram).map_err(|_| Reject::Truncated)?;
    if start.magic != NETRS_MAGIC {
        return Err(Reject::BadMagic);
    }
    if datagram.len() > PACKET_MAX {
        return Err(Reject::Trailing);
    }
    if start.kind == Kind::Version as u8 {
        return Ok(Packet::Version(start));
    }
    if start.version != NETRS_VERSION {
        return Err(Reject::BadVersion(start.version));
    }
    let is_for_server = start.kind & NETRS_XOR != 0;
    let kind = Kind::from_number(start.kind & !NETRS_XOR).ok_or(Reject::UnknownOperation)?;
    match kind {
        Kind::Response | Kind::Monitored | Kind::Direct if is_for_server => {
            let (request, ends, asked) = request(datagram)?;
            Ok(Packet::ForServer(kind, request, ends, asked))
        }
        _ if is_for_server => Err(Reject::UnknownOperation),
        Kind::Version => Ok(Packet::Version(start)),
        Kind::Request => request(datagram).map(|(request, ends, asked)| Packet::Request(request, ends, asked)),
        Kind::Response | Kind::Monitored | Kind::Direct => response(datagram, kind),
        // No payload follows its ends.
        Kind::Cookie => {
            Ends::ref_from_bytes(rest).map(|ends| Packet::Cookie(start, ends)).map_err(|_| Reject::Truncated)
        }
    }
}

fn request(datagram: &[u8]) -> Result<(&NetrsRequest, &Ends, &[u8]), Reject> {
    let (request, rest) = NetrsRequest::ref_from_prefix(datagram).map_err(|_| Reject::Truncated)?;
    let (ends, asked) = Ends::ref_from_prefix(rest).map_err(|_| Reject::Truncated)?;
    Ok((request, ends, asked))
}

fn response(datagram: &[u8], kind: Kind) -> Result<Packet<'_>, Reject> {
    let (response, rest) = NetrsResponse::ref_from_prefix(datagram).map_err(|_| Reject::Truncated)?;
    let length = usize::from(response.status_length.get());
    // Same order of checks as in the C core: the shortest response, then its status.
    if rest.len() < size_of::<Ends>() {
        return Err(Reject::Truncated);
    }
    if length > NETRS_STATUS_MAX {
        return Err(Reject::LongStatus);
    }
    let (status, rest) = rest.split_at_checked(length).ok_or(Reject::Truncated)?;
    let (ends, answered) = Ends::ref_from_prefix(rest).map_err(|_| Reject::Truncated)?;
    Ok(Packet::Response(kind, response, status, ends, answered))
}
