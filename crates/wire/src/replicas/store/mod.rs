//! What a cache's client and an agent before a store say to each other: in the application's part of NetRS's packets (only GET, and
//! values that fit), and over TCP, where answers come in the order of requests. `docs/replicas-wire.md` has the bytes.

mod layout;
mod parse;
mod write;

pub use layout::*;
pub use parse::{StoreReject, parse_answer, parse_request};
pub use write::{write_answer, write_request};

/// "MFNS": how each request and answer begins.
pub const STORE_MAGIC: u32 = 0x4D46_4E53;
/// The version of the format.
pub const STORE_VERSION: u8 = 1;
/// Bytes of the longest key, as in memcached.
pub const KEY_MAX: usize = 250;
/// Bytes of the longest value.
pub const VALUE_MAX: usize = 1 << 20;
/// Bytes of the longest reason of a refusal.
pub const REASON_MAX: usize = 200;

codes! {
    /// What a request asks for.
    StoreOperation {
        /// The value of a key.
        Get = 1,
        /// Keep this value. Only over TCP.
        Set = 2,
        /// Forget this key. Only over TCP.
        Delete = 3,
    }

    /// What an answer says.
    StoreStatus {
        /// To GET: the value follows.
        Value = 1,
        /// To GET in a datagram: there is a value, which does not fit; ask for it over TCP.
        Long = 2,
        /// To GET and DELETE: the store has no such key.
        Missing = 3,
        /// To SET and DELETE: it is done.
        Done = 4,
        /// The agent could not, for the reason that follows as text. What became of a SET or DELETE is not known.
        Refused = 5,
        /// The request was of another version; the answer's version is the one that the agent speaks.
        OtherVersion = 6,
    }
}

/// A request for a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreRequest<'a> {
    /// The value of a key.
    Get {
        /// The key: 1 to [`KEY_MAX`] bytes, without spaces and control characters.
        key: &'a [u8],
    },
    /// Keep this value.
    Set {
        /// The key.
        key: &'a [u8],
        /// At most [`VALUE_MAX`] bytes.
        value: &'a [u8],
        /// The application's, kept with the value.
        flags: u32,
        /// Seconds until the store forgets the value; 0: never.
        expires_s: u32,
    },
    /// Forget this key.
    Delete {
        /// The key.
        key: &'a [u8],
    },
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreAnswer<'a> {
    /// The value.
    Value {
        /// Its bytes.
        value: &'a [u8],
        /// As it was set with.
        flags: u32,
    },
    /// There is a value of so many bytes: ask for it over TCP.
    Long {
        /// Bytes of the value.
        length: u32,
    },
    /// No such key.
    Missing,
    /// It is done.
    Done,
    /// The agent could not, for this reason: UTF-8, at most [`REASON_MAX`] bytes.
    Refused {
        /// Why.
        why: &'a str,
    },
    /// The agent speaks this version.
    OtherVersion {
        /// Its version.
        version: u8,
    },
}

/// Whether this can be a key: 1 to [`KEY_MAX`] bytes, none of them a space or a control character (memcached's rule).
#[must_use]
pub fn is_key(key: &[u8]) -> bool {
    (1..=KEY_MAX).contains(&key.len()) && key.iter().all(|&byte| byte > b' ' && byte != 0x7f)
}
