//! Bytes that a client keeps for executors beside the arguments of its tasks.

use super::Client;
use crate::blob::BlobLease;
use crate::error::Error;
use midflight_wire::{BlobRef, RESULT_BLOB_MAX};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes that executors may fetch for as long as this lives; see [`Client::share`].
#[derive(Debug)]
pub struct SharedBlob {
    _lease: BlobLease,
    reference: BlobRef,
}

impl SharedBlob {
    /// What an executor needs to fetch them, beside the client's IP address.
    #[must_use]
    pub fn reference(&self) -> BlobRef {
        self.reference
    }
}

impl Client {
    /// Keeps bytes that arguments of many tasks refer to, up to 4 GiB − 1 and
    /// [`BlobOptions::max_bytes`](crate::BlobOptions::max_bytes).
    ///
    /// # Errors
    /// Where they are too many, or have no room.
    pub fn share(&self, bytes: impl Into<Arc<Vec<u8>>>) -> Result<SharedBlob, Error> {
        let bytes = bytes.into();
        let (length, max) = (bytes.len(), RESULT_BLOB_MAX as usize);
        if length > max {
            return Err(Error::ArgumentTooLong { index: 0, length, max });
        }
        let max_bytes = self.blobs.options().max_bytes;
        let lease = self.blobs.keep(bytes, Duration::ZERO).map_err(|_full| Error::BlobsFull { max_bytes })?;
        let reference = lease.reference(self.server.port());
        Ok(SharedBlob { _lease: lease, reference })
    }

    /// Polls the socket for a short while (`ClientOptions::busy_poll`), until `done` or `timeout`: for a thread that waits for an
    /// outcome which a sink gets. Then the network thread goes on.
    pub fn poll_until(&self, timeout: Duration, done: &dyn Fn() -> bool) {
        let deadline = Instant::now().checked_add(timeout);
        self.shared.poller.poll_until(&self.shared.driver, deadline, done, |endpoint| endpoint.open() > 0);
    }
}
