//! Get, and what all operations share.

use super::builder::CacheBuilder;
use super::counters::{CacheCounts, Counts};
use super::handler::{AnswerHandler, Open};
use super::long::LongGets;
use super::pending::{Ending, GetOutcome, Waits};
use super::streams::Streams;
use super::writes::checked;
use crate::driver::{Driver, lock, spawn};
use crate::error::Error;
use crate::pending::{Handle, Pending, Polls};
use crate::socket::poller::Poller;
use midflight_cache::client::{Client, Read, SubmitError};
use midflight_cache::keyspace::Keyspace;
use midflight_wire::cache::backend::{BackendRequest, write_request};
use rand::seq::SliceRandom;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Waiting threads poll, the network thread does not.
const NO_POLLING: Duration = Duration::ZERO;

/// A value of a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The flags it was set with.
    pub flags: u32,
}

/// A client of a replicated cache, for any number of threads. Dropping it closes it.
///
/// A get asks one replica, selected by the network ([`CacheBuilder::operator`]) or the client ([`CacheBuilder::direct`]). A set or delete
/// goes to all replicas. A cache may forget, so `None` is a valid result.
///
/// Concurrent sets of one key may leave different values on its replicas, until the next set or expiry.
pub struct CacheClient {
    pub(super) shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

pub(super) struct Shared {
    driver: Driver<Client, AnswerHandler>,
    poller: Poller,
    closed: AtomicBool,
    /// Gets not yet ended.
    open: Arc<AtomicUsize>,
    open_max: usize,
    long: Arc<LongGets>,
    pub(super) keyspace: Arc<Keyspace>,
    pub(super) streams: Arc<Streams>,
    pub(super) counts: Arc<Counts>,
    pub(super) timeout: Duration,
}

pub(super) struct Parts {
    pub(super) driver: Driver<Client, AnswerHandler>,
    pub(super) keyspace: Arc<Keyspace>,
    pub(super) streams: Arc<Streams>,
    pub(super) long: Arc<LongGets>,
    pub(super) counts: Arc<Counts>,
    pub(super) open_max: usize,
    pub(super) timeout: Duration,
    pub(super) busy_poll: Duration,
}

impl Polls for Shared {
    fn poll_until(&self, deadline: Option<Instant>, done: &dyn Fn() -> bool) {
        self.poller.poll_until(&self.driver, deadline, done, |client| client.open() > 0);
        self.driver.watch();
    }
}

impl std::fmt::Debug for CacheClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CacheClient").field("local", &self.local_addr()).finish_non_exhaustive()
    }
}

impl CacheClient {
    /// Describes a client.
    #[must_use]
    pub fn builder() -> CacheBuilder {
        CacheBuilder::default()
    }

    pub(super) fn start(parts: Parts) -> Result<Self, Error> {
        let Parts { driver, keyspace, streams, long, counts, open_max, timeout, busy_poll } = parts;
        let shared = Arc::new(Shared {
            driver,
            poller: Poller::new(busy_poll),
            closed: AtomicBool::new(false),
            open: Arc::default(),
            open_max,
            long,
            keyspace,
            streams,
            counts,
            timeout,
        });
        let of_thread = Arc::clone(&shared);
        let thread = spawn("mf-cache", move || of_thread.driver.run(NO_POLLING))?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// The value of a key; `None` if the cache does not have it.
    ///
    /// # Errors
    ///
    /// If there is no answer: see [`CacheError`](super::CacheError).
    pub fn get(&self, key: impl AsRef<[u8]>) -> GetOutcome {
        self.handle(key.as_ref())?.wait()
    }

    /// Begins a get.
    ///
    /// # Errors
    ///
    /// If the key is invalid, too many gets are open, or the client is closed.
    pub fn submit_get(&self, key: impl AsRef<[u8]>) -> Result<Handle<Option<Value>>, Error> {
        let handle = self.handle(key.as_ref())?;
        self.shared.driver.watch();
        Ok(handle)
    }

    /// Begins a get. The thread that ends it passes the outcome to `sink`, which must not block.
    ///
    /// # Errors
    ///
    /// As [`submit_get`](Self::submit_get); then `sink` is not called.
    pub fn submit_get_to(
        &self,
        key: impl AsRef<[u8]>,
        sink: impl FnOnce(GetOutcome) + Send + 'static,
    ) -> Result<(), Error> {
        self.begin(key.as_ref(), Waits::Sink(Box::new(sink)))?;
        self.shared.driver.watch();
        Ok(())
    }

    fn handle(&self, key: &[u8]) -> Result<Handle<Option<Value>>, Error> {
        let pending = Arc::new(Pending::default());
        self.begin(key, Waits::Handle(Arc::clone(&pending)))?;
        Ok(Handle::new(pending, self.shared.clone()))
    }

    fn begin(&self, key: &[u8], waits: Waits) -> Result<(), Error> {
        let shared = &self.shared;
        let key = checked(key)?;
        let group = shared.keyspace.group(key);
        let mut backups = shared.keyspace.servers(group).to_vec();
        backups.shuffle(&mut rand::rng());
        let mut request = Vec::new();
        write_request(&BackendRequest::Get { key }, &mut request);
        let read = Read { group, backups, asked: request.clone() };
        let deadline = Instant::now() + shared.timeout;
        shared.driver.with(|now, client, handler| {
            if shared.closed.load(Ordering::Acquire) {
                return Err(Error::Closed);
            }
            let open = shared.open.load(Ordering::Acquire);
            if open >= shared.open_max {
                return Err(too_many(open));
            }
            let read = client.submit(now, read).map_err(|error| match error {
                SubmitError::QueueFull(open) => too_many(open),
                SubmitError::Group(_) | SubmitError::Backups(_) | SubmitError::TooLong(_) => {
                    unreachable!("a keyspace has good groups, and any key fits: {error}")
                }
            })?;
            shared.open.fetch_add(1, Ordering::AcqRel);
            let ending = Ending::new(waits, Arc::clone(&shared.open));
            handler.expect(read, Open { ending, request, group, deadline });
            Ok(())
        })
    }

    /// The local UDP address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.driver.socket.local_addr()
    }

    /// The servers of a key.
    ///
    /// # Errors
    ///
    /// If the key is invalid.
    pub fn servers_of(&self, key: impl AsRef<[u8]>) -> Result<&[SocketAddr], Error> {
        let keyspace = &self.shared.keyspace;
        Ok(keyspace.servers(keyspace.group(checked(key.as_ref())?)))
    }

    /// Gets not yet ended.
    #[must_use]
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::Acquire)
    }

    /// Counts since the start.
    #[must_use]
    pub fn counts(&self) -> CacheCounts {
        let driver = &self.shared.driver;
        let protocol = driver.peek(|client, _| client.counters());
        CacheCounts { protocol, socket: driver.socket.counts(), cache: self.shared.counts.read() }
    }

    /// Closes the client. Open operations fail with [`Error::Closed`].
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for CacheClient {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
        let open = self.shared.driver.with(|_, _, handler| handler.close());
        self.shared.driver.stop();
        drop(open); // ends the open gets
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
        self.shared.long.close();
    }
}

fn too_many(open: usize) -> Error {
    Error::TooManyOpen { open, asked: 1, max: open }
}
