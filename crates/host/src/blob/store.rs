//! The blobs that a client or an executor keeps for others to fetch.

use super::counters::{BlobCounters, Counts};
use super::{BlobOptions, Content};
use crate::disk::spill::SpillRoom;
use crate::driver::lock;
use midflight_connections::Connections;
use midflight_tasks::blob::BlobSecret;
use midflight_wire::tasks::{BlobRef, RESULT_BLOB_MAX};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Longest `progress_timeout`; clock and kernel do not accept every number.
const LONGEST_PROGRESS_TIMEOUT: Duration = Duration::from_secs(86_400);

#[derive(Debug)]
pub(crate) struct BlobStore {
    options: BlobOptions,
    kept: Mutex<Kept>,
    room: Condvar,
    files: Arc<SpillRoom>,
    pub(super) connections: Arc<Connections>,
    pub(super) counts: Counts,
}

#[derive(Debug, Default)]
struct Kept {
    /// By the name in requests.
    blobs: HashMap<u64, Blob>,
    bytes: usize,
}

impl Kept {
    /// Inserts under this id, or a random one if it is taken.
    fn insert(&mut self, known: Option<u64>, content: Arc<Content>) -> BlobSecret {
        let mut secret = BlobSecret::new(known.unwrap_or_else(rand::random));
        while self.blobs.contains_key(&secret.request_name()) {
            secret = BlobSecret::new(rand::random());
        }
        self.blobs.insert(secret.request_name(), Blob { content, secret, since: Instant::now() });
        secret
    }
}

#[derive(Debug)]
struct Blob {
    content: Arc<Content>,
    secret: BlobSecret,
    since: Instant,
}

#[derive(Debug)]
pub(crate) struct StoreFull;

impl BlobStore {
    pub(crate) fn new(mut options: BlobOptions) -> Arc<Self> {
        options.progress_timeout = options.progress_timeout.min(LONGEST_PROGRESS_TIMEOUT);
        Arc::new(Self {
            connections: Connections::evicting_silent(
                options.max_connections,
                options.progress_timeout,
                Duration::ZERO,
            ),
            files: SpillRoom::new(options.directory.as_deref(), options.max_file_bytes),
            options,
            kept: Mutex::default(),
            room: Condvar::new(),
            counts: Counts::default(),
        })
    }

    pub(crate) fn options(&self) -> &BlobOptions {
        &self.options
    }

    /// Files of large results, before keeping or after fetching.
    pub(crate) fn files(&self) -> &Arc<SpillRoom> {
        &self.files
    }

    /// Keeps `content` until the lease is dropped. Waits `patience` for memory.
    pub(crate) fn keep(
        self: &Arc<Self>,
        content: impl Into<Content>,
        patience: Duration,
    ) -> Result<BlobLease, StoreFull> {
        self.keep_as(None, content, patience)
    }

    /// Like [`Self::keep`], under the id of an earlier process.
    pub(crate) fn keep_as(
        self: &Arc<Self>,
        known: Option<u64>,
        content: impl Into<Content>,
        patience: Duration,
    ) -> Result<BlobLease, StoreFull> {
        let content = Arc::new(content.into());
        debug_assert!(content.len() <= u64::from(RESULT_BLOB_MAX), "callers refuse longer ones with a message");
        let (length, in_all) = (content.in_memory(), content.len());
        let full = |kept: &mut Kept| kept.bytes + length > self.options.max_bytes;
        let waited = self.room.wait_timeout_while(lock(&self.kept), patience, full);
        let (mut kept, timeout) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        if timeout.timed_out() {
            return Err(StoreFull);
        }
        let secret = kept.insert(known, content);
        kept.bytes += length;
        Ok(BlobLease { store: Arc::clone(self), secret, length: in_all as u32 })
    }

    /// The blob, if `may` accepts its secret.
    pub(super) fn find(&self, name: u64, may: impl Fn(BlobSecret) -> bool) -> Option<(BlobSecret, Arc<Content>)> {
        let found = lock(&self.kept).blobs.get(&name).map(|blob| (blob.secret, Arc::clone(&blob.content)));
        let found = found.filter(|(secret, _)| may(*secret));
        self.counts.asked(found.is_some());
        found
    }

    fn remove(&self, secret: BlobSecret) {
        let mut kept = lock(&self.kept);
        if let Some(blob) = kept.blobs.remove(&secret.request_name()) {
            kept.bytes -= blob.content.in_memory();
            self.room.notify_all();
        }
    }

    pub(crate) fn expire(&self) {
        let mut kept = lock(&self.kept);
        let old = kept.blobs.iter().filter(|(_, blob)| blob.since.elapsed() > self.options.result_ttl);
        let old: Vec<u64> = old.map(|(name, _)| *name).collect();
        for name in &old {
            if let Some(blob) = kept.blobs.remove(name) {
                kept.bytes -= blob.content.in_memory();
            }
        }
        if !old.is_empty() {
            self.counts.expired(old.len());
            self.room.notify_all();
            tracing::warn!("dropped {} results that nobody fetched for {:?}", old.len(), self.options.result_ttl);
        }
    }

    pub(crate) fn counters(&self) -> BlobCounters {
        let (kept, connections) = (lock(&self.kept), self.connections.counters());
        BlobCounters {
            kept: kept.blobs.len() as u64,
            kept_bytes: kept.bytes as u64,
            file_bytes: self.files.used(),
            connections: connections.open,
            refused: connections.refused,
            made_room: connections.made_room,
            accept_failed: connections.accept_failed,
            ..self.counts.read()
        }
    }
}

#[derive(Debug)]
pub(crate) struct BlobLease {
    store: Arc<BlobStore>,
    secret: BlobSecret,
    length: u32,
}

impl BlobLease {
    /// The reference for a packet. `port` is the server's.
    pub(crate) fn reference(&self, port: u16) -> BlobRef {
        BlobRef { id: self.secret.id().into(), length: self.length.into(), port: port.into(), reserved: 0.into() }
    }
}

impl Drop for BlobLease {
    fn drop(&mut self) {
        self.store.remove(self.secret);
    }
}
