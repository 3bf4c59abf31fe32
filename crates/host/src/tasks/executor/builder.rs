//! Configuration and start of an executor.

use super::handler::{RunHandler, Runner, Started};
use super::{Executor, NETWORK_THREAD, Status};
use crate::blob::{Arguments, BlobOptions, BlobServer, BlobStore, Fetcher};
use crate::clock;
use crate::driver::{Driver, spawn};
use crate::error::Error;
use crate::process::failing::Failing;
use crate::socket::Socket;
use crate::socket::busy_poll::BUSY_POLL;
use crate::tasks::client::local_for;
use crate::tasks::counted::{CountedResource, CountedResources};
use crate::tasks::exec::Processes;
use crate::tasks::functions::{Function, Functions, TaskContext, wrap};
#[cfg(feature = "async")]
use crate::tasks::futures::{Runtime, wrap_async};
use crate::tasks::python::{PYTHON, PythonOptions, Pythons};
use crate::tasks::workers::Workers;
use crate::waker::Waker;
use midflight_tasks::executor::{self as protocol, AHEAD_MAX, BUNDLES_MAX, ExecutorConfig, WAITING_MAX};
use midflight_tasks::place::place_id;
use midflight_tasks::resources::RESOURCE_BITS;
use midflight_wire::tasks::SLOT_PLACES;
use std::fmt::Display;
#[cfg(feature = "async")]
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Prefetch span with Python; tasks of `map` take 4 ms ([`ExecutorBuilder::ahead_span`]).
const PYTHON_SPAN: Duration = Duration::from_millis(8);

/// Default minimum of tasks that may wait for others; more with four per slot.
const WAITING: u32 = 64;

/// Builds an [`Executor`] with the registered functions, `noop`, `sleep`, `spin`, `exec` and `command`.
#[derive(Default)]
pub struct ExecutorBuilder {
    switches: Vec<SocketAddr>,
    bind: Option<SocketAddr>,
    slots: Option<u32>,
    resources: u8,
    counted: Vec<CountedResource>,
    places: Vec<String>,
    never_ahead: bool,
    ahead_span: Option<Duration>,
    waiting: Option<u32>,
    blobs: BlobOptions,
    busy_poll: Option<Duration>,
    functions: Vec<(String, Function)>,
    python: Option<PythonOptions>,
    on_failure: Option<Box<dyn FnOnce() + Send>>,
}

impl std::fmt::Debug for ExecutorBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecutorBuilder").field("switches", &self.switches).finish_non_exhaustive()
    }
}

/// Ids of the places; 0 for none.
fn places(names: &[String]) -> Result<[u32; SLOT_PLACES], Error> {
    if names.len() > SLOT_PLACES {
        let error = format!(
            "{} places: an executor is at most at {SLOT_PLACES}, such as its machine and its rack",
            names.len()
        );
        return Err(Error::Invalid(error));
    }
    let mut numbers = [0; SLOT_PLACES];
    numbers.iter_mut().zip(names).for_each(|(number, name)| *number = place_id(name));
    Ok(numbers)
}

impl ExecutorBuilder {
    /// Adds a switch, at least one. The first is preferred; the others are used when it fails.
    #[must_use]
    pub fn switch(mut self, address: SocketAddr) -> Self {
        self.switches.push(address);
        self
    }

    /// Adds switches.
    #[must_use]
    pub fn switches(mut self, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.switches.extend(addresses);
        self
    }

    /// Local UDP address, also for the TCP server of results. Default: loopback if all switches are on loopback, else all interfaces.
    #[must_use]
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.bind = Some(address);
        self
    }

    /// Concurrent tasks: 1 to 4,096. Default: the number of cores.
    #[must_use]
    pub fn slots(mut self, slots: u32) -> Self {
        self.slots = Some(slots);
        self
    }

    /// Resources that this executor offers, one bit each. Default: none.
    #[must_use]
    pub fn resources(mut self, mask: u8) -> Self {
        self.resources = mask;
        self
    }

    /// Adds a counted resource: each task that requires it gets its own bundle, by [`TaskContext::bundle`] or, for commands, in the
    /// environment.
    #[must_use]
    pub fn count(mut self, resource: CountedResource) -> Self {
        self.counted.push(resource);
        self
    }

    /// Adds a place, such as a machine or rack, that tasks may prefer ([`JobBuilder::prefer`](crate::JobBuilder::prefer)). At most two.
    /// Default: none.
    #[must_use]
    pub fn place(mut self, name: &str) -> Self {
        self.places.push(name.to_owned());
        self
    }

    /// Whether to prefetch tasks that take less than a round trip. A prefetched task may wait two round trips, or twice
    /// [`Self::ahead_span`], before it is returned. Default: yes.
    #[must_use]
    pub fn ahead(mut self, asks: bool) -> Self {
        self.never_ahead = !asks;
        self
    }

    /// Also prefetches longer tasks, up to this time, one per slot: useful if starting takes long, such as a Python call. A prefetched task
    /// may wait twice this time before it is returned. At most 20 ms. Default: zero; with [`Self::python`] 8 ms.
    #[must_use]
    pub fn ahead_span(mut self, longest: Duration) -> Self {
        self.ahead_span = Some(longest);
        self
    }

    /// Limit of tasks that wait for other tasks and [lend their slots](TaskContext::lend_slot): 0 to 4,096; each has a thread, a Python
    /// task also a worker. Default: four times the slots, at least 64.
    #[must_use]
    pub fn waiting(mut self, most: u32) -> Self {
        self.waiting = Some(most);
        self
    }

    /// Bounds of results by reference and of command outputs.
    #[must_use]
    pub fn blobs(mut self, options: BlobOptions) -> Self {
        self.blobs = options;
        self
    }

    /// How long the network thread polls the socket before it sleeps, while packets arrive at shorter intervals, yielding the core to
    /// others; saves wake-ups. Default 100 µs; zero: never.
    #[must_use]
    pub fn busy_poll(mut self, longest: Duration) -> Self {
        self.busy_poll = Some(longest);
        self
    }

    /// Registers a function for worker threads. Errors and panics end as [`crate::TaskError::Failed`].
    #[must_use]
    pub fn register<F, E>(self, name: &str, function: F) -> Self
    where
        F: Fn(&TaskContext, &[u8]) -> Result<Vec<u8>, E> + Send + Sync + 'static,
        E: Display,
    {
        self.with(name, Function::Worker(wrap(function)))
    }

    /// Registers a nonblocking function of microseconds for the network thread, with lower latency.
    #[must_use]
    pub fn register_inline<F, E>(self, name: &str, function: F) -> Self
    where
        F: Fn(&TaskContext, &[u8]) -> Result<Vec<u8>, E> + Send + Sync + 'static,
        E: Display,
    {
        self.with(name, Function::Inline(wrap(function)))
    }

    /// Runs functions of Midflight's Python package in worker processes, at most one per slot.
    #[must_use]
    pub fn python(mut self, options: PythonOptions) -> Self {
        self.python = Some(options);
        self
    }

    /// Registers an asynchronous function. All such functions share a tokio runtime of one thread, with time and I/O, and must not block
    /// it. As many run at once as there are slots. A cancelled one is dropped at its next `.await`.
    ///
    /// ```
    /// # use midflight_host::Executor;
    /// let builder = Executor::builder().register_async("wait", |task, argument| async move {
    ///     tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    ///     Ok::<_, String>([argument, vec![task.attempt]].concat())
    /// });
    /// ```
    #[cfg(feature = "async")]
    #[must_use]
    pub fn register_async<F, R, E>(self, name: &str, function: F) -> Self
    where
        F: Fn(TaskContext, Vec<u8>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<u8>, E>> + Send + 'static,
        E: Display,
    {
        self.with(name, Function::Async(wrap_async(function)))
    }

    /// Called once if the executor has to stop by itself: [`Executor::failure`] says why. Its slots still count as alive until their leases
    /// end, so the process should exit. Default: nothing but the panic's message on stderr.
    #[must_use]
    pub fn on_failure(mut self, act: impl FnOnce() + Send + 'static) -> Self {
        self.on_failure = Some(Box::new(act));
        self
    }

    fn with(mut self, name: &str, function: Function) -> Self {
        self.functions.push((name.to_owned(), function));
        self
    }

    /// Starts the executor. It registers its slots now and whenever a switch has restarted.
    ///
    /// # Errors
    ///
    /// If an option is out of range or the kernel refuses sockets or threads.
    pub fn start(self) -> Result<Executor, Error> {
        let config = self.config()?;
        let (ordinary, waiting) = (config.slots, config.waiting);
        let bind = self.bind.unwrap_or_else(|| local_for(&self.switches));
        let endpoint = protocol::Executor::new(config, clock::now());
        let endpoint = endpoint.map_err(|error| Error::invalid(&error))?;

        let blobs = BlobStore::new(self.blobs);
        let processes = Arc::new(Processes::new(Arc::clone(blobs.files())));
        let mut functions = Functions::built_in(&processes)?;
        #[cfg(feature = "async")]
        let runtime = self.functions.iter().any(|(_, function)| matches!(function, Function::Async(_)));
        #[cfg(feature = "async")]
        let runtime = if runtime { Some(Arc::new(Runtime::start()?)) } else { None };
        for (name, function) in self.functions {
            functions.register(&name, function)?;
        }
        let progress_timeout = blobs.options().progress_timeout;
        let start = |options| Pythons::start(options, ordinary, progress_timeout).map(Arc::new);
        let pythons = self.python.map(start).transpose()?;
        if let Some(pythons) = pythons.clone() {
            functions.register(PYTHON, Function::Worker(wrap(move |task, argument| pythons.call(task, argument))))?;
        }
        let server = BlobServer::start(SocketAddr::new(bind.ip(), 0), Arc::clone(&blobs), true)?;
        let socket = Socket::bind(bind)?;
        let waker = Waker::new()?;
        let counted: CountedResources = self.counted.into();
        let (status, workers) = (Arc::new(Status::default()), Arc::new(Workers::new((ordinary + waiting) as usize)));
        let driver = Arc::new_cyclic(|driver| {
            let runner = Runner {
                driver: driver.clone(),
                blobs: Arc::clone(&blobs),
                blob_port: server.port(),
                arguments: Arguments::new(Fetcher::new(blobs.options().progress_timeout)),
                counted: Arc::clone(&counted),
                #[cfg(feature = "async")]
                runtime: runtime.clone(),
            };
            let local = socket.local_addr();
            let (workers, status) = (Arc::clone(&workers), Arc::clone(&status));
            let started = Started { processes: Arc::clone(&processes), pythons: pythons.clone() };
            let handler = RunHandler::new(functions, workers, status, runner, started, local);
            Driver::new(endpoint, handler, socket, waker)
        });
        let (network, busy_poll) = (Arc::clone(&driver), self.busy_poll.unwrap_or(BUSY_POLL));
        let failing = Arc::new(Failing::new(self.on_failure.unwrap_or_else(|| Box::new(|| {}))));
        let of_thread = Arc::clone(&failing);
        let serve = move || {
            let _watch = of_thread.watch("serves the executor");
            network.run(busy_poll);
        };
        let thread = Some(spawn(NETWORK_THREAD, serve)?);
        Ok(Executor {
            driver,
            status,
            workers,
            processes,
            pythons,
            blobs,
            counted,
            #[cfg(feature = "async")]
            runtime,
            _server: server,
            thread,
            failing,
        })
    }

    /// The protocol's configuration.
    fn config(&self) -> Result<ExecutorConfig, Error> {
        let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        let slots = self.slots.unwrap_or_else(cores);
        let (identity, seed) = (rand::random(), rand::random());
        let mut config = ExecutorConfig::new(identity, seed, self.switches.clone(), slots, self.resources);
        config.ahead = if self.never_ahead { 0 } else { AHEAD_MAX };
        let span = self.ahead_span.unwrap_or(if self.python.is_some() { PYTHON_SPAN } else { Duration::ZERO });
        config.waiting = self.waiting.unwrap_or(slots.saturating_mul(4).clamp(WAITING, WAITING_MAX));
        config.ahead_span = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        count_bundles(&mut config, &self.counted)?;
        config.places = places(&self.places)?;
        Ok(config)
    }
}

/// Offers each counted resource and gives the protocol its number of bundles.
fn count_bundles(config: &mut ExecutorConfig, counted: &[CountedResource]) -> Result<(), Error> {
    for resource in counted {
        let (bit, name, count) = (resource.bit(), resource.name(), resource.bundles());
        let wrong = |why: String| Err(Error::Invalid(format!("resource {name}: {why}")));
        let Some(bundles) = config.bundles.get_mut(usize::from(bit)) else {
            return wrong(format!("bit {bit}: use 0 to {}", RESOURCE_BITS - 1));
        };
        if *bundles > 0 {
            return wrong(format!("bit {bit} is counted twice: name each resource once"));
        }
        if count == 0 || count > usize::from(BUNDLES_MAX) {
            return wrong(format!("{count} bundles: use 1 to {BUNDLES_MAX}"));
        }
        *bundles = count as u16;
        config.resources |= 1 << bit;
    }
    Ok(())
}
