//! What a client of a cache counts: nothing is dropped without being counted.

use super::error::ServerError;
use crate::socket::SocketCounts;
use midflight_replicas::client::Counters;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts since the start of the client, beside those of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Gets that ended with a value.
    pub values: u64,
    /// Gets that ended without one: the cache has no such key.
    pub missing: u64,
    /// Answers by datagram that only said how long the value is: it was fetched over TCP.
    pub long: u64,
    /// Answers of servers that are no replicas of the key: other servers were asked.
    pub foreign_servers: u64,
    /// Sets that all servers took.
    pub sets: u64,
    /// Deletes that all servers took.
    pub deletes: u64,
    /// Sets and deletes that not all servers took.
    pub failed_writes: u64,
    /// Keys that servers have forgotten because they did not take a set.
    pub forgotten: u64,
    /// Connections opened to servers.
    pub connections: u64,
    /// Kept connections that were found closed: another was opened.
    pub kept_closed: u64,
    /// Kept connections on which something came that nobody had asked for: closed.
    pub kept_stray: u64,
    /// Servers that could not be reached.
    pub unreachable: u64,
    /// Servers that did not answer in time over TCP.
    pub timed_out: u64,
    /// Servers that closed a connection before they answered.
    pub closed: u64,
    /// Servers that said that they could not.
    pub refused: u64,
    /// Answers that could not be read.
    pub garbage: u64,
    /// Answers that end in the middle of a datagram.
    pub incomplete: u64,
    /// Answers to something else than was asked.
    pub unfit: u64,
    /// Answers of servers that speak another version of the format.
    pub other_version: u64,
}

/// What a client of a cache has counted.
#[derive(Clone, Copy, Debug)]
pub struct CacheCounts {
    /// Of the protocol.
    pub protocol: Counters,
    /// Of the socket.
    pub socket: SocketCounts,
    /// Of the cache.
    pub cache: CacheCounters,
}

/// The same, from any thread.
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
    /// A server has failed in this way.
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
