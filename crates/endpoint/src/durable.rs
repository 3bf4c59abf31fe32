//! An endpoint that keeps data on disk, and its requests to the driver.

use crate::{Endpoint, Nanos};

/// An endpoint that keeps data on disk. It says what to write, and the driver reports what has reached the disk.
///
/// It is created from the files left, as `(File, bytes)`, which the driver syncs first, and rejects references beyond their end.
/// Within a batch, changes to different files are unordered.
pub trait Durable: Endpoint {
    /// The next batch to write; call until `None`. Batches are numbered from 1. The driver may write and sync several together,
    /// in order.
    fn poll_persist(&mut self) -> Option<Persist>;

    /// This batch and all earlier ones would now survive a power failure.
    fn persisted(&mut self, now: Nanos, id: u64);
}

/// A batch of changes to files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persist {
    /// Counts up from 1.
    pub id: u64,
    /// Changes to the same file apply in this order.
    pub changes: Vec<Change>,
}

/// A change to one file of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Appends to a file and creates it if missing. A crash before `persisted` may leave any part of the bytes.
    Append {
        /// The file to append to.
        file: File,
        /// The bytes to append.
        bytes: Vec<u8>,
    },
    /// Replaces or creates a file atomically: after a crash it has the old content or the new.
    Replace {
        /// The file to replace.
        file: File,
        /// The whole new content.
        bytes: Vec<u8>,
    },
    /// Removes a file if it exists.
    Remove {
        /// The file to remove.
        file: File,
    },
}

/// A file of an endpoint, in the endpoint's own directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum File {
    /// Names the owner of the directory.
    Identity,
    /// A segment of the log, by number.
    Log(u64),
    /// A snapshot, by number.
    Snapshot(u64),
    /// How much of the other files is known to be on disk.
    Safe,
}
