//! Runs one endpoint over one socket. The endpoint is behind a mutex. A user's thread that submits, or a worker that
//! finishes, runs a turn of the endpoint itself and sends the packets of it, without handing over to another thread. The
//! network thread receives and handles timers. A thread that waits for a result may receive too.

use crate::busy_poll::BusyPoll;
use crate::clock;
use crate::error::Error;
use crate::socket::{ReceiveBatch, SendQueue, Socket};
use crate::waker::Waker;
use midflight_endpoint::{Endpoint, Nanos};
use midflight_wire::{PACKET_MAX, VERSION};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How late the endpoint's own timers may fire, if that saves a wake-up: they are retransmissions.
const SLACK_NS: Nanos = 1_000_000;
/// For this long after a packet or a call the network thread sleeps at most `SLACK_NS`, so that the next call within
/// that time need not wake it for its timeout.
const LINGER_NS: Nanos = 10_000_000;

/// Locks even if a holder panicked: the data is consistent at every statement that may panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread of this name.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(run);
    thread.map_err(|source| Error::Resources { what: "start a thread", source })
}

/// Handles an endpoint's events. Everything is called with the endpoint locked, except the result of `after`.
pub trait Handler<E: Endpoint>: Send {
    /// The clock that the endpoint's times are read from.
    const CLOCK: fn() -> Nanos = clock::now;

    /// An event of the endpoint.
    fn event(&mut self, endpoint: &mut E, event: E::Event);
    /// Whether the process at this address may have anything to do with the endpoint.
    fn serves(&mut self, _now: Nanos, _address: SocketAddr) -> bool {
        true
    }
    /// When `due` wants to be called, to the nanosecond.
    fn deadline(&self) -> Option<Nanos> {
        None
    }
    /// `deadline` may have come.
    fn due(&mut self, _now: Nanos, _endpoint: &mut E) {}
    /// Whether to send this packet. Counts it if not.
    fn may_send(&mut self, _now: Nanos, _socket: &Socket, _to: SocketAddr, _packet: &[u8]) -> bool {
        true
    }
    /// Work for after the endpoint is unlocked, if there is any.
    fn after(&mut self) -> Option<impl FnOnce() + use<Self, E>> {
        None::<fn()>
    }
}

/// An endpoint, its handler and its socket.
pub struct Driver<E, H> {
    core: Mutex<Driven<E, H>>,
    /// Its socket.
    pub socket: Socket,
    waker: Waker,
    /// The packets of a turn of a user's thread, which are sent after the endpoint is unlocked.
    spare_sends: Mutex<Vec<SendQueue>>,
    /// Another thread polls the socket: the network thread need not be woken by it.
    polled: AtomicBool,
    /// Whether the network thread sleeps so that not even a packet wakes it.
    asleep: AtomicBool,
    stop: AtomicBool,
}

/// What a thread needs to receive.
pub(crate) struct Hands {
    batch: ReceiveBatch,
    sends: SendQueue,
}

impl Hands {
    pub(crate) fn new() -> Self {
        Self { batch: ReceiveBatch::new(), sends: SendQueue::default() }
    }
}

struct Driven<E, H> {
    endpoint: E,
    handler: H,
    packet: Vec<u8>,
    /// When the network thread will read next; 0 while it is awake.
    sleeps_until: Nanos,
    /// When something happened last.
    active: Nanos,
}

impl<E: Endpoint, H: Handler<E>> Driver<E, H> {
    /// Not running yet.
    pub fn new(endpoint: E, handler: H, socket: Socket, waker: Waker) -> Self {
        let core = Driven { endpoint, handler, packet: Vec::with_capacity(PACKET_MAX), sleeps_until: 0, active: 0 };
        let flag = || AtomicBool::new(false);
        let (polled, asleep, stop) = (flag(), flag(), flag());
        Self { core: Mutex::new(core), socket, waker, spare_sends: Mutex::default(), polled, asleep, stop }
    }

    /// Changes the endpoint, then handles all events and packets that follow, on the caller's thread.
    pub fn with<R>(&self, act: impl FnOnce(Nanos, &mut E, &mut H) -> R) -> R {
        let mut core = lock(&self.core);
        let now = (H::CLOCK)();
        let state = &mut *core;
        let result = act(now, &mut state.endpoint, &mut state.handler);
        state.active = now;
        state.take_events();
        let mut sends = lock(&self.spare_sends).pop().unwrap_or_default();
        state.transmit(now, &self.socket, &mut sends);
        let wake = state.must_wake();
        let after = state.handler.after();
        drop(core);
        sends.flush(&self.socket);
        lock(&self.spare_sends).push(sends);
        if wake {
            self.waker.wake();
        }
        if let Some(after) = after {
            after();
        }
        result
    }

    /// Reads from the endpoint without driving it.
    pub fn peek<R>(&self, read: impl FnOnce(&E, &H) -> R) -> R {
        let core = lock(&self.core);
        read(&core.endpoint, &core.handler)
    }

    /// The network thread, until `stop`. It polls for up to `longest` before it sleeps.
    pub fn run(&self, longest: Duration) {
        // The default slack of 50 us would make every sleep that much longer. Where refused, it is just that.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let (mut hands, mut busy_poll) = (Hands::new(), BusyPoll::new(longest));
        let mut until = 0;
        while !self.stop.load(Ordering::Acquire) {
            let received = busy_poll.receive(until, || self.socket.receive(&mut hands.batch));
            let awake = received || busy_poll.is_polling();
            until = self.turn(&mut hands, |state, now| {
                let until = state.sleep_until(now);
                state.sleeps_until = if awake { 0 } else { until };
                until
            });
            if !awake {
                let now = (H::CLOCK)();
                let timeout = (until != Nanos::MAX).then(|| until.saturating_sub(now));
                self.sleep(timeout);
            }
        }
    }

    fn sleep(&self, timeout: Option<Nanos>) {
        // In this order, and in the reverse order in `end_polling`: so at least one of the two threads sees what the other
        // did.
        self.asleep.store(true, Ordering::SeqCst);
        if self.polled.load(Ordering::SeqCst) {
            self.waker.sleep(timeout.map_or(SLACK_NS, |timeout| timeout.min(SLACK_NS)));
            self.asleep.store(false, Ordering::SeqCst);
        } else {
            self.asleep.store(false, Ordering::SeqCst);
            self.waker.wait(&self.socket, timeout);
        }
    }

    /// The caller will poll the socket (`poll`) until it calls `end_polling`.
    pub(crate) fn begin_polling(&self) {
        self.polled.store(true, Ordering::SeqCst);
    }

    /// The caller stops polling. With `watch`, the network thread takes over at once, because more is expected soon; otherwise
    /// within `SLACK_NS`.
    pub(crate) fn end_polling(&self, watch: bool) {
        self.polled.store(false, Ordering::SeqCst);
        if watch {
            self.watch();
        }
    }

    /// The caller waits for something and does not poll: if no other thread does, the network thread has to.
    pub(crate) fn watch(&self) {
        if self.asleep.load(Ordering::SeqCst) && !self.polled.load(Ordering::SeqCst) {
            self.waker.wake();
        }
    }

    /// Receives on the caller's thread, without waiting; `false` if nothing had arrived.
    pub(crate) fn poll(&self, hands: &mut Hands) -> bool {
        let received = self.socket.receive(&mut hands.batch);
        if received && self.turn(hands, |state, _| state.must_wake()) {
            self.waker.wake();
        }
        received
    }

    /// Handles received datagrams and due timers, and sends the packets that follow. `last` is called before the endpoint
    /// is unlocked.
    fn turn<R>(&self, hands: &mut Hands, last: impl FnOnce(&mut Driven<E, H>, Nanos) -> R) -> R {
        let mut core = lock(&self.core);
        let mut now = (H::CLOCK)();
        let state = &mut *core;
        for (from, datagram) in hands.batch.iter() {
            if state.handler.serves(now, from) {
                state.endpoint.handle(now, from, datagram);
                state.active = now;
            } else {
                self.socket.count_not_served();
            }
        }
        if state.endpoint.poll_timeout().is_some_and(|due| due <= now) {
            state.endpoint.handle_timeout(now);
        }
        state.handler.due(now, &mut state.endpoint);
        state.take_events();
        if let Some(after) = state.handler.after() {
            // Threads that wait for a result are woken before the datagrams that only acknowledge it are sent.
            drop(core);
            after();
            core = lock(&self.core);
            now = (H::CLOCK)(); // other threads had turns meanwhile, and the endpoint's time must not go back
        }
        let state = &mut *core;
        state.transmit(now, &self.socket, &mut hands.sends);
        let result = last(state, now);
        drop(core);
        hands.sends.flush(&self.socket);
        result
    }

    /// Handles timers that are due, for a caller that receives by `poll` and has no network thread.
    #[cfg(feature = "agent")]
    pub(crate) fn handle_timeouts(&self) {
        self.with(|now, endpoint, handler| {
            if endpoint.poll_timeout().is_some_and(|due| due <= now) {
                endpoint.handle_timeout(now);
            }
            handler.due(now, endpoint);
        });
    }

    /// When they are due next.
    #[cfg(feature = "agent")]
    pub(crate) fn next_timeout(&self) -> Nanos {
        self.peek(|endpoint, handler| {
            let [endpoint, handler] = [endpoint.poll_timeout(), handler.deadline()];
            endpoint.unwrap_or(Nanos::MAX).min(handler.unwrap_or(Nanos::MAX))
        })
    }

    /// Makes `run` return soon.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl<E: Endpoint, H: Handler<E>> Driven<E, H> {
    /// Handles events, which may cause more events.
    fn take_events(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            self.handler.event(&mut self.endpoint, event);
        }
    }

    /// Collects packets in `sends`; when it is full, sends them at once.
    fn transmit(&mut self, now: Nanos, socket: &Socket, sends: &mut SendQueue) {
        while let Some(to) = self.endpoint.poll_transmit(now, &mut self.packet) {
            if !self.handler.serves(now, to) {
                socket.count_not_served();
            } else if self.handler.may_send(now, socket, to, &self.packet) {
                sends.push(socket, to, &self.packet);
            }
        }
    }

    fn sleep_until(&self, now: Nanos) -> Nanos {
        let endpoint = self.endpoint.poll_timeout().unwrap_or(Nanos::MAX);
        let handler = self.handler.deadline().unwrap_or(Nanos::MAX);
        let linger = if now < self.active + LINGER_NS { now + SLACK_NS } else { Nanos::MAX };
        endpoint.min(handler).min(linger)
    }

    /// Whether the network thread would sleep for too long now. It returns true once.
    fn must_wake(&mut self) -> bool {
        let endpoint = self.endpoint.poll_timeout().map_or(Nanos::MAX, |due| due.saturating_add(SLACK_NS));
        let due = endpoint.min(self.handler.deadline().unwrap_or(Nanos::MAX));
        let wake = due < self.sleeps_until;
        if wake {
            self.sleeps_until = 0;
        }
        wake
    }
}

/// How many lines about other versions one process logs, so that forged packets cannot fill the log.
const VERSIONS_TOLD: u32 = 4;

/// Logs what a switch of another version means for the user.
pub(crate) fn warn_of_version(switch: SocketAddr, version: u8) {
    static TOLD: AtomicU32 = AtomicU32::new(0);
    if TOLD.fetch_add(1, Ordering::Relaxed) >= VERSIONS_TOLD {
        return;
    }
    tracing::error!(
        "switch {switch} speaks version {version} of the wire format, this program {VERSION}: use one release of Midflight on \
         all machines"
    );
}
