//! Runs one endpoint, behind a mutex, over one socket. User threads and workers run turns of the endpoint and send its packets themselves.
//! The network thread receives and handles timers; a thread that waits for a result may receive too.

use crate::clock;
use crate::error::Error;
use crate::socket::busy_poll::BusyPoll;
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

/// How late retransmission timers may fire, to save a wake-up.
const SLACK_NS: Nanos = 1_000_000;
/// For this long after activity the network thread sleeps at most `SLACK_NS`, so that the next call need not wake it.
const LINGER_NS: Nanos = 10_000_000;

/// Ignores poisoning: the data is consistent at every statement that may panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a named thread.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(run);
    thread.map_err(Error::resources("start a thread"))
}

/// Handles an endpoint's events. All methods are called with the endpoint locked, but not the result of `after`.
pub trait Handler<E: Endpoint>: Send {
    /// The clock of the endpoint's times.
    const CLOCK: fn() -> Nanos = clock::now;

    /// Handles an event of the endpoint.
    fn event(&mut self, endpoint: &mut E, event: E::Event);
    /// Whether the endpoint serves the process at this address.
    fn serves(&mut self, _now: Nanos, _address: SocketAddr) -> bool {
        true
    }
    /// When to call `due`, to the nanosecond.
    fn deadline(&self) -> Option<Nanos> {
        None
    }
    /// Called when `deadline` may have passed.
    fn due(&mut self, _now: Nanos, _endpoint: &mut E) {}
    /// Whether to send this packet; counts it if not.
    fn may_send(&mut self, _now: Nanos, _socket: &Socket, _to: SocketAddr, _packet: &[u8]) -> bool {
        true
    }
    /// Work to do after the endpoint is unlocked.
    fn after(&mut self) -> Option<impl FnOnce() + use<Self, E>> {
        None::<fn()>
    }
}

/// An endpoint, its handler and its socket.
pub struct Driver<E, H> {
    core: Mutex<Driven<E, H>>,
    /// The socket.
    pub socket: Socket,
    waker: Waker,
    /// Queues for the packets of user threads, sent after the endpoint is unlocked.
    spare_sends: Mutex<Vec<SendQueue>>,
    /// Another thread polls the socket, so that it need not wake the network thread.
    polled: AtomicBool,
    /// The network thread sleeps without watching the socket.
    asleep: AtomicBool,
    stop: AtomicBool,
}

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
    /// Time of the network thread's next read; 0 while it is awake.
    sleeps_until: Nanos,
    /// Time of the last activity.
    active: Nanos,
}

impl<E: Endpoint, H: Handler<E>> Driver<E, H> {
    /// Creates a driver that does not run yet.
    pub fn new(endpoint: E, handler: H, socket: Socket, waker: Waker) -> Self {
        let core = Driven { endpoint, handler, packet: Vec::with_capacity(PACKET_MAX), sleeps_until: 0, active: 0 };
        let flag = || AtomicBool::new(false);
        let (polled, asleep, stop) = (flag(), flag(), flag());
        Self { core: Mutex::new(core), socket, waker, spare_sends: Mutex::default(), polled, asleep, stop }
    }

    /// Changes the endpoint, then handles the resulting events and packets on the caller's thread.
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

    /// Runs the network thread until `stop`. It polls for up to `longest` before it sleeps.
    pub fn run(&self, longest: Duration) {
        // The default timer slack of 50 µs would prolong every sleep.
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
        // The reverse order of `end_polling`: at least one thread sees the other's store.
        self.asleep.store(true, Ordering::SeqCst);
        if self.polled.load(Ordering::SeqCst) {
            self.waker.sleep(timeout.map_or(SLACK_NS, |timeout| timeout.min(SLACK_NS)));
            self.asleep.store(false, Ordering::SeqCst);
        } else {
            self.asleep.store(false, Ordering::SeqCst);
            self.waker.wait(&self.socket, timeout);
        }
    }

    pub(crate) fn begin_polling(&self) {
        self.polled.store(true, Ordering::SeqCst);
    }

    /// Ends polling. The network thread takes over at once with `watch`, otherwise within `SLACK_NS`.
    pub(crate) fn end_polling(&self, watch: bool) {
        self.polled.store(false, Ordering::SeqCst);
        if watch {
            self.watch();
        }
    }

    /// For a caller that waits without polling: wakes the network thread unless another one polls.
    pub(crate) fn watch(&self) {
        if self.asleep.load(Ordering::SeqCst) && !self.polled.load(Ordering::SeqCst) {
            self.waker.wake();
        }
    }

    /// Receives without waiting; `false` if nothing had arrived.
    pub(crate) fn poll(&self, hands: &mut Hands) -> bool {
        let received = self.socket.receive(&mut hands.batch);
        if received && self.turn(hands, |state, _| state.must_wake()) {
            self.waker.wake();
        }
        received
    }

    /// Handles datagrams and due timers, and sends the resulting packets. `last` runs before the endpoint is unlocked.
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
            // Wakes threads that wait for a result before sending mere acknowledgements.
            drop(core);
            after();
            core = lock(&self.core);
            now = (H::CLOCK)(); // other threads had turns, and the endpoint's time must not go back
        }
        let state = &mut *core;
        state.transmit(now, &self.socket, &mut hands.sends);
        let result = last(state, now);
        drop(core);
        hands.sends.flush(&self.socket);
        result
    }

    /// For a caller of `poll` without a network thread.
    #[cfg(feature = "agent")]
    pub(crate) fn handle_timeouts(&self) {
        self.with(|now, endpoint, handler| {
            if endpoint.poll_timeout().is_some_and(|due| due <= now) {
                endpoint.handle_timeout(now);
            }
            handler.due(now, endpoint);
        });
    }

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
    fn take_events(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            self.handler.event(&mut self.endpoint, event);
        }
    }

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

    /// Whether the network thread would sleep too long; returns true once.
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

/// Limits the log lines that forged packets can cause.
const VERSIONS_TOLD: u32 = 4;

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
