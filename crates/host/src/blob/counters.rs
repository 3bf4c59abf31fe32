//! The counters of a blob server.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts of a blob server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobCounters {
    /// Blobs kept now.
    pub kept: u64,
    /// Bytes of them in memory.
    pub kept_bytes: u64,
    /// Bytes in files, including those still being written.
    pub file_bytes: u64,
    /// Fetches answered with bytes.
    pub served: u64,
    /// Blobs dropped because they were not fetched in time.
    pub expired: u64,
    /// Connections open now.
    pub connections: u64,
    /// Connections refused: the source address had its share (T14).
    pub refused: u64,
    /// Connections evicted from a full table or share: those without proof first, then idle ones.
    pub made_room: u64,
    /// Connections that the kernel could not hand over, usually for lack of descriptors.
    pub accept_failed: u64,
    /// Connections closed: unknown blob or wrong proof.
    pub unknown: u64,
    /// Connections closed: malformed request.
    pub malformed: u64,
    /// Connections closed: no first request in time.
    pub silent: u64,
    /// Connections closed: idle, the normal end.
    pub idle: u64,
    /// Connections closed: incomplete request.
    pub late: u64,
    /// Connections closed: the peer read too slowly.
    pub stalled: u64,
    /// Connections broken off by the peer within a request or an answer.
    pub broken: u64,
    /// Connections closed: the file of an answer was unreadable.
    pub unreadable: u64,
}

impl BlobCounters {
    /// The events with their names, without current values.
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

    pub(super) fn expired(&self, blobs: usize) {
        self.expired.fetch_add(blobs as u64, Relaxed);
    }

    /// The counts kept here; the other fields are 0.
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
