//! What an agent says to its store, and how it reads what the store answers: memcached's text protocol, and Redis's RESP.
//!
//! There is no I/O here. One request is under way on a connection at a time, so whatever comes is the answer to it. Nothing that a store
//! sends is trusted: a line or a value that is too long is refused before there is memory for it. No library that was looked at lets its
//! user bound the length that a store announces, and what an agent needs of both protocols is one line or two.
//!
//! | where | what |
//! |---|---|
//! | `address` | where a store is, and what it speaks |
//! | `memcached`, `redis` | their requests and answers |

mod address;
mod memcached;
mod redis;

pub use address::{AddressError, At, StoreAddress};

use midflight_wire::replicas::store::StoreRequest;
use thiserror::Error;

/// Bytes of the longest line that a store may send.
const LINE_MAX: usize = 1_024;

/// What a store speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// memcached's text protocol.
    Memcached,
    /// RESP, with the number of the database that is selected.
    Redis {
        /// Default 0.
        database: u32,
    },
}

/// What a store answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// To GET.
    Value {
        /// Its bytes.
        value: &'a [u8],
        /// As it was set with; 0 from Redis, which has none.
        flags: u32,
    },
    /// To GET and DELETE: no such key.
    Missing,
    /// To SET and DELETE, and to what a connection begins with.
    Done,
    /// The store could not, and says why in its own words.
    Refused(&'a str),
}

/// What a store must not send. Whatever follows it cannot be understood: the connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Wrong {
    /// No answer to what was asked.
    #[error("no answer to what was asked: {0}")]
    Garbage(&'static str),
    /// A value that is longer than an agent takes.
    #[error("a value of more than 1 MiB")]
    TooLong,
}

/// A request that a store has no way to carry out. It has not been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unsupported {
    /// Redis keeps no flags with a value.
    #[error("Redis keeps no flags: set values with flags 0, or use memcached")]
    Flags,
}

type Read<'a> = Result<Option<(Answer<'a>, usize)>, Wrong>;

impl Dialect {
    /// Appends a request. Its key is one, and its value not too long: it was read so. `unix_s`: the time of day, in seconds since 1970,
    /// because memcached takes a long expiry for a date.
    ///
    /// # Errors
    /// Where the store has no such thing; then nothing was appended.
    pub fn write(self, request: &StoreRequest<'_>, unix_s: u64, to: &mut Vec<u8>) -> Result<(), Unsupported> {
        match self {
            Self::Memcached => memcached::write(request, unix_s, to),
            Self::Redis { .. } => redis::write(request, to)?,
        }
        Ok(())
    }

    /// Appends what a connection begins with; `false` if that is nothing, so that no answer comes. The answer is
    /// [read](Self::read_greeting) before the first request is sent.
    pub fn write_greeting(self, to: &mut Vec<u8>) -> bool {
        match self {
            Self::Memcached | Self::Redis { database: 0 } => false,
            Self::Redis { database } => {
                redis::write_select(database, to);
                true
            }
        }
    }

    /// The answer to what a connection begins with.
    ///
    /// # Errors
    /// As of [`read`](Self::read).
    pub fn read_greeting(self, bytes: &[u8]) -> Read<'_> {
        redis::read_ok(bytes)
    }

    /// The answer to this request, and how many bytes it has. `None`: it has not come as a whole yet.
    ///
    /// # Errors
    /// As soon as what has come cannot become an answer to it.
    pub fn read<'a>(self, request: &StoreRequest<'_>, bytes: &'a [u8]) -> Read<'a> {
        match self {
            Self::Memcached => memcached::read(request, bytes),
            Self::Redis { .. } => redis::read(request, bytes),
        }
    }
}

/// The first line without its end, and how many bytes it has with it.
fn raw_line(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, Wrong> {
    let part = &bytes[..bytes.len().min(LINE_MAX)];
    match part.windows(2).position(|two| two == b"\r\n") {
        Some(end) => Ok(Some((&part[..end], end + 2))),
        None if part.len() == LINE_MAX => Err(Wrong::Garbage("a line without an end")),
        None => Ok(None),
    }
}

/// The same of a line without a key: a control character, or a byte that is no UTF-8, is in none.
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

/// A decimal number as both protocols write it: digits only, so neither a sign nor a space.
fn number<N: std::str::FromStr>(text: &str) -> Result<N, Wrong> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_number { text.parse().ok() } else { None };
    number.ok_or(Wrong::Garbage("a number that is none"))
}

/// `length` bytes of a value, and what must stand behind it. `None`: they have not come as a whole yet.
fn value<'a>(rest: &'a [u8], length: usize, behind: &[u8]) -> Result<Option<&'a [u8]>, Wrong> {
    let come = rest.get(length..).unwrap_or_default();
    let seen = come.len().min(behind.len());
    if come[..seen] != behind[..seen] {
        return Err(Wrong::Garbage("a value of another length than was said"));
    }
    Ok((seen == behind.len()).then(|| &rest[..length]))
}
