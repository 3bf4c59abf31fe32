//! Whether the backend is up, and the connections to it.
//!
//! A backend is *gone* if connecting fails, or a new connection ends before its first response. Then requests are refused at once, and the
//! agent reconnects every 0.1 s to 2 s. The pause doubles until a request is answered, which protects a backend that accepts and closes
//! connections.

use super::connection::{Break, Connection, IdleState, OwnedAnswer};
use super::counters::{Counts, count};
use crate::clock;
use crate::driver::lock;
use midflight_cache::backend::{BackendAddress, Dialect, Wrong};
use midflight_wire::cache::backend::BackendRequest;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{sleep, timeout};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Value { value: Vec<u8>, flags: u32 },
    Missing,
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The message for the client.
    Refused(String),
    /// The client has left; the backend was not asked.
    NotWanted,
}

#[derive(Debug)]
pub(super) struct Backend {
    address: BackendAddress,
    timeout: Duration,
    counts: Arc<Counts>,
    is_gone: AtomicBool,
    why: Mutex<String>,
    /// Failures since the last response.
    failures: AtomicU32,
    lost: Notify,
}

impl Backend {
    pub(super) fn new(address: BackendAddress, timeout: Duration, counts: Arc<Counts>) -> Self {
        Self {
            address,
            timeout,
            counts,
            is_gone: AtomicBool::new(false),
            why: Mutex::default(),
            failures: AtomicU32::new(0),
            lost: Notify::new(),
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    pub(super) fn gone(&self) -> Option<String> {
        self.is_gone().then(|| lock(&self.why).clone())
    }

    /// Opens a connection. A failure marks the backend as gone.
    pub(super) async fn connect(&self) -> Result<Connection, String> {
        // Half, so that a request that must connect learns in time that the backend is down.
        let opened = timeout(self.timeout / 2, Connection::open(&self.address)).await;
        let opened = opened.unwrap_or_else(|_late| Err("it does not take connections".into()));
        count(if opened.is_ok() { &self.counts.backend_connects } else { &self.counts.backend_connect_failures });
        opened.inspect_err(|why| self.lose(why))
    }

    fn lose(&self, why: &str) {
        why.clone_into(&mut lock(&self.why));
        if !self.is_gone.swap(true, Ordering::AcqRel) {
            self.failures.fetch_add(1, Ordering::AcqRel);
            tracing::warn!("the backend {} is not there: {why}; requests are refused until it is", self.address);
        }
        self.lost.notify_one();
    }

    fn answered(&self) {
        if self.failures.load(Ordering::Acquire) > 0 {
            self.failures.store(0, Ordering::Release);
        }
    }

    fn pause(&self) -> Duration {
        let doubled = self.failures.load(Ordering::Acquire).saturating_sub(1).min(8);
        (FIRST_PAUSE * (1 << doubled)).min(LONGEST_PAUSE)
    }

    /// Reconnects while the backend is gone. Runs until dropped.
    pub(super) async fn look_for_it(&self) {
        loop {
            if !self.is_gone() {
                self.lost.notified().await;
                continue;
            }
            sleep(self.pause()).await;
            // Dropped: it is not known here which pool needs a connection.
            if self.connect().await.is_ok() {
                self.is_gone.store(false, Ordering::Release);
                tracing::warn!("the backend {} takes connections again", self.address);
            } else {
                self.failures.fetch_add(1, Ordering::AcqRel);
            }
        }
    }
}

/// Backend connections: one per request in progress, up to a limit.
#[derive(Debug)]
pub(super) struct Pool {
    backend: Arc<Backend>,
    places: Semaphore,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    pub(super) fn new(backend: Arc<Backend>, connections: usize) -> Self {
        Self { backend, places: Semaphore::new(connections), idle: Mutex::default() }
    }

    /// Returns a connection whose responses have all been read.
    pub(super) fn give_back(&self, connection: Option<Connection>) {
        lock(&self.idle).extend(connection);
    }

    /// Asks the backend within its timeout, after at most as long a wait for a connection. `is_wanted`: whether the client still waits.
    pub(super) async fn ask(
        &self,
        request: &BackendRequest<'_>,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Reply, Failure> {
        let (backend, counts) = (&*self.backend, &self.backend.counts);
        let mut written = Vec::new();
        if let Err(unsupported) = backend.address.dialect.write(request, clock::unix().as_secs(), &mut written) {
            count(&counts.backend_unsupported);
            return Err(Failure::Refused(unsupported.to_string()));
        }
        let Ok(Ok(_place)) = timeout(backend.timeout, self.places.acquire()).await else {
            count(&counts.stream_slots_taken);
            return Err(Failure::Refused("too many requests wait for the backend".into()));
        };
        if !is_wanted() {
            return Err(Failure::NotWanted);
        }
        if let Ok(outcome) = timeout(backend.timeout, self.ask_now(request, &written)).await {
            outcome
        } else {
            // The dropped future has closed the connection.
            count(&counts.backend_timeouts);
            Err(Failure::Refused("the backend does not answer".into()))
        }
    }

    async fn ask_now(&self, request: &BackendRequest<'_>, written: &[u8]) -> Result<Reply, Failure> {
        let mut kept = self.idle();
        loop {
            let is_kept = kept.is_some();
            let mut connection = match kept.take() {
                Some(connection) => connection,
                None => self.connect().await?,
            };
            match connection.ask(request, written).await {
                Ok(said) => {
                    self.backend.answered();
                    return self.said(request, said, connection);
                }
                // The backend may have closed it before reading the request. Repeating a read is safe.
                Err(Break::Closed { began: false }) if is_kept && matches!(request, BackendRequest::Get { .. }) => {
                    count(&self.backend.counts.backend_closed_idle);
                }
                Err(broken) => return Err(self.broken(&broken, connection.has_answered)),
            }
        }
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let connected = if self.backend.is_gone() { Err(String::new()) } else { self.backend.connect().await };
        connected.map_err(|_why| {
            count(&self.backend.counts.backend_gone);
            Failure::Refused("the backend is not there".into())
        })
    }

    /// A kept connection without events since its last response.
    fn idle(&self) -> Option<Connection> {
        loop {
            let connection = lock(&self.idle).pop()?;
            match connection.idle_state() {
                IdleState::Nothing => return Some(connection),
                IdleState::Closed => count(&self.backend.counts.backend_closed_idle),
                IdleState::SpokeUnasked => count(&self.backend.counts.backend_spoke_unasked),
            }
        }
    }

    fn said(&self, request: &BackendRequest<'_>, said: OwnedAnswer, connection: Connection) -> Result<Reply, Failure> {
        let is_refusal = matches!(said, OwnedAnswer::Refused(_));
        // memcached may read the value of a refused SET as commands and answer these too.
        let may_say_more =
            self.backend.address.dialect == Dialect::Memcached && matches!(request, BackendRequest::Set { .. });
        if !(is_refusal && may_say_more) {
            self.give_back(Some(connection));
        }
        match said {
            OwnedAnswer::Value { value, flags } => Ok(Reply::Value { value, flags }),
            OwnedAnswer::Missing => Ok(Reply::Missing),
            OwnedAnswer::Done => Ok(Reply::Done),
            OwnedAnswer::Refused(why) => {
                count(&self.backend.counts.backend_refused);
                tracing::debug!("the backend {} refuses: {why}", self.backend.address);
                Err(Failure::Refused(format!("the backend says {why}")))
            }
        }
    }

    /// If the connection never gave a response, the backend does not work.
    fn broken(&self, broken: &Break, has_answered: bool) -> Failure {
        let counts = &self.backend.counts;
        let (counter, why) = match broken {
            Break::Closed { .. } => (&counts.backend_gone, "the backend closed the connection".to_owned()),
            Break::Wrong(Wrong::TooLong) => (&counts.backend_too_long, Wrong::TooLong.to_string()),
            Break::Wrong(wrong) => (&counts.backend_garbage, format!("the backend sends {wrong}")),
        };
        count(counter);
        let is_too_long = matches!(broken, Break::Wrong(Wrong::TooLong));
        if !has_answered && !is_too_long {
            self.backend.lose(&why);
        } else if matches!(broken, Break::Wrong(_)) && !is_too_long {
            tracing::debug!("{why}: {}", self.backend.address);
        }
        Failure::Refused(why)
    }
}
