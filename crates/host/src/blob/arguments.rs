//! Fetches the arguments by reference of an executor's tasks.

use super::{FetchError, Fetcher};
use crate::driver::lock;
use midflight_wire::tasks::{ARGUMENT_BLOB_MAX, BlobRef};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Any number of threads may use it.
#[derive(Debug)]
pub(crate) struct Arguments {
    fetcher: Fetcher,
    fetches: AtomicU64,
    /// The client that was last warned of.
    warned_of: Mutex<Option<SocketAddr>>,
}

impl Arguments {
    pub(crate) fn new(fetcher: Fetcher) -> Self {
        Self { fetcher, fetches: AtomicU64::new(0), warned_of: Mutex::default() }
    }

    pub(crate) fn fetches(&self) -> u64 {
        self.fetches.load(Relaxed)
    }

    pub(crate) fn get(&self, client: SocketAddr, blob: &BlobRef) -> Result<Vec<u8>, FetchError> {
        self.fetches.fetch_add(1, Relaxed);
        self.fetcher.fetch(client.ip(), blob, ARGUMENT_BLOB_MAX)
    }

    /// Warns once per client: a client that has ended may leave thousands of tasks.
    pub(crate) fn warn_not_fetched(&self, client: SocketAddr, error: &FetchError) {
        if lock(&self.warned_of).replace(client) != Some(client) {
            tracing::warn!("an argument was not fetched: {error} (said once for all tasks of the client {client})");
        }
    }
}
