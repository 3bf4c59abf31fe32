//! What the parsers share: the beginning of a datagram, its count and its records.

use crate::mutants::planted;
use crate::{Header, MAGIC, VERSION, VERSION_OPERATION, Version};
use std::ops::RangeInclusive;
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// Why a datagram is malformed, with the names of `verdict.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Reject {
    /// Shorter than its header and records.
    #[error("truncated")]
    Truncated,
    /// Longer than its header and records.
    #[error("trailing")]
    Trailing,
    /// Not a Midflight packet.
    #[error("bad_magic")]
    BadMagic,
    /// Another version of the format, with its number.
    #[error("bad_version")]
    BadVersion(u8),
    /// A key in the header; there are none yet.
    #[error("unknown_key")]
    UnknownKey,
    /// An undefined operation.
    #[error("unknown_operation")]
    UnknownOperation,
    /// A `count` that the operation does not permit.
    #[error("bad_count")]
    BadCount,
    /// A priority outside 1 to 8.
    #[error("bad_priority")]
    BadPriority,
    /// An argument length that is neither 0 to 16 nor by reference.
    #[error("bad_argument")]
    BadArgument,
    /// A result that exceeds a packet, or a reference of the wrong size.
    #[error("bad_result")]
    BadResult,
    /// A key that is too long, or in a packet that has none.
    #[error("bad_key")]
    BadKey,
    /// An undefined status.
    #[error("bad_status")]
    BadStatus,
}

/// What a datagram begins with.
pub(crate) enum Start<'a> {
    /// The sender uses another version.
    Version(&'a Version),
    /// A packet of the caller's program.
    Packet(&'a Header),
}

/// Checks the beginning, which all programs share.
pub(crate) fn start(datagram: &[u8]) -> Result<Start<'_>, Reject> {
    let (start, behind) = Version::ref_from_prefix(datagram).map_err(|_| Reject::Truncated)?;
    if start.magic.get() != MAGIC {
        return Err(Reject::BadMagic);
    }
    if start.operation == VERSION_OPERATION {
        return if behind.is_empty() { Ok(Start::Version(start)) } else { Err(Reject::Trailing) };
    }
    if start.version != VERSION {
        return Err(Reject::BadVersion(start.version));
    }
    let (header, _) = Header::ref_from_prefix(datagram).map_err(|_| Reject::Truncated)?;
    if header.key != 0 && !(planted(50) && header.key >= 0x80) {
        return Err(Reject::UnknownKey);
    }
    Ok(Start::Packet(header))
}

/// For a `count` with another meaning.
pub(crate) fn counting<'a, H, P>(
    datagram: &'a [u8],
    header: &Header,
    bound: RangeInclusive<usize>,
    read_as: fn(&'a H) -> P,
) -> Result<P, Reject>
where
    H: FromBytes + KnownLayout + Immutable + Unaligned,
{
    if !bound.contains(&usize::from(header.count)) {
        return Err(Reject::BadCount);
    }
    let (fixed, rest) = H::ref_from_prefix(datagram).map_err(|_| Reject::Truncated)?;
    if rest.is_empty() { Ok(read_as(fixed)) } else { Err(Reject::Trailing) }
}

pub(crate) fn with_records<'a, H, R, P>(
    datagram: &'a [u8],
    header: &Header,
    bound: RangeInclusive<usize>,
    read_as: fn(&'a H, &'a [R]) -> P,
) -> Result<P, Reject>
where
    H: FromBytes + KnownLayout + Immutable + Unaligned,
    R: FromBytes + KnownLayout + Immutable + Unaligned,
{
    let (fixed, records, rest) = beginning(datagram, header, bound)?;
    if rest.is_empty() || (planted(51) && rest.len() < 4) { Ok(read_as(fixed, records)) } else { Err(Reject::Trailing) }
}

/// Splits off the fixed part and its `count` records.
pub(crate) fn beginning<'a, H, R>(
    datagram: &'a [u8],
    header: &Header,
    bound: RangeInclusive<usize>,
) -> Result<(&'a H, &'a [R], &'a [u8]), Reject>
where
    H: FromBytes + KnownLayout + Immutable + Unaligned,
    R: FromBytes + KnownLayout + Immutable + Unaligned,
{
    let count = usize::from(header.count);
    if !bound.contains(&count) {
        return Err(Reject::BadCount);
    }
    let (fixed, rest) = H::ref_from_prefix(datagram).map_err(|_| Reject::Truncated)?;
    let (records, rest) = <[R]>::ref_from_prefix_with_elems(rest, count).map_err(|_| Reject::Truncated)?;
    Ok((fixed, records, rest))
}
