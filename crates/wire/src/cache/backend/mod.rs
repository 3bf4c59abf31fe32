//! The protocol between a cache's client and an agent. In NetRS's packets it has only GET, with values that fit; over TCP,
//! responses are in the order of requests. `docs/cache-wire.md` defines the bytes.

mod layout;
mod parse;
mod write;

pub use layout::*;
pub use parse::{BackendReject, parse_answer, parse_request};
pub use write::{write_answer, write_request};

/// "MFNS": begins each request and response.
pub const BACKEND_MAGIC: u32 = 0x4D46_4E53;
/// Version of the format.
pub const BACKEND_VERSION: u8 = 1;
/// Longest key in bytes, as in memcached.
pub const KEY_MAX: usize = 250;
/// Longest value, in bytes.
pub const VALUE_MAX: usize = 1 << 20;
/// Longest reason of a refusal, in bytes.
pub const REASON_MAX: usize = 200;

codes! {
    /// Operation of a request.
    BackendOperation {
        /// Gets the value of a key.
        Get = 1,
        /// Sets a value; only over TCP.
        Set = 2,
        /// Deletes a key; only over TCP.
        Delete = 3,
    }

    /// Status of a response.
    BackendStatus {
        /// To GET: the value follows.
        Value = 1,
        /// To GET in a datagram: the value does not fit; get it over TCP.
        Long = 2,
        /// To GET and DELETE: the key does not exist.
        Missing = 3,
        /// To SET and DELETE: done.
        Done = 4,
        /// The agent failed, and the reason follows as text. The outcome of a SET or DELETE is unknown.
        Refused = 5,
        /// The request had another version; the response carries the agent's.
        OtherVersion = 6,
    }
}

/// A request to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendRequest<'a> {
    /// Gets the value of a key.
    Get {
        /// 1 to [`KEY_MAX`] bytes without spaces and control characters.
        key: &'a [u8],
    },
    /// Sets a value.
    Set {
        /// As in `Get`.
        key: &'a [u8],
        /// At most [`VALUE_MAX`] bytes.
        value: &'a [u8],
        /// For the application; stored with the value.
        flags: u32,
        /// Seconds until the backend drops the value; 0: never.
        expires_s: u32,
    },
    /// Deletes a key.
    Delete {
        /// As in `Get`.
        key: &'a [u8],
    },
}

/// A response of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendAnswer<'a> {
    /// The key's value.
    Value {
        /// Bytes of the value.
        value: &'a [u8],
        /// The flags of the SET.
        flags: u32,
    },
    /// The value does not fit; get it over TCP.
    Long {
        /// Bytes of the value.
        length: u32,
    },
    /// The key does not exist.
    Missing,
    /// The SET or DELETE is done.
    Done,
    /// The agent failed.
    Refused {
        /// UTF-8, at most [`REASON_MAX`] bytes.
        why: &'a str,
    },
    /// The agent supports another version.
    OtherVersion {
        /// The agent's version.
        version: u8,
    },
}

/// Whether this is a valid key: 1 to [`KEY_MAX`] bytes without spaces and control characters (memcached's rule).
#[must_use]
pub fn is_key(key: &[u8]) -> bool {
    (1..=KEY_MAX).contains(&key.len()) && key.iter().all(|&byte| byte > b' ' && byte != 0x7f)
}
