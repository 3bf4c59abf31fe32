//! What a client is asked to do, and what it says of it.

use midflight_wire::PACKET_MAX;
use midflight_wire::replicas::{CANDIDATES_MAX, Ends, NETRS_STATUS_MAX, NetrsRequest, NetrsResponse};
use std::net::SocketAddr;
use thiserror::Error;

/// Bytes of the longest question of an application.
pub const ASKED_MAX: usize = PACKET_MAX - size_of::<NetrsRequest>() - size_of::<Ends>();
/// Bytes of the longest answer of an application, whatever the status.
pub const ANSWERED_MAX: usize = PACKET_MAX - size_of::<NetrsResponse>() - NETRS_STATUS_MAX - size_of::<Ends>();

/// Names a read of this client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadKey(pub u64);

/// A read of a replicated store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The replica group that has the key: 24 bits.
    pub group: u32,
    /// Replicas of the group, 1 to 8, one of which is named where nobody selects. With each repeat another one is.
    pub backups: Vec<SocketAddr>,
    /// What the application asks: at most [`ASKED_MAX`] bytes.
    pub asked: Vec<u8>,
}

/// Why a read was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// Its group is no group.
    #[error("replica group {0}: ids have 24 bits")]
    Group(u32),
    /// Nobody to ask where nobody selects, or too many.
    #[error("{0} backups: name 1 to {CANDIDATES_MAX}")]
    Backups(usize),
    /// Too long for a datagram.
    #[error("the question has {0} bytes: it may have {ASKED_MAX}")]
    TooLong(usize),
    /// As many reads wait as may.
    #[error("{0} reads wait already: go on when some have ended, or set `queued_max` higher")]
    QueueFull(usize),
}

impl Read {
    pub(super) fn check(&self) -> Result<(), SubmitError> {
        if self.group >> 24 != 0 {
            return Err(SubmitError::Group(self.group));
        }
        if !(1..=CANDIDATES_MAX).contains(&self.backups.len()) {
            return Err(SubmitError::Backups(self.backups.len()));
        }
        if self.asked.len() > ASKED_MAX {
            return Err(SubmitError::TooLong(self.asked.len()));
        }
        Ok(())
    }
}

/// What the driver must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A read has ended. Once for each that was accepted.
    Done {
        /// Which read.
        key: ReadKey,
        /// What came of it.
        outcome: Result<Answer, Failure>,
    },
    /// The operator, or a server, uses another version of the wire format and takes nothing of ours. Once for each address and version, as
    /// far as 64 can be remembered.
    OtherVersion {
        /// Its address.
        at: SocketAddr,
        /// Its version.
        version: u8,
    },
}

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Which one.
    pub server: SocketAddr,
    /// What its application says.
    pub bytes: Vec<u8>,
    /// How often the read was sent.
    pub sends: u32,
}

/// Why a read has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Failure {
    /// None came in time.
    #[error("no answer in time")]
    TimedOut,
    /// The servers refused it each time that it was sent: they had no room, or what they stand before does not answer.
    #[error("the servers refused it: they have no room, or their stores do not answer")]
    Refused,
}
