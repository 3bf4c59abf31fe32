//! Arguments and results that exceed a packet, by reference: whoever has the bytes serves them over TCP, whoever needs
//! them fetches them. A reference (`BlobRef`: id, length, port) travels in the packet; the IP address is its sender's.
//!
//! Format, integers in network byte order. A connection carries any number of requests, one after another:
//!
//! | request, 16 bytes | | answer, 8 bytes, then the bytes | |
//! |---|---|---|---|
//! | magic "MB" | 16 bits | magic "MB" | 16 bits |
//! | version 1 | 8 bits | version 1 | 8 bits |
//! | operation: 1 fetch | 8 bits | status: 0 here it is, 1 unknown id | 8 bits |
//! | reserved, 0 | 32 bits | length of what follows, at most 64 MiB; 0 with status 1 | 32 bits |
//! | id | 64 bits | | |
//!
//! An id is random: knowing it is the permission to fetch. A malformed request ends the connection. Bounds: see
//! [`BlobOptions`]; a connection without a request for 5 s, or without progress for 10 s, is closed.

mod fetch;
mod server;

pub(crate) use fetch::Fetcher;
pub(crate) use server::BlobServer;

use crate::driver::lock;
use midflight_wire::{BLOB_MAX, BlobRef};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

const MAGIC: [u8; 2] = *b"MB";
const VERSION: u8 = 1;
const OPERATION_FETCH: u8 = 1;
const STATUS_HERE: u8 = 0;
const STATUS_UNKNOWN: u8 = 1;
const REQUEST_BYTES: usize = 16;
const ANSWER_BYTES: usize = 8;

/// No progress for this long ends a connection, at either end.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);
/// The server closes a connection on which nothing was asked for this long.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// Bounds of what is kept for others to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobOptions {
    /// Bytes kept at once. Default 1 GiB.
    pub max_bytes: usize,
    /// Connections served at once; more wait in the kernel's backlog. Default 512.
    pub max_connections: usize,
    /// An executor drops a result that nobody has fetched or refused for this long. Default 10 minutes.
    pub result_ttl: Duration,
}

impl Default for BlobOptions {
    fn default() -> Self {
        Self { max_bytes: 1 << 30, max_connections: 512, result_ttl: Duration::from_secs(600) }
    }
}

/// Counts of one blob server, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobCounters {
    /// Blobs kept now.
    pub kept: u64,
    /// Their bytes.
    pub kept_bytes: u64,
    /// Fetches answered with bytes.
    pub served: u64,
    /// Fetches of unknown ids.
    pub unknown: u64,
    /// Connections closed for a malformed request.
    pub malformed: u64,
    /// Blobs dropped because nobody asked for them in time.
    pub expired: u64,
}

/// What is kept for others to fetch.
#[derive(Debug)]
pub(crate) struct BlobStore {
    options: BlobOptions,
    kept: Mutex<Kept>,
    room: Condvar,
    served: AtomicU64,
    unknown: AtomicU64,
    malformed: AtomicU64,
    expired: AtomicU64,
}

#[derive(Debug, Default)]
struct Kept {
    blobs: HashMap<u64, Blob>,
    bytes: usize,
}

#[derive(Debug)]
struct Blob {
    bytes: Arc<Vec<u8>>,
    since: Instant,
}

/// The store is full.
#[derive(Debug)]
pub(crate) struct StoreFull;

impl BlobStore {
    pub(crate) fn new(options: BlobOptions) -> Arc<Self> {
        Arc::new(Self {
            options,
            kept: Mutex::default(),
            room: Condvar::new(),
            served: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            expired: AtomicU64::new(0),
        })
    }

    pub(crate) fn options(&self) -> &BlobOptions {
        &self.options
    }

    /// Keeps `bytes` until the lease is dropped, waiting up to `patience` for room.
    pub(crate) fn keep(self: &Arc<Self>, bytes: Arc<Vec<u8>>, patience: Duration) -> Result<BlobLease, StoreFull> {
        debug_assert!(bytes.len() <= BLOB_MAX as usize, "callers refuse longer ones with a message");
        let length = bytes.len();
        let full = |kept: &mut Kept| kept.bytes + length > self.options.max_bytes;
        let waited = self.room.wait_timeout_while(lock(&self.kept), patience, full);
        let (mut kept, timeout) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        if timeout.timed_out() {
            return Err(StoreFull);
        }
        let mut id = rand::random();
        while kept.blobs.contains_key(&id) {
            id = rand::random();
        }
        kept.blobs.insert(id, Blob { bytes, since: Instant::now() });
        kept.bytes += length;
        Ok(BlobLease { store: Arc::clone(self), id, length: length as u32 })
    }

    fn find(&self, id: u64) -> Option<Arc<Vec<u8>>> {
        let found = lock(&self.kept).blobs.get(&id).map(|blob| Arc::clone(&blob.bytes));
        if found.is_some() { &self.served } else { &self.unknown }.fetch_add(1, Relaxed);
        found
    }

    fn remove(&self, id: u64) {
        let mut kept = lock(&self.kept);
        if let Some(blob) = kept.blobs.remove(&id) {
            kept.bytes -= blob.bytes.len();
            self.room.notify_all();
        }
    }

    /// Drops what is older than the bound; its lease then names nothing.
    pub(crate) fn expire(&self) {
        let mut kept = lock(&self.kept);
        let old = kept.blobs.iter().filter(|(_, blob)| blob.since.elapsed() > self.options.result_ttl);
        let old: Vec<u64> = old.map(|(id, _)| *id).collect();
        for id in &old {
            if let Some(blob) = kept.blobs.remove(id) {
                kept.bytes -= blob.bytes.len();
            }
        }
        if !old.is_empty() {
            self.expired.fetch_add(old.len() as u64, Relaxed);
            self.room.notify_all();
            tracing::warn!("dropped {} results that nobody fetched for {:?}", old.len(), self.options.result_ttl);
        }
    }

    pub(crate) fn counters(&self) -> BlobCounters {
        let kept = lock(&self.kept);
        BlobCounters {
            kept: kept.blobs.len() as u64,
            kept_bytes: kept.bytes as u64,
            served: self.served.load(Relaxed),
            unknown: self.unknown.load(Relaxed),
            malformed: self.malformed.load(Relaxed),
            expired: self.expired.load(Relaxed),
        }
    }
}

/// Keeps a blob available for as long as it lives.
#[derive(Debug)]
pub(crate) struct BlobLease {
    store: Arc<BlobStore>,
    id: u64,
    length: u32,
}

impl BlobLease {
    /// What a packet carries; `port` is the server's.
    pub(crate) fn reference(&self, port: u16) -> BlobRef {
        BlobRef { id: self.id.into(), length: self.length.into(), port: port.into(), reserved: 0.into() }
    }
}

impl Drop for BlobLease {
    fn drop(&mut self) {
        self.store.remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::fetch::FetchError;
    use super::*;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};

    fn serve(options: BlobOptions) -> (Arc<BlobStore>, BlobServer, SocketAddr) {
        let store = BlobStore::new(options);
        let server = BlobServer::start("127.0.0.1:0".parse().unwrap(), Arc::clone(&store), false).unwrap();
        let address = ([127, 0, 0, 1], server.port()).into();
        (store, server, address)
    }

    #[test]
    fn blobs_are_fetched_until_their_lease_ends() {
        let (store, server, address) = serve(BlobOptions::default());
        let fetcher = Fetcher::default();
        for size in [0, 1, 17, 70_000, BLOB_MAX as usize] {
            let bytes: Vec<u8> = (0..size).map(|i| (i / 251) as u8).collect();
            let lease = store.keep(Arc::new(bytes.clone()), Duration::ZERO).unwrap();
            let reference = lease.reference(server.port());
            assert!(fetcher.fetch(address.ip(), &reference).unwrap() == bytes, "{size} bytes");
            drop(lease);
            assert!(matches!(fetcher.fetch(address.ip(), &reference), Err(FetchError::Gone)));
        }
        let counters = store.counters();
        assert_eq!((counters.served, counters.unknown, counters.kept, counters.kept_bytes), (5, 5, 0, 0));
    }

    #[test]
    fn t11_a_malformed_request_ends_the_connection_and_is_counted() {
        let (store, _server, address) = serve(BlobOptions::default());
        for request in [*b"GET / HTTP/1.1\r\n", *b"MB\x02\x01............", *b"MB\x01\x02............"] {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
            stream.write_all(&request).unwrap();
            assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
        }
        assert_eq!(store.counters().malformed, 3);
    }

    #[test]
    fn a_reference_of_another_length_is_refused() {
        let (store, server, address) = serve(BlobOptions::default());
        let lease = store.keep(Arc::new(vec![1; 100]), Duration::ZERO).unwrap();
        let mut reference = lease.reference(server.port());
        for length in [99, 101, BLOB_MAX + 1] {
            reference.length = length.into();
            assert!(matches!(Fetcher::default().fetch(address.ip(), &reference), Err(FetchError::Length { .. })));
        }
    }

    #[test]
    fn the_store_is_bounded_and_gives_room_back() {
        let (store, _server, _) = serve(BlobOptions { max_bytes: 100, ..BlobOptions::default() });
        let lease = store.keep(Arc::new(vec![0; 80]), Duration::ZERO).unwrap();
        assert!(store.keep(Arc::new(vec![0; 21]), Duration::from_millis(5)).is_err());
        let waits = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| store.keep(Arc::new(vec![0; 21]), Duration::from_secs(5)).is_ok());
            drop(lease);
            waiter.join().unwrap()
        });
        assert!(waits);
    }

    #[test]
    fn what_nobody_fetches_expires() {
        let (store, _server, _) = serve(BlobOptions { result_ttl: Duration::ZERO, ..BlobOptions::default() });
        let lease = store.keep(Arc::new(vec![0; 80]), Duration::ZERO).unwrap();
        store.expire();
        assert_eq!((store.counters().expired, store.counters().kept_bytes), (1, 0));
        drop(lease);
        assert_eq!(store.counters().kept_bytes, 0);
    }
}
