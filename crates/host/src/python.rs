//! The function `python`: calls of Python functions, which worker processes run. `docs/internals/python.md` says what they are
//! told and what happens when who dies.

mod cache;
mod head;
mod output;
mod process;

use crate::driver::lock;
use crate::error::Error;
use crate::exec::marks::{Mark, kill_marked};
use crate::exec::reaper::Reaper;
use crate::functions::TaskContext;
use crate::waker::Waker;
use cache::Cache;
use head::{Code, Head, Refusal};
use midflight_tasks::executor::RunKey;
use midflight_wire::BlobRef;
use process::{Done, Hello, Process, Silent};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The name under which executors register it.
pub const PYTHON: &str = "python";

/// How an executor runs Python functions. [`PythonOptions::new`] has the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonOptions {
    /// Of CPython 3.11 or newer, with the package `midflight`; a name without `/` is looked for in `PATH`.
    pub interpreter: PathBuf,
    /// A worker is replaced by a new one after so many tasks. Default: never.
    pub max_tasks: Option<u64>,
    /// Bytes of functions and shared arguments that are kept for further tasks. Default 1 GiB.
    pub cache_bytes: u64,
}

impl PythonOptions {
    /// The defaults, for this interpreter.
    #[must_use]
    pub fn new(interpreter: impl Into<PathBuf>) -> Self {
        Self { interpreter: interpreter.into(), max_tasks: None, cache_bytes: 1 << 30 }
    }
}

/// The workers of one executor, at most one a slot.
pub(crate) struct Pythons {
    options: PythonOptions,
    max: usize,
    reaper: Arc<Reaper>,
    cache: Cache,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    idle: Vec<Process>,
    /// How to stop the worker of each run.
    running: HashMap<RunKey, Arc<Waker>>,
    /// All workers that live: `kill_all` ends them.
    groups: HashMap<Mark, Pid>,
    refused: bool,
}

/// Why a task has no answer of a worker.
enum Failure {
    Cancelled,
    /// Another attempt may go well.
    Passing(Refusal),
    Lasting(Refusal),
}

impl Pythons {
    /// Starts one worker: what is wrong with the interpreter is known at once.
    pub(crate) fn start(options: PythonOptions, slots: u32, progress_timeout: Duration) -> Result<Self, Error> {
        let reaper = Reaper::of_this_process()
            .map_err(|source| Error::Resources { what: "watch over Python workers", source })?;
        let cache = Cache::new(options.cache_bytes, progress_timeout);
        let pythons = Self { options, max: slots as usize, reaper, cache, state: Mutex::default() };
        let first = pythons.start_worker(Vec::new()).map_err(Error::Configuration)?;
        tracing::info!("Python workers: {}", first.hello.about);
        lock(&pythons.state).idle.push(first);
        Ok(pythons)
    }

    /// A task. What ends it for good is a value; an error is for another attempt, or of a task that is cancelled.
    pub(crate) fn call(&self, context: &TaskContext, argument: &[u8]) -> Result<Vec<u8>, String> {
        let head = match Head::parse(argument) {
            Ok(head) => head,
            Err(refusal) => return Ok(refusal.encode(context.attempt)),
        };
        match self.run(context, &head) {
            Ok(done) if done.has_raised && context.attempt <= head.retries => Err("raised an exception".to_owned()),
            Ok(done) => Ok(done.result),
            Err(Failure::Cancelled) => Err("cancelled".to_owned()),
            Err(Failure::Passing(refusal)) if context.attempt < head.attempts => Err(refusal.text),
            Err(Failure::Passing(refusal) | Failure::Lasting(refusal)) => Ok(refusal.encode(context.attempt)),
        }
    }

    fn run(&self, context: &TaskContext, head: &Head<'_>) -> Result<Done, Failure> {
        let fetch = |blob: &BlobRef| {
            self.cache.get(context.client.ip(), blob).map_err(|why| {
                Failure::Passing(Refusal::new(Code::NotFetched, format!("the function or a shared argument: {why}")))
            })
        };
        let function = fetch(&head.function)?;
        let shared = head.shared.iter().map(fetch).collect::<Result<Vec<_>, _>>()?;
        let environment = context.holding.environment().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut worker = self.take(environment.collect())?;
        if let Err(refusal) = suits(head, &worker.hello) {
            self.give_back(worker);
            return Err(Failure::Lasting(refusal));
        }
        lock(&self.state).running.insert(context.run, Arc::clone(&worker.stop));
        if context.cancelled() {
            worker.stop.wake(); // `stop` came before it was listed
        }
        let answer = worker.call(context, &function, &shared, head.calls);
        lock(&self.state).running.remove(&context.run);
        self.after(worker, context, answer)
    }

    /// The worker goes back, or is ended.
    fn after(&self, mut worker: Process, context: &TaskContext, answer: Result<Done, Silent>) -> Result<Done, Failure> {
        let silent = match answer {
            Ok(done) => {
                if self.options.max_tasks.is_some_and(|max| worker.tasks >= max) {
                    self.retire(worker);
                } else {
                    self.give_back(worker);
                }
                let was_stopped = done.has_raised && context.cancelled();
                return if was_stopped { Err(Failure::Cancelled) } else { Ok(done) };
            }
            Err(silent) => silent,
        };
        self.unlist(&worker);
        let ended = worker.end();
        if silent == Silent::Cancelled || context.cancelled() {
            return Err(Failure::Cancelled);
        }
        let mut text = format!(
            "the worker died in the task: {}, attempt {}, {}",
            ended.how(),
            context.attempt,
            worker.hello.about
        );
        if !ended.lines.is_empty() {
            text.push_str("; its last output:\n");
            text.push_str(&ended.lines);
        }
        let signal = ended.signal.unwrap_or(0);
        Err(Failure::Passing(Refusal { code: Code::WorkerDied, signal, text }))
    }

    /// An idle worker with this environment, or a new one.
    fn take(&self, environment: Vec<(String, String)>) -> Result<Process, Failure> {
        loop {
            let mut state = lock(&self.state);
            let place = state.idle.iter().rposition(|worker| worker.environment == environment);
            let Some(place) = place else { break };
            let worker = state.idle.remove(place);
            drop(state);
            if worker.is_alive() {
                return Ok(worker);
            }
            self.unlist(&worker);
        }
        self.start_worker(environment).map_err(|why| Failure::Passing(Refusal::new(Code::NoWorker, why)))
    }

    fn start_worker(&self, environment: Vec<(String, String)>) -> Result<Process, String> {
        let record = self.reaper.enter().map_err(|error| format!("cannot watch over Python workers: {error}"))?;
        let worker = Process::start(&self.options, environment, record)?;
        let mut state = lock(&self.state);
        if state.refused {
            return Err("the executor is ending".to_owned());
        }
        if let Some(mark) = worker.mark() {
            state.groups.insert(mark, worker.group());
        }
        Ok(worker)
    }

    fn give_back(&self, worker: Process) {
        let mut state = lock(&self.state);
        state.idle.push(worker);
        // Workers of other environments must not fill the machine.
        let too_many = (state.idle.len() > self.max).then(|| state.idle.remove(0));
        drop(state);
        if let Some(worker) = too_many {
            self.retire(worker);
        }
    }

    /// Ends a worker that has no task, without waiting for it.
    fn retire(&self, worker: Process) {
        self.unlist(&worker);
        let retired = std::thread::Builder::new().name("mf-python-end".into()).spawn(move || worker.retire());
        if let Err(error) = retired {
            tracing::warn!("a Python worker was killed, because no thread can be had to wait for it: {error}");
        }
    }

    fn unlist(&self, worker: &Process) {
        if let Some(mark) = worker.mark() {
            lock(&self.state).groups.remove(&mark);
        }
    }

    /// A task is cancelled: its worker, if it has one, is told.
    pub(crate) fn stop(&self, run: RunKey) {
        if let Some(stop) = lock(&self.state).running.get(&run) {
            stop.wake();
        }
    }

    /// Kills all workers and refuses new ones.
    pub(crate) fn kill_all(&self) {
        let mut state = lock(&self.state);
        state.refused = true;
        for group in state.groups.values() {
            let _ = kill_process_group(*group, Signal::KILL); // an error means that it has ended already
        }
        let marks: HashSet<Mark> = state.groups.keys().copied().collect();
        let idle = std::mem::take(&mut state.idle);
        drop(state);
        kill_marked(&marks);
        drop(idle);
    }
}

/// Whether a worker can do what a client has pickled.
fn suits(head: &Head<'_>, worker: &Hello) -> Result<(), Refusal> {
    let ((major, minor), (here_major, here_minor)) = (head.python, worker.python);
    if head.python != worker.python {
        return Err(Refusal::new(
            Code::Mismatch,
            format!(
                "the client runs Python {major}.{minor}, the worker {here_major}.{here_minor} ({}): use the same on both \
                 (midflight executor --python PYTHON, or --venv DIR)",
                worker.about
            ),
        ));
    }
    if head.environment != 0 && head.environment != worker.environment {
        return Err(Refusal::new(
            Code::Mismatch,
            format!(
                "the client's environment has the digest {:016x}, the worker's {:016x} ({}): install the same packages \
                 on both, or leave environment=\"same\" out",
                head.environment, worker.environment, worker.about
            ),
        ));
    }
    Ok(())
}
