//! Parses requests and responses from a stream or a datagram.

use super::*;
use zerocopy::FromBytes;

/// Why bytes are malformed; the reader of a stream closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreReject {
    /// No magic number.
    BadMagic,
    /// Another version of the format, with its number.
    BadVersion(u8),
    /// An undefined operation or status.
    Unknown,
    /// A value of more than [`VALUE_MAX`] bytes, or a reason of more than [`REASON_MAX`].
    TooLong,
    /// An invalid key.
    BadKey,
    /// Unexpected content, or a reserved byte that is not 0.
    BadValue,
}

impl std::fmt::Display for StoreReject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BadMagic => f.write_str("bad_magic"),
            Self::BadVersion(version) => write!(f, "bad_version {version}"),
            Self::Unknown => f.write_str("unknown"),
            Self::TooLong => f.write_str("too_long"),
            Self::BadKey => f.write_str("bad_key"),
            Self::BadValue => f.write_str("bad_value"),
        }
    }
}

impl std::error::Error for StoreReject {}

/// The first request and its length in bytes; `None` if it is incomplete.
///
/// # Errors
/// A [`StoreReject`] as soon as the bytes cannot become a request.
pub fn parse_request(bytes: &[u8]) -> Result<Option<(StoreRequest<'_>, usize)>, StoreReject> {
    let Ok((head, rest)) = StoreAsk::ref_from_prefix(bytes) else { return Ok(None) };
    begins(head.magic.get(), head.version)?;
    let operation = StoreOperation::from_number(head.operation).ok_or(StoreReject::Unknown)?;
    let (key_length, length) = (usize::from(head.key_length), head.length.get() as usize);
    if length > VALUE_MAX {
        return Err(StoreReject::TooLong);
    }
    if key_length == 0 || key_length > KEY_MAX {
        return Err(StoreReject::BadKey);
    }
    let has_more = length != 0 || head.flags.get() != 0 || head.expires_s.get() != 0;
    if head.reserved != 0 || (has_more && operation != StoreOperation::Set) {
        return Err(StoreReject::BadValue);
    }
    let Some((key, rest)) = rest.split_at_checked(key_length) else { return Ok(None) };
    if !is_key(key) {
        return Err(StoreReject::BadKey);
    }
    let Some(value) = rest.get(..length) else { return Ok(None) };
    let request = match operation {
        StoreOperation::Get => StoreRequest::Get { key },
        StoreOperation::Set => {
            StoreRequest::Set { key, value, flags: head.flags.get(), expires_s: head.expires_s.get() }
        }
        StoreOperation::Delete => StoreRequest::Delete { key },
    };
    Ok(Some((request, size_of::<StoreAsk>() + key_length + length)))
}

/// The first response and its length in bytes; `None` if it is incomplete.
///
/// # Errors
/// A [`StoreReject`] as soon as the bytes cannot become a response.
pub fn parse_answer(bytes: &[u8]) -> Result<Option<(StoreAnswer<'_>, usize)>, StoreReject> {
    let Ok((head, rest)) = StoreTell::ref_from_prefix(bytes) else { return Ok(None) };
    // This response announces the agent's version, so any version is valid.
    if head.magic == STORE_MAGIC && head.status == StoreStatus::OtherVersion as u8 {
        return Ok(Some((StoreAnswer::OtherVersion { version: head.version }, size_of::<StoreTell>())));
    }
    begins(head.magic.get(), head.version)?;
    let status = StoreStatus::from_number(head.status).ok_or(StoreReject::Unknown)?;
    let (flags, length) = (head.flags.get(), head.length.get() as usize);
    let most = match status {
        StoreStatus::Value | StoreStatus::Long => VALUE_MAX,
        StoreStatus::Refused => REASON_MAX,
        StoreStatus::Missing | StoreStatus::Done | StoreStatus::OtherVersion => 0,
    };
    if length > most {
        return Err(if most == 0 { StoreReject::BadValue } else { StoreReject::TooLong });
    }
    if head.reserved != 0 || (flags != 0 && status != StoreStatus::Value) {
        return Err(StoreReject::BadValue);
    }
    let follows = if status == StoreStatus::Long { 0 } else { length };
    let Some(said) = rest.get(..follows) else { return Ok(None) };
    let answer = match status {
        StoreStatus::Value => StoreAnswer::Value { value: said, flags },
        StoreStatus::Long => StoreAnswer::Long { length: head.length.get() },
        StoreStatus::Missing => StoreAnswer::Missing,
        StoreStatus::Done => StoreAnswer::Done,
        StoreStatus::Refused => StoreAnswer::Refused { why: str::from_utf8(said).map_err(|_| StoreReject::BadValue)? },
        StoreStatus::OtherVersion => StoreAnswer::OtherVersion { version: head.version },
    };
    Ok(Some((answer, size_of::<StoreTell>() + follows)))
}

fn begins(magic: u32, version: u8) -> Result<(), StoreReject> {
    if magic != STORE_MAGIC {
        return Err(StoreReject::BadMagic);
    }
    if version != STORE_VERSION {
        return Err(StoreReject::BadVersion(version));
    }
    Ok(())
}
