//! The executor: takes tasks from a switch and runs them. Timers and functions of microseconds run on the network thread, which also keeps
//! the slots registered; other functions run on workers and cannot starve it.

mod builder;
mod handler;

pub use builder::ExecutorBuilder;

use crate::blob::{BlobCounters, BlobServer, BlobStore};
use crate::driver::{Driver, lock};
use crate::error::Error;
use crate::process::failing::Failing;
use crate::socket::SocketCounts;
use crate::tasks::counted::CountedResources;
use crate::tasks::exec::Processes;
use crate::tasks::python::{PythonCounts, Pythons};
use crate::tasks::run_times::RunTimes;
use crate::tasks::workers::Workers;
use handler::RunHandler;
use midflight_tasks::executor::{self as protocol, BundleCounts};
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

const NETWORK_THREAD: &str = "mf-executor";
const DROP_PATIENCE: Duration = Duration::from_secs(1);

/// A running executor. Dropping it kills its commands and stops it at once; see [`Executor::drain`].
pub struct Executor {
    driver: Arc<ExecutorDriver>,
    status: Arc<Status>,
    workers: Arc<Workers>,
    processes: Arc<Processes>,
    pythons: Option<Arc<Pythons>>,
    blobs: Arc<BlobStore>,
    counted: CountedResources,
    #[cfg(feature = "async")]
    runtime: Option<Arc<crate::tasks::futures::Runtime>>,
    _server: BlobServer,
    thread: Option<JoinHandle<()>>,
    failing: Arc<Failing>,
}

pub(crate) type ExecutorDriver = Driver<protocol::Executor, RunHandler>;

/// Counters of an executor.
#[derive(Clone, Copy, Debug)]
pub struct ExecutorCounts {
    /// Protocol.
    pub protocol: protocol::Counters,
    /// Socket.
    pub socket: SocketCounts,
    /// Results by reference.
    pub blobs: BlobCounters,
    /// Arguments by reference.
    pub argument_fetches: u64,
    /// Calls of inline functions that took the network thread more than 1 ms.
    pub inline_overruns: u64,
    /// Commands that failed because their outputs could not be kept.
    pub outputs_not_kept: u64,
    /// Python workers; zeros without Python.
    pub python: PythonCounts,
    /// Worker threads.
    pub workers: usize,
}

/// The slots of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutorState {
    /// Slots registered at the switch, without prefetch slots.
    pub registered: u32,
    /// Prefetch slots registered at the switch.
    pub registered_ahead: u32,
    /// Running tasks.
    pub running: u32,
    /// Running tasks that wait for other tasks and lend their slots.
    pub waiting: u32,
    /// Tasks that arrived and have not started.
    pub ready: u32,
    /// Results not yet acknowledged by their clients.
    pub unacknowledged: usize,
}

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

    /// The current switch.
    #[must_use]
    pub fn switch(&self) -> SocketAddr {
        self.driver.peek(|endpoint, _| endpoint.switch())
    }

    /// Slots registered at the switch.
    #[must_use]
    pub fn registered(&self) -> u32 {
        lock(&self.status.now).slots
    }

    /// Waits until `slots` are registered; `false` after `timeout`.
    #[must_use]
    pub fn wait_registered(&self, slots: u32, timeout: Duration) -> bool {
        self.status.wait(timeout, |now| now.slots >= slots)
    }

    /// Running tasks.
    #[must_use]
    pub fn running(&self) -> u32 {
        self.driver.peek(|endpoint, _| endpoint.running())
    }

    /// Name of each counted resource and the use of its bundles.
    #[must_use]
    pub fn bundles(&self) -> Vec<(String, BundleCounts)> {
        let all = |endpoint: &protocol::Executor| {
            self.counted.iter().map(|of| (of.name().to_owned(), endpoint.bundles(of.bit()))).collect()
        };
        self.driver.peek(|endpoint, _| all(endpoint))
    }

    /// Run times of each function that has run.
    #[must_use]
    pub fn run_times(&self) -> Vec<(String, RunTimes)> {
        self.driver.peek(|_, handler| handler.times())
    }

    /// The current state of the slots.
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

    /// Counts since the start.
    #[must_use]
    pub fn counts(&self) -> ExecutorCounts {
        let (protocol, inline_overruns, argument_fetches) =
            self.driver.peek(|e, handler| (*e.counters(), handler.overruns(), handler.argument_fetches()));
        ExecutorCounts {
            protocol,
            socket: self.driver.socket.counts(),
            blobs: self.blobs.counters(),
            argument_fetches,
            inline_overruns,
            outputs_not_kept: self.processes.not_kept(),
            python: self.pythons.as_ref().map(|pythons| pythons.counts()).unwrap_or_default(),
            workers: self.workers.threads(),
        }
    }

    /// Begins to drain: takes no new tasks. [`Self::drain`] also waits.
    pub fn begin_drain(&self) {
        self.driver.with(|now, endpoint, _| endpoint.drain(now));
    }

    /// Why this executor had to stop by itself; see [`ExecutorBuilder::on_failure`].
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failing.why()
    }

    /// Takes no new tasks, finishes the running ones and leaves the switch. After `timeout`, kills commands and reports no more results;
    /// the switch gives the tasks to other executors.
    ///
    /// # Errors
    ///
    /// If tasks still ran after `timeout`.
    pub fn drain(&self, timeout: Duration) -> Result<(), Error> {
        self.begin_drain();
        if self.status.wait(timeout, |now| now.drained) {
            return Ok(());
        }
        let running = self.kill_all();
        self.driver.stop(); // stops renewing the leases of killed tasks
        if running == 0 { Ok(()) } else { Err(Error::StillRunning { running, within: timeout }) }
    }
}

impl Executor {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// Otherwise its workers would continue while the leases of their tasks expire.
    #[test]
    fn an_executor_whose_network_thread_panics_says_so() {
        let (failed, failure) = channel();
        let builder = Executor::builder().switch(([127, 0, 0, 1], 9).into()).slots(1);
        let executor = builder.on_failure(move || failed.send(()).unwrap()).start().unwrap();
        assert_eq!(executor.failure(), None);
        executor.driver.with(|_, _, handler| handler.panics = true);
        failure.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(executor.failure().is_some_and(|why| why.contains("has panicked")), "{:?}", executor.failure());
    }
}
