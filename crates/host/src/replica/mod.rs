//! A replica of a store as a process: one thread that drives it, with a UDP socket, a thread for its disk, and links to its peers.
//!
//! `thread` is the loop; `orders` brings it what an operator wants. `found` makes the data of one that is new.

mod found;
mod orders;
mod thread;

pub use found::found;
pub use orders::ReplicaOrder;

use crate::busy_poll::BUSY_POLL;
use crate::clock;
use crate::disk::{Directory, Disk};
use crate::driver::{lock, spawn};
use crate::error::Error;
use crate::links::{LinkCounters, LinkOptions, Links};
use crate::socket::{Socket, SocketBuffers, SocketCounts};
use crate::waker::Waker;
use midflight_reads::replica::{Counters, Replica, ReplicaConfig, ReplicaTimes, StatusReport};
use orders::Orders;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use thread::{Parts, ReplicaThread};

/// Of answers that wait to be sent to clients directly, with the kernel's overhead.
const DIRECT_BYTES: usize = 2 << 20;
/// Of the disk, for the time when it is full.
const RESERVE_BYTES: u64 = 16 << 20;

/// How a replica runs. [`ReplicaOptions::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct ReplicaOptions {
    /// Identity, neighbours, times and bounds.
    pub config: ReplicaConfig,
    /// Where switches reach it, UDP.
    pub address: SocketAddr,
    /// Where the other replicas reach it, TCP.
    pub links: SocketAddr,
    /// The directory of its log and snapshots. It is made if there is none.
    pub data: PathBuf,
    /// Whether what it acknowledges survives a power cut of all replicas at once. Default yes.
    pub fsync: bool,
    /// Bytes of the disk that are kept for deletes and elections when it is full. Default 16 MiB.
    pub reserve_bytes: u64,
    /// Sizes of the kernel's buffers of its UDP socket.
    pub buffers: SocketBuffers,
    /// How long the thread polls the socket before it sleeps, while packets come in intervals shorter than that. Default 100 µs.
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

/// What a replica says of itself.
#[derive(Clone, Debug)]
pub struct ReplicaReport {
    /// Its state.
    pub status: StatusReport,
    /// What it has done.
    pub counters: Counters,
    /// How long it took.
    pub times: ReplicaTimes,
    /// Of its links.
    pub links: LinkCounters,
    /// Of its UDP socket.
    pub socket: SocketCounts,
    /// Of the socket for answers that go to clients directly.
    pub direct: SocketCounts,
}

/// A replica that runs. Dropping it ends it; its data stays.
#[derive(Debug)]
pub struct ReplicaProcess {
    shared: Arc<Shared>,
    links: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    socket: Socket,
    /// For answers that go to clients directly. Those to clients that are gone fill it, and heartbeats must not wait behind them.
    direct: Socket,
    waker: Arc<Waker>,
    orders: Orders,
    stop: AtomicBool,
    /// At most 100 ms old.
    published: Mutex<Published>,
    /// When the thread last took its turn.
    turned: AtomicU64,
    /// Why the thread ended by itself, if it did.
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
    /// Starts a replica with what its directory holds. The thread calls `on_failure` if it has to end by itself;
    /// [`failure`](Self::failure) then says why.
    ///
    /// # Errors
    /// If its files are not usable or another process has them, an address cannot be had, or its configuration is wrong.
    pub fn start(options: ReplicaOptions, on_failure: impl FnOnce() + Send + 'static) -> Result<Self, Error> {
        let ReplicaOptions { config, address, links, data, fsync, reserve_bytes, buffers, busy_poll } = options;
        let unusable = |why: &dyn std::fmt::Display| Error::Replica(why.to_string());
        config.check().map_err(|error| unusable(&error))?;
        let directory = Directory::take(&data).map_err(|error| unusable(&error))?;
        let files = directory.read().map_err(|error| unusable(&error))?;
        let (socket, waker) = (Socket::bind_with(address, buffers)?, Arc::new(Waker::new()?));
        let direct = socket.bind_to_send(DIRECT_BYTES)?;
        let links = Links::start(links, link_options(&config), waking(&waker))?;
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

    /// Where switches reach it.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.socket.local_addr()
    }

    /// Where the other replicas reach it.
    #[must_use]
    pub fn links_addr(&self) -> SocketAddr {
        self.links
    }

    /// What it says of itself, at most 100 ms ago.
    #[must_use]
    pub fn report(&self) -> ReplicaReport {
        let Published { status, counters, times, links } = lock(&self.shared.published).clone();
        let Shared { socket, direct, .. } = &*self.shared;
        ReplicaReport { status, counters, times, links, socket: socket.counts(), direct: direct.counts() }
    }

    /// Time since its thread last took a turn, which it does at least every 100 ms.
    #[must_use]
    pub fn silent_for(&self) -> Duration {
        Duration::from_nanos(clock::now().saturating_sub(self.shared.turned.load(Ordering::Relaxed)))
    }

    /// Why it has ended by itself, on one line; `None` if it has not.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.shared.failure.get().map(String::as_str)
    }

    /// Begins what an operator wants; [`report`](Self::report) shows when it is done. A hand-over is done when this returns, which takes
    /// ten promises at most.
    ///
    /// # Errors
    /// If the replica cannot do it, does not lead, or has ended; or if another one leads than was wanted.
    pub fn order(&self, order: ReplicaOrder) -> Result<(), Error> {
        self.shared.orders.carry_out(order, || self.shared.waker.wake()).map_err(Error::Replica)
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
        // A panic must end the process too: peers would go on to count on a replica whose thread is gone.
        let run = AssertUnwindSafe(|| ReplicaThread::new(of_thread, parts).run());
        let ended =
            catch_unwind(run).unwrap_or_else(|_| Err("the replica has panicked: the log has the message".into()));
        if let Err(why) = ended {
            // Cannot fail: nothing else sets it.
            let _ = shared.failure.set(why);
            on_failure();
        }
    })
}

fn waking(waker: &Arc<Waker>) -> impl Fn() + Send + Sync + 'static {
    let waker = Arc::clone(waker);
    move || waker.wake()
}

/// Links are known by a number that begins with a random one, so that no start takes an earlier one's for its own.
fn link_options(config: &ReplicaConfig) -> LinkOptions {
    LinkOptions::new(config.cluster, config.set, config.id, rand::random())
}
