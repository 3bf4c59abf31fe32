//! The functions that an executor knows: the user's, and the built-in ones.

use crate::blob::Content;
use crate::cancellation::CancellationToken;
use crate::clock;
use crate::counted::Holding;
use crate::error::Error;
use crate::exec::Processes;
use crate::executor::ExecutorDriver;
#[cfg(feature = "async")]
use crate::futures::AsyncCall;
use crate::run_times::RunTimes;
use midflight_endpoint::{MS, Nanos};
use midflight_tasks::executor::RunKey;
use midflight_tasks::functions::{Began, COMMAND, EXEC, NOOP, SLEEP, SPIN, function_id};
use midflight_wire::{RESULT_MAX, Status};
use rustix::time::{ClockId, clock_gettime};
use std::any::Any;
use std::collections::HashMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// What a function can know about the task that it runs.
#[derive(Clone, Debug)]
pub struct TaskContext {
    /// Which attempt this is, from 1. Tasks may run more than once, so what they do is to be idempotent.
    pub attempt: u8,
    /// Who asked.
    pub uid: u32,
    /// Which job.
    pub jid: u32,
    /// Which task of the job.
    pub tid: u32,
    /// 1 (the highest) to 8.
    pub priority: u8,
    /// The client's address, as the switch sees it.
    pub client: SocketAddr,
    /// When the slot asked for a task.
    pub(crate) asked: Nanos,
    /// Names the run on this executor.
    pub(crate) run: RunKey,
    pub(crate) holding: Holding,
    pub(crate) cancellation: CancellationToken,
    /// None on the network thread, which must not wait.
    pub(crate) driver: Weak<ExecutorDriver>,
}

/// A slot that a task lends, until this is dropped.
#[derive(Debug)]
pub struct LentSlot {
    driver: Weak<ExecutorDriver>,
    run: RunKey,
}

/// A task cannot wait for other tasks here: as many of this executor do as may, or it does already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "as many tasks of this executor wait for other tasks as may: raise `waiting` in [tasks.executors] of its configuration \
     (ExecutorBuilder::waiting), or nest calls less deeply"
)]
pub struct TooManyWaiting;

impl TaskContext {
    /// What the task has of this counted resource, such as a GPU's id: its own until it has ended. `None` if the executor does
    /// not count it, or the task does not require it.
    #[must_use]
    pub fn bundle(&self, resource: &str) -> Option<&str> {
        self.holding.iter().find(|(of, _)| of.name() == resource).map(|(_, told)| told)
    }

    /// Lends the task's slot while it waits for other tasks, so that they can run on this executor: without it, tasks that wait for
    /// tasks could take all slots, and wait for ever. When the returned guard is dropped, the task goes on at once, even if another
    /// one has the slot until it ends.
    ///
    /// # Errors
    /// If as many tasks of this executor wait as may ([`ExecutorBuilder::waiting`](crate::ExecutorBuilder::waiting)), if this one does
    /// already, and in functions of `register_inline`.
    pub fn lend_slot(&self) -> Result<LentSlot, TooManyWaiting> {
        let driver = self.driver.upgrade().ok_or(TooManyWaiting)?;
        let lends = driver.with(|now, executor, _| executor.wait_for_others(now, self.run));
        if !lends {
            return Err(TooManyWaiting);
        }
        Ok(LentSlot { driver: self.driver.clone(), run: self.run })
    }

    /// Tells the client that a part of the task was not begun, and will not be: it may submit it again, while this runs on. `part` says
    /// which, in at most 1 KiB: what is longer is not sent.
    pub fn give_back_part(&self, part: Vec<u8>) {
        if let Some(driver) = self.driver.upgrade().filter(|_| part.len() <= RESULT_MAX) {
            driver.with(|now, executor, _| executor.give_back_part(now, self.run, part));
        }
    }

    /// Whether the client wants the task to be stopped. A function that takes long should look now and then, and return an
    /// error soon; one that returns a value all the same has succeeded. Never, for functions on the network thread.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// The same, to wait for and to give to other threads.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }
}

impl Drop for LentSlot {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.upgrade() {
            driver.with(|now, executor, _| executor.go_on(now, self.run));
        }
    }
}

/// What a function returned.
#[derive(Debug)]
pub(crate) enum Value {
    Bytes(Vec<u8>),
    /// Too large for the memory.
    Large(Content),
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

/// A function, with its errors and panics as messages.
pub(crate) type Call = dyn Fn(&TaskContext, &[u8]) -> Result<Value, String> + Send + Sync;

/// Where a function runs.
#[derive(Clone)]
pub(crate) enum Function {
    /// On the network thread: it takes microseconds.
    Inline(Arc<Call>),
    /// On a worker thread.
    Worker(Arc<Call>),
    /// Nowhere: a timer.
    Sleep,
    /// On the runtime.
    #[cfg(feature = "async")]
    Async(Arc<AsyncCall>),
}

/// By the number of the name.
#[derive(Default)]
pub(crate) struct Functions {
    places: HashMap<u32, usize>,
    all: Vec<Known>,
}

/// A function, and how long its runs took.
struct Known {
    name: String,
    function: Function,
    times: RunTimes,
}

impl Functions {
    /// With the built-in ones; `exec` and `command` run under `processes`.
    pub(crate) fn built_in(processes: &Arc<Processes>) -> Result<Self, Error> {
        let mut functions = Self::default();
        let (exec, command) = (Arc::clone(processes), Arc::clone(processes));
        functions.register(NOOP, Function::Inline(wrap(|_, _| Ok::<_, String>(Vec::<u8>::new()))))?;
        functions.register(SLEEP, Function::Sleep)?;
        functions
            .register(SPIN, Function::Worker(wrap(|context, argument| spin(context, duration_ns(SPIN, argument)?))))?;
        functions.register(EXEC, Function::Worker(wrap(move |context, line| exec.exec(context, line))))?;
        functions
            .register(COMMAND, Function::Worker(wrap(move |context, request| command.command(context, request))))?;
        Ok(functions)
    }

    pub(crate) fn register(&mut self, name: &str, function: Function) -> Result<(), Error> {
        let id = function_id(name);
        if let Some(Known { name: other, .. }) = self.place(id).map(|place| &self.all[place]) {
            let why = if other == name { "is registered twice" } else { "has the same number as another function" };
            return Err(Error::Configuration(format!("function {name:?} {why} ({other:?}): choose another name")));
        }
        self.places.insert(id, self.all.len());
        self.all.push(Known { name: name.to_owned(), function, times: RunTimes::default() });
        Ok(())
    }

    /// Where a function is; it stays there.
    pub(crate) fn place(&self, id: u32) -> Option<usize> {
        self.places.get(&id).copied()
    }

    pub(crate) fn at(&self, place: usize) -> Option<&Function> {
        self.all.get(place).map(|known| &known.function)
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Function> {
        self.at(self.place(id)?)
    }

    pub(crate) fn name(&self, id: u32) -> &str {
        self.place(id).map_or("?", |place| &self.all[place].name)
    }

    /// A run of the function at this place has ended.
    pub(crate) fn ran(&mut self, place: usize, took: Nanos, status: Status) {
        if let Some(known) = self.all.get_mut(place) {
            known.times.add(took, status);
        }
    }

    /// Of each function that ran.
    pub(crate) fn times(&self) -> Vec<(String, RunTimes)> {
        let ran = self.all.iter().filter(|known| known.times.count() > 0);
        ran.map(|known| (known.name.clone(), known.times.clone())).collect()
    }
}

/// A user's function, made safe to call from anywhere.
pub(crate) fn wrap<F, V, E>(function: F) -> Arc<Call>
where
    F: Fn(&TaskContext, &[u8]) -> Result<V, E> + Send + Sync + 'static,
    V: Into<Value>,
    E: Display,
{
    Arc::new(move |context, argument| match catch_unwind(AssertUnwindSafe(|| function(context, argument))) {
        Ok(Ok(value)) => Ok(value.into()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(panic) => Err(panic_message(&*panic)),
    })
}

/// The message for a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("(no message)"))
}

/// The argument of `sleep` and `spin`.
pub(crate) fn duration_ns(function: &str, argument: &[u8]) -> Result<Nanos, String> {
    let bytes = <[u8; 8]>::try_from(argument);
    bytes.map(u64::from_be_bytes).map_err(|_| no_duration(function, argument.len()))
}

/// The error for an argument of this many bytes, which [`duration_ns`] does not accept.
pub(crate) fn no_duration(function: &str, length: usize) -> String {
    format!("{function} wants 8 bytes in the packet, nanoseconds in network byte order, not {length}")
}

/// How often `spin` looks whether its task is cancelled.
const LOOK_EVERY: Nanos = 5 * MS;

/// Computes until this thread has had that much CPU time; returns when it began.
fn spin(context: &TaskContext, duration: Nanos) -> Result<Vec<u8>, String> {
    let cpu = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos
    };
    let started = clock::now();
    let end = cpu().saturating_add(duration);
    loop {
        let left = end.saturating_sub(cpu());
        if left == 0 {
            return Ok(Began { asked: context.asked, started }.encode());
        }
        if context.cancelled() {
            return Err("cancelled".to_owned());
        }
        // Reading the thread's clock is a system call; the wall clock is not, and never runs slower.
        let until = clock::now().saturating_add(left.min(LOOK_EVERY));
        while clock::now() < until {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_registered_once() {
        let mut functions = Functions::default();
        functions.register("f", Function::Sleep).unwrap();
        let error = functions.register("f", Function::Sleep).unwrap_err().to_string();
        assert!(error.contains("registered twice"), "{error}");
    }

    #[test]
    fn spin_takes_cpu_time() {
        let before = clock_gettime(ClockId::ThreadCPUTime);
        spin(&crate::exec::tests::context(), 3_000_000).unwrap();
        let after = clock_gettime(ClockId::ThreadCPUTime);
        let taken = (after.tv_sec - before.tv_sec) * 1_000_000_000 + after.tv_nsec - before.tv_nsec;
        assert!(taken >= 3_000_000, "{taken} ns");
    }

    #[test]
    fn a_duration_is_eight_bytes() {
        assert_eq!(duration_ns(SPIN, &5u64.to_be_bytes()), Ok(5));
        assert!(duration_ns(SPIN, b"5").unwrap_err().contains("8 bytes"));
    }
}
