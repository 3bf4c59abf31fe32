//! A worker and the functions that its slots run.

use super::{Running, birth};
use crate::blob::BlobOptions;
use crate::cancellation::CancellationToken;
use crate::clock;
use crate::counted::Holding;
use crate::driver::{Driver, Handler};
use crate::error::Error;
use crate::exec::Processes;
use crate::functions::{Call, Function, Functions, TaskContext, duration_ns};
use crate::socket::{Socket, SocketCounts};
use crate::spill::SpillRoom;
use crate::waker::Waker;
use crate::workers::Workers;
use midflight_baselines::sparrow::worker::{Counters, Event, Run, RunKey};
use midflight_baselines::sparrow::{Worker, WorkerConfig};
use midflight_endpoint::Nanos;
use midflight_tasks::functions::SLEEP;
use midflight_wire::Status;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long dropping waits for functions that still run.
const DROP_PATIENCE: Duration = Duration::from_secs(1);

type WorkerDriver = Driver<Worker, Runner>;

/// A task that was started: its name, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
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
    functions: Functions,
    workers: Arc<Workers>,
    driver: Weak<WorkerDriver>,
    sleeping: BinaryHeap<Reverse<(Nanos, RunKey)>>,
    /// The starts of tasks, if they are recorded: Sparrow's packets do not carry them.
    starts: Option<Vec<Start>>,
}

impl Runner {
    fn run(&mut self, worker: &mut Worker, run: &Run) {
        let length = usize::from(run.task.argument_length).min(run.task.argument.len());
        let argument = &run.task.argument[..length];
        if let Some(starts) = &mut self.starts {
            starts.push(Start { client: run.client, job: run.job, tid: run.task.tid.get(), at: clock::now() });
        }
        match self.functions.get(run.task.function.get()).cloned() {
            None => worker.finish(clock::now(), run.key, Status::Unknown),
            // Workers have the built-in functions only, none of which is a future.
            #[cfg(feature = "async")]
            Some(Function::Async(_)) => worker.finish(clock::now(), run.key, Status::Unknown),
            Some(Function::Inline(call)) => {
                let status = call_it(&*call, run, argument);
                worker.finish(clock::now(), run.key, status);
            }
            Some(Function::Sleep) => match duration_ns(SLEEP, argument) {
                Ok(duration) => self.sleeping.push(Reverse((clock::now().saturating_add(duration), run.key))),
                Err(message) => {
                    tracing::warn!("a task failed: {message}");
                    worker.finish(clock::now(), run.key, Status::Failed);
                }
            },
            Some(Function::Worker(call)) => {
                let (driver, run) = (self.driver.clone(), *run);
                let work = Box::new(move || {
                    let status = call_it(&*call, &run, &run.task.argument[..length]);
                    if let Some(driver) = driver.upgrade() {
                        driver.with(|now, worker, _| worker.finish(now, run.key, status));
                    }
                });
                if !self.workers.run(work) {
                    worker.finish(clock::now(), run.key, Status::Abandoned);
                }
            }
        }
    }
}

fn call_it(call: &Call, run: &Run, argument: &[u8]) -> Status {
    let context = TaskContext {
        attempt: 1,
        uid: 0,
        jid: run.job,
        tid: run.task.tid.get(),
        priority: run.task.priority,
        client: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        asked: run.asked,
        run: midflight_tasks::executor::RunKey { slot: run.key.slot, run: run.key.run },
        holding: Holding::default(),
        cancellation: CancellationToken::never(),
        driver: std::sync::Weak::new(),
    };
    match call(&context, argument) {
        Ok(_) => Status::Ok,
        Err(message) => {
            tracing::warn!("a task failed: {message}");
            Status::Failed
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
pub struct SparrowWorker {
    running: Running<Worker, Runner>,
    workers: Arc<Workers>,
    processes: Arc<Processes>,
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
    pub fn start(listen: SocketAddr, config: WorkerConfig) -> Result<Self, Error> {
        Self::launch(listen, config, None)
    }

    /// The same, and keeps what it [starts](Self::starts): 24 bytes a task.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_recorded(listen: SocketAddr, config: WorkerConfig) -> Result<Self, Error> {
        Self::launch(listen, config, Some(Vec::new()))
    }

    fn launch(listen: SocketAddr, config: WorkerConfig, starts: Option<Vec<Start>>) -> Result<Self, Error> {
        let (now, seed) = birth();
        let worker = Worker::new(WorkerConfig { seed, ..config }, now)?;
        let processes = Arc::new(Processes::new(SpillRoom::new(None, BlobOptions::default().max_file_bytes)));
        let functions = Functions::built_in(&processes)?;
        let workers = Arc::new(Workers::new(worker.slots()));
        let (socket, waker) = (Socket::bind(listen)?, Waker::new()?);
        let driver = Arc::new_cyclic(|driver| {
            let (workers, driver) = (Arc::clone(&workers), driver.clone());
            let sleeping = BinaryHeap::new();
            Driver::new(worker, Runner { functions, workers, driver, sleeping, starts }, socket, waker)
        });
        driver.with(|_, _, _| ()); // without probing its slots ask at once
        Ok(Self { running: Running::start("mf-sparrow", driver)?, workers, processes })
    }

    /// Its address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.running.driver.socket.local_addr()
    }

    /// What it has started since the last call, in that order; nothing unless that is recorded.
    #[must_use]
    pub fn starts(&self) -> Vec<Start> {
        self.running.driver.with(|_, _, runner| runner.starts.as_mut().map(std::mem::take).unwrap_or_default())
    }

    /// Its counters.
    #[must_use]
    pub fn counts(&self) -> (Counters, SocketCounts) {
        let counters = self.running.driver.peek(|worker, _| worker.counters());
        (counters, self.running.driver.socket.counts())
    }
}

impl Drop for SparrowWorker {
    fn drop(&mut self) {
        self.processes.kill_all();
        self.workers.close(DROP_PATIENCE);
    }
}
