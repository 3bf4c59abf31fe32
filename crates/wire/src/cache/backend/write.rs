//! Writes requests and responses.

use super::*;
use zerocopy::IntoBytes;

/// Appends a request. The caller has checked its key ([`is_key`]) and its value (at most [`VALUE_MAX`] bytes).
pub fn write_request(request: &BackendRequest<'_>, to: &mut Vec<u8>) {
    let (operation, key, value, flags, expires_s) = match *request {
        BackendRequest::Get { key } => (BackendOperation::Get, key, &[][..], 0, 0),
        BackendRequest::Set { key, value, flags, expires_s } => (BackendOperation::Set, key, value, flags, expires_s),
        BackendRequest::Delete { key } => (BackendOperation::Delete, key, &[][..], 0, 0),
    };
    debug_assert!(is_key(key) && value.len() <= VALUE_MAX);
    let head = BackendAsk {
        magic: BACKEND_MAGIC.into(),
        version: BACKEND_VERSION,
        operation: operation as u8,
        key_length: key.len() as u8,
        reserved: 0,
        flags: flags.into(),
        expires_s: expires_s.into(),
        length: (value.len() as u32).into(),
    };
    to.extend_from_slice(head.as_bytes());
    to.extend_from_slice(key);
    to.extend_from_slice(value);
}

/// Appends a response. Truncates a reason that is too long.
pub fn write_answer(answer: &BackendAnswer<'_>, to: &mut Vec<u8>) {
    let (status, flags, said) = match *answer {
        BackendAnswer::Value { value, flags } => (BackendStatus::Value, flags, value),
        BackendAnswer::Long { .. } => (BackendStatus::Long, 0, &[][..]),
        BackendAnswer::Missing => (BackendStatus::Missing, 0, &[][..]),
        BackendAnswer::Done => (BackendStatus::Done, 0, &[][..]),
        BackendAnswer::Refused { why } => {
            (BackendStatus::Refused, 0, &why.as_bytes()[..why.floor_char_boundary(REASON_MAX)])
        }
        BackendAnswer::OtherVersion { .. } => (BackendStatus::OtherVersion, 0, &[][..]),
    };
    let length = if let BackendAnswer::Long { length } = *answer { length } else { said.len() as u32 };
    let head = BackendTell {
        magic: BACKEND_MAGIC.into(),
        version: if let BackendAnswer::OtherVersion { version } = *answer { version } else { BACKEND_VERSION },
        status: status as u8,
        reserved: 0.into(),
        flags: flags.into(),
        length: length.into(),
    };
    to.extend_from_slice(head.as_bytes());
    to.extend_from_slice(said);
}
