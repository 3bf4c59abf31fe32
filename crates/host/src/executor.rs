//! The executor: takes tasks from a switch and runs them. Functions of microseconds and timers run on the network
//! thread, which also keeps the slots alive; all others on workers, so that no task can starve it.

mod builder;
mod handler;

pub use builder::ExecutorBuilder;

use crate::blob::{ArgumentCounts, BlobCounters, BlobServer, BlobStore};
use crate::counted::CountedResources;
use crate::driver::{Driver, lock};
use crate::exec::Processes;
use crate::python::{PythonCounts, Pythons};
use crate::run_times::RunTimes;
use crate::socket::SocketCounts;
use crate::workers::Workers;
use handler::RunHandler;
use midflight_tasks::executor::{self as protocol, BundleCounts};
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long dropping waits for functions that still run.
const DROP_PATIENCE: Duration = Duration::from_secs(1);

/// A running executor; dropping it kills its commands and ends it at once. See [`Executor::drain`].
pub struct Executor {
    driver: Arc<ExecutorDriver>,
    status: Arc<Status>,
    workers: Arc<Workers>,
    processes: Arc<Processes>,
    pythons: Option<Arc<Pythons>>,
    blobs: Arc<BlobStore>,
    counted: CountedResources,
    #[cfg(feature = "async")]
    runtime: Option<Arc<crate::futures::Runtime>>,
    _server: BlobServer,
    thread: Option<JoinHandle<()>>,
}

pub(crate) type ExecutorDriver = Driver<protocol::Executor, RunHandler>;

/// A drain did not end in time; what ran was killed, and the switch gives it to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{running} tasks still ran after {timeout:?}; the switch gives them to other executors")]
pub struct DrainError {
    /// Tasks that ran.
    pub running: u32,
    /// What was waited.
    pub timeout: Duration,
}

/// The counters of an executor.
#[derive(Clone, Copy, Debug)]
pub struct ExecutorCounts {
    /// Of the protocol.
    pub protocol: protocol::Counters,
    /// Of the socket.
    pub socket: SocketCounts,
    /// Of results by reference.
    pub blobs: BlobCounters,
    /// Of arguments by reference.
    pub arguments: ArgumentCounts,
    /// Inline functions that held the network thread for more than a millisecond.
    pub inline_overruns: u64,
    /// Commands that failed because their outputs could not be kept whole.
    pub outputs_not_kept: u64,
    /// Of Python workers; zeros without Python.
    pub python: PythonCounts,
    /// Worker threads.
    pub workers: usize,
}

/// What the slots of an executor do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutorState {
    /// Slots that are registered at the switch, without those for asking ahead.
    pub registered: u32,
    /// Slots for asking ahead that are registered.
    pub registered_ahead: u32,
    /// Tasks that run.
    pub running: u32,
    /// Of these, tasks that wait for other tasks, and lend their slots.
    pub waiting: u32,
    /// Tasks that have come and have not started.
    pub ready: u32,
    /// Results that their clients have not acknowledged.
    pub unacknowledged: usize,
}

/// The state that other threads wait for.
#[derive(Debug, Default)]
pub(crate) struct Status {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct Now {
    slots: u32,
    drained: bool,
}

impl Status {
    fn set(&self, change: impl FnOnce(&mut Now)) {
        change(&mut lock(&self.now));
        self.changed.notify_all();
    }

    /// Waits for `wanted`; `false` when it does not come in time.
    fn wait(&self, timeout: Duration, wanted: impl Fn(&Now) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(lock(&self.now), timeout, |now| !wanted(now));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executor").field("local", &self.local_addr()).finish_non_exhaustive()
    }
}

impl Executor {
    /// Describes an executor.
    #[must_use]
    pub fn builder() -> ExecutorBuilder {
        ExecutorBuilder::default()
    }

    /// The local UDP address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.driver.socket.local_addr()
    }

    /// The switch in use.
    #[must_use]
    pub fn switch(&self) -> SocketAddr {
        self.driver.peek(|endpoint, _| endpoint.switch())
    }

    /// Slots that are registered at the switch now.
    #[must_use]
    pub fn registered(&self) -> u32 {
        lock(&self.status.now).slots
    }

    /// Waits until `slots` are registered; `false` when they are not in time.
    #[must_use]
    pub fn wait_registered(&self, slots: u32, timeout: Duration) -> bool {
        self.status.wait(timeout, |now| now.slots >= slots)
    }

    /// Tasks that run now.
    #[must_use]
    pub fn running(&self) -> u32 {
        self.driver.peek(|endpoint, _| endpoint.running())
    }

    /// Of each counted resource its name, and who has its bundles now.
    #[must_use]
    pub fn bundles(&self) -> Vec<(String, BundleCounts)> {
        let all = |endpoint: &protocol::Executor| {
            self.counted.iter().map(|of| (of.name().to_owned(), endpoint.bundles(of.bit()))).collect()
        };
        self.driver.peek(|endpoint, _| all(endpoint))
    }

    /// Of each function that has run, how long its runs took.
    #[must_use]
    pub fn run_times(&self) -> Vec<(String, RunTimes)> {
        self.driver.peek(|_, handler| handler.times())
    }

    /// What its slots do now.
    #[must_use]
    pub fn state(&self) -> ExecutorState {
        self.driver.peek(|endpoint, _| ExecutorState {
            registered: endpoint.registered(),
            registered_ahead: endpoint.registered_ahead(),
            running: endpoint.running(),
            waiting: endpoint.waiting(),
            ready: endpoint.ready(),
            unacknowledged: endpoint.unacknowledged(),
        })
    }

    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> ExecutorCounts {
        let (protocol, inline_overruns, arguments) =
            self.driver.peek(|e, handler| (*e.counters(), handler.overruns(), handler.arguments()));
        ExecutorCounts {
            protocol,
            socket: self.driver.socket.counts(),
            blobs: self.blobs.counters(),
            arguments,
            inline_overruns,
            outputs_not_kept: self.processes.not_kept(),
            python: self.pythons.as_ref().map(|pythons| pythons.counts()).unwrap_or_default(),
            workers: self.workers.threads(),
        }
    }

    /// Starts to drain: accepts nothing new. [`Self::drain`] waits for the end.
    pub fn begin_drain(&self) {
        self.driver.with(|now, endpoint, _| endpoint.drain(now));
    }

    /// Takes nothing new, finishes what runs, leaves the switch, and waits for all that. After `timeout`, commands are
    /// killed, and no task ends here any more: the switch gives those that ran to other executors.
    ///
    /// # Errors
    /// Where tasks still ran after `timeout`.
    pub fn drain(&self, timeout: Duration) -> Result<(), DrainError> {
        self.begin_drain();
        if self.status.wait(timeout, |now| now.drained) {
            return Ok(());
        }
        let running = self.kill_all();
        self.driver.stop(); // or it would keep the leases of tasks that do not run any more
        if running == 0 { Ok(()) } else { Err(DrainError { running, timeout }) }
    }
}

impl Executor {
    /// Kills all commands; returns how many tasks run.
    fn kill_all(&self) -> u32 {
        let running = self.driver.with(|_, endpoint, handler| {
            handler.end();
            endpoint.running()
        });
        self.processes.kill_all();
        self.pythons.iter().for_each(|pythons| pythons.kill_all());
        running
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.kill_all();
        self.driver.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        #[cfg(feature = "async")]
        self.runtime.iter().for_each(|runtime| runtime.close());
        let left = self.workers.close(DROP_PATIENCE);
        if left > 0 {
            tracing::warn!("{left} functions still run; their threads end with the process");
        }
    }
}
