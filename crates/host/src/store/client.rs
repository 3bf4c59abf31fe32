//! The operations of a store client.

use super::answers;
use super::builder::StoreBuilder;
use super::handler::AnswerHandler;
use super::scan::Scan;
use crate::driver::{Driver, lock, spawn};
use crate::error::Error;
use crate::pending::{Handle, Pending, Polls};
use crate::socket::SocketCounts;
use crate::socket::poller::Poller;
use midflight_store::client::{
    Answer, Change, Client, Counters, Expiry, Operation, PlaceInValue, Step, StoreError, Update, Updated,
};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Waiting threads poll, the network thread does not.
const NO_POLLING: Duration = Duration::ZERO;

/// Result of a compare-and-swap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cas {
    /// The value was as expected and has been replaced.
    Done,
    /// The key does not exist.
    NotFound,
    /// The key has another value.
    Conflict {
        /// The present value.
        present: Vec<u8>,
    },
}

/// All counts of a store client.
#[derive(Clone, Copy, Debug)]
pub struct StoreCounts {
    /// Protocol.
    pub protocol: Counters,
    /// Socket.
    pub socket: SocketCounts,
}

/// A client of a replica set, for any number of threads. Dropping it closes it.
///
/// Every operation is linearizable, and a write is applied once even if sent repeatedly. All methods but [`submit`](Self::submit) wait for
/// the answer.
pub struct StoreClient {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    driver: Driver<Client, AnswerHandler>,
    poller: Poller,
    closed: AtomicBool,
}

impl Polls for Shared {
    fn poll_until(&self, deadline: Option<Instant>, done: &dyn Fn() -> bool) {
        self.poller.poll_until(&self.driver, deadline, done, |client| client.open() > 0);
        self.driver.watch();
    }
}

impl std::fmt::Debug for StoreClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreClient").field("local", &self.local_addr()).finish_non_exhaustive()
    }
}

impl StoreClient {
    /// Describes a client.
    #[must_use]
    pub fn builder() -> StoreBuilder {
        StoreBuilder::default()
    }

    pub(super) fn start(driver: Driver<Client, AnswerHandler>, busy_poll: Duration) -> Result<Self, Error> {
        let shared = Arc::new(Shared { driver, poller: Poller::new(busy_poll), closed: AtomicBool::new(false) });
        let of_thread = Arc::clone(&shared);
        let thread = spawn("mf-store", move || of_thread.driver.run(NO_POLLING))?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// The value of a key; `None` if the key does not exist.
    ///
    /// # Errors
    ///
    /// If there is no answer: see [`StoreError`](super::StoreError).
    pub fn get(&self, key: impl Into<Vec<u8>>) -> Result<Option<Vec<u8>>, Error> {
        self.run(Operation::Get { key: key.into() }).map(answers::value)
    }

    /// Whether a key exists.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn exists(&self, key: impl Into<Vec<u8>>) -> Result<bool, Error> {
        self.run(Operation::Exists { key: key.into() }).map(answers::existed)
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    ///
    /// If there is no answer. [`Error::is_unknown`] says whether the write may have taken place.
    pub fn put(&self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Result<(), Error> {
        self.run(Operation::Put { key: key.into(), value: value.into() }).map(answers::put)
    }

    /// Removes a key. Returns whether it existed.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub fn delete(&self, key: impl Into<Vec<u8>>) -> Result<bool, Error> {
        self.run(Operation::Delete { key: key.into() }).map(answers::existed)
    }

    /// Sets the value of a key if the present one is `expected`.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub fn cas(
        &self,
        key: impl Into<Vec<u8>>,
        expected: impl Into<Vec<u8>>,
        new: impl Into<Vec<u8>>,
    ) -> Result<Cas, Error> {
        self.run(Operation::Cas { key: key.into(), expected: expected.into(), new: new.into() }).map(answers::cas)
    }

    /// Sets the value of a key that does not exist. Returns the present value if there is one, and then changes nothing.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub fn create(&self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Result<Option<Vec<u8>>, Error> {
        self.run(Operation::Create { key: key.into(), value: value.into() }).map(answers::create)
    }

    /// Adds to a number and returns the sum; a missing key counts as 0.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub fn incr(&self, key: impl Into<Vec<u8>>, by: i64) -> Result<i64, Error> {
        self.run(Operation::Incr { key: key.into(), by }).map(answers::sum)
    }

    /// Sets the value of a key that expires after `ttl`, in whole milliseconds.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub fn put_for(&self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>, ttl: Duration) -> Result<(), Error> {
        let (change, expiry) = (Change::Set(value.into()), Expiry::of(ttl));
        self.update(key, Update { change, expiry, ..Update::default() }).map(drop)
    }

    /// Changes value and expiry of a key in one step, if a condition holds. The default update asks how long the key lives.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    ///
    /// # Example
    ///
    /// A lock that its holder loses after ten seconds, and prolongs or gives back only while it is its own:
    ///
    /// ```no_run
    /// use midflight_host::store::{Change, Condition, Expiry, StoreClient, Update};
    /// use std::time::Duration;
    ///
    /// let store = StoreClient::builder().switch("127.0.0.1:7700".parse().expect("an address")).connect()?;
    /// let (mine, expiry) = (b"worker 7".to_vec(), Expiry::of(Duration::from_secs(10)));
    /// let is_mine = || Condition::Equals(mine.clone());
    /// let take = Update { condition: Condition::Absent, change: Change::Set(mine.clone()), expiry, ..Update::default() };
    /// if store.update("lock", take)?.done {
    ///     store.update("lock", Update { condition: is_mine(), expiry, ..Update::default() })?;
    ///     store.update("lock", Update { condition: is_mine(), change: Change::Remove, ..Update::default() })?;
    /// }
    /// # Ok::<(), midflight_host::Error>(())
    /// ```
    pub fn update(&self, key: impl Into<Vec<u8>>, update: Update) -> Result<Updated, Error> {
        self.run(Operation::Update { key: key.into(), update }).map(answers::updated)
    }

    /// Updates several keys in one step, if all required conditions hold; else `None`. The keys need the same part in braces. A step that
    /// fails stops no other one.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    ///
    /// # Example
    ///
    /// ```no_run
    /// use midflight_host::store::{Change, Condition, Step, StoreClient, Update};
    ///
    /// let store = StoreClient::builder().switch("127.0.0.1:7700".parse().expect("an address")).connect()?;
    /// let add = |by| Update { change: Change::Add(by), ..Update::default() };
    /// let is_open = Step::check("{account 7}state", Condition::Equals(b"open".to_vec()));
    /// let moved = store.transact(vec![is_open, Step::new("{account 7}cash", add(-5)), Step::new("{account 7}saved", add(5))])?;
    /// println!("{}", if moved.is_some() { "moved" } else { "the account is not open" });
    /// # Ok::<(), midflight_host::Error>(())
    /// ```
    pub fn transact(&self, steps: Vec<Step>) -> Result<Option<Vec<Result<Updated, StoreError>>>, Error> {
        self.run(Operation::Transact { steps }).map(answers::transacted)
    }

    /// The revision of a key, for [`Condition::Unchanged`](super::Condition::Unchanged): it grows with each change; `None`: there is no
    /// such key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get). The key may have [`PlaceInValue::KEY_MAX`](super::PlaceInValue::KEY_MAX) bytes.
    pub fn revision(&self, key: impl AsRef<[u8]>) -> Result<Option<u64>, Error> {
        self.run(Operation::Piece { place: PlaceInValue::new(key.as_ref(), 0, 0) }).map(answers::revision)
    }

    /// Lists all keys, in no order, each once. A key that exists from the first call of `next` to the last is among them; one that is
    /// created or removed in between may be. After an error it ends.
    #[must_use]
    pub fn scan(&self) -> Scan<'_> {
        Scan::begin(self)
    }

    /// Begins an operation. Concurrent operations may take place in any order.
    ///
    /// # Errors
    ///
    /// If a bound is exceeded, too many operations wait, or the client is closed.
    pub fn submit(&self, operation: Operation) -> Result<Handle<Answer>, Error> {
        let handle = self.begin(operation)?;
        self.shared.driver.watch();
        Ok(handle)
    }

    fn run(&self, operation: Operation) -> Result<Answer, Error> {
        self.begin(operation)?.wait()
    }

    fn begin(&self, operation: Operation) -> Result<Handle<Answer>, Error> {
        let pending = Arc::new(Pending::default());
        self.shared.driver.with(|now, client, handler| {
            if self.shared.closed.load(Ordering::Acquire) {
                return Err(Error::Closed);
            }
            handler.expect(client.submit(now, operation)?, Arc::clone(&pending));
            Ok(())
        })?;
        Ok(Handle::new(pending, self.shared.clone()))
    }

    /// The local UDP address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.driver.socket.local_addr()
    }

    /// The current switch.
    #[must_use]
    pub fn switch(&self) -> SocketAddr {
        self.shared.driver.peek(|client, _| client.switch())
    }

    /// Operations not yet ended.
    #[must_use]
    pub fn open(&self) -> usize {
        self.shared.driver.peek(|client, _| client.open())
    }

    /// Counts since the start.
    #[must_use]
    pub fn counts(&self) -> StoreCounts {
        let driver = &self.shared.driver;
        StoreCounts { protocol: driver.peek(|client, _| *client.counters()), socket: driver.socket.counts() }
    }

    /// Closes the client. Open operations fail with [`Error::Closed`].
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for StoreClient {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
        let open = self.shared.driver.with(|_, _, handler| handler.close());
        self.shared.driver.stop();
        for pending in open {
            pending.end(Err(Error::Closed));
        }
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }
}
