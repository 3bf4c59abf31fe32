//! Bytes that a client keeps for executors in addition to its tasks' arguments.

use super::Client;
use crate::blob::BlobLease;
use crate::error::Error;
use midflight_wire::tasks::{BlobRef, RESULT_BLOB_MAX};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes that executors may fetch while this lives; see [`Client::share`].
#[derive(Debug)]
pub struct SharedBlob {
    _lease: BlobLease,
    reference: BlobRef,
}

impl SharedBlob {
    /// The reference with which, and the client's IP address, an executor fetches them.
    #[must_use]
    pub fn reference(&self) -> BlobRef {
        self.reference
    }
}

impl Client {
    /// Keeps bytes to which the arguments of many tasks refer: up to 4 GiB − 1 and
    /// [`BlobOptions::max_bytes`](crate::BlobOptions::max_bytes).
    ///
    /// # Errors
    ///
    /// If they are too many or have no room.
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

    /// Polls the socket for up to `ClientBuilder::busy_poll`, until `done` or `timeout`, on behalf of a sink. Then the network thread
    /// continues.
    pub fn poll_until(&self, timeout: Duration, done: &dyn Fn() -> bool) {
        let deadline = Instant::now().checked_add(timeout);
        self.shared.poller.poll_until(&self.shared.driver, deadline, done, |endpoint| endpoint.open() > 0);
    }
}
