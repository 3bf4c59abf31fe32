//! The agent in front of a backend, memcached or Redis. It receives requests as a server of the cache program and asks the backend. For
//! the reasons of its design see `docs/internals/cache-processes.md`.
//!
//! | file | subject |
//! |---|---|
//! | `options`, `counters` | addresses, bounds and times; what was counted |
//! | `requests` | requests by datagram: from the endpoint to the backend and back |
//! | `streams` | long values, SET and DELETE over TCP |
//! | `backend` | whether the backend is up, and the connections to it |
//! | `connection` | one connection to the backend |
//! | `load` | utilization of the slots |
//!
//! One thread, `mf-agent`, owns the socket and all connections, so a request wakes no other thread. Each request in a slot has its own
//! backend connection, so requests wait in the endpoint's queue, which the status reports.

mod backend;
mod connection;
mod counters;
mod load;
mod options;
mod requests;
mod streams;

pub use counters::AgentCounters;
pub use load::LoadReport;
pub use options::AgentOptions;

use crate::background::{Background, runtime};
use crate::clock;
use crate::driver::Driver;
use crate::error::Error;
use crate::process::failing::Failing;
use crate::socket::users::Users;
use crate::socket::{Socket, SocketCounts};
use crate::waker::Waker;
use backend::{Backend, Pool};
use counters::Counts;
use midflight_cache::server::{Counters as ServerCounters, Server};
use midflight_connections::{ConnectionCounters, Connections, listen};
use midflight_endpoint::Nanos;
use requests::{Asks, Requests};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Attempts to find a free port that UDP and TCP both have.
const PORT_ATTEMPTS: usize = 16;
/// What the thread does, for the message when it has ended.
const SERVES: &str = "serves requests";

/// The state of an agent.
#[derive(Clone, Debug)]
pub struct AgentReport {
    /// Counters of the endpoint.
    pub server: ServerCounters,
    /// Counters of the backend and the streams.
    pub counters: AgentCounters,
    /// Counters of the table of streams.
    pub connections: ConnectionCounters,
    /// Counters of the UDP socket.
    pub socket: SocketCounts,
    /// Requests by datagram that wait for a slot.
    pub waiting: usize,
    /// Requests by datagram in a slot.
    pub served: usize,
    /// Mean of the latest service times; `None` before the first response.
    pub service_time: Option<Nanos>,
    /// Load in the last second.
    pub load: LoadReport,
    /// Why the backend is down; `None` while it is up.
    pub backend_is_gone: Option<String>,
}

struct Shared {
    options: AgentOptions,
    counts: Arc<Counts>,
    backend: Arc<Backend>,
    /// For requests by datagram: as many connections as slots.
    pool: Pool,
    stream_pool: Pool,
    connections: Arc<Connections>,
    /// The users served; `None`: all.
    users: Option<Arc<Mutex<Users>>>,
    /// Requests by stream in progress.
    streams_busy: AtomicUsize,
    /// Set at shutdown: new requests are refused.
    ending: Arc<AtomicBool>,
    /// Time of the thread's last turn.
    turned: Arc<AtomicU64>,
    /// Ends the process: selectors would keep relying on the agent.
    failing: Failing,
}

/// A running agent. Dropping it stops it; [`finish`](Self::finish) first completes the requests in progress.
pub struct Agent {
    _background: Background,
    driver: Arc<Driver<Server, Requests>>,
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("address", &self.local_addr()).finish_non_exhaustive()
    }
}

impl Agent {
    /// Starts an agent, even without a backend. On a later failure a thread calls `on_failure`; see [`failure`](Self::failure).
    ///
    /// # Errors
    ///
    /// If the address cannot be bound or a bound is out of range.
    pub fn start(options: AgentOptions, on_failure: impl FnOnce() + Send + 'static) -> Result<Self, Error> {
        options.check()?;
        let (socket, listener) = bind(&options)?;
        let address = socket.local_addr();
        let users = options.only_user.map(|user| Users::new(user, address)).transpose()?;
        let server = Server::new(options.server_config(address, rand::random()));
        let server = server.map_err(|error| Error::invalid(&error))?;
        let runtime = runtime("start the agent")?;
        let counts = Arc::new(Counts::default());
        let backend = Arc::new(Backend::new(options.backend.clone(), options.backend_timeout, Arc::clone(&counts)));
        // Before serving, so that the caller can report whether the backend is up.
        let first = runtime.block_on(backend.connect());
        let shared = Arc::new(Shared {
            pool: Pool::new(Arc::clone(&backend), options.slots),
            stream_pool: Pool::new(Arc::clone(&backend), options.stream_slots),
            connections: Connections::new(options.connections_max, options.progress_timeout),
            users: users.map(|users| Arc::new(Mutex::new(users))),
            streams_busy: AtomicUsize::new(0),
            ending: Arc::default(),
            turned: Arc::new(AtomicU64::new(clock::now())),
            failing: Failing::new(on_failure),
            counts,
            backend,
            options,
        });
        shared.pool.give_back(first.ok());
        let (asks, waiting) = mpsc::unbounded_channel();
        let requests = Requests::new(asks, &shared);
        let driver = Arc::new(Driver::new(server, requests, socket, Waker::new()?));
        let asks = Asks { waiting, driver: Arc::clone(&driver), shared: Arc::clone(&shared) };
        let of_thread = (Arc::clone(&driver), Arc::clone(&shared));
        // Each part is its own task: waking the future of `block_on` costs a system call.
        let run = async move || {
            let (driver, shared) = of_thread;
            let _watch = shared.failing.watch(SERVES);
            tokio::spawn(requests::receive(driver, Arc::clone(&shared)));
            tokio::spawn(asks.carry_out());
            tokio::spawn(streams::accept(listener, Arc::clone(&shared)));
            let of_backend = Arc::clone(&shared);
            tokio::spawn(async move {
                let _watch = of_backend.failing.watch(SERVES);
                of_backend.backend.look_for_it().await;
            });
            std::future::pending().await
        };
        Ok(Self { _background: Background::start("mf-agent", runtime, run)?, driver, shared })
    }

    /// The address for operators and clients, UDP and TCP.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.driver.socket.local_addr()
    }

    /// The current state.
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
            backend_is_gone: shared.backend.gone(),
        }
    }

    /// Time since the thread's last turn; normally at most 100 ms.
    #[must_use]
    pub fn silent_for(&self) -> Duration {
        Duration::from_nanos(clock::now().saturating_sub(self.shared.turned.load(Ordering::Relaxed)))
    }

    /// Why the agent failed, on one line; `None` if it has not.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.shared.failing.why()
    }

    /// Refuses new requests and waits up to `backend_timeout` for those in progress.
    pub fn finish(&self) {
        self.shared.ending.store(true, Ordering::SeqCst);
        let deadline = Instant::now() + self.shared.options.backend_timeout;
        let is_busy = || {
            let served = self.driver.peek(|server, _| server.load().1);
            served > 0 || self.shared.streams_busy.load(Ordering::SeqCst) > 0
        };
        while is_busy() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

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
    let refused = Error::bind("TCP", options.address);
    let listener = listen(options.address).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    Ok((Socket::bind_with(address, options.buffers)?, listener))
}
