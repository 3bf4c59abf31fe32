//! Reads a datagram. Nothing is trusted: every length is checked before anything behind it is looked at.

use super::layout::*;
use super::{Kind, NETRS_MAGIC, NETRS_STATUS_MAX, NETRS_VERSION, NETRS_XOR};
use crate::PACKET_MAX;
use zerocopy::FromBytes;

/// Why a datagram is no packet. The names are those of `verdict.h` and `replicas_verdict.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reject {
    /// Shorter than its parts.
    Truncated,
    /// Longer than a datagram may be.
    Trailing,
    /// Not a packet of NetRS.
    BadMagic,
    /// A version of the format that we do not speak: this one.
    BadVersion(u8),
    /// A kind that does not exist.
    UnknownOperation,
    /// A longer status than a server may send.
    LongStatus,
}

impl std::fmt::Display for Reject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Truncated => "truncated",
            Self::Trailing => "trailing",
            Self::BadMagic => "bad_magic",
            Self::BadVersion(_) => "bad_version",
            Self::UnknownOperation => "unknown_operation",
            Self::LongStatus => "long_status",
        })
    }
}

impl std::error::Error for Reject {}

/// A well-formed packet, borrowed from its datagram.
#[derive(Clone, Copy, Debug)]
pub enum Packet<'a> {
    /// To an operator: with its ends, and what the application asks.
    Request(&'a NetrsRequest, &'a Ends, &'a [u8]),
    /// To a server, whose answer is of this kind: the same.
    ForServer(Kind, &'a NetrsRequest, &'a Ends, &'a [u8]),
    /// Of this kind (RESPONSE, MONITORED or DIRECT), with its status, ends, and what the application answers.
    Response(Kind, &'a NetrsResponse, &'a [u8], &'a Ends, &'a [u8]),
    /// The cookie stands where the client's address will.
    Cookie(&'a Netrs, &'a Ends),
    /// The sender speaks another version than this one.
    Version(&'a Netrs),
}

/// Reads a datagram.
///
/// # Errors
/// A [`Reject`] where it is malformed in any way.
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
        // Nothing stands behind its ends.
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
    // A switch finds out in this order too: the shortest answer first, then its status.
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
