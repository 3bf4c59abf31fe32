//! Arguments and results that exceed a packet, by reference: the side that has the bytes serves them over TCP, the other
//! side fetches them. A reference (`BlobRef`: id, length, port) is in the packet; the IP address is that of its sender.
//!
//! Small arguments are packed: many of them are in one blob, a *pack*, and a fetch brings a part of it, with the arguments
//! of tasks that probably come next (`docs/internals/arguments.md`).
//!
//! `format` has the bytes of requests and answers. Places for connections are shared between source addresses (T14), and within
//! a share those that have not proved anything give way to later ones; a client that gets none is told so, and tries again a
//! little later. A connection is closed on an unknown name, on a request without proof, on a malformed one, and when one of the
//! times of [`BlobOptions`] runs out. Each reason for refusing or closing has a counter of its own in [`BlobCounters`].

mod arguments;
mod content;
mod fetch;
mod format;
mod pack;
mod server;

pub use arguments::ArgumentCounts;
pub(crate) use arguments::Arguments;
pub(crate) use content::{Content, Piece};
pub(crate) use fetch::{FetchError, Fetcher};
pub(crate) use pack::{PACKED_MAX, Packs};
pub(crate) use server::BlobServer;

use crate::driver::lock;
use crate::spill::SpillRoom;
use midflight_connections::Connections;
use midflight_tasks::blob::BlobSecret;
use midflight_wire::{BlobRef, RESULT_BLOB_MAX};
use pack::Pack;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// The bytes that must be transferred within [`BlobOptions::progress_timeout`], or the rest if that is less.
const PROGRESS_BYTES: usize = 256 << 10;
/// The longest `progress_timeout`; clock and kernel do not accept every number.
const LONGEST_PROGRESS_TIMEOUT: Duration = Duration::from_secs(86_400);

/// Bounds of what is kept for others to fetch, and of fetching it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobOptions {
    /// Bytes kept in memory at once. Default 1 GiB.
    pub max_bytes: usize,
    /// Bytes kept in files at once: of an executor, outputs of commands that are longer than 512 KiB, also while they are
    /// written; of a client, results that are fetched into files. Default 16 GiB.
    pub max_file_bytes: u64,
    /// Where these files are. They have no names there. Default: that of temporary files, `$TMPDIR` or `/tmp`.
    pub directory: Option<PathBuf>,
    /// Connections served at once. A source address that is alone gets 8/9 of them (T14). Default 512.
    pub max_connections: usize,
    /// A connection begins its first request within this time, and ends each request within this time of its beginning.
    /// Default 2 s.
    pub request_timeout: Duration,
    /// A connection on which nothing more is asked for this long is closed. Default 5 s.
    pub idle_timeout: Duration,
    /// A connection on which 256 KiB of an answer, or what is left of it, take longer than this is closed, by either end.
    /// A fetch waits as long until its answer begins, also for a place. At most a day; default 10 s.
    pub progress_timeout: Duration,
    /// An executor drops a result that nobody has fetched or refused for this long. Default 10 minutes.
    pub result_ttl: Duration,
}

impl Default for BlobOptions {
    fn default() -> Self {
        Self {
            max_bytes: 1 << 30,
            max_file_bytes: 16 << 30,
            directory: None,
            max_connections: 512,
            request_timeout: Duration::from_secs(2),
            idle_timeout: Duration::from_secs(5),
            progress_timeout: Duration::from_secs(10),
            result_ttl: Duration::from_secs(600),
        }
    }
}

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
enum Closing {
    Malformed,
    Silent,
    Idle,
    Late,
    Stalled,
    Broken,
    Unreadable,
}

#[derive(Debug, Default)]
struct Counts {
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
    fn asked(&self, is_here: bool) {
        if is_here { &self.served } else { &self.unknown }.fetch_add(1, Relaxed);
    }

    fn closed(&self, closing: Closing) {
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
}

/// What is kept for others to fetch.
#[derive(Debug)]
pub(crate) struct BlobStore {
    options: BlobOptions,
    kept: Mutex<Kept>,
    room: Condvar,
    files: Arc<SpillRoom>,
    connections: Arc<Connections>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Kept {
    /// By the name under which they are asked for.
    blobs: HashMap<u64, Blob>,
    bytes: usize,
}

impl Kept {
    /// Puts it under this id, or another one if this is taken.
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

#[derive(Debug)]
enum Held {
    Whole(Arc<Content>),
    Pack(Arc<Pack>),
}

impl Held {
    /// Bytes in memory.
    fn in_memory(&self) -> usize {
        match self {
            Self::Whole(content) => content.in_memory(),
            Self::Pack(pack) => pack.len(),
        }
    }
}

/// The store is full.
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

    /// Where large results are before they are kept, or after they were fetched.
    pub(crate) fn files(&self) -> &Arc<SpillRoom> {
        &self.files
    }

    /// Keeps `content` until the lease is dropped, waiting up to `patience` for room in the memory.
    pub(crate) fn keep(
        self: &Arc<Self>,
        content: impl Into<Content>,
        patience: Duration,
    ) -> Result<BlobLease, StoreFull> {
        self.keep_as(None, content, patience)
    }

    /// The same, under the id that an earlier process of this client has given out.
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

    /// Keeps a pack that is empty yet.
    fn keep_pack(self: &Arc<Self>, pack: &Arc<Pack>) -> BlobLease {
        let secret = lock(&self.kept).insert(None, Held::Pack(Arc::clone(pack)));
        BlobLease { store: Arc::clone(self), secret, length: 0 }
    }

    /// Counts bytes that a pack which is kept will have more.
    fn reserve(&self, bytes: usize) -> Result<(), StoreFull> {
        let mut kept = lock(&self.kept);
        if kept.bytes + bytes > self.options.max_bytes {
            return Err(StoreFull);
        }
        kept.bytes += bytes;
        Ok(())
    }

    /// The blob with this name, if it may be had by who asks.
    fn find(&self, name: u64, may: impl Fn(BlobSecret) -> bool) -> Option<(BlobSecret, Arc<Content>)> {
        let found = match lock(&self.kept).blobs.get(&name) {
            Some(Blob { held: Held::Whole(content), secret, .. }) => Some((*secret, Arc::clone(content))),
            Some(Blob { held: Held::Pack(_), .. }) | None => None,
        };
        let found = found.filter(|(secret, _)| may(*secret));
        self.counts.asked(found.is_some());
        found
    }

    /// This part of a pack, if it may be had by who asks: at least one byte.
    fn find_part(
        &self,
        name: u64,
        may: impl Fn(BlobSecret) -> bool,
        part: &format::Part,
    ) -> Option<(BlobSecret, Vec<u8>)> {
        let found = match lock(&self.kept).blobs.get(&name) {
            Some(Blob { held: Held::Pack(pack), secret, .. }) => Some((*secret, Arc::clone(pack))),
            Some(Blob { held: Held::Whole(_), .. }) | None => None,
        };
        let found = found.filter(|(secret, _)| may(*secret));
        let found = found.and_then(|(secret, pack)| Some((secret, pack.part(part.offset.get(), part.most.get())?)));
        self.counts.asked(found.is_some());
        found
    }

    fn remove(&self, secret: BlobSecret) {
        let mut kept = lock(&self.kept);
        if let Some(blob) = kept.blobs.remove(&secret.request_name()) {
            kept.bytes -= blob.held.in_memory();
            self.room.notify_all();
        }
    }

    /// Drops blobs that are older than the bound; their names are then unknown.
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
            self.counts.expired.fetch_add(old.len() as u64, Relaxed);
            self.room.notify_all();
            tracing::warn!("dropped {} results that nobody fetched for {:?}", old.len(), self.options.result_ttl);
        }
    }

    pub(crate) fn counters(&self) -> BlobCounters {
        let (kept, connections, counts) = (lock(&self.kept), self.connections.counters(), &self.counts);
        BlobCounters {
            kept: kept.blobs.len() as u64,
            kept_bytes: kept.bytes as u64,
            file_bytes: self.files.used(),
            served: counts.served.load(Relaxed),
            expired: counts.expired.load(Relaxed),
            connections: connections.open,
            refused: connections.refused,
            made_room: connections.made_room,
            accept_failed: connections.accept_failed,
            unknown: counts.unknown.load(Relaxed),
            malformed: counts.malformed.load(Relaxed),
            silent: counts.silent.load(Relaxed),
            idle: counts.idle.load(Relaxed),
            late: counts.late.load(Relaxed),
            stalled: counts.stalled.load(Relaxed),
            broken: counts.broken.load(Relaxed),
            unreadable: counts.unreadable.load(Relaxed),
        }
    }
}

/// Keeps a blob available for as long as it lives.
#[derive(Debug)]
pub(crate) struct BlobLease {
    store: Arc<BlobStore>,
    secret: BlobSecret,
    length: u32,
}

impl BlobLease {
    /// What a packet carries; `port` is the server's.
    pub(crate) fn reference(&self, port: u16) -> BlobRef {
        BlobRef { id: self.secret.id().into(), length: self.length.into(), port: port.into(), at: 0.into() }
    }
}

impl Drop for BlobLease {
    fn drop(&mut self) {
        self.store.remove(self.secret);
    }
}

#[cfg(test)]
mod tests;
