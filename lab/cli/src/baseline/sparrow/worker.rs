use super::{Running, birth, refused};
use midflight_baselines::sparrow::worker::{Counters, Event, Run, RunKey};
use midflight_baselines::sparrow::{Worker, WorkerConfig};
use midflight_endpoint::Nanos;
use midflight_host::parts::{Begun, BuiltIn, Driver, Handler, Socket, Task, Waker};
use midflight_host::{Error, SocketCounts, clock};
use midflight_wire::tasks::Status;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

type WorkerDriver = Driver<Worker, Runner>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// The client's [identity](super::SparrowClient::identity).
    pub client: u64,
    pub job: u32,
    /// Index in the job.
    pub tid: u32,
    /// Time of the start, by [`clock::now`].
    pub at: Nanos,
}

/// Returns only the status: Sparrow's packets have no room for a result.
struct Runner {
    functions: Arc<BuiltIn>,
    driver: Weak<WorkerDriver>,
    sleeping: BinaryHeap<Reverse<(Nanos, RunKey)>>,
    /// The starts of tasks, if recorded: Sparrow's packets do not carry them.
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

/// Has the functions `noop`, `sleep`, `spin` and `exec`. Kills running tasks on drop.
pub(crate) struct SparrowWorker {
    running: Running<Worker, Runner>,
    functions: Arc<BuiltIn>,
}

impl std::fmt::Debug for SparrowWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SparrowWorker").field("local", &self.local_addr()).finish_non_exhaustive()
    }
}

impl SparrowWorker {
    /// `listen` is the address by which schedulers know it.
    ///
    /// # Errors
    /// If the configuration is out of bounds, or the system refuses the address or a thread.
    pub(crate) fn start(listen: SocketAddr, config: WorkerConfig) -> Result<Self, Error> {
        Self::launch(listen, config, None)
    }

    /// Records [starts](Self::starts): 24 bytes a task.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub(crate) fn start_recorded(listen: SocketAddr, config: WorkerConfig) -> Result<Self, Error> {
        Self::launch(listen, config, Some(Vec::new()))
    }

    fn launch(listen: SocketAddr, config: WorkerConfig, starts: Option<Vec<Start>>) -> Result<Self, Error> {
        let (now, seed) = birth();
        let worker = Worker::new(WorkerConfig { seed, ..config }, now).map_err(refused)?;
        let functions = Arc::new(BuiltIn::new(worker.slots())?);
        let (socket, waker) = (Socket::bind(listen)?, Waker::new()?);
        let driver = Arc::new_cyclic(|driver| {
            let runner = Runner {
                functions: Arc::clone(&functions),
                driver: driver.clone(),
                sleeping: BinaryHeap::new(),
                starts,
            };
            Driver::new(worker, runner, socket, waker)
        });
        driver.with(|_, _, _| ()); // without probing, its slots request tasks
        Ok(Self { running: Running::start("mf-sparrow", driver)?, functions })
    }

    #[must_use]
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.running.driver.socket.local_addr()
    }

    /// Since the last call, in order; empty unless recorded.
    #[must_use]
    pub(crate) fn starts(&self) -> Vec<Start> {
        self.running.driver.with(|_, _, runner| runner.starts.as_mut().map(std::mem::take).unwrap_or_default())
    }

    #[must_use]
    pub(crate) fn counts(&self) -> (Counters, SocketCounts) {
        let counters = self.running.driver.peek(|worker, _| worker.counters());
        (counters, self.running.driver.socket.counts())
    }
}

impl Drop for SparrowWorker {
    fn drop(&mut self) {
        self.functions.stop();
    }
}
