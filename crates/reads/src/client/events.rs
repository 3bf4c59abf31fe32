//! The events of a client for its driver, and what came of operations.

use super::OperationKey;
use std::fmt;
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

/// The last answer that a client got while an operation waited: to that or to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reached {
    /// There was none.
    Nobody,
    /// Of this switch: that it has no session.
    Standby(SocketAddr),
    /// Of this switch: that it does not know the set.
    OtherSets(SocketAddr),
    /// From this address: something that no switch of a store sends.
    Garbage(SocketAddr),
    /// Of a replica, or to be repeated, through this switch.
    Serving(SocketAddr),
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => {
                write!(f, "no switch of the store answers; see whether one runs, and can be reached from here")
            }
            Self::Standby(switch) => write!(
                f,
                "switch {switch} answers, but has no session, and no other one serves; see whether a majority of the replicas runs \
                 (midflight kv status), and reaches this switch"
            ),
            Self::OtherSets(switch) => {
                write!(f, "switch {switch} answers, but does not serve this replica set; see its number")
            }
            Self::Garbage(address) => write!(
                f,
                "what answers at {address} is no switch of a store of this version; see whether the address and the releases are right"
            ),
            Self::Serving(switch) => write!(
                f,
                "switch {switch} answers, but the replicas do not in time; see whether a majority of them runs (midflight kv status)"
            ),
        }
    }
}

/// Why an operation has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Failure {
    /// No answer came in time. A write that was sent may have taken place, or may yet.
    #[error("no answer came in time: {reached}")]
    TimedOut {
        /// Whether it was ever sent: else it has not taken place.
        was_sent: bool,
        /// Who has answered meanwhile.
        reached: Reached,
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
    /// No majority of the replicas has room on its disk.
    #[error(
        "the disks of the store are full: reads and deletes go on, other writes when there is room on a majority of the replicas. Free \
         space there; `midflight kv status` shows whose disks are full"
    )]
    DiskFull,
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
        matches!(self, Self::TimedOut { was_sent: true, .. } | Self::UnknownClient | Self::Stale)
    }
}
