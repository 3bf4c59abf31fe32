//! The client: jobs in, outcomes out. The submitting thread encodes and sends; the network thread receives, and passes outcomes to the
//! threads that wait.

mod builder;
mod durable;
mod fetches;
mod handler;
pub(crate) mod shared;

use crate::blob::{BlobCounters, BlobLease, BlobServer, BlobStore, Fetcher};
use crate::clock;
use crate::driver::{Driver, lock, spawn};
use crate::error::Error;
use crate::pending::Polls;
use crate::socket::poller::Poller;
use crate::socket::{Socket, SocketCounts};
use crate::tasks::job::{Job, TaskSpec};
use crate::tasks::results::{JobClient, JobHandle, JobState, Sink, TaskOutcome};
use crate::waker::Waker;
pub(crate) use builder::CONNECT_TIMEOUT;
pub use builder::ClientBuilder;
pub use durable::{DurableClient, DurableOptions, Happened, WakesDurable};
pub(crate) use fetches::Fetches;
pub(crate) use handler::PART_MAX;
use handler::{Fetch, Places, ResultHandler};
use midflight_tasks::client::{self as protocol, Argument, ClientConfig, Task, TaskKey};
use midflight_wire::tasks::{APPENDED_MAX, ARGUMENT_BLOB_MAX, ARGUMENT_MAX, BlobRef, DURABLE};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker as TaskWaker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Waiting threads poll, the network thread does not.
const NO_POLLING: Duration = Duration::ZERO;
/// Longest interval between checks for room.
const ROOM_POLL: Duration = Duration::from_millis(20);
/// How long `drop` waits for executors to stop cancelled tasks.
const STOPS_PATIENCE: Duration = Duration::from_secs(1);

/// All counts of a client.
#[derive(Clone, Copy, Debug)]
pub struct ClientCounts {
    /// Protocol.
    pub protocol: protocol::Counters,
    /// Socket.
    pub socket: SocketCounts,
    /// Arguments by reference.
    pub blobs: BlobCounters,
}

/// Leases of arguments by task; may be shorter than the job.
type Leases = Vec<Option<Arc<BlobLease>>>;
type Kept = (Arc<BlobLease>, BlobRef);
type ClientDriver = Driver<protocol::Client, ResultHandler>;

/// A client of a switch, for any number of threads. Dropping it closes it.
pub struct Client {
    shared: Arc<Shared>,
    blobs: Arc<BlobStore>,
    server: BlobServer,
    wait_for_room: bool,
    next_jid: AtomicU32,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    driver: ClientDriver,
    room: Arc<Room>,
    closed: AtomicBool,
    poller: Poller,
}

#[derive(Debug, Default)]
struct Room {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    threads: usize,
    futures: Vec<TaskWaker>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("local", &self.local_addr()).finish_non_exhaustive()
    }
}

impl Client {
    /// Describes a client.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    fn start(options: ClientBuilder) -> Result<Self, Error> {
        let bind = options.bind.unwrap_or_else(|| local_for(&options.switches));
        let config = ClientConfig {
            uid: options.uid,
            max_open: options.max_open,
            secret: rand::random(),
            ..ClientConfig::new(rand::random::<u64>() & !DURABLE, rand::random(), options.switches)
        };
        let endpoint = protocol::Client::new(config, clock::now());
        let endpoint = endpoint.map_err(|error| Error::invalid(&error))?;
        if options.fetchers == 0 {
            return Err(Error::Invalid("fetchers is 0: set it to at least 1".to_owned()));
        }
        let blobs = BlobStore::new(options.blobs);
        let server = BlobServer::start(SocketAddr::new(bind.ip(), 0), Arc::clone(&blobs), false)?;
        let socket = Socket::bind(bind)?;
        let waker = Waker::new()?;
        let room = Arc::new(Room::default());
        let fetches = Arc::new(Fetches::new(options.fetchers));
        let handler = ResultHandler::new(
            socket.local_addr(),
            Arc::clone(&fetches),
            Arc::clone(&room),
            (Arc::clone(&blobs), server.port()),
        );
        let driver = Driver::new(endpoint, handler, socket, waker);
        let closed = AtomicBool::new(false);
        let shared = Arc::new(Shared { driver, room, closed, poller: Poller::new(options.busy_poll) });
        let client = Self {
            shared,
            blobs,
            server,
            wait_for_room: options.wait_for_room,
            next_jid: AtomicU32::new(1),
            threads: Mutex::default(),
        };
        let files = options.files.then(|| Arc::clone(client.blobs.files()));
        client.start_threads(options.fetchers, &fetches, Places { value_max: options.value_max, files })?;
        Ok(client)
    }

    fn start_threads(
        &self,
        fetchers: usize,
        fetches: &Arc<Fetches<IpAddr, Fetch>>,
        places: Places,
    ) -> Result<(), Error> {
        let mut threads = lock(&self.threads);
        let shared = Arc::clone(&self.shared);
        threads.push(spawn("mf-client", move || shared.driver.run(NO_POLLING))?);
        let fetcher = Arc::new(Fetcher::new(self.blobs.options().progress_timeout));
        for _ in 0..fetchers {
            let (shared, fetcher, fetches) = (Arc::clone(&self.shared), Arc::clone(&fetcher), Arc::clone(fetches));
            let places = places.clone();
            let fetch = move |fetch: Fetch| fetch.run(&fetcher, &places, &shared.driver);
            threads.push(spawn("mf-fetch", move || fetches.serve(fetch))?);
        }
        Ok(())
    }

    /// The local UDP address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.driver.socket.local_addr()
    }

    /// Waits until a switch has answered; `false` after `timeout`.
    #[must_use]
    pub fn wait_connected(&self, timeout: Duration) -> bool {
        let started = Instant::now();
        while self.epoch() == 0 {
            if started.elapsed() >= timeout {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// The current switch.
    #[must_use]
    pub fn switch(&self) -> SocketAddr {
        self.shared.driver.peek(|endpoint, _| endpoint.switch().0)
    }

    /// The epoch of the current switch, 0 before its first answer.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.shared.driver.peek(|endpoint, _| endpoint.switch().1)
    }

    /// How long a switch has been asked without an answer. Clients ask while tasks are open.
    #[must_use]
    pub fn unanswered_for(&self) -> Option<Duration> {
        let since = self.shared.driver.peek(|endpoint, _| endpoint.unanswered_since())?;
        Some(Duration::from_nanos(clock::now().saturating_sub(since)))
    }

    /// Bytes of a packet without an answer for some 10 s while others are answered: a link has an MTU below 1,280 (T15), and the packet's
    /// tasks wait until it is raised. `None`: no such packet.
    #[must_use]
    pub fn unanswered_length(&self) -> Option<usize> {
        self.shared.driver.peek(|endpoint, _| endpoint.unanswered_length())
    }

    /// This client's address as the switch sees it, once known. A port other than [`Self::local_addr`]'s means NAT: executors cannot reach
    /// this client.
    #[must_use]
    pub fn seen_as(&self) -> Option<SocketAddr> {
        self.shared.driver.peek(|_, handler| handler.seen_as())
    }

    /// The smoothed round-trip time to the switch.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.shared.driver.peek(|endpoint, _| endpoint.round_trip()).map(Duration::from_nanos)
    }

    /// Tasks not yet ended.
    #[must_use]
    pub fn open(&self) -> usize {
        self.shared.driver.peek(|endpoint, _| endpoint.open())
    }

    /// Counts since the start.
    #[must_use]
    pub fn counts(&self) -> ClientCounts {
        let (driver, blobs) = (&self.shared.driver, self.blobs.counters());
        ClientCounts { protocol: driver.peek(|e, _| *e.counters()), socket: driver.socket.counts(), blobs }
    }

    /// Submits a job.
    ///
    /// # Errors
    ///
    /// If a task is out of range, too many are open, or arguments by reference have no room; then no task is taken.
    pub fn submit(&self, job: impl Into<Job>) -> Result<JobHandle, Error> {
        self.submit_job(&job.into(), None)
    }

    /// Submits a job. The network thread passes each outcome, with the task's place in the job, to `sink`, which must not block.
    ///
    /// # Errors
    ///
    /// As [`Self::submit`].
    pub fn submit_to(
        &self,
        job: impl Into<Job>,
        sink: impl Fn(usize, TaskOutcome) + Send + Sync + 'static,
    ) -> Result<JobHandle, Error> {
        self.submit_with(&job.into(), Sink { ended: Box::new(sink), part: None })
    }

    /// Like [`Self::submit_to`]. `part` receives what running tasks [give back](crate::TaskContext::give_back_part), possibly repeatedly
    /// and from several attempts.
    ///
    /// # Errors
    ///
    /// As [`Self::submit`].
    pub fn submit_in_parts(
        &self,
        job: impl Into<Job>,
        sink: impl Fn(usize, TaskOutcome) + Send + Sync + 'static,
        part: impl Fn(usize, &[u8]) + Send + Sync + 'static,
    ) -> Result<JobHandle, Error> {
        self.submit_with(&job.into(), Sink { ended: Box::new(sink), part: Some(Box::new(part)) })
    }

    fn submit_with(&self, job: &Job, sink: Sink) -> Result<JobHandle, Error> {
        let handle = self.submit_job(job, Some(sink))?;
        self.shared.driver.watch();
        Ok(handle)
    }

    /// Like [`Self::submit`], but waits for room as a future, under any runtime.
    ///
    /// # Errors
    ///
    /// As [`Self::submit`].
    pub async fn submit_async(&self, job: impl Into<Job>) -> Result<JobHandle, Error> {
        let job = job.into();
        let mut attempt = self.attempts(&job, None)?;
        if !self.wait_for_room {
            return attempt();
        }
        std::future::poll_fn(move |context| self.shared.room.poll(context, &mut attempt)).await
    }

    fn submit_job(&self, job: &Job, sink: Option<Sink>) -> Result<JobHandle, Error> {
        let mut attempt = self.attempts(job, sink)?;
        if self.wait_for_room { self.shared.room.wait_for(attempt) } else { attempt() }
    }

    /// Returns a closure that submits the job if there is room; call it until it succeeds.
    fn attempts(
        &self,
        job: &Job,
        sink: Option<Sink>,
    ) -> Result<impl FnMut() -> Result<JobHandle, Error> + Send + '_, Error> {
        let (tasks, leases) = self.prepare(&job.tasks)?;
        let jid = job.jid.unwrap_or_else(|| self.next_jid.fetch_add(1, Ordering::Relaxed));
        let state = JobState::new(tasks.len(), sink);
        let mut leases = Some(leases);
        Ok(move || {
            let taken = self.shared.driver.with(|now, endpoint, handler| {
                if self.shared.closed.load(Ordering::Acquire) {
                    return Err(Error::Closed);
                }
                let keys = endpoint.submit(now, jid, &tasks)?;
                handler.expect(keys.start, &state, leases.take().unwrap_or_default());
                Ok(keys)
            });
            let (state, client) = (Arc::clone(&state), self.shared.clone());
            taken.map(|keys| JobHandle { state, client, first: keys.start, length: tasks.len(), jid })
        })
    }

    fn prepare(&self, specs: &[TaskSpec]) -> Result<(Vec<Task>, Leases), Error> {
        let mut tasks = Vec::with_capacity(specs.len());
        let mut leases = Leases::new();
        let mut last: Option<(&Arc<Vec<u8>>, Kept)> = None;
        for (index, spec) in specs.iter().enumerate() {
            let argument = match Argument::inline(&spec.argument) {
                Some(inline) => inline,
                None if spec.argument.len() <= APPENDED_MAX && !spec.by_reference => {
                    Argument::Appended(Arc::clone(&spec.argument))
                }
                None => {
                    let (lease, reference) = match last {
                        Some((same, kept)) if Arc::ptr_eq(same, &spec.argument) => kept,
                        _ => self.keep(index, &spec.argument)?,
                    };
                    last = Some((&spec.argument, (Arc::clone(&lease), reference)));
                    leases.resize(index, None);
                    leases.push(Some(lease));
                    Argument::ByReference(reference)
                }
            };
            tasks.push(spec.task(argument));
        }
        Ok((tasks, leases))
    }

    fn keep(&self, index: usize, argument: &Arc<Vec<u8>>) -> Result<Kept, Error> {
        debug_assert!(argument.len() > ARGUMENT_MAX);
        let (length, max, port) = (argument.len(), ARGUMENT_BLOB_MAX as usize, self.server.port());
        if length > max {
            return Err(Error::ArgumentTooLong { index, length, max });
        }
        let lease = self.blobs.keep(Arc::clone(argument), Duration::ZERO).map(Arc::new);
        let kept = lease.map(|lease| (Arc::clone(&lease), lease.reference(port)));
        kept.map_err(|_full| Error::BlobsFull { max_bytes: self.blobs.options().max_bytes })
    }

    /// Waits for executors to stop cancelled and timed-out tasks, except functions that ignore it.
    fn wait_for_stops(&self) {
        let started = Instant::now();
        while started.elapsed() < STOPS_PATIENCE && self.shared.driver.peek(|endpoint, _| endpoint.is_stopping()) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Closes the client. Waiting callers get [`Error::Closed`]. Waits up to a second for executors to stop cancelled tasks.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
        self.wait_for_stops();
        let open = self.shared.driver.with(|_, _, handler| handler.close());
        self.shared.driver.stop();
        for job in open {
            job.end_all(&Error::Closed);
        }
        self.shared.room.announce();
        let own = std::thread::current().id(); // a sink may hold the last handle
        for thread in lock(&self.threads).drain(..).filter(|thread| thread.thread().id() != own) {
            let _ = thread.join();
        }
    }
}

impl Polls for Shared {
    fn poll_until(&self, deadline: Option<Instant>, done: &dyn Fn() -> bool) {
        self.poller.poll_until(&self.driver, deadline, done, |endpoint| endpoint.open() > 0);
    }
}

impl JobClient for Shared {
    fn watch(&self) {
        self.driver.watch();
    }

    fn cancel(&self, keys: &[u64], stop: bool) {
        let keys: Vec<TaskKey> = keys.iter().copied().map(TaskKey).collect();
        self.driver.with(|now, endpoint, _| {
            if stop {
                endpoint.cancel(now, &keys);
            } else {
                endpoint.cancel_queued(now, &keys);
            }
        });
    }
}

impl Room {
    /// Retries until the failure is not a lack of room.
    fn wait_for<T>(&self, mut attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        loop {
            let tried = attempt();
            if !needs_room(&tried) {
                return tried;
            }
            let mut waiting = lock(&self.waiting);
            waiting.threads += 1;
            let waited = self.changed.wait_timeout(waiting, ROOM_POLL);
            waited.unwrap_or_else(std::sync::PoisonError::into_inner).0.threads -= 1;
        }
    }

    /// Like [`Self::wait_for`]. The second attempt finds room freed before the registration.
    fn poll<T>(&self, context: &Context<'_>, attempt: &mut impl FnMut() -> Result<T, Error>) -> Poll<Result<T, Error>> {
        let tried = attempt();
        if !needs_room(&tried) {
            return Poll::Ready(tried);
        }
        self.wake_later(context.waker());
        let tried = attempt();
        if needs_room(&tried) { Poll::Pending } else { Poll::Ready(tried) }
    }

    fn wake_later(&self, waker: &TaskWaker) {
        let futures = &mut lock(&self.waiting).futures;
        if !futures.iter().any(|other| other.will_wake(waker)) {
            futures.push(waker.clone());
        }
    }

    fn announce(&self) {
        let mut waiting = lock(&self.waiting);
        if waiting.threads > 0 {
            self.changed.notify_all();
        }
        let futures = std::mem::take(&mut waiting.futures);
        drop(waiting);
        futures.into_iter().for_each(TaskWaker::wake);
    }
}

fn needs_room<T>(tried: &Result<T, Error>) -> bool {
    matches!(tried, Err(Error::TooManyOpen { asked, max, .. }) if asked <= max)
}

/// The default local address: loopback if all switches are on loopback, to keep other machines out.
pub fn local_for(switches: &[SocketAddr]) -> SocketAddr {
    let loopback = switches.iter().all(|switch| switch.ip().to_canonical().is_loopback());
    let ipv4 = switches.iter().all(SocketAddr::is_ipv4);
    match (ipv4, loopback) {
        (true, true) => (Ipv4Addr::LOCALHOST, 0).into(),
        (true, false) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        (false, true) if switches.iter().all(SocketAddr::is_ipv6) => (Ipv6Addr::LOCALHOST, 0).into(),
        (false, _) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}
