//! The agent before a store, memcached or Redis, as part of a process: it takes requests as a server of the replicas program, asks the
//! store, and answers. `docs/internals/replicas-processes.md` says why it is as it is.
//!
//! | file | subject |
//! |---|---|
//! | `options`, `counters` | addresses, bounds and times; what became of all that came |
//! | `requests` | requests in datagrams: from the endpoint to the store, and back |
//! | `streams` | long values, SET and DELETE over TCP |
//! | `store` | whether the store is there, and the connections to it |
//! | `connection` | one connection to the store |
//! | `load` | how busy the slots are |
//!
//! One thread, `mf-agent`, has the socket and all connections: a request wakes nobody else. Each request of a slot has a connection of its
//! own, so what waits for the store waits in the endpoint's queue, which is the one that the status tells of.

mod connection;
mod counters;
mod load;
mod options;
mod requests;
mod store;
mod streams;

pub use counters::AgentCounters;
pub use load::LoadReport;
pub use options::AgentOptions;

use crate::clock;
use crate::driver::{Driver, spawn};
use crate::error::Error;
use crate::failing::Failing;
use crate::socket::{Socket, SocketCounts};
use crate::users::Users;
use crate::waker::Waker;
use counters::Counts;
use midflight_connections::{ConnectionCounters, Connections, listen};
use midflight_endpoint::Nanos;
use midflight_replicas::server::{Counters as ServerCounters, Server};
use requests::{Ask, Asks, Requests};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::{Pool, Store};
use tokio::sync::{mpsc, oneshot};

/// How often an address with a port of the kernel's choice is tried, for UDP and TCP must have the same.
const PORT_ATTEMPTS: usize = 16;
/// What the thread does, for whoever reads why it has ended.
const SERVES: &str = "serves requests";

/// What an agent says of itself.
#[derive(Clone, Debug)]
pub struct AgentReport {
    /// Of the endpoint.
    pub server: ServerCounters,
    /// Of store and streams.
    pub counters: AgentCounters,
    /// Of the table of streams.
    pub connections: ConnectionCounters,
    /// Of its UDP socket.
    pub socket: SocketCounts,
    /// Requests in datagrams that wait for a slot.
    pub waiting: usize,
    /// Those that are being served.
    pub served: usize,
    /// The mean of the service times of the last ones; `None` before the first answer.
    pub service_time: Option<Nanos>,
    /// How busy it was in the last second.
    pub load: LoadReport,
    /// Why the store is not there; `None` while it is.
    pub store_is_gone: Option<String>,
}

/// What the threads share.
struct Shared {
    options: AgentOptions,
    counts: Arc<Counts>,
    store: Arc<Store>,
    /// For requests in datagrams: as many connections as slots.
    pool: Pool,
    /// For streams.
    stream_pool: Pool,
    connections: Arc<Connections>,
    /// Who is served; `None`: everybody.
    users: Option<Arc<Mutex<Users>>>,
    /// Requests of streams that are being carried out.
    streams_busy: AtomicUsize,
    /// No more requests are carried out.
    ending: Arc<AtomicBool>,
    /// When it last took its turn.
    turned: Arc<AtomicU64>,
    /// Selectors would go on to count on an agent that does not answer.
    failing: Failing,
}

/// An agent that runs. Dropping it ends it; [`finish`](Self::finish) lets it end what it has begun.
pub struct Agent {
    driver: Arc<Driver<Server, Requests>>,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("address", &self.local_addr()).finish_non_exhaustive()
    }
}

impl Agent {
    /// Starts an agent, whether or not its store is there. A thread calls `on_failure` if it has to end by itself;
    /// [`failure`](Self::failure) then says why.
    ///
    /// # Errors
    /// If the address cannot be had, or a bound is wrong.
    pub fn start(options: AgentOptions, on_failure: impl FnOnce() + Send + 'static) -> Result<Self, Error> {
        options.check()?;
        let (socket, listener) = bind(&options)?;
        let address = socket.local_addr();
        let users = options.only_user.map(|user| Users::new(user, address)).transpose()?;
        let server = Server::new(options.server_config(address, rand::random()));
        let server = server.map_err(|error| Error::Configuration(error.to_string()))?;
        let failed = |source| Error::Resources { what: "start the agent", source };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let counts = Arc::new(Counts::default());
        let store = Arc::new(Store::new(options.store.clone(), options.store_timeout, Arc::clone(&counts)));
        // Before anything is served, so that who starts it can say whether the store is there.
        let first = runtime.block_on(store.connect());
        let shared = Arc::new(Shared {
            pool: Pool::new(Arc::clone(&store), options.slots),
            stream_pool: Pool::new(Arc::clone(&store), options.stream_slots),
            connections: Connections::new(options.connections_max, options.progress_timeout),
            users: users.map(|users| Arc::new(Mutex::new(users))),
            streams_busy: AtomicUsize::new(0),
            ending: Arc::default(),
            turned: Arc::new(AtomicU64::new(clock::now())),
            failing: Failing::new(on_failure),
            counts,
            store,
            options,
        });
        shared.pool.give_back(first.ok());
        let (asks, waiting) = mpsc::unbounded_channel();
        let requests = Requests::new(asks, &shared);
        let driver = Arc::new(Driver::new(server, requests, socket, Waker::new()?));
        let (stop, stopped) = oneshot::channel();
        let mut agent = Self { driver, shared, stop: Some(stop), thread: None };
        agent.start_thread(runtime, (listener, waiting, stopped))?;
        Ok(agent)
    }

    /// Each part is a task of its own: to wake what `block_on` waits for costs a system call.
    fn start_thread(
        &mut self,
        runtime: tokio::runtime::Runtime,
        (listener, waiting, stopped): (TcpListener, mpsc::UnboundedReceiver<Ask>, oneshot::Receiver<()>),
    ) -> Result<(), Error> {
        let (driver, shared) = (Arc::clone(&self.driver), Arc::clone(&self.shared));
        let run = move || {
            let _watch = shared.failing.watch(SERVES);
            let asks = Asks { waiting, driver: Arc::clone(&driver), shared: Arc::clone(&shared) };
            runtime.block_on(async {
                tokio::spawn(requests::receive(driver, Arc::clone(&shared)));
                tokio::spawn(asks.carry_out());
                tokio::spawn(streams::accept(listener, Arc::clone(&shared)));
                let of_store = Arc::clone(&shared);
                tokio::spawn(async move {
                    let _watch = of_store.failing.watch(SERVES);
                    of_store.store.look_for_it().await;
                });
                // It ends when the agent is dropped.
                let _ = stopped.await;
            });
            // A name that is being resolved is not waited for.
            runtime.shutdown_background();
        };
        self.thread = Some(spawn("mf-agent", run)?);
        Ok(())
    }

    /// Where operators and clients reach it, by UDP and TCP.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.driver.socket.local_addr()
    }

    /// What it says of itself.
    #[must_use]
    pub fn report(&self) -> AgentReport {
        let shared = &self.shared;
        let (server, load, service_time, (waiting, served)) = self
            .driver
            .peek(|server, requests| (server.counters(), requests.load(), server.service_time(), server.load()));
        AgentReport {
            server,
            counters: shared.counts.read(),
            connections: shared.connections.counters(),
            socket: self.driver.socket.counts(),
            waiting,
            served,
            service_time,
            load,
            store_is_gone: shared.store.gone(),
        }
    }

    /// Time since its thread last took a turn, which it does at least every 100 ms.
    #[must_use]
    pub fn silent_for(&self) -> Duration {
        Duration::from_nanos(clock::now().saturating_sub(self.shared.turned.load(Ordering::Relaxed)))
    }

    /// Why it has ended by itself, on one line; `None` if it has not.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.shared.failing.why()
    }

    /// Refuses what comes from now on, and waits until what the store was asked is answered, for `store_timeout` at most.
    pub fn finish(&self) {
        self.shared.ending.store(true, Ordering::SeqCst);
        let deadline = Instant::now() + self.shared.options.store_timeout;
        let is_busy = || {
            let served = self.driver.peek(|server, _| server.load().1);
            served > 0 || self.shared.streams_busy.load(Ordering::SeqCst) > 0
        };
        while is_busy() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The same port for UDP and TCP.
fn bind(options: &AgentOptions) -> Result<(Socket, TcpListener), Error> {
    let address = options.address;
    let attempts = if address.port() == 0 { PORT_ATTEMPTS } else { 1 };
    let mut bound = bind_once(options);
    for _ in 1..attempts {
        let Err(Error::Bind { source, .. }) = &bound else { break };
        if source.kind() != std::io::ErrorKind::AddrInUse {
            break;
        }
        bound = bind_once(options);
    }
    bound
}

fn bind_once(options: &AgentOptions) -> Result<(Socket, TcpListener), Error> {
    let refused = |source| Error::Bind { protocol: "TCP", address: options.address, source };
    let listener = listen(options.address).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    Ok((Socket::bind_with(address, options.buffers)?, listener))
}
