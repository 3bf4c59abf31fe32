//! Writes requests and responses.

use super::*;
use zerocopy::IntoBytes;

/// Appends a request. The caller has checked its key ([`is_key`]) and its value (at most [`VALUE_MAX`] bytes).
pub fn write_request(request: &StoreRequest<'_>, to: &mut Vec<u8>) {
    let (operation, key, value, flags, expires_s) = match *request {
        StoreRequest::Get { key } => (StoreOperation::Get, key, &[][..], 0, 0),
        StoreRequest::Set { key, value, flags, expires_s } => (StoreOperation::Set, key, value, flags, expires_s),
        StoreRequest::Delete { key } => (StoreOperation::Delete, key, &[][..], 0, 0),
    };
    debug_assert!(is_key(key) && value.len() <= VALUE_MAX);
    let head = StoreAsk {
        magic: STORE_MAGIC.into(),
        version: STORE_VERSION,
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
pub fn write_answer(answer: &StoreAnswer<'_>, to: &mut Vec<u8>) {
    let (status, flags, said) = match *answer {
        StoreAnswer::Value { value, flags } => (StoreStatus::Value, flags, value),
        StoreAnswer::Long { .. } => (StoreStatus::Long, 0, &[][..]),
        StoreAnswer::Missing => (StoreStatus::Missing, 0, &[][..]),
        StoreAnswer::Done => (StoreStatus::Done, 0, &[][..]),
        StoreAnswer::Refused { why } => {
            (StoreStatus::Refused, 0, &why.as_bytes()[..why.floor_char_boundary(REASON_MAX)])
        }
        StoreAnswer::OtherVersion { .. } => (StoreStatus::OtherVersion, 0, &[][..]),
    };
    let length = if let StoreAnswer::Long { length } = *answer { length } else { said.len() as u32 };
    let head = StoreTell {
        magic: STORE_MAGIC.into(),
        version: if let StoreAnswer::OtherVersion { version } = *answer { version } else { STORE_VERSION },
        status: status as u8,
        reserved: 0.into(),
        flags: flags.into(),
        length: length.into(),
    };
    to.extend_from_slice(head.as_bytes());
    to.extend_from_slice(said);
}
