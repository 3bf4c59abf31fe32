//! Redis's RESP, version 2: `GET`, `SET` and `DEL` with one key, and `SELECT` as the greeting.

use super::{Answer, Read, Unsupported, Wrong, line, number, value};
use midflight_wire::cache::backend::{BackendRequest, VALUE_MAX};
use std::io::Write as _;

pub(super) fn write(request: &BackendRequest<'_>, to: &mut Vec<u8>) -> Result<(), Unsupported> {
    match *request {
        BackendRequest::Get { key } => command(&[b"GET", key], to),
        BackendRequest::Delete { key } => command(&[b"DEL", key], to),
        BackendRequest::Set { flags: 1.., .. } => return Err(Unsupported::Flags),
        BackendRequest::Set { key, value, expires_s: 0, .. } => command(&[b"SET", key, value], to),
        BackendRequest::Set { key, value, expires_s, .. } => {
            command(&[b"SET", key, value, b"EX", expires_s.to_string().as_bytes()], to);
        }
    }
    Ok(())
}

pub(super) fn write_select(database: u32, to: &mut Vec<u8>) {
    command(&[b"SELECT", database.to_string().as_bytes()], to);
}

fn command(words: &[&[u8]], to: &mut Vec<u8>) {
    let _ = write!(to, "*{}\r\n", words.len());
    for word in words {
        let _ = write!(to, "${}\r\n", word.len());
        to.extend_from_slice(word);
        to.extend_from_slice(b"\r\n");
    }
}

pub(super) fn read<'a>(request: &BackendRequest<'_>, bytes: &'a [u8]) -> Read<'a> {
    match request {
        BackendRequest::Get { .. } => read_value(bytes),
        BackendRequest::Set { .. } => read_ok(bytes),
        BackendRequest::Delete { .. } => read_line(bytes, |line| match line {
            ":0" => Some(Answer::Missing),
            ":1" => Some(Answer::Done),
            _ => None,
        }),
    }
}

pub(super) fn read_ok(bytes: &[u8]) -> Read<'_> {
    read_line(bytes, |line| (line == "+OK").then_some(Answer::Done))
}

/// A one-line response: an error, or one that `known` accepts.
fn read_line<'a>(bytes: &'a [u8], known: impl FnOnce(&'a str) -> Option<Answer<'a>>) -> Read<'a> {
    let Some((line, length)) = line(bytes)? else { return Ok(None) };
    let answer = line.strip_prefix('-').map(Answer::Refused).or_else(|| known(line));
    answer.map(|answer| Some((answer, length))).ok_or(Wrong::Garbage("a line that answers nothing"))
}

fn read_value(bytes: &[u8]) -> Read<'_> {
    const BEHIND: &[u8] = b"\r\n";
    let length_line = line(bytes)?.filter(|(line, _)| line.starts_with('$') && *line != "$-1");
    let Some((length_line, begin)) = length_line else {
        return read_line(bytes, |line| (line == "$-1").then_some(Answer::Missing));
    };
    let length: u64 = number(&length_line[1..])?;
    if length > VALUE_MAX as u64 {
        return Err(Wrong::TooLong);
    }
    let length = length as usize;
    let value = value(&bytes[begin..], length, BEHIND)?;
    Ok(value.map(|value| (Answer::Value { value, flags: 0 }, begin + length + BEHIND.len())))
}
