//! The switch: the C core on a thread of its own. Receive a batch, let the core answer each datagram, send the answers
//! together; a tick every 10 ms. Nothing is allocated and no lock is held between packets.

use crate::clock;
use crate::driver::lock;
use crate::error::Error;
use crate::socket::{ReceiveBatch, SendQueue, Socket, SocketBuffers, SocketCounts};
use crate::waker::Waker;
use midflight_dataplane::{Out, Stats, TICK_SLOTS, Tasks, TasksConfig};
use midflight_tasks::Nanos;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

const TICK_EVERY_NS: Nanos = 10_000_000;
/// Every slot is looked at once in this many ticks: 100 ms.
const TICKS_PER_ROUND: u32 = 10;
/// Statistics are published this often.
const PUBLISH_EVERY_NS: Nanos = 100_000_000;

/// Where a switch listens, and its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// UDP address; port 0 takes a free one; `[::]` takes IPv4 too.
    pub listen: SocketAddr,
    /// Bounds and times of the queue.
    pub tasks: TasksConfig,
    /// The kernel's buffers of its socket.
    pub buffers: SocketBuffers,
}

impl SwitchConfig {
    /// The default bounds.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self { listen, tasks: TasksConfig::default(), buffers: SocketBuffers::default() }
    }
}

/// A running switch; dropping it ends it, and what it holds is gone (T9).
#[derive(Debug)]
pub struct Switch {
    shared: Arc<Shared>,
    epoch: u32,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    socket: Socket,
    waker: Waker,
    stop: AtomicBool,
    /// At most 100 ms old.
    published: Mutex<Stats>,
    /// When the thread last ticked.
    ticked: AtomicU64,
}

impl Switch {
    /// Starts a switch on a thread of its own.
    ///
    /// # Errors
    /// Where the address cannot be listened on, or a bound is out of range.
    pub fn start(config: &SwitchConfig) -> Result<Self, Error> {
        let epoch = rand::random_range(1..=u32::MAX);
        let tasks = Tasks::new(&config.tasks, epoch, rand::random())
            .map_err(|error| Error::Configuration(error.to_string()))?;
        let socket = Socket::bind_with(config.listen, config.buffers)?;
        let waker = Waker::new().map_err(|source| Error::Resources { what: "create an eventfd", source })?;
        let published = Mutex::new(*tasks.stats());
        let (stop, ticked) = (AtomicBool::new(false), AtomicU64::new(clock::now()));
        let shared = Arc::new(Shared { socket, waker, stop, published, ticked });
        let ticks = config.tasks.slots.div_ceil(TICK_SLOTS * TICKS_PER_ROUND);
        let mut life = Life::new(Arc::clone(&shared), tasks, ticks);
        let thread = std::thread::Builder::new().name("mf-switch".into()).spawn(move || life.run());
        let thread = thread.map_err(|source| Error::Resources { what: "start a thread", source })?;
        Ok(Self { shared, epoch, thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.socket.local_addr()
    }

    /// Drawn at random at its start.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// What the core has counted, at most 100 ms ago.
    #[must_use]
    pub fn stats(&self) -> Stats {
        *lock(&self.shared.published)
    }

    /// Time since its thread last made progress; it does every 10 ms.
    #[must_use]
    pub fn silent_for(&self) -> Duration {
        Duration::from_nanos(clock::now().saturating_sub(self.shared.ticked.load(Ordering::Relaxed)))
    }

    /// What the socket has counted.
    #[must_use]
    pub fn socket_counts(&self) -> SocketCounts {
        self.shared.socket.counts()
    }

    /// Ends it; the port is free when this returns.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the switch's thread owns.
struct Life {
    shared: Arc<Shared>,
    tasks: Tasks,
    out: Out,
    sends: SendQueue,
    ticks: u32,
    next_tick: Nanos,
    next_publish: Nanos,
}

impl Life {
    fn new(shared: Arc<Shared>, tasks: Tasks, ticks: u32) -> Self {
        Self { shared, tasks, out: Out::new(), sends: SendQueue::default(), ticks, next_tick: 0, next_publish: 0 }
    }

    fn run(&mut self) {
        let mut batch = ReceiveBatch::new();
        while !self.shared.stop.load(Ordering::Acquire) {
            let received = self.shared.socket.receive(&mut batch);
            let now = clock::now();
            for (from, datagram) in batch.iter() {
                // The core counts what it says of the datagram.
                let _verdict = self.tasks.packet(now, from, datagram, &mut self.out);
                self.send();
            }
            if now >= self.next_tick {
                self.tick(now);
            }
            // The core answers a SUBMIT before it assigns, but it is the executor who is waited for.
            self.sends.flush_last_first(&self.shared.socket);
            if !received {
                let timeout = self.next_tick.saturating_sub(clock::now());
                self.shared.waker.wait(&self.shared.socket, Some(timeout));
            }
        }
    }

    fn send(&mut self) {
        for (to, datagram) in self.out.iter() {
            self.sends.push(&self.shared.socket, to, datagram);
        }
    }

    fn tick(&mut self, now: Nanos) {
        self.next_tick = now + TICK_EVERY_NS;
        self.shared.ticked.store(now, Ordering::Relaxed);
        for _ in 0..self.ticks {
            self.tasks.tick(now, &mut self.out);
            self.send();
        }
        if now >= self.next_publish
            && let Ok(mut published) = self.shared.published.try_lock()
        {
            *published = *self.tasks.stats();
            self.next_publish = now + PUBLISH_EVERY_NS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_out_of_range_is_refused_by_name() {
        let mut config = SwitchConfig::new("127.0.0.1:0".parse().unwrap());
        config.tasks.levels = 9;
        let error = Switch::start(&config).unwrap_err().to_string();
        assert!(error.contains("levels"), "{error}");
    }

    #[test]
    fn a_stopped_switch_leaves_its_port_free() {
        let mut config = SwitchConfig::new("127.0.0.1:0".parse().unwrap());
        let first = Switch::start(&config).unwrap();
        config.listen = first.local_addr();
        assert!(Switch::start(&config).is_err());
        first.stop();
        assert_eq!(Switch::start(&config).unwrap().local_addr(), config.listen);
    }
}
