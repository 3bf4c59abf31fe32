//! memcached's text protocol: `get`, `set` and `delete` with one key.

use super::{Answer, Read, Wrong, line, number, raw_line, text, value};
use midflight_wire::cache::backend::{BackendRequest, VALUE_MAX};
use std::io::Write as _;

/// memcached reads an expiry above 30 days as Unix time, in seconds.
const LONGEST_EXPIRY_S: u64 = 30 * 86_400;
/// memcached parses dates as signed 32-bit numbers.
const LATEST_DATE_S: u64 = i32::MAX as u64;

pub(super) fn write(request: &BackendRequest<'_>, unix_s: u64, to: &mut Vec<u8>) {
    match *request {
        BackendRequest::Get { key } => to.extend_from_slice(&[b"get ", key, b"\r\n"].concat()),
        BackendRequest::Delete { key } => to.extend_from_slice(&[b"delete ", key, b"\r\n"].concat()),
        BackendRequest::Set { key, value, flags, expires_s } => {
            to.extend_from_slice(b"set ");
            to.extend_from_slice(key);
            // Writing to a Vec cannot fail.
            let _ = write!(to, " {flags} {} {}\r\n", expiry(expires_s.into(), unix_s), value.len());
            to.extend_from_slice(value);
            to.extend_from_slice(b"\r\n");
        }
    }
}

fn expiry(expires_s: u64, unix_s: u64) -> u64 {
    // An earlier expiry is harmless: a cache may forget values.
    if expires_s <= LONGEST_EXPIRY_S { expires_s } else { unix_s.saturating_add(expires_s).min(LATEST_DATE_S) }
}

pub(super) fn read<'a>(request: &BackendRequest<'_>, bytes: &'a [u8]) -> Read<'a> {
    if let BackendRequest::Get { key } = request
        && bytes.starts_with(b"VALUE ")
    {
        return read_value(key, bytes);
    }
    let Some((first, length)) = line(bytes)? else { return Ok(None) };
    let done = |answer| Ok(Some((answer, length)));
    match (request, first) {
        (BackendRequest::Get { .. }, "END") | (BackendRequest::Delete { .. }, "NOT_FOUND") => done(Answer::Missing),
        (BackendRequest::Set { .. }, "STORED") | (BackendRequest::Delete { .. }, "DELETED") => done(Answer::Done),
        (BackendRequest::Set { .. }, "NOT_STORED") | (_, "ERROR") => done(Answer::Refused(first)),
        _ if first.starts_with("SERVER_ERROR ") || first.starts_with("CLIENT_ERROR ") => done(Answer::Refused(first)),
        _ => Err(Wrong::Garbage("a line that answers nothing")),
    }
}

/// The line contains the key, which may be any bytes except spaces and control characters.
fn read_value<'a>(key: &[u8], bytes: &'a [u8]) -> Read<'a> {
    const BEHIND: &[u8] = b"\r\nEND\r\n";
    let Some((first, begin)) = raw_line(bytes)? else { return Ok(None) };
    let words: Vec<&[u8]> = first.splitn(6, |byte| *byte == b' ').collect();
    let [b"VALUE", of, flags, length] = words[..] else { return Err(Wrong::Garbage("a VALUE with other words")) };
    if of != key {
        return Err(Wrong::Garbage("another key"));
    }
    let (flags, length): (u32, u64) = (number(text(flags)?)?, number(text(length)?)?);
    if length > VALUE_MAX as u64 {
        return Err(Wrong::TooLong);
    }
    let length = length as usize;
    let value = value(&bytes[begin..], length, BEHIND)?;
    Ok(value.map(|value| (Answer::Value { value, flags }, begin + length + BEHIND.len())))
}
