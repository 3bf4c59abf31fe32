//! The selector of an operator (the accelerator of NetRS, section III): a thread that receives requests and copies of answers, and forwards
//! each request to the server it chose. A switch in this process sends through a ring, a kernel engine also through the socket.

use crate::clock;
use crate::driver::{lock, spawn};
use crate::error::Error;
use crate::socket::busy_poll::{BUSY_POLL, BusyPoll};
use crate::socket::ring::{RingReceiver, ring};
use crate::socket::{ReceiveBatch, SendQueue, Socket, SocketBuffers, SocketCounts};
use crate::switch::Diversion;
use crate::waker::Waker;
use midflight_cache::rsnode::{GroupError, Most, RsNode, RsNodeConfig, RsNodeCounters, SeenServer};
use midflight_cache::select::{Algorithm, Counts};
use midflight_endpoint::{Endpoint, Nanos};
use midflight_wire::PACKET_MAX;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Ring size: 20 ms at the paper's 5 µs per datagram.
const RING: usize = 4_096;
/// Datagrams handled before the resulting requests are sent.
const TURN: usize = 64;
/// Servers listed per lock, which blocks requests.
const LOOK: usize = 256;

/// Options of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorOptions {
    /// Its UDP address, the source of requests to servers.
    pub address: SocketAddr,
    /// Its operator, and bounds of requests.
    pub config: RsNodeConfig,
    /// The selection algorithm.
    pub algorithm: Algorithm,
    /// Maximum numbers of servers and replica groups.
    pub most: Most,
    /// Sizes of the socket's kernel buffers.
    pub buffers: SocketBuffers,
    /// How long it polls before it sleeps. Default 100 µs.
    pub busy_poll: Duration,
    /// Whether a kernel engine sends datagrams through the socket. Default: no, and the socket is not read.
    pub has_kernel_engine: bool,
}

impl SelectorOptions {
    /// The defaults: C3, 1,024 servers, 65,536 replica groups.
    #[must_use]
    pub fn new(address: SocketAddr, operator: SocketAddr) -> Self {
        Self {
            address,
            config: RsNodeConfig::new(operator),
            algorithm: Algorithm::default(),
            most: Most { servers: 1_024, groups: 65_536 },
            buffers: SocketBuffers::default(),
            busy_poll: BUSY_POLL,
            has_kernel_engine: false,
        }
    }
}

/// Counts of a selector.
#[derive(Clone, Copy, Debug)]
pub struct SelectorReport {
    /// Requests and answers.
    pub rsnode: RsNodeCounters,
    /// Implausible data that was rejected.
    pub disbelieved: Counts,
    /// Requests without an answer yet.
    pub under_way: usize,
    /// Requests and copies of answers handled.
    pub packets: u64,
    /// Time spent on them.
    pub busy: Duration,
    /// Datagrams dropped because the ring was full.
    pub ring_full: u64,
    /// Counts of the socket.
    pub socket: SocketCounts,
}

/// A selector with a socket, but without a thread.
#[derive(Debug)]
pub struct BoundSelector {
    shared: Arc<Shared>,
}

/// A running selector. Dropping it stops it.
#[derive(Debug)]
pub struct Selector {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    incarnation: u64,
    operator: SocketAddr,
    algorithm: Algorithm,
    rsnode: Mutex<RsNode>,
    socket: Socket,
    ring: RingReceiver,
    waker: Arc<Waker>,
    busy_poll: Duration,
    has_kernel_engine: bool,
    stop: AtomicBool,
    is_alive: AtomicBool,
    packets: AtomicU64,
    busy_ns: AtomicU64,
}

impl BoundSelector {
    /// Binds the address. The operator's switch must use the returned diversion.
    ///
    /// # Errors
    ///
    /// If the address cannot be bound.
    pub fn bind(options: &SelectorOptions) -> Result<(Self, Diversion), Error> {
        let socket = Socket::bind_with(options.address, options.buffers)?;
        let waker = Arc::new(Waker::new()?);
        let (sender, ring) = ring(RING, Arc::clone(&waker));
        let diversion = Diversion::new(socket.local_addr(), sender);
        let select = |servers| options.algorithm.selector(servers, 1);
        let rsnode = RsNode::learning(options.config, options.most, rand::random(), select);
        let shared = Arc::new(Shared {
            incarnation: rand::random_range(1..=u64::MAX),
            operator: options.config.operator,
            algorithm: options.algorithm,
            rsnode: Mutex::new(rsnode),
            socket,
            ring,
            waker,
            busy_poll: options.busy_poll,
            has_kernel_engine: options.has_kernel_engine,
            stop: AtomicBool::new(false),
            is_alive: AtomicBool::new(true),
            packets: AtomicU64::new(0),
            busy_ns: AtomicU64::new(0),
        });
        Ok((Self { shared }, diversion))
    }

    /// Its address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.socket.local_addr()
    }

    /// Starts its thread, which inherits the caller's privileges: drop them before.
    ///
    /// # Errors
    ///
    /// If the system refuses a thread.
    pub fn run(self) -> Result<Selector, Error> {
        let Self { shared } = self;
        let of_thread = Arc::clone(&shared);
        let thread = spawn("mf-selector", move || {
            // However it ends, the keeper notices that the operator has no selector.
            let ended = catch_unwind(AssertUnwindSafe(|| SelectorThread::new(&of_thread).run()));
            of_thread.is_alive.store(false, Ordering::Release);
            if ended.is_err() {
                tracing::error!(
                    "the selector has panicked: requests go to their backups until this process starts again"
                );
            }
        })?;
        Ok(Selector { shared, thread: Some(thread) })
    }
}

impl Selector {
    /// Its address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.socket.local_addr()
    }

    /// The selection algorithm.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.shared.algorithm
    }

    /// The random identity of this selector while it works.
    #[must_use]
    pub fn incarnation(&self) -> Option<u64> {
        self.shared.is_alive.load(Ordering::Acquire).then_some(self.shared.incarnation)
    }

    /// Adds a replica group.
    ///
    /// # Errors
    ///
    /// As [`RsNode::set_group`].
    pub fn set_group(&self, group: u32, servers: &[SocketAddr]) -> Result<(), GroupError> {
        lock(&self.shared.rsnode).set_group(group, servers)
    }

    /// Sets the number of selectors that choose among the same servers.
    pub fn set_selectors(&self, selectors: u32) {
        lock(&self.shared.rsnode).set_selectors(selectors);
    }

    /// The servers as this selector sees them, for display.
    #[must_use]
    pub fn servers(&self) -> Vec<SeenServer> {
        let mut all = Vec::new();
        loop {
            let more = lock(&self.shared.rsnode).servers(clock::now(), all.len(), LOOK);
            let is_last = more.len() < LOOK;
            all.extend(more);
            if is_last {
                return all;
            }
        }
    }

    /// Blocks the selector until the result is dropped, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn hold(&self) -> impl Sized {
        lock(&self.shared.rsnode)
    }

    /// Ends its thread as a bug would, for tests.
    #[doc(hidden)]
    pub fn end_thread(&self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.waker.wake();
    }

    /// Counts since the start.
    #[must_use]
    pub fn report(&self) -> SelectorReport {
        let Shared { rsnode, socket, ring, packets, busy_ns, .. } = &*self.shared;
        let rsnode = lock(rsnode);
        SelectorReport {
            rsnode: rsnode.counters(),
            disbelieved: rsnode.disbelieved(),
            under_way: rsnode.under_way(),
            packets: packets.load(Ordering::Relaxed),
            busy: Duration::from_nanos(busy_ns.load(Ordering::Relaxed)),
            ring_full: ring.dropped(),
            socket: socket.counts(),
        }
    }
}

impl Drop for Selector {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct SelectorThread<'a> {
    shared: &'a Shared,
    busy_poll: BusyPoll,
    batch: ReceiveBatch,
    sends: SendQueue,
    packet: Vec<u8>,
}

impl<'a> SelectorThread<'a> {
    fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            busy_poll: BusyPoll::new(shared.busy_poll),
            batch: ReceiveBatch::new(),
            sends: SendQueue::default(),
            packet: Vec::with_capacity(PACKET_MAX),
        }
    }

    fn run(&mut self) {
        // The default timer slack of 50 µs would prolong every sleep.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut due = Nanos::MAX;
        while !self.shared.stop.load(Ordering::Acquire) {
            let Self { shared, busy_poll, batch, sends, packet } = self;
            let mut handled = 0;
            let received = busy_poll.receive(due, || {
                handled = turn(shared, batch, sends, packet);
                handled > 0
            });
            due = lock(&shared.rsnode).poll_timeout().unwrap_or(Nanos::MAX);
            if !received && !self.busy_poll.is_polling() {
                let timeout = (due != Nanos::MAX).then(|| due.saturating_sub(clock::now()));
                self.shared.waker.wait(&self.shared.socket, timeout);
            }
        }
    }
}

fn turn(shared: &Shared, batch: &mut ReceiveBatch, sends: &mut SendQueue, packet: &mut Vec<u8>) -> u64 {
    let began = clock::now();
    let mut rsnode = lock(&shared.rsnode);
    let mut handled = shared.ring.take(TURN, |datagram| rsnode.handle(began, shared.operator, datagram));
    if shared.has_kernel_engine && shared.socket.receive(batch) {
        for (from, datagram) in batch.iter() {
            rsnode.handle(began, from, datagram);
            handled += 1;
        }
    }
    if rsnode.poll_timeout().is_some_and(|due| due <= began) {
        rsnode.handle_timeout(began);
    }
    while let Some(to) = rsnode.poll_transmit(began, packet) {
        sends.push(&shared.socket, to, packet);
    }
    drop(rsnode);
    sends.flush(&shared.socket);
    if handled > 0 {
        shared.packets.fetch_add(handled as u64, Ordering::Relaxed);
        shared.busy_ns.fetch_add(clock::now() - began, Ordering::Relaxed);
    }
    handled as u64
}
