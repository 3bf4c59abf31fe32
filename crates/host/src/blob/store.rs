//! The blobs that a client or an executor keeps for others to fetch.

use super::counters::{BlobCounters, Counts};
use super::format::Part;
use super::pack::Pack;
use super::{BlobOptions, Content};
use crate::driver::lock;
use crate::spill::SpillRoom;
use midflight_connections::Connections;
use midflight_tasks::blob::BlobSecret;
use midflight_wire::{BlobRef, RESULT_BLOB_MAX};
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
    fn insert(&mut self, known: Option<u64>, held: Held) -> BlobSecret {
        let mut secret = BlobSecret::new(known.unwrap_or_else(rand::random));
        while self.blobs.contains_key(&secret.request_name()) {
            secret = BlobSecret::new(rand::random());
        }
        self.blobs.insert(secret.request_name(), Blob { held, secret, since: Instant::now() });
        secret
    }
}

#[derive(Debug)]
struct Blob {
    held: Held,
    secret: BlobSecret,
    since: Instant,
}

#[derive(Clone, Debug)]
enum Held {
    Whole(Arc<Content>),
    Pack(Arc<Pack>),
}

impl Held {
    fn in_memory(&self) -> usize {
        match self {
            Self::Whole(content) => content.in_memory(),
            Self::Pack(pack) => pack.len(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct StoreFull;

impl BlobStore {
    pub(crate) fn new(mut options: BlobOptions) -> Arc<Self> {
        options.progress_timeout = options.progress_timeout.min(LONGEST_PROGRESS_TIMEOUT);
        Arc::new(Self {
            connections: Connections::where_silent_give_way(
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
        let secret = kept.insert(known, Held::Whole(content));
        kept.bytes += length;
        Ok(BlobLease { store: Arc::clone(self), secret, length: in_all as u32 })
    }

    pub(super) fn keep_pack(self: &Arc<Self>, pack: &Arc<Pack>) -> BlobLease {
        let secret = lock(&self.kept).insert(None, Held::Pack(Arc::clone(pack)));
        BlobLease { store: Arc::clone(self), secret, length: 0 }
    }

    /// Counts bytes that are about to be added to a pack.
    pub(super) fn reserve(&self, bytes: usize) -> Result<(), StoreFull> {
        let mut kept = lock(&self.kept);
        if kept.bytes + bytes > self.options.max_bytes {
            return Err(StoreFull);
        }
        kept.bytes += bytes;
        Ok(())
    }

    pub(super) fn find(&self, name: u64, may: impl Fn(BlobSecret) -> bool) -> Option<(BlobSecret, Arc<Content>)> {
        let found = self.held(name, may).and_then(|(secret, held)| match held {
            Held::Whole(content) => Some((secret, content)),
            Held::Pack(_) => None,
        });
        self.counts.asked(found.is_some());
        found
    }

    /// At least one byte, if `may` accepts the secret.
    pub(super) fn find_part(
        &self,
        name: u64,
        may: impl Fn(BlobSecret) -> bool,
        part: &Part,
    ) -> Option<(BlobSecret, Vec<u8>)> {
        let found = self.held(name, may).and_then(|(secret, held)| match held {
            Held::Pack(pack) => Some((secret, pack.part(part.offset.get(), part.most.get())?)),
            Held::Whole(_) => None,
        });
        self.counts.asked(found.is_some());
        found
    }

    fn held(&self, name: u64, may: impl Fn(BlobSecret) -> bool) -> Option<(BlobSecret, Held)> {
        let found = lock(&self.kept).blobs.get(&name).map(|blob| (blob.secret, blob.held.clone()));
        found.filter(|(secret, _)| may(*secret))
    }

    fn remove(&self, secret: BlobSecret) {
        let mut kept = lock(&self.kept);
        if let Some(blob) = kept.blobs.remove(&secret.request_name()) {
            kept.bytes -= blob.held.in_memory();
            self.room.notify_all();
        }
    }

    pub(crate) fn expire(&self) {
        let mut kept = lock(&self.kept);
        let old = kept.blobs.iter().filter(|(_, blob)| blob.since.elapsed() > self.options.result_ttl);
        let old: Vec<u64> = old.map(|(name, _)| *name).collect();
        for name in &old {
            if let Some(blob) = kept.blobs.remove(name) {
                kept.bytes -= blob.held.in_memory();
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
        BlobRef { id: self.secret.id().into(), length: self.length.into(), port: port.into(), at: 0.into() }
    }
}

impl Drop for BlobLease {
    fn drop(&mut self) {
        self.store.remove(self.secret);
    }
}
