use super::{OperationKey, Page, Updated, ValuePiece};
use std::fmt;
use std::net::SocketAddr;

/// What the driver is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An operation has ended. Exactly once for each accepted one.
    Done {
        /// The operation.
        key: OperationKey,
        /// Its outcome.
        outcome: Result<Answer, StoreError>,
    },
    /// The first switch serves requests, or a different one than before.
    SwitchChanged {
        /// Its address.
        switch: SocketAddr,
    },
    /// A switch uses another version of the wire format and accepts none of our packets. Once per switch and version.
    OtherVersion {
        /// Its address.
        switch: SocketAddr,
        /// Its version.
        version: u8,
    },
}

/// The store's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// GET: the value.
    Value(Vec<u8>),
    /// GET and CAS: the key does not exist.
    NotFound,
    /// PUT, CAS, CREATE and STAGE: done.
    Done,
    /// EXISTS: whether the key exists; DELETE: whether it did.
    Existed(bool),
    /// CAS: the key has another value.
    Conflict {
        /// That value.
        present: Vec<u8>,
    },
    /// INCR: the sum.
    Number(i64),
    /// UPDATE: what it found and did.
    Updated(Updated),
    /// SCAN: a page.
    Page(Page),
    /// A piece of a value.
    Piece(ValuePiece),
    /// TRANSACT: what has become of each step; `None`: a required condition does not hold, and no step ran.
    Transacted(Option<Vec<Result<Updated, StoreError>>>),
}

/// The last answer that the client got, to any operation, while this one waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reached {
    /// No answer.
    Nobody,
    /// This switch said that it has no session.
    Standby(SocketAddr),
    /// This switch said that it does not know the set.
    OtherSets(SocketAddr),
    /// This address sent something that no switch of a store sends.
    Garbage(SocketAddr),
    /// A replica answered through this switch, or the switch asked for a repeat.
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
                 (midflight store status), and reaches this switch"
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
                "switch {switch} answers, but the replicas do not in time; see whether a majority of them runs (midflight store status)"
            ),
        }
    }
}

/// Why an operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum StoreError {
    /// No answer in time. A write that was sent may have run, or may still run.
    #[error("no answer came in time: {reached}")]
    TimedOut {
        /// Whether it was ever sent; if not, it has not run.
        was_sent: bool,
        /// What answered while it waited.
        reached: Reached,
    },
    /// The write's client id had expired. Its outcome is unknown.
    #[error("the store has forgotten this client, and whether the write took place: read the key")]
    UnknownClient,
    /// The store has seen a later write of this client.
    #[error("the store has a later write of this client, and does not say what became of this one: read the key")]
    Stale,
    /// INCR and UPDATE: the value is not a 64-bit number, or the sum overflows.
    #[error("the value is no number of 64 bits, or the sum is none")]
    NotANumber,
    /// The result would exceed the bound on values.
    #[error("the result would be larger than a value may be")]
    TooLarge,
    /// The values before are too long for the reply of this update or transaction, which did not run.
    #[error(
        "the values before are too long for the answer: read them first, and change the keys on condition of their revisions"
    )]
    TooLong,
    /// The store has no room for the parts of the value, or no longer has them: too many long values were written at once, or this one took
    /// too long. The write did not run.
    #[error("the store has no room for the parts of so long a value now, or had to remove them: try again")]
    NotStaged,
    /// Each time when this client had read a long value in order to change it, another client changed it first. The write did not run.
    #[error("other clients changed the key again and again: try again")]
    Contended,
    /// The store has reached its bound on bytes.
    #[error("the store is full: delete some keys, or write shorter values")]
    Full,
    /// No majority of the replicas has disk space. A later copy of the write may run, when there is room.
    #[error(
        "the disks of the store are full: reads and deletes go on, other writes when there is room on a majority of the replicas. Free \
         space there; `midflight store status` shows whose disks are full"
    )]
    DiskFull,
    /// The store has no room for another client id.
    #[error("the store has no room for another client: close some, or wait until unused ids have expired")]
    ClientsFull,
    /// The store does not know the command with these arguments.
    #[error("the store does not know this command, or not with these arguments: use one release on all machines")]
    BadRequest,
    /// The store computes another hash of the key.
    #[error("the store computes another hash of the key: use one release on all machines")]
    BadHash,
}

impl StoreError {
    /// Whether a write that failed this way may have run, or may still run.
    #[must_use]
    pub fn is_unknown(self) -> bool {
        matches!(self, Self::TimedOut { was_sent: true, .. } | Self::UnknownClient | Self::Stale | Self::DiskFull)
    }
}
