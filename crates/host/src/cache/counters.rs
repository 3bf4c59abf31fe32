//! Counters of a cache client.

use super::error::ServerError;
use crate::socket::SocketCounts;
use midflight_cache::client::Counters;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

midflight_endpoint::counters! {
    /// Counts since the client's start, without those of the protocol.
    pub struct CacheCounters {
        /// Gets with a value.
        pub values,
        /// Gets without a value: the cache has no such key.
        pub missing,
        /// Gets by datagram that returned only the length; fetched over TCP.
        pub long,
        /// Answers from servers that are not replicas of the key; others were asked.
        pub foreign_servers,
        /// Sets that all servers took.
        pub sets,
        /// Deletes that all servers took.
        pub deletes,
        /// Sets and deletes that some server did not take.
        pub failed_writes,
        /// Keys that servers deleted after missing a set.
        pub forgotten,
        /// Connections opened.
        pub connections,
        /// Kept connections found closed and replaced.
        pub kept_closed,
        /// Kept connections closed because of unexpected bytes.
        pub kept_stray,
        /// Unreachable servers.
        pub unreachable,
        /// Servers that timed out over TCP.
        pub timed_out,
        /// Servers that closed a connection before answering.
        pub closed,
        /// Servers that refused a request.
        pub refused,
        /// Unreadable answers.
        pub garbage,
        /// Answers truncated in a datagram.
        pub incomplete,
        /// Answers that do not match the request.
        pub unfit,
        /// Answers in another version of the format.
        pub other_version,
    } counted by Counts
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
}
