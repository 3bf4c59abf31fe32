//! The function `python`: calls of Python functions in worker processes. See `docs/internals/python.md`.

mod cache;
mod channel;
mod counts;
mod frames;
mod life;
mod memory;
mod output;
mod places;
mod pool;
mod process;
#[cfg(test)]
mod tests;
mod time_limit;

pub use counts::PythonCounts;

use crate::error::Error;
use crate::tasks::functions::TaskContext;
use cache::{Blob, Cache};
use channel::ChannelError;
use counts::{Counters, count};
use memory::Memory;
use midflight_tasks::executor::RunKey;
use midflight_tasks::functions::{PythonCallOptions, PythonError, PythonFailure, PythonHead};
use midflight_wire::tasks::BlobRef;
use pool::{NoWorker, Pool};
use process::{Calls, Done, Hello, Process};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The name of the function at executors.
pub const PYTHON: &str = "python";

/// Options for Python functions. [`PythonOptions::new`] has the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonOptions {
    /// CPython 3.11 or newer with the package `midflight`; a name without `/` is searched in `PATH`.
    pub interpreter: PathBuf,
    /// Tasks after which a worker is replaced. Default: never.
    pub max_tasks: Option<u64>,
    /// Bytes of functions and shared arguments that executor and workers together cache. Default 1 GiB.
    pub cache_bytes: u64,
}

impl PythonOptions {
    /// The defaults, for this interpreter.
    #[must_use]
    pub fn new(interpreter: impl Into<PathBuf>) -> Self {
        Self { interpreter: interpreter.into(), max_tasks: None, cache_bytes: 1 << 30 }
    }
}

pub(crate) struct Pythons {
    pool: Pool,
    cache: Cache,
    memory: Arc<Memory>,
    counters: Arc<Counters>,
}

enum Failure {
    Cancelled,
    /// Another attempt may succeed.
    Passing(PythonFailure),
    Lasting(PythonFailure),
}

impl Pythons {
    /// Starts one worker, to report a bad interpreter at once.
    pub(crate) fn start(options: PythonOptions, slots: u32, progress_timeout: Duration) -> Result<Self, Error> {
        let counters = Arc::<Counters>::default();
        let memory = Memory::new(options.cache_bytes);
        let cache = Cache::new(Arc::clone(&memory), progress_timeout, Arc::clone(&counters));
        let pool = Pool::new(options, slots, Arc::clone(&memory), Arc::clone(&counters))?;
        let about = pool.start_first().map_err(Error::Invalid)?;
        tracing::info!("Python workers: {about}");
        Ok(Self { pool, cache, memory, counters })
    }

    /// A final failure is a value; an error asks for another attempt, or reports a cancellation.
    pub(crate) fn call(&self, context: &TaskContext, argument: &[u8]) -> Result<Vec<u8>, String> {
        let head = match PythonHead::parse(argument) {
            Ok(head) => head,
            Err(refusal) => return Ok(refusal.encode(context.attempt)),
        };
        let ran = self.run(context, &head);
        self.make_room(); // the task's data may be evicted now
        match ran {
            Ok(done) if done.has_raised && context.attempt <= head.options.retries => {
                Err("raised an exception".to_owned())
            }
            Ok(done) => Ok(done.result),
            Err(Failure::Cancelled) => Err("cancelled".to_owned()),
            Err(Failure::Passing(refusal)) if context.attempt < head.options.attempts => Err(refusal.text),
            Err(Failure::Passing(refusal) | Failure::Lasting(refusal)) => Ok(refusal.encode(context.attempt)),
        }
    }

    fn run(&self, context: &TaskContext, head: &PythonHead<'_>) -> Result<Done, Failure> {
        let function = self.fetch(context, &head.function)?;
        let shared = head.shared.iter().map(|blob| self.fetch(context, blob)).collect::<Result<Vec<_>, _>>()?;
        let calls = Calls { function: &function, shared: &shared, pickled: head.calls };
        loop {
            let mut worker = self.worker_for(context)?;
            // The task may have been cancelled during a slow start.
            if context.cancelled() {
                self.pool.give_back(worker, self.cache.drops());
                return Err(Failure::Cancelled);
            }
            self.pool.begin(context, &mut worker, head.options.timeout);
            let answer = self.ask(context, head, &mut worker, &calls);
            self.pool.ended(context);
            if !matches!(answer, Err(ChannelError::Stale)) {
                return self.after(worker, context, answer);
            }
            count(&self.counters.stale);
            self.pool.retire(worker);
        }
    }

    fn fetch(&self, context: &TaskContext, blob: &BlobRef) -> Result<Arc<Blob>, Failure> {
        let drops = self.cache.drops();
        let fetched = self.cache.get(context.client.ip(), blob, context.cancellation());
        if self.cache.drops() != drops {
            self.pool.forget_dropped(self.cache.drops());
        }
        self.make_room();
        fetched.map_err(|why| {
            if context.cancelled() {
                return Failure::Cancelled;
            }
            let text = format!("the function or a shared argument: {why}");
            Failure::Passing(PythonFailure::new(PythonError::NotFetched, text))
        })
    }

    /// Evicts unused data until the memory limit is met: first cached blobs, then copies of idle workers.
    fn make_room(&self) {
        while self.memory.is_exceeded() && self.cache.drop_oldest() {
            self.pool.forget_dropped(self.cache.drops());
        }
        if self.memory.is_exceeded() {
            self.pool.make_room();
        }
    }

    fn worker_for(&self, context: &TaskContext) -> Result<Process, Failure> {
        let environment = context.holding.environment().map(|(name, value)| (name.to_owned(), value.to_owned()));
        self.pool.take(context, environment.collect()).map_err(|no_worker| match no_worker {
            NoWorker::Cancelled => Failure::Cancelled,
            NoWorker::Because(why) => Failure::Passing(PythonFailure::new(PythonError::NoWorker, why)),
        })
    }

    fn ask(
        &self,
        context: &TaskContext,
        head: &PythonHead<'_>,
        worker: &mut Process,
        calls: &Calls<'_>,
    ) -> Result<Result<Done, PythonFailure>, ChannelError> {
        let digest = if head.options.environment == 0 { 0 } else { worker.digest(context)? };
        match suits(&head.options, &worker.hello, digest) {
            Ok(()) => worker.call(context, calls, self.cache.drops()).map(Ok),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    fn after(
        &self,
        mut worker: Process,
        context: &TaskContext,
        answer: Result<Result<Done, PythonFailure>, ChannelError>,
    ) -> Result<Done, Failure> {
        let timed_out = worker.overtime().map(|why| {
            count(&self.counters.timed_out);
            let text = format!("{why}, attempt {}", context.attempt);
            Failure::Passing(PythonFailure::new(PythonError::TimedOut, text))
        });
        let error = match answer {
            Ok(answer) => {
                self.pool.give_back(worker, self.cache.drops());
                let done = answer.map_err(Failure::Lasting)?;
                return match (done.has_raised, timed_out) {
                    (true, _) if context.cancelled() => Err(Failure::Cancelled),
                    (true, Some(timed_out)) => Err(timed_out),
                    _ => Ok(done),
                };
            }
            Err(error) => error,
        };
        self.pool.unlist(&worker);
        let ended = worker.end();
        let was_told = matches!(error, ChannelError::Cancelled | ChannelError::TimedOut);
        count(if was_told { &self.counters.killed } else { &self.counters.died });
        if context.cancelled() {
            return Err(Failure::Cancelled);
        }
        if let Some(timed_out) = timed_out {
            return Err(timed_out);
        }
        let how = match error {
            ChannelError::InvalidAnswer => "it sent an invalid answer, and was killed".to_owned(),
            _ => ended.how(),
        };
        let about = &worker.hello.about;
        let mut text = format!("the worker died in the task: {how}, attempt {}, {about}", context.attempt);
        if !ended.lines.is_empty() {
            text.push_str("; its last output:\n");
            text.push_str(&ended.lines);
        }
        let signal = ended.signal.unwrap_or(0);
        Err(Failure::Passing(PythonFailure { code: PythonError::WorkerDied, signal, text }))
    }

    pub(crate) fn stop(&self, run: RunKey) {
        self.pool.stop(run);
    }

    pub(crate) fn kill_all(&self) {
        self.pool.kill_all();
    }

    pub(crate) fn counts(&self) -> PythonCounts {
        self.counters.read()
    }
}

/// `digest` is that of the worker's environment; 0 in the request matches any.
fn suits(wanted: &PythonCallOptions, worker: &Hello, digest: u64) -> Result<(), PythonFailure> {
    let ((major, minor), (here_major, here_minor)) = (wanted.python, worker.python);
    if wanted.python != worker.python {
        return Err(PythonFailure::new(
            PythonError::Mismatch,
            format!(
                "the client runs Python {major}.{minor}, the worker {here_major}.{here_minor} ({}): use the same on both \
                 (midflight executor --python PYTHON, or --venv DIR)",
                worker.about
            ),
        ));
    }
    if wanted.environment != digest {
        return Err(PythonFailure::new(
            PythonError::Mismatch,
            format!(
                "the client's environment has the digest {:016x}, the worker's {digest:016x} ({}): install the same packages \
                 on both, or leave environment=\"same\" out",
                wanted.environment, worker.about
            ),
        ));
    }
    Ok(())
}
