//! The switch: the C core, and a thread that brings it what the socket receives, sends what it owes, and ticks it every
//! 10 ms. No lock is held between packets, and with the core nothing is allocated.
//!
//! The core is in this process ([`user`]), or in the kernel, where most packets never reach the socket ([`kernel`]); the
//! thread's life is the same, and so is it with the asic engine in the core's place ([`asic`]).

mod asic;
#[cfg(feature = "kernel")]
mod kernel;
mod life;
mod options;
mod purges;
mod strangers;
mod user;

pub use options::{AsicOptions, Engine, KernelOptions, SwitchConfig};

use crate::clock;
use crate::driver::lock;
use crate::error::Error;
use crate::socket::{Socket, SocketCounts};
use crate::waker::Waker;
use asic::AsicCore;
use life::{Core, Life};
use midflight_dataplane::{Stats, TICK_SLOTS, Which};
use purges::Purges;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use user::UserCore;

/// Every slot is looked at once in this many ticks: 100 ms.
const TICKS_PER_ROUND: u32 = 10;

/// Counts of what stands around the core, by name.
pub type ShellCounts = Vec<(&'static str, u64)>;

/// What a switch began with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inheritance {
    /// An empty queue.
    #[default]
    None,
    /// The queue that a former process had kept, with so many tasks waiting.
    TakenOver {
        /// Tasks in it.
        queued: u64,
    },
    /// An empty queue, in the place of one that had been kept.
    ThrownAway,
}

/// A running switch; dropping it ends it, and what it holds is gone (T9) unless it is kept.
#[derive(Debug)]
pub struct Switch {
    shared: Arc<Shared>,
    facts: Facts,
    thread: Option<JoinHandle<()>>,
}

/// A switch that has its socket, memory and programs, but no thread yet: what needs privileges is done.
#[derive(Debug)]
pub struct BoundSwitch {
    shared: Arc<Shared>,
    facts: Facts,
    core: AnyCore,
    ticks: u32,
    look: Duration,
}

/// What does not change.
#[derive(Clone, Debug)]
struct Facts {
    epoch: u32,
    engine: Engine,
    inheritance: Inheritance,
}

#[derive(Debug)]
enum AnyCore {
    User(Box<UserCore>),
    #[cfg(feature = "kernel")]
    Kernel(Box<kernel::KernelCore>),
    Asic(Box<AsicCore>),
}

#[derive(Debug)]
struct Shared {
    socket: Socket,
    waker: Waker,
    purges: Purges,
    stop: AtomicBool,
    /// At most 100 ms old.
    published: Mutex<Published>,
    /// When the thread last ticked.
    ticked: AtomicU64,
    /// Why it ended by itself, if it did.
    failure: OnceLock<String>,
}

#[derive(Debug)]
struct Published {
    stats: Stats,
    counts: ShellCounts,
}

impl Published {
    fn new(core: &impl Core) -> Mutex<Self> {
        let mut counts = ShellCounts::new();
        core.counts(&mut counts);
        Mutex::new(Self { stats: core.stats(), counts })
    }
}

impl Switch {
    /// Starts a switch on a thread of its own.
    ///
    /// # Errors
    /// Where the address cannot be listened on, a bound is out of range, or the engine cannot run here.
    pub fn start(config: &SwitchConfig) -> Result<Self, Error> {
        Self::bind(config)?.run(|| ())
    }

    /// Does all of a start that may fail or needs privileges. With the kernel engine, its programs serve from now on.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn bind(config: &SwitchConfig) -> Result<BoundSwitch, Error> {
        let epoch = rand::random_range(1..=u32::MAX);
        let socket = Socket::bind_with(config.listen, config.buffers)?;
        let waker = Waker::new().map_err(|source| Error::Resources { what: "create an eventfd", source })?;
        let facts = Facts { epoch, engine: config.engine.clone(), inheritance: Inheritance::None };
        let (core, facts, published) = match &config.engine {
            Engine::User => {
                let core = UserCore::new(&config.tasks, epoch)?;
                let published = Published::new(&core);
                (AnyCore::User(Box::new(core)), facts, published)
            }
            #[cfg(feature = "kernel")]
            Engine::Kernel(options) => {
                let apart = socket.keep_apart();
                apart.map_err(|source| Error::Resources { what: "switch off UDP_GRO of the socket", source })?;
                let (core, facts) = kernel::KernelCore::start(&config.tasks, options, socket.local_addr(), facts)?;
                let published = Published::new(&core);
                (AnyCore::Kernel(Box::new(core)), facts, published)
            }
            Engine::Asic(options) => {
                let core = AsicCore::new(&config.tasks, *options, epoch)?;
                let published = Published::new(&core);
                (AnyCore::Asic(Box::new(core)), facts, published)
            }
            #[cfg(not(feature = "kernel"))]
            Engine::Kernel(_) => return Err(Error::NoKernelEngine),
        };
        let (stop, ticked) = (AtomicBool::new(false), AtomicU64::new(clock::now()));
        let shared = Arc::new(Shared {
            socket,
            waker,
            purges: Purges::new(),
            stop,
            published,
            ticked,
            failure: OnceLock::new(),
        });
        let ticks = config.tasks.slots.div_ceil(TICK_SLOTS * TICKS_PER_ROUND);
        Ok(BoundSwitch { shared, facts, core, ticks, look: config.look })
    }

    /// Detaches what a switch with the kernel engine kept on this port, and lets its queue go; `false` where there was nothing.
    ///
    /// # Errors
    /// Where a process serves it, privileges are missing, or this was built without the kernel engine.
    pub fn detach(port: u16) -> Result<bool, Error> {
        #[cfg(feature = "kernel")]
        return Ok(midflight_dataplane::kernel::KernelEngine::detach(port)?);
        #[cfg(not(feature = "kernel"))]
        {
            let _ = port;
            Err(Error::NoKernelEngine)
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.socket.local_addr()
    }

    /// Drawn at random at its start, or that of the queue it took over.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.facts.epoch
    }

    /// Who decides; of the kernel engine, the interfaces by the names that the kernel has for them.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.facts.engine
    }

    /// What it began with.
    #[must_use]
    pub fn inheritance(&self) -> Inheritance {
        self.facts.inheritance
    }

    /// What the core has counted, at most 100 ms ago.
    #[must_use]
    pub fn stats(&self) -> Stats {
        lock(&self.shared.published).stats
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

    /// What stands around the core has counted, at most 100 ms ago: shells in the kernel, a pipeline; nothing in user space.
    #[must_use]
    pub fn shell_counts(&self) -> ShellCounts {
        lock(&self.shared.published).counts.clone()
    }

    /// Why it has ended by itself, if it has: one line.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.shared.failure.get().map(String::as_str)
    }

    /// Takes queued tasks out, and says how many. Clients that live find out, and submit them again.
    ///
    /// # Errors
    /// Where the engine cannot, the switch ends meanwhile, or too many purges wait already.
    pub fn purge(&self, which: Which) -> Result<u32, Error> {
        let refused = |why: String| Error::Purge { why };
        let answer = self.shared.purges.ask(which).ok_or_else(|| refused("too many purges wait already".into()))?;
        self.shared.waker.wake();
        answer.recv().map_err(|_| refused("the switch has ended".into()))?.map_err(refused)
    }

    /// Ends it; the port is free when this returns.
    pub fn stop(self) {
        drop(self);
    }
}

impl BoundSwitch {
    /// Where it will listen.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.socket.local_addr()
    }

    /// Starts its thread, which calls `on_failure` if it has to end by itself; [`Switch::failure`] then says why.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub fn run(self, on_failure: impl FnOnce() + Send + 'static) -> Result<Switch, Error> {
        let Self { shared, facts, core, ticks, look } = self;
        let of_thread = Arc::clone(&shared);
        let live = move || {
            let shared = Arc::clone(&of_thread);
            let lived = match core {
                AnyCore::User(core) => Life::new(shared, *core, ticks, look).run(),
                #[cfg(feature = "kernel")]
                AnyCore::Kernel(core) => Life::new(shared, *core, ticks, look).run(),
                AnyCore::Asic(core) => Life::new(shared, *core, ticks, look).run(),
            };
            if let Err(why) = lived {
                // It is set here only.
                let _ = of_thread.failure.set(why);
                on_failure();
            }
        };
        let thread = std::thread::Builder::new().name("mf-switch".into()).spawn(live);
        let thread = thread.map_err(|source| Error::Resources { what: "start a thread", source })?;
        Ok(Switch { shared, facts, thread: Some(thread) })
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
