//! The protocols between an agent and its backend: memcached's text protocol, and Redis's RESP. No I/O.
//!
//! A connection has one request in flight, so all that arrives belongs to its response. A line or value that is too long is refused
//! before memory is allocated for it; the libraries that were examined do not bound announced lengths.

mod address;
mod memcached;
mod redis;

pub use address::{AddressError, At, BackendAddress};

use midflight_wire::cache::backend::BackendRequest;
use thiserror::Error;

const LINE_MAX: usize = 1_024;

/// A backend's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// memcached's text protocol.
    Memcached,
    /// RESP with a selected database.
    Redis {
        /// Number of the database; default 0.
        database: u32,
    },
}

/// A backend's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// Response to GET.
    Value {
        /// The value.
        value: &'a [u8],
        /// The flags it was set with; 0 from Redis, which has none.
        flags: u32,
    },
    /// Response to GET and DELETE: no such key.
    Missing,
    /// Response to SET, DELETE and the greeting: done.
    Done,
    /// The backend's error message.
    Refused(&'a str),
}

/// A protocol violation. The connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Wrong {
    /// The response does not match the request.
    #[error("no answer to what was asked: {0}")]
    Garbage(&'static str),
    /// The value exceeds the agent's bound.
    #[error("a value of more than 1 MiB")]
    TooLong,
}

/// A request that the backend cannot carry out; it was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unsupported {
    /// Redis stores no flags.
    #[error("Redis keeps no flags: set values with flags 0, or use memcached")]
    Flags,
}

type Read<'a> = Result<Option<(Answer<'a>, usize)>, Wrong>;

impl Dialect {
    /// Appends a request with a valid key and value. `unix_s` is the time in seconds since 1970, because memcached reads a long expiry as
    /// a date.
    ///
    /// # Errors
    /// If the backend does not support it; nothing was appended.
    pub fn write(self, request: &BackendRequest<'_>, unix_s: u64, to: &mut Vec<u8>) -> Result<(), Unsupported> {
        match self {
            Self::Memcached => memcached::write(request, unix_s, to),
            Self::Redis { .. } => redis::write(request, to)?,
        }
        Ok(())
    }

    /// Appends the connection's greeting; false if there is none, and so no response. Its response must be [read](Self::read_greeting)
    /// before the first request.
    pub fn write_greeting(self, to: &mut Vec<u8>) -> bool {
        match self {
            Self::Memcached | Self::Redis { database: 0 } => false,
            Self::Redis { database } => {
                redis::write_select(database, to);
                true
            }
        }
    }

    /// Parses the response to the greeting.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_greeting(self, bytes: &[u8]) -> Read<'_> {
        redis::read_ok(bytes)
    }

    /// Parses the response to a request, and returns its length. `None`: incomplete.
    ///
    /// # Errors
    /// As soon as the bytes cannot become a valid response.
    pub fn read<'a>(self, request: &BackendRequest<'_>, bytes: &'a [u8]) -> Read<'a> {
        match self {
            Self::Memcached => memcached::read(request, bytes),
            Self::Redis { .. } => redis::read(request, bytes),
        }
    }
}

/// The first line without its end, and its length with it.
fn raw_line(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, Wrong> {
    let part = &bytes[..bytes.len().min(LINE_MAX)];
    match part.windows(2).position(|two| two == b"\r\n") {
        Some(end) => Ok(Some((&part[..end], end + 2))),
        None if part.len() == LINE_MAX => Err(Wrong::Garbage("a line without an end")),
        None => Ok(None),
    }
}

/// The same for a line without a key, which is UTF-8 without control characters.
fn line(bytes: &[u8]) -> Result<Option<(&str, usize)>, Wrong> {
    let Some((line, length)) = raw_line(bytes)? else { return Ok(None) };
    let line = text(line)?;
    if line.contains(|letter: char| letter.is_control()) {
        return Err(Wrong::Garbage("a line with a control character"));
    }
    Ok(Some((line, length)))
}

fn text(bytes: &[u8]) -> Result<&str, Wrong> {
    str::from_utf8(bytes).map_err(|_| Wrong::Garbage("a line that is no text"))
}

/// A decimal number of digits only: both protocols write no sign and no space.
fn number<N: std::str::FromStr>(text: &str) -> Result<N, Wrong> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_number { text.parse().ok() } else { None };
    number.ok_or(Wrong::Garbage("a number that is not one"))
}

/// `length` bytes of a value, followed by `behind`. `None`: incomplete.
fn value<'a>(rest: &'a [u8], length: usize, behind: &[u8]) -> Result<Option<&'a [u8]>, Wrong> {
    let come = rest.get(length..).unwrap_or_default();
    let seen = come.len().min(behind.len());
    if come[..seen] != behind[..seen] {
        return Err(Wrong::Garbage("a value of another length than was said"));
    }
    Ok((seen == behind.len()).then(|| &rest[..length]))
}
