//! Counters of a cache client.

use super::error::ServerError;
use crate::socket::SocketCounts;
use midflight_cache::client::Counters;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts since the client's start, without those of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Gets with a value.
    pub values: u64,
    /// Gets without a value: the cache has no such key.
    pub missing: u64,
    /// Gets by datagram that returned only the length; fetched over TCP.
    pub long: u64,
    /// Answers from servers that are not replicas of the key; others were asked.
    pub foreign_servers: u64,
    /// Sets that all servers took.
    pub sets: u64,
    /// Deletes that all servers took.
    pub deletes: u64,
    /// Sets and deletes that some server did not take.
    pub failed_writes: u64,
    /// Keys that servers deleted after missing a set.
    pub forgotten: u64,
    /// Connections opened.
    pub connections: u64,
    /// Kept connections found closed and replaced.
    pub kept_closed: u64,
    /// Kept connections closed because of unexpected bytes.
    pub kept_stray: u64,
    /// Unreachable servers.
    pub unreachable: u64,
    /// Servers that timed out over TCP.
    pub timed_out: u64,
    /// Servers that closed a connection before answering.
    pub closed: u64,
    /// Servers that refused a request.
    pub refused: u64,
    /// Unreadable answers.
    pub garbage: u64,
    /// Answers truncated in a datagram.
    pub incomplete: u64,
    /// Answers that do not match the request.
    pub unfit: u64,
    /// Answers in another version of the format.
    pub other_version: u64,
}

/// All counts of a client.
#[derive(Clone, Copy, Debug)]
pub struct CacheCounts {
    /// Protocol.
    pub protocol: Counters,
    /// Socket.
    pub socket: SocketCounts,
    /// Cache.
    pub cache: CacheCounters,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) values: AtomicU64,
    pub(super) missing: AtomicU64,
    pub(super) long: AtomicU64,
    pub(super) foreign_servers: AtomicU64,
    pub(super) sets: AtomicU64,
    pub(super) deletes: AtomicU64,
    pub(super) failed_writes: AtomicU64,
    pub(super) forgotten: AtomicU64,
    pub(super) connections: AtomicU64,
    pub(super) kept_closed: AtomicU64,
    pub(super) kept_stray: AtomicU64,
    unreachable: AtomicU64,
    timed_out: AtomicU64,
    closed: AtomicU64,
    refused: AtomicU64,
    garbage: AtomicU64,
    incomplete: AtomicU64,
    unfit: AtomicU64,
    other_version: AtomicU64,
}

pub(super) fn add(count: &AtomicU64) {
    count.fetch_add(1, Relaxed);
}

impl Counts {
    pub(super) fn server_failed(&self, why: &ServerError) {
        add(match why {
            ServerError::Unreachable(_) => &self.unreachable,
            ServerError::TimedOut => &self.timed_out,
            ServerError::Closed => &self.closed,
            ServerError::Refused(_) => &self.refused,
            ServerError::Garbage(_) => &self.garbage,
            ServerError::Incomplete => &self.incomplete,
            ServerError::Unfit => &self.unfit,
            ServerError::OtherVersion(_) => &self.other_version,
        });
    }

    pub(super) fn read(&self) -> CacheCounters {
        let of = |count: &AtomicU64| count.load(Relaxed);
        CacheCounters {
            values: of(&self.values),
            missing: of(&self.missing),
            long: of(&self.long),
            foreign_servers: of(&self.foreign_servers),
            sets: of(&self.sets),
            deletes: of(&self.deletes),
            failed_writes: of(&self.failed_writes),
            forgotten: of(&self.forgotten),
            connections: of(&self.connections),
            kept_closed: of(&self.kept_closed),
            kept_stray: of(&self.kept_stray),
            unreachable: of(&self.unreachable),
            timed_out: of(&self.timed_out),
            closed: of(&self.closed),
            refused: of(&self.refused),
            garbage: of(&self.garbage),
            incomplete: of(&self.incomplete),
            unfit: of(&self.unfit),
            other_version: of(&self.other_version),
        }
    }
}
