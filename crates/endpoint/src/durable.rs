//! An endpoint that keeps data on disk, and what it asks of its driver.

use crate::{Endpoint, Nanos};

/// An endpoint that keeps data on disk. It says what to write; the driver says what is safe.
///
/// It is made from the files that are left (`(File, bytes)` of each), and trusts nothing in them that points beyond their end. The
/// driver makes them safe before: what was read may be in the kernel's memory only. Within a batch nothing keeps the order of
/// changes to different files.
pub trait Durable: Endpoint {
    /// The next batch to write; call until `None`. Batches are numbered 1, 2, 3 … and are written in this order. Several may be
    /// under way: the driver may write all that wait, and make them safe at once.
    fn poll_persist(&mut self) -> Option<Persist>;

    /// This batch and all before it survive a power cut now.
    fn persisted(&mut self, now: Nanos, id: u64);
}

/// A batch of changes to files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persist {
    /// Counts up from 1.
    pub id: u64,
    /// In this order.
    pub changes: Vec<Change>,
}

/// A change to a file of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Appends to a file, which is made if there is none. A crash before `persisted` may leave any part of the bytes.
    Append {
        /// Which file.
        file: File,
        /// What.
        bytes: Vec<u8>,
    },
    /// Replaces the file as a whole, or makes it: after a crash it is the old one or the new one.
    Replace {
        /// Which file.
        file: File,
        /// All that it holds.
        bytes: Vec<u8>,
    },
    /// Removes a file, if there is one.
    Remove {
        /// Which file.
        file: File,
    },
}

/// A file of an endpoint, in a directory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum File {
    /// Whose directory this is.
    Identity,
    /// A part of the log, by its number.
    Log(u64),
    /// A snapshot, by its number.
    Snapshot(u64),
    /// What of the others is known to be safe.
    Safe,
}
