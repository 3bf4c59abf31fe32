//! A replica of a store: one thread that drives it, with a UDP socket, a disk thread, and links to its peers.
//!
//! `thread` has the loop, `orders` the operator's orders, `found` the founding state.

mod found;
mod orders;
mod thread;

pub use found::found;
pub use orders::ReplicaOrder;

use crate::clock;
use crate::disk::{Directory, Disk};
use crate::driver::{lock, spawn};
use crate::error::Error;
use crate::links::{self, LinkCounters, LinkOptions, Links};
use crate::socket::busy_poll::BUSY_POLL;
use crate::socket::{Socket, SocketBuffers, SocketCounts};
use crate::waker::Waker;
use midflight_store::replica::{Backup, Counters, Replica, ReplicaConfig, ReplicaTimes, StatusReport};
use orders::Orders;
use std::net::{SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use thread::{Parts, ReplicaThread};

/// Send buffer for direct answers to clients, in bytes with the kernel's overhead.
const DIRECT_BYTES: usize = 2 << 20;
const RESERVE_BYTES: u64 = 16 << 20;

/// Options of a replica. [`ReplicaOptions::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct ReplicaOptions {
    /// Identity, peers, times and bounds.
    pub config: ReplicaConfig,
    /// UDP address for switches.
    pub address: SocketAddr,
    /// TCP address for the other replicas.
    pub links: SocketAddr,
    /// Directory of log and snapshots, created if necessary.
    pub data: PathBuf,
    /// Whether acknowledged writes survive a power failure of all replicas at once. Default yes.
    pub fsync: bool,
    /// Disk space in bytes reserved for deletes and elections on a full disk. Default 16 MiB.
    pub reserve_bytes: u64,
    /// Sizes of the UDP socket's kernel buffers.
    pub buffers: SocketBuffers,
    /// How long the thread polls the socket before it sleeps, while packets arrive at shorter intervals. Default 100 µs.
    pub busy_poll: Duration,
}

impl ReplicaOptions {
    /// The defaults.
    #[must_use]
    pub fn new(config: ReplicaConfig, address: SocketAddr, links: SocketAddr, data: PathBuf) -> Self {
        let buffers = SocketBuffers::default();
        Self { config, address, links, data, fsync: true, reserve_bytes: RESERVE_BYTES, buffers, busy_poll: BUSY_POLL }
    }
}

/// The state of a replica.
#[derive(Clone, Debug)]
pub struct ReplicaReport {
    /// Status.
    pub status: StatusReport,
    /// Event counts.
    pub counters: Counters,
    /// Durations.
    pub times: ReplicaTimes,
    /// Counts of the links.
    pub links: LinkCounters,
    /// Counts of the UDP socket.
    pub socket: SocketCounts,
    /// Counts of the socket for direct answers.
    pub direct: SocketCounts,
}

/// A running replica. Dropping it stops it; its data stays.
#[derive(Debug)]
pub struct ReplicaProcess {
    shared: Arc<Shared>,
    links: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    socket: Socket,
    /// For direct answers: those to clients that have left fill its buffer, and must not delay heartbeats.
    direct: Socket,
    waker: Arc<Waker>,
    orders: Orders,
    stop: AtomicBool,
    /// At most 100 ms old.
    published: Mutex<Published>,
    /// Time of the thread's last turn.
    turned: AtomicU64,
    /// Why the thread failed.
    failure: OnceLock<String>,
}

#[derive(Clone, Debug)]
struct Published {
    status: StatusReport,
    counters: Counters,
    times: ReplicaTimes,
    links: LinkCounters,
}

impl ReplicaProcess {
    /// Starts a replica with the data in its directory. On a later failure the thread calls `on_failure`; see [`failure`](Self::failure).
    ///
    /// # Errors
    ///
    /// If its files are unusable or locked, an address cannot be bound, or its configuration is wrong.
    pub fn start(options: ReplicaOptions, on_failure: impl FnOnce() + Send + 'static) -> Result<Self, Error> {
        Self::start_listening(options, None, on_failure)
    }

    /// Like [`start`](Self::start), with a socket from [`links::listen`], if given.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn start_listening(
        options: ReplicaOptions,
        listener: Option<TcpListener>,
        on_failure: impl FnOnce() + Send + 'static,
    ) -> Result<Self, Error> {
        let ReplicaOptions { config, address, links, data, fsync, reserve_bytes, buffers, busy_poll } = options;
        let unusable = |why: &dyn std::fmt::Display| Error::Replica(why.to_string());
        config.check().map_err(|error| unusable(&error))?;
        let directory = Directory::take(&data).map_err(|error| unusable(&error))?;
        let files = directory.read().map_err(|error| unusable(&error))?;
        let (socket, waker) = (Socket::bind_with(address, buffers)?, Arc::new(Waker::new()?));
        let direct = socket.bind_to_send(DIRECT_BYTES)?;
        let listener = listener.map_or_else(|| links::listen(links), Ok)?;
        let links = Links::start(listener, link_options(&config), waking(&waker))?;
        let replica = Replica::new(config, files, clock::now_counting_suspension());
        let replica = replica.map_err(|error| Error::Replica(format!("{}: {error}", data.display())))?;
        let disk = Disk::start(directory, fsync, reserve_bytes, waking(&waker))?;
        let published = Published {
            status: replica.status(clock::now_counting_suspension()),
            counters: *replica.counters(),
            times: *replica.times(),
            links: links.counters(),
        };
        let (orders, waiting) = orders::queue();
        let links_address = links.address();
        let shared = Arc::new(Shared {
            socket,
            direct,
            waker,
            orders,
            stop: AtomicBool::new(false),
            published: Mutex::new(published),
            turned: AtomicU64::new(clock::now()),
            failure: OnceLock::new(),
        });
        let parts = Parts { replica, disk, links, orders: waiting, busy_poll };
        let thread = run(Arc::clone(&shared), parts, on_failure)?;
        Ok(Self { shared, links: links_address, thread: Some(thread) })
    }

    /// The UDP address for switches.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.socket.local_addr()
    }

    /// The TCP address for the other replicas.
    #[must_use]
    pub fn links_addr(&self) -> SocketAddr {
        self.links
    }

    /// The state, at most 100 ms old.
    #[must_use]
    pub fn report(&self) -> ReplicaReport {
        let Published { status, counters, times, links } = lock(&self.shared.published).clone();
        let Shared { socket, direct, .. } = &*self.shared;
        ReplicaReport { status, counters, times, links, socket: socket.counts(), direct: direct.counts() }
    }

    /// Time since the thread's last turn; normally at most 100 ms.
    #[must_use]
    pub fn silent_for(&self) -> Duration {
        Duration::from_nanos(clock::now().saturating_sub(self.shared.turned.load(Ordering::Relaxed)))
    }

    /// Why the replica failed, on one line; `None` if it has not.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.shared.failure.get().map(String::as_str)
    }

    /// Begins an order; see [`report`](Self::report) for its completion. Waits for a leadership transfer, at most ten promises.
    ///
    /// # Errors
    ///
    /// If the replica cannot do it, does not lead, or has ended, or if the lead went to another replica than wanted.
    pub fn order(&self, order: ReplicaOrder) -> Result<(), Error> {
        self.shared.orders.carry_out(order, || self.shared.waker.wake()).map_err(Error::Replica)
    }

    /// All data of the store, with every write that was acknowledged before.
    ///
    /// # Errors
    ///
    /// If the replica does not lead, or has ended.
    pub fn backup(&self) -> Result<Backup, Error> {
        self.shared.orders.backup(|| self.shared.waker.wake()).map_err(Error::Replica)
    }
}

impl Drop for ReplicaProcess {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(shared: Arc<Shared>, parts: Parts, on_failure: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    spawn("mf-replica", move || {
        let of_thread = Arc::clone(&shared);
        // A panic must end the process too: peers would keep relying on the replica.
        let run = AssertUnwindSafe(|| ReplicaThread::new(of_thread, parts).run());
        let ended =
            catch_unwind(run).unwrap_or_else(|_| Err("the replica has panicked: the log has the message".into()));
        if let Err(why) = ended {
            // Cannot fail: set only here.
            let _ = shared.failure.set(why);
            on_failure();
        }
    })
}

fn waking(waker: &Arc<Waker>) -> impl Fn() + Send + Sync + 'static {
    let waker = Arc::clone(waker);
    move || waker.wake()
}

/// A random prefix distinguishes the links of different starts.
fn link_options(config: &ReplicaConfig) -> LinkOptions {
    LinkOptions::new(config.cluster, config.set, config.id, rand::random())
}
