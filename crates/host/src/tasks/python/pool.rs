//! The workers of an executor: tracks idle and running ones, and limits their number.

use super::PythonOptions;
use super::channel::{ChannelError, Patience};
use super::counts::{Counters, count};
use super::memory::Memory;
use super::places::{Place, WorkerPlaces};
use super::process::{Process, Start};
use crate::driver::lock;
use crate::error::Error;
use crate::tasks::exec::marks::{Mark, kill_marked};
use crate::tasks::exec::reaper::Reaper;
use crate::tasks::functions::TaskContext;
use crate::waker::Waker;
use midflight_tasks::executor::RunKey;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a task waits for a place for its worker.
const PLACE_PATIENCE: Duration = Duration::from_secs(30);
/// How long a retired worker may take to end before another one is retired.
const END_PATIENCE: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Permission bit of a directory that all users may write to.
const OTHERS_WRITE: u32 = 0o002;

/// Holds at most one worker per slot, and one more per task that waits for others.
pub(super) struct Pool {
    options: PythonOptions,
    trusts_directory: bool,
    reaper: Arc<Reaper>,
    places: Arc<WorkerPlaces>,
    memory: Arc<Memory>,
    counters: Arc<Counters>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The most recently used one is last.
    idle: Vec<Process>,
    /// Wakers that stop the worker of a run.
    running: HashMap<RunKey, Arc<Waker>>,
    /// All live workers, for `kill_all`.
    groups: HashMap<Mark, Pid>,
    refused: bool,
}

pub(super) enum NoWorker {
    Cancelled,
    /// One line that says what to do.
    Because(String),
}

impl Pool {
    /// Starts no worker yet.
    pub(super) fn new(
        options: PythonOptions,
        slots: u32,
        memory: Arc<Memory>,
        counters: Arc<Counters>,
    ) -> Result<Self, Error> {
        let reaper = Reaper::of_this_process().map_err(Error::resources("watch over Python workers"))?;
        let trusts_directory = !is_open_to_others(Path::new("."));
        if !trusts_directory {
            tracing::warn!(
                "Python functions do not find modules in the executor's directory, because all users may write there: start it \
                 in another directory"
            );
        }
        let places = WorkerPlaces::new(slots as usize);
        Ok(Self { options, trusts_directory, reaper, places, memory, counters, state: Mutex::default() })
    }

    /// Starts one worker, to report a bad interpreter at once. Returns its description.
    pub(super) fn start_first(&self) -> Result<String, String> {
        let place = self.places.take().ok_or_else(|| "an executor without slots runs no Python".to_owned())?;
        let first = self.start(Vec::new(), place)?;
        let about = first.hello.about.clone();
        lock(&self.state).idle.push(first);
        Ok(about)
    }

    pub(super) fn take(&self, context: &TaskContext, environment: Vec<(String, String)>) -> Result<Process, NoWorker> {
        let deadline = Instant::now() + PLACE_PATIENCE;
        let mut next_end = Instant::now();
        loop {
            if let Some(worker) = self.take_idle(&environment) {
                return Ok(worker);
            }
            if let Some(place) = self.places.take() {
                return self.start(environment, place).map_err(NoWorker::Because);
            }
            // Retires the least recently used worker of another environment.
            if Instant::now() >= next_end
                && let Some(oldest) = self.take_oldest()
            {
                self.retire(oldest);
                next_end = Instant::now() + END_PATIENCE; // another task may take that place
            }
            if context.cancelled() {
                return Err(NoWorker::Cancelled);
            }
            if Instant::now() >= deadline {
                let why = format!("a worker that should have ended has not within {PLACE_PATIENCE:?}");
                return Err(NoWorker::Because(why));
            }
            self.places.wait(LOOK_EVERY);
        }
    }

    fn take_oldest(&self) -> Option<Process> {
        let mut state = lock(&self.state);
        (!state.idle.is_empty()).then(|| state.idle.remove(0))
    }

    fn take_idle(&self, environment: &[(String, String)]) -> Option<Process> {
        loop {
            let mut state = lock(&self.state);
            let place = state.idle.iter().rposition(|worker| worker.environment == environment)?;
            let mut worker = state.idle.remove(place);
            drop(state);
            if worker.is_alive() {
                return Some(worker);
            }
            count(&self.counters.died_idle);
            self.unlist(&worker);
            worker.end();
        }
    }

    fn start(&self, environment: Vec<(String, String)>, place: Place) -> Result<Process, String> {
        let record = self.reaper.enter().map_err(|error| format!("cannot watch over Python workers: {error}"))?;
        let Self { options, trusts_directory, memory, counters, .. } = self;
        let start = Start { options, trusts_directory: *trusts_directory, memory, counters };
        let worker = start.worker(environment, record, place).inspect_err(|_| count(&self.counters.starts_failed))?;
        count(&self.counters.started);
        let mut state = lock(&self.state);
        if state.refused {
            return Err("the executor is ending".to_owned());
        }
        state.groups.extend(worker.names());
        Ok(worker)
    }

    /// Lets a cancellation of the run wake the worker. `timeout`: of the calls.
    pub(super) fn begin(&self, context: &TaskContext, worker: &mut Process, timeout: Option<Duration>) {
        worker.begin(timeout);
        let stop = worker.stop();
        lock(&self.state).running.insert(context.run, Arc::clone(&stop));
        if context.cancelled() {
            stop.wake(); // `stop` came before it was listed
        }
    }

    pub(super) fn ended(&self, context: &TaskContext) {
        lock(&self.state).running.remove(&context.run);
    }

    /// `drops`: number of blobs evicted from the cache.
    pub(super) fn give_back(&self, mut worker: Process, drops: u64) {
        let is_spent = self.options.max_tasks.is_some_and(|max| worker.tasks >= max);
        if is_spent || self.places.are_too_many() || worker.forget_dropped(drops, at_once()).is_err() {
            return self.retire(worker);
        }
        let mut state = lock(&self.state);
        if state.refused {
            return;
        }
        state.idle.push(worker);
        drop(state);
        self.places.tell();
    }

    pub(super) fn retire(&self, worker: Process) {
        self.unlist(&worker);
        let retired = std::thread::Builder::new().name("mf-python-end".into()).spawn(move || worker.retire());
        if let Err(error) = retired {
            tracing::warn!("a Python worker was killed, because no thread can be had to wait for it: {error}");
        }
    }

    pub(super) fn unlist(&self, worker: &Process) {
        if let Some((mark, _)) = worker.names() {
            lock(&self.state).groups.remove(&mark);
        }
    }

    /// Makes idle workers forget blobs evicted from the cache; others do so with their next task.
    pub(super) fn forget_dropped(&self, drops: u64) {
        self.tell_idle(|worker| worker.forget_dropped(drops, at_once()));
    }

    /// Makes idle workers evict copies, the longest idle first, until the memory limit is met.
    pub(super) fn make_room(&self) {
        self.tell_idle(|worker| worker.make_room(&[], at_once()));
    }

    fn tell_idle(&self, tell: impl Fn(&mut Process) -> Result<(), ChannelError>) {
        let mut state = lock(&self.state);
        let (idle, insane): (Vec<_>, Vec<_>) = std::mem::take(&mut state.idle)
            .into_iter()
            .map(|mut worker| (tell(&mut worker).is_ok(), worker))
            .partition(|(is_sane, _)| *is_sane);
        state.idle = idle.into_iter().map(|(_, worker)| worker).collect();
        drop(state);
        for (_, worker) in insane {
            self.retire(worker);
        }
    }

    pub(super) fn stop(&self, run: RunKey) {
        if let Some(stop) = lock(&self.state).running.get(&run) {
            stop.wake();
        }
    }

    pub(super) fn kill_all(&self) {
        let mut state = lock(&self.state);
        state.refused = true;
        for group in state.groups.values() {
            let _ = kill_process_group(*group, Signal::KILL); // fails if it has ended
        }
        let marks: HashSet<Mark> = state.groups.keys().copied().collect();
        let idle = std::mem::take(&mut state.idle);
        drop(state);
        kill_marked(&marks);
        drop(idle);
    }
}

/// No waiting: an idle, sane worker's socket has room for a few bytes.
fn at_once() -> Patience<'static> {
    Patience { deadline: Some(Instant::now()), task: None }
}

/// Whether all users of this machine may create files there.
fn is_open_to_others(directory: &Path) -> bool {
    directory.metadata().is_ok_and(|found| found.mode() & OTHERS_WRITE != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_directory_that_all_may_write_to_is_not_trusted() {
        let directory = std::env::temp_dir().join(format!("midflight-open-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let is_open = |mode| {
            std::fs::set_permissions(&directory, Permissions::from_mode(mode)).unwrap();
            is_open_to_others(&directory)
        };
        assert_eq!([is_open(0o755), is_open(0o775), is_open(0o1777)], [false, false, true]);
        std::fs::remove_dir(&directory).unwrap();
    }
}
