//! A client's input and output.

use midflight_wire::PACKET_MAX;
use midflight_wire::cache::{CANDIDATES_MAX, Ends, NETRS_STATUS_MAX, NetrsRequest, NetrsResponse};
use std::net::SocketAddr;
use thiserror::Error;

/// Bytes of an application's longest question.
pub const ASKED_MAX: usize = PACKET_MAX - size_of::<NetrsRequest>() - size_of::<Ends>();
/// Bytes of an application's longest answer, with any status.
pub const ANSWERED_MAX: usize = PACKET_MAX - size_of::<NetrsResponse>() - NETRS_STATUS_MAX - size_of::<Ends>();

/// Identifies a read of this client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadKey(pub u64);

/// A read of a replicated cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The key's replica group, 24 bits.
    pub group: u32,
    /// 1 to 8 replicas of the group. Each transmission names another one, which is used if no selector chooses.
    pub backups: Vec<SocketAddr>,
    /// The application's question, at most [`ASKED_MAX`] bytes.
    pub asked: Vec<u8>,
}

/// Why a read was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// The group exceeds 24 bits.
    #[error("replica group {0}: ids have 24 bits")]
    Group(u32),
    /// No backup, or too many.
    #[error("{0} backups: name 1 to {CANDIDATES_MAX}")]
    Backups(usize),
    /// The question does not fit a datagram.
    #[error("the question has {0} bytes: it may have {ASKED_MAX}")]
    TooLong(usize),
    /// The queue is full.
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

/// What the driver is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A read has ended. Exactly once for each accepted one.
    Done {
        /// The read.
        key: ReadKey,
        /// Its outcome.
        outcome: Result<Answer, Failure>,
    },
    /// The operator or a server uses another version of the wire format and accepts none of our packets. Once per address and version,
    /// for at most 64.
    OtherVersion {
        /// Its address.
        at: SocketAddr,
        /// Its version.
        version: u8,
    },
}

/// A server's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The server.
    pub server: SocketAddr,
    /// The application's answer.
    pub bytes: Vec<u8>,
    /// Transmissions of the read, without those for cookies.
    pub sends: u32,
}

/// Why a read failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Failure {
    /// No answer in time.
    #[error("no answer in time")]
    TimedOut,
    /// The servers refused every transmission: they had no room, or their backends do not answer.
    #[error("the servers refused it: they have no room, or their backends do not answer")]
    Refused,
}
