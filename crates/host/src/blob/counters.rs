//! What has happened at one blob server, by name.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts of one blob server, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobCounters {
    /// Blobs kept now.
    pub kept: u64,
    /// Their bytes in memory.
    pub kept_bytes: u64,
    /// Bytes in files: of those that are kept, and of those that are still written.
    pub file_bytes: u64,
    /// Fetches answered with bytes.
    pub served: u64,
    /// Blobs dropped because nobody asked for them in time.
    pub expired: u64,
    /// Connections open now.
    pub connections: u64,
    /// Connections refused: their source address held its share (T14).
    pub refused: u64,
    /// Connections closed to make room in a full table, or for another one of a source that held its share: those that had proved nothing
    /// first, then those that had been answered and asked for nothing more.
    pub made_room: u64,
    /// Connections that the kernel could not hand over, usually for want of file descriptors.
    pub accept_failed: u64,
    /// Connections closed because they asked for what is not here, or did not prove that they may have it.
    pub unknown: u64,
    /// Connections closed for a malformed request.
    pub malformed: u64,
    /// Connections closed because their first request did not begin in time.
    pub silent: u64,
    /// Connections closed because no further request came: the normal end.
    pub idle: u64,
    /// Connections closed because a request that had begun did not end in time.
    pub late: u64,
    /// Connections closed because the other end did not read the answer fast enough.
    pub stalled: u64,
    /// Connections that the other end broke off in the middle of a request or an answer.
    pub broken: u64,
    /// Connections closed because the file of an answer could not be read.
    pub unreadable: u64,
}

impl BlobCounters {
    /// What has happened so far, by name; not what there is now.
    #[must_use]
    pub fn by_name(&self) -> [(&'static str, u64); 13] {
        [
            ("blobs_served", self.served),
            ("blobs_expired", self.expired),
            ("blobs_refused", self.refused),
            ("blobs_made_room", self.made_room),
            ("blobs_accept_failed", self.accept_failed),
            ("blobs_unknown", self.unknown),
            ("blobs_malformed", self.malformed),
            ("blobs_silent", self.silent),
            ("blobs_idle", self.idle),
            ("blobs_late", self.late),
            ("blobs_stalled", self.stalled),
            ("blobs_broken", self.broken),
            ("blobs_unreadable", self.unreadable),
        ]
    }
}

/// Why a connection ended in the middle of something, or was closed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Closing {
    Malformed,
    Silent,
    Idle,
    Late,
    Stalled,
    Broken,
    Unreadable,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    served: AtomicU64,
    expired: AtomicU64,
    unknown: AtomicU64,
    malformed: AtomicU64,
    silent: AtomicU64,
    idle: AtomicU64,
    late: AtomicU64,
    stalled: AtomicU64,
    broken: AtomicU64,
    unreadable: AtomicU64,
}

impl Counts {
    pub(super) fn asked(&self, is_here: bool) {
        if is_here { &self.served } else { &self.unknown }.fetch_add(1, Relaxed);
    }

    pub(super) fn closed(&self, closing: Closing) {
        let count = match closing {
            Closing::Malformed => &self.malformed,
            Closing::Silent => &self.silent,
            Closing::Idle => &self.idle,
            Closing::Late => &self.late,
            Closing::Stalled => &self.stalled,
            Closing::Broken => &self.broken,
            Closing::Unreadable => &self.unreadable,
        };
        count.fetch_add(1, Relaxed);
    }

    /// Blobs were dropped.
    pub(super) fn expired(&self, blobs: usize) {
        self.expired.fetch_add(blobs as u64, Relaxed);
    }

    /// What these count; the rest is 0.
    pub(super) fn read(&self) -> BlobCounters {
        let of = |count: &AtomicU64| count.load(Relaxed);
        BlobCounters {
            served: of(&self.served),
            expired: of(&self.expired),
            unknown: of(&self.unknown),
            malformed: of(&self.malformed),
            silent: of(&self.silent),
            idle: of(&self.idle),
            late: of(&self.late),
            stalled: of(&self.stalled),
            broken: of(&self.broken),
            unreadable: of(&self.unreadable),
            ..BlobCounters::default()
        }
    }
}
