//! A worker and the functions that its slots run.

use super::{Running, birth, refused};
use midflight_baselines::sparrow::worker::{Counters, Event, Run, RunKey};
use midflight_baselines::sparrow::{Worker, WorkerConfig};
use midflight_endpoint::Nanos;
use midflight_host::parts::{Begun, BuiltIn, Driver, Handler, Socket, Task, Waker};
use midflight_host::{Error, SocketCounts, clock};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

type WorkerDriver = Driver<Worker, Runner>;

/// A task that was started: its name, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// The client's [identity](super::SparrowClient::identity).
    pub client: u64,
    /// Its number for the job.
    pub job: u32,
    /// The task's place in the job.
    pub tid: u32,
    /// When, by [`clock::now`].
    pub at: Nanos,
}

/// Runs tasks. Of their results only the status is reported: Sparrow's packets have no room for more.
struct Runner {
    functions: BuiltIn,
    driver: Weak<WorkerDriver>,
    sleeping: BinaryHeap<Reverse<(Nanos, RunKey)>>,
    /// The starts of tasks, if they are recorded: Sparrow's packets do not carry them.
    starts: Option<Vec<Start>>,
}

impl Runner {
    fn run(&mut self, worker: &mut Worker, run: &Run) {
        let Run { key, task, client, job, asked, .. } = *run;
        let tid = task.tid.get();
        if let Some(starts) = &mut self.starts {
            starts.push(Start { client, job, tid, at: clock::now() });
        }
        let length = usize::from(task.argument_length).min(task.argument.len());
        let (function, argument, priority) = (task.function.get(), &task.argument[..length], task.priority);
        let task = Task { function, argument, job, tid, priority, asked, run: (key.slot, key.run) };
        let driver = self.driver.clone();
        let done = move |status| {
            if let Some(driver) = driver.upgrade() {
                driver.with(|now, worker, _| worker.finish(now, key, status));
            }
        };
        match self.functions.begin(&task, done) {
            Begun::Ended(status) => worker.finish(clock::now(), key, status),
            Begun::Sleeps(until) => self.sleeping.push(Reverse((until, key))),
            Begun::Runs => {}
        }
    }
}

impl Handler<Worker> for Runner {
    fn event(&mut self, worker: &mut Worker, event: Event) {
        let Event::Run(run) = event;
        self.run(worker, &run);
    }

    fn deadline(&self) -> Option<Nanos> {
        self.sleeping.peek().map(|Reverse((end, _))| *end)
    }

    fn due(&mut self, now: Nanos, worker: &mut Worker) {
        while let Some(&Reverse((end, run))) = self.sleeping.peek()
            && end <= now
        {
            self.sleeping.pop();
            worker.finish(now, run, Status::Ok);
        }
    }
}

/// A running Sparrow worker, which knows `noop`, `sleep`, `spin` and `exec`; dropping it kills what it runs.
pub(crate) struct SparrowWorker {
    running: Running<Worker, Runner>,
}

impl std::fmt::Debug for SparrowWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SparrowWorker").field("local", &self.local_addr()).finish_non_exhaustive()
    }
}

impl SparrowWorker {
    /// Starts it on the address by which schedulers know it, with a random seed.
    ///
    /// # Errors
    /// Where the configuration is out of bounds, or the address or a thread cannot be had.
    pub(crate) fn start(listen: SocketAddr, config: WorkerConfig) -> Result<Self, Error> {
        Self::launch(listen, config, None)
    }

    /// The same, and keeps what it [starts](Self::starts): 24 bytes a task.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub(crate) fn start_recorded(listen: SocketAddr, config: WorkerConfig) -> Result<Self, Error> {
        Self::launch(listen, config, Some(Vec::new()))
    }

    fn launch(listen: SocketAddr, config: WorkerConfig, starts: Option<Vec<Start>>) -> Result<Self, Error> {
        let (now, seed) = birth();
        let worker = Worker::new(WorkerConfig { seed, ..config }, now).map_err(refused)?;
        let functions = BuiltIn::new(worker.slots())?;
        let (socket, waker) = (Socket::bind(listen)?, Waker::new()?);
        let driver = Arc::new_cyclic(|driver| {
            let runner = Runner { functions, driver: driver.clone(), sleeping: BinaryHeap::new(), starts };
            Driver::new(worker, runner, socket, waker)
        });
        driver.with(|_, _, _| ()); // without probing its slots ask at once
        Ok(Self { running: Running::start("mf-sparrow", driver)? })
    }

    /// Its address.
    #[must_use]
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.running.driver.socket.local_addr()
    }

    /// What it has started since the last call, in that order; nothing unless that is recorded.
    #[must_use]
    pub(crate) fn starts(&self) -> Vec<Start> {
        self.running.driver.with(|_, _, runner| runner.starts.as_mut().map(std::mem::take).unwrap_or_default())
    }

    /// Its counters.
    #[must_use]
    pub(crate) fn counts(&self) -> (Counters, SocketCounts) {
        let counters = self.running.driver.peek(|worker, _| worker.counters());
        (counters, self.running.driver.socket.counts())
    }
}
