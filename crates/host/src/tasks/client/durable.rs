//! A client whose tasks outlive its process, driven by one thread. The caller saves every event before anything that depends on it is sent.

use super::fetches::Fetches;
use super::handler::{Completion, Fetch, Places, lost};
use super::local_for;
use crate::blob::{BlobLease, BlobOptions, BlobServer, BlobStore, Fetcher};
use crate::clock;
use crate::driver::{spawn, warn_of_version};
use crate::error::Error;
use crate::socket::{ReceiveBatch, SendQueue, Socket};
use crate::tasks::job::TaskSpec;
use crate::tasks::results::{TaskError, TaskOutcome};
use crate::waker::Waker;
use midflight_endpoint::{Endpoint, Nanos};
use midflight_tasks::client::{
    Argument, Client, ClientConfig, Event, Outcome, Resumption, Saved, SavedCounters, TaskKey,
};
use midflight_wire::PACKET_MAX;
use midflight_wire::tasks::{ARGUMENT_BLOB_MAX, DURABLE};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// Identity and bounds of a client. All its processes share identity, secret and ports.
#[derive(Clone, Debug)]
pub struct DurableOptions {
    /// The switches, the preferred one first.
    pub switches: Vec<SocketAddr>,
    /// 64 random bits, secret.
    pub identity: u64,
    /// 128 random bits, secret.
    pub secret: u128,
    /// Local UDP port; 0: any.
    pub udp_port: u16,
    /// Local TCP port for arguments; 0: any.
    pub tcp_port: u16,
    /// Open tasks at a time.
    pub max_open: usize,
    /// Longer results, in bytes, end as [`TaskError::TooLarge`].
    pub value_max: u32,
    /// Bytes of arguments kept at a time.
    pub arguments_max: usize,
    /// Concurrent fetches of results.
    pub fetchers: usize,
}

/// What the caller has to save, in this order.
#[derive(Clone, Debug)]
pub enum Happened {
    /// State of these tasks; replaces what was saved before.
    Save(Vec<Saved>),
    /// A switch that answers, and its epoch.
    Switch(SocketAddr, u32),
    /// A task that has ended.
    Ended(u64, TaskOutcome),
}

/// Wakes a [`DurableClient`] from any thread.
#[derive(Clone, Debug)]
pub struct WakesDurable(Arc<Waker>);

impl WakesDurable {
    /// Makes [`DurableClient::turn`] return soon.
    pub fn wake(&self) {
        self.0.wake();
    }
}

type Fetched = (TaskKey, Option<TaskOutcome>);

/// A client whose tasks outlive its process; the caller saves its state.
pub struct DurableClient {
    endpoint: Client,
    socket: Socket,
    waker: Arc<Waker>,
    batch: ReceiveBatch,
    sends: SendQueue,
    packet: Vec<u8>,
    blobs: Arc<BlobStore>,
    server: BlobServer,
    /// Arguments for executors, by task.
    leases: HashMap<u64, BlobLease>,
    fetches: Arc<Fetches<IpAddr, Fetch>>,
    fetched: mpsc::Receiver<Fetched>,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for DurableClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DurableClient").field("local", &self.socket.local_addr()).finish_non_exhaustive()
    }
}

impl DurableClient {
    /// Starts a client. With `left`, it continues an earlier process; `argument` returns the bytes of a task's argument.
    ///
    /// # Errors
    ///
    /// If an option is out of range or the kernel refuses ports or threads.
    pub fn start(
        options: &DurableOptions,
        left: Option<Resumption>,
        mut argument: impl FnMut(&Saved) -> Option<Vec<u8>>,
    ) -> Result<Self, Error> {
        let bind = SocketAddr::new(local_for(&options.switches).ip(), options.udp_port);
        let config = ClientConfig {
            uid: rustix::process::getuid().as_raw(),
            max_open: options.max_open,
            secret: options.secret,
            durable: true,
            ..ClientConfig::new(options.identity | DURABLE, rand::random(), options.switches.clone())
        };
        let blobs = BlobStore::new(BlobOptions { max_bytes: options.arguments_max, ..BlobOptions::default() });
        let mut leases = HashMap::new();
        for saved in left.iter().flat_map(|left| &left.tasks) {
            if let Argument::ByReference(blob) = Argument::of(&saved.info, None)
                && let Some(bytes) = argument(saved)
            {
                let kept = blobs.keep_as(Some(blob.id.get()), Arc::new(bytes), Duration::ZERO);
                leases.insert(saved.key.0, kept.map_err(|_full| full(options.arguments_max))?);
            }
        }
        let server = BlobServer::start(SocketAddr::new(bind.ip(), options.tcp_port), Arc::clone(&blobs), false)?;
        let socket = Socket::bind(bind)?;
        let waker = Arc::new(Waker::new()?);
        let endpoint = match left {
            Some(left) => Client::resume(config, clock::now(), left),
            None => Client::new(config, clock::now()),
        };
        let endpoint = endpoint.map_err(|error| Error::invalid(&error))?;
        let fetches = Arc::new(Fetches::new(options.fetchers));
        let (sender, fetched) = mpsc::channel();
        let fetcher = Arc::new(Fetcher::new(blobs.options().progress_timeout));
        let places = Places { value_max: options.value_max, files: None };
        let start = |_| {
            let (fetches, fetcher, waker) = (Arc::clone(&fetches), Arc::clone(&fetcher), Arc::clone(&waker));
            let (places, sender) = (places.clone(), sender.clone());
            let fetch = move |fetch: Fetch| {
                let outcome = fetch.outcome(&fetcher, &places);
                let outcome = outcome.inspect_err(|error| tracing::warn!("a result was not fetched: {error}"));
                let _ = sender.send((fetch.completion.key, outcome.ok())); // fails if the client has ended
                waker.wake();
            };
            spawn("mf-fetch", move || fetches.serve(fetch))
        };
        let threads = (0..options.fetchers).map(start).collect::<Result<_, _>>()?;
        let (batch, sends, packet) = (ReceiveBatch::new(), SendQueue::default(), Vec::with_capacity(PACKET_MAX));
        Ok(Self { endpoint, socket, waker, batch, sends, packet, blobs, server, leases, fetches, fetched, threads })
    }

    /// The UDP and TCP ports, for the next process.
    #[must_use]
    pub fn ports(&self) -> (u16, u16) {
        (self.socket.local_addr().port(), self.server.port())
    }

    /// A handle that wakes [`Self::turn`].
    #[must_use]
    pub fn waker(&self) -> WakesDurable {
        WakesDurable(Arc::clone(&self.waker))
    }

    /// The current switch and its epoch, 0 before its first answer.
    #[must_use]
    pub fn switch(&self) -> (SocketAddr, u32) {
        self.endpoint.switch()
    }

    /// Time since a switch last answered, and how long one has been asked without an answer.
    #[must_use]
    pub fn contact(&self) -> (Option<Duration>, Option<Duration>) {
        let now = clock::now();
        let ago = |time: Option<Nanos>| time.map(|time| Duration::from_nanos(now.saturating_sub(time)));
        (ago(self.endpoint.answered()), ago(self.endpoint.unanswered_since()))
    }

    /// Probes for a switch until one answers, even without open tasks.
    pub fn ask_switch(&mut self) {
        self.endpoint.ask_switch(clock::now());
    }

    /// Tasks not yet ended.
    #[must_use]
    pub fn open(&self) -> usize {
        self.endpoint.open()
    }

    /// Counters to save in addition to the events, so that the next process does not reuse their numbers.
    #[must_use]
    pub fn saved_counters(&self) -> SavedCounters {
        self.endpoint.saved_counters()
    }

    /// Submits tasks with consecutive keys. They are sent once [`Self::saved`] confirms their [`Happened::Save`].
    ///
    /// # Errors
    ///
    /// If a task is out of range, too many are open, or their arguments have no room; then no task is taken.
    pub fn submit(&mut self, jid: u32, specs: Vec<TaskSpec>) -> Result<Range<u64>, Error> {
        let mut tasks = Vec::with_capacity(specs.len());
        let mut leases = Vec::new();
        for (index, spec) in specs.into_iter().enumerate() {
            let (length, max) = (spec.argument.len(), ARGUMENT_BLOB_MAX as usize);
            let argument = match Argument::inline(&spec.argument) {
                Some(inline) => inline,
                None if length > max => return Err(Error::ArgumentTooLong { index, length, max }),
                None => {
                    let lease = self.blobs.keep(Arc::clone(&spec.argument), Duration::ZERO);
                    let lease = lease.map_err(|_full| full(self.blobs.options().max_bytes))?;
                    let reference = lease.reference(self.server.port());
                    leases.push((index as u64, lease));
                    Argument::ByReference(reference)
                }
            };
            tasks.push(spec.task(argument));
        }
        let keys = self.endpoint.submit(clock::now(), jid, &tasks)?;
        self.leases.extend(leases.into_iter().map(|(index, lease)| (keys.start + index, lease)));
        Ok(keys)
    }

    /// Cancels tasks, queued or running.
    pub fn cancel(&mut self, keys: &[u64]) {
        let keys: Vec<TaskKey> = keys.iter().copied().map(TaskKey).collect();
        self.endpoint.cancel(clock::now(), &keys);
    }

    /// Waits up to `longest` for an arrival, a timer or a wake-up, sends, and returns what to save before [`Self::saved`].
    pub fn turn(&mut self, longest: Duration) -> Vec<Happened> {
        self.transmit();
        let mut happened = self.events();
        if happened.is_empty() {
            let (now, longest) = (clock::now(), clock::nanos(longest));
            let due = self.endpoint.poll_timeout().map_or(longest, |due| due.saturating_sub(now).min(longest));
            self.waker.wait(&self.socket, Some(due));
        }
        if self.socket.receive(&mut self.batch) {
            let now = clock::now();
            for (from, datagram) in self.batch.iter() {
                self.endpoint.handle(now, from, datagram);
            }
        }
        self.take_fetched(&mut happened);
        let now = clock::now();
        if self.endpoint.poll_timeout().is_some_and(|due| due <= now) {
            self.endpoint.handle_timeout(now);
        }
        self.transmit();
        happened.extend(self.events());
        happened
    }

    /// Confirms that everything returned is saved; `ended` lists the ended tasks among it.
    pub fn saved(&mut self, ended: &[u64]) {
        let now = clock::now();
        self.endpoint.saved();
        for &key in ended {
            self.leases.remove(&key);
            self.endpoint.fetched(now, TaskKey(key), true);
        }
        self.transmit();
    }

    fn take_fetched(&mut self, happened: &mut Vec<Happened>) {
        while let Ok((key, outcome)) = self.fetched.try_recv() {
            match outcome {
                Some(outcome) => happened.push(Happened::Ended(key.0, outcome)),
                None => self.endpoint.fetched(clock::now(), key, false),
            }
        }
    }

    fn transmit(&mut self) {
        let now = clock::now();
        while let Some(to) = self.endpoint.poll_transmit(now, &mut self.packet) {
            self.sends.push(&self.socket, to, &self.packet);
        }
        self.sends.flush(&self.socket);
    }

    fn events(&mut self) -> Vec<Happened> {
        let mut happened = Vec::new();
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Save(tasks) => happened.push(Happened::Save(tasks)),
                Event::SwitchChanged { switch, epoch, .. } => happened.push(Happened::Switch(switch, epoch)),
                Event::Completed { key, status, attempt, result, timing } => {
                    let completion = Completion { key, status, attempt, timing };
                    match result {
                        Outcome::Inline(bytes) => happened.push(Happened::Ended(key.0, completion.with(bytes))),
                        Outcome::ByReference { executor, blob } => {
                            self.fetches.push(executor.ip(), Fetch { completion, executor, blob });
                        }
                    }
                }
                Event::Lost { key, why } => happened.push(Happened::Ended(key.0, Err(lost(why)))),
                Event::Cancelled { key, .. } => happened.push(Happened::Ended(key.0, Err(TaskError::Cancelled.into()))),
                Event::OtherVersion { switch, version } => warn_of_version(switch, version),
                Event::NotCancelled { .. } | Event::SeenAs(_) | Event::Part { .. } | Event::NeedsReference { .. } => {}
            }
        }
        happened
    }
}

impl Drop for DurableClient {
    fn drop(&mut self) {
        self.fetches.close();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn full(max_bytes: usize) -> Error {
    Error::BlobsFull { max_bytes }
}
