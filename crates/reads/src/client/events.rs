//! The events of a client for its driver, and what came of operations.

use super::OperationKey;
use std::net::SocketAddr;

/// What the driver must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An operation has ended. Once for each that was accepted.
    Done {
        /// Which operation.
        key: OperationKey,
        /// What came of it.
        outcome: Result<Answer, Failure>,
    },
    /// A switch serves requests for the first time, or another one than before.
    SwitchChanged {
        /// Its address.
        switch: SocketAddr,
    },
    /// A switch of the list uses another version of the wire format and accepts nothing of ours. Once for each switch and
    /// version.
    OtherVersion {
        /// Its address.
        switch: SocketAddr,
        /// Its version.
        version: u8,
    },
}

/// What the store answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// GET: the value.
    Value(Vec<u8>),
    /// GET and CAS: there is no such key.
    NotFound,
    /// PUT and CAS: it is done.
    Done,
    /// EXISTS: whether there is such a key; DELETE: whether there was.
    Existed(bool),
    /// CAS: the key has another value.
    Conflict {
        /// This one.
        present: Vec<u8>,
    },
    /// INCR: the sum.
    Number(i64),
}

/// Why an operation has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Failure {
    /// No answer came in time. A write that was sent may have taken place, or may yet.
    #[error("no answer came in time; see whether a switch and a majority of the replicas can be reached")]
    TimedOut {
        /// Whether it was ever sent: else it has not taken place.
        was_sent: bool,
    },
    /// The write's client id had expired. Whether it took place is not known any more.
    #[error("the store has forgotten this client, and whether the write took place: read the key")]
    UnknownClient,
    /// The store says that this client has begun a later write.
    #[error("the store has a later write of this client, and does not say what became of this one: read the key")]
    Stale,
    /// INCR: the value is no number of 64 bits, or the sum is none.
    #[error("the value is no number of 64 bits, or the sum is none")]
    NotANumber,
    /// The result would exceed what a value may have.
    #[error("the result would be larger than a value may be")]
    TooLarge,
    /// The store has as many bytes as it may.
    #[error("the store is full: delete some keys, or write shorter values")]
    Full,
    /// The store has no room for another client id.
    #[error("the store has no room for another client: close some, or wait until unused ids have expired")]
    ClientsFull,
    /// The store does not know the command, or not with these arguments.
    #[error("the store does not know this command, or not with these arguments: use one release on all machines")]
    BadRequest,
    /// The store computes another hash of the key.
    #[error("the store computes another hash of the key: use one release on all machines")]
    BadHash,
}

impl Failure {
    /// Whether a write that failed in this way may have taken place, or may yet.
    #[must_use]
    pub fn is_unknown(self) -> bool {
        matches!(self, Self::TimedOut { was_sent: true } | Self::UnknownClient | Self::Stale)
    }
}
