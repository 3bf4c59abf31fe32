//! Parses requests and responses from a stream or a datagram.

use super::*;
use zerocopy::FromBytes;

/// Why bytes are malformed; the reader of a stream closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum BackendReject {
    /// No magic number.
    #[error("bad_magic")]
    BadMagic,
    /// Another version of the format, with its number.
    #[error("bad_version {0}")]
    BadVersion(u8),
    /// An undefined operation or status.
    #[error("unknown")]
    Unknown,
    /// A value of more than [`VALUE_MAX`] bytes, or a reason of more than [`REASON_MAX`].
    #[error("too_long")]
    TooLong,
    /// An invalid key.
    #[error("bad_key")]
    BadKey,
    /// Unexpected content, or a reserved byte that is not 0.
    #[error("bad_value")]
    BadValue,
}

/// The first request and its length in bytes; `None` if it is incomplete.
///
/// # Errors
/// A [`BackendReject`] as soon as the bytes cannot become a request.
pub fn parse_request(bytes: &[u8]) -> Result<Option<(BackendRequest<'_>, usize)>, BackendReject> {
    let Ok((head, rest)) = BackendAsk::ref_from_prefix(bytes) else { return Ok(None) };
    begins(head.magic.get(), head.version)?;
    let operation = BackendOperation::from_number(head.operation).ok_or(BackendReject::Unknown)?;
    let (key_length, length) = (usize::from(head.key_length), head.length.get() as usize);
    if length > VALUE_MAX {
        return Err(BackendReject::TooLong);
    }
    if key_length == 0 || key_length > KEY_MAX {
        return Err(BackendReject::BadKey);
    }
    let has_more = length != 0 || head.flags.get() != 0 || head.expires_s.get() != 0;
    if head.reserved != 0 || (has_more && operation != BackendOperation::Set) {
        return Err(BackendReject::BadValue);
    }
    let Some((key, rest)) = rest.split_at_checked(key_length) else { return Ok(None) };
    if !is_key(key) {
        return Err(BackendReject::BadKey);
    }
    let Some(value) = rest.get(..length) else { return Ok(None) };
    let request = match operation {
        BackendOperation::Get => BackendRequest::Get { key },
        BackendOperation::Set => {
            BackendRequest::Set { key, value, flags: head.flags.get(), expires_s: head.expires_s.get() }
        }
        BackendOperation::Delete => BackendRequest::Delete { key },
    };
    Ok(Some((request, size_of::<BackendAsk>() + key_length + length)))
}

/// The first response and its length in bytes; `None` if it is incomplete.
///
/// # Errors
/// A [`BackendReject`] as soon as the bytes cannot become a response.
pub fn parse_answer(bytes: &[u8]) -> Result<Option<(BackendAnswer<'_>, usize)>, BackendReject> {
    let Ok((head, rest)) = BackendTell::ref_from_prefix(bytes) else { return Ok(None) };
    // This response announces the agent's version, so any version is valid.
    if head.magic == BACKEND_MAGIC && head.status == BackendStatus::OtherVersion as u8 {
        return Ok(Some((BackendAnswer::OtherVersion { version: head.version }, size_of::<BackendTell>())));
    }
    begins(head.magic.get(), head.version)?;
    let status = BackendStatus::from_number(head.status).ok_or(BackendReject::Unknown)?;
    let (flags, length) = (head.flags.get(), head.length.get() as usize);
    let most = match status {
        BackendStatus::Value | BackendStatus::Long => VALUE_MAX,
        BackendStatus::Refused => REASON_MAX,
        BackendStatus::Missing | BackendStatus::Done | BackendStatus::OtherVersion => 0,
    };
    if length > most {
        return Err(if most == 0 { BackendReject::BadValue } else { BackendReject::TooLong });
    }
    if head.reserved != 0 || (flags != 0 && status != BackendStatus::Value) {
        return Err(BackendReject::BadValue);
    }
    let follows = if status == BackendStatus::Long { 0 } else { length };
    let Some(said) = rest.get(..follows) else { return Ok(None) };
    let answer = match status {
        BackendStatus::Value => BackendAnswer::Value { value: said, flags },
        BackendStatus::Long => BackendAnswer::Long { length: head.length.get() },
        BackendStatus::Missing => BackendAnswer::Missing,
        BackendStatus::Done => BackendAnswer::Done,
        BackendStatus::Refused => {
            BackendAnswer::Refused { why: str::from_utf8(said).map_err(|_| BackendReject::BadValue)? }
        }
        BackendStatus::OtherVersion => BackendAnswer::OtherVersion { version: head.version },
    };
    Ok(Some((answer, size_of::<BackendTell>() + follows)))
}

fn begins(magic: u32, version: u8) -> Result<(), BackendReject> {
    if magic != BACKEND_MAGIC {
        return Err(BackendReject::BadMagic);
    }
    if version != BACKEND_VERSION {
        return Err(BackendReject::BadVersion(version));
    }
    Ok(())
}
