//! The functions of an executor: the user's and the built-in ones.

use crate::blob::Content;
use crate::clock;
use crate::error::Error;
use crate::tasks::cancellation::CancellationToken;
use crate::tasks::counted::Holding;
use crate::tasks::exec::Processes;
use crate::tasks::executor::ExecutorDriver;
#[cfg(feature = "async")]
use crate::tasks::futures::AsyncCall;
use crate::tasks::run_times::RunTimes;
use midflight_endpoint::{MS, Nanos};
use midflight_tasks::executor::RunKey;
use midflight_tasks::functions::{Began, COMMAND, EXEC, NOOP, SLEEP, SPIN, function_id};
use midflight_wire::tasks::Status;
use rustix::time::{ClockId, clock_gettime};
use std::any::Any;
use std::collections::HashMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// What a function can know about its task.
#[derive(Clone, Debug)]
pub struct TaskContext {
    /// Number of the attempt, from 1. Make effects idempotent: a task may run more than once.
    pub attempt: u8,
    /// User id.
    pub uid: u32,
    /// Number of the job.
    pub jid: u32,
    /// Number of the task in its job.
    pub tid: u32,
    /// 1 (highest) to 8.
    pub priority: u8,
    /// The client's address as the switch sees it.
    pub client: SocketAddr,
    pub(crate) asked: Nanos,
    pub(crate) run: RunKey,
    pub(crate) holding: Holding,
    pub(crate) cancellation: CancellationToken,
    /// None on the network thread, which must not wait.
    pub(crate) driver: Weak<ExecutorDriver>,
}

/// Keeps a task's slot lent until dropped.
#[derive(Debug)]
pub struct LentSlot {
    driver: Weak<ExecutorDriver>,
    run: RunKey,
}

impl TaskContext {
    /// The task's exclusive bundle of this counted resource, such as a GPU's id. `None`: not counted by the executor, or not required by
    /// the task.
    #[must_use]
    pub fn bundle(&self, resource: &str) -> Option<&str> {
        self.holding.iter().find(|(of, _)| of.name() == resource).map(|(_, told)| told)
    }

    /// Lends the task's slot while it waits for other tasks; otherwise waiting tasks could take all slots and deadlock. When the guard is
    /// dropped, the task continues at once, even if another one still uses the slot.
    ///
    /// # Errors
    ///
    /// If too many tasks wait ([`ExecutorBuilder::waiting`](crate::ExecutorBuilder::waiting)), if this one already does, and in functions
    /// of `register_inline`.
    pub fn lend_slot(&self) -> Result<LentSlot, Error> {
        let driver = self.driver.upgrade().ok_or(Error::TooManyWaiting)?;
        let lends = driver.with(|now, executor, _| executor.wait_for_others(now, self.run));
        if !lends {
            return Err(Error::TooManyWaiting);
        }
        Ok(LentSlot { driver: self.driver.clone(), run: self.run })
    }

    /// Tells the client that a part of the task will not begin here: the client may resubmit that part while this task runs on. `part`
    /// identifies it; the latest replaces an earlier one. Over 1 KiB, the client fetches it while the task runs. `false`: the task has
    /// ended, the part exceeds 2 MiB, or this executor has no room for it.
    pub fn give_back_part(&self, part: Vec<u8>) -> bool {
        let Some(driver) = self.driver.upgrade() else { return false };
        driver.with(|now, executor, handler| handler.give_back_part(executor, now, self.run, part))
    }

    /// Whether the client has cancelled the task. A long function should check this and return an error; returning a value is success.
    /// Always false on the network thread.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// The cancellation, to wait for or to give to other threads.
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

#[derive(Debug)]
pub(crate) enum Value {
    Bytes(Vec<u8>),
    Large(Content),
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

/// A function whose errors and panics are messages.
pub(crate) type Call = dyn Fn(&TaskContext, &[u8]) -> Result<Value, String> + Send + Sync;

#[derive(Clone)]
pub(crate) enum Function {
    /// On the network thread; takes microseconds.
    Inline(Arc<Call>),
    /// On a worker thread.
    Worker(Arc<Call>),
    /// A timer; needs no thread.
    Sleep,
    /// On the asynchronous runtime.
    #[cfg(feature = "async")]
    Async(Arc<AsyncCall>),
}

/// Functions by id, the hash of the name.
#[derive(Default)]
pub(crate) struct Functions {
    places: HashMap<u32, usize>,
    all: Vec<Known>,
}

struct Known {
    name: String,
    function: Function,
    times: RunTimes,
}

impl Functions {
    /// The built-in functions; `exec` and `command` use `processes`.
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
            return Err(Error::Invalid(format!("function {name:?} {why} ({other:?}): choose another name")));
        }
        self.places.insert(id, self.all.len());
        self.all.push(Known { name: name.to_owned(), function, times: RunTimes::default() });
        Ok(())
    }

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

    pub(crate) fn ran(&mut self, place: usize, took: Nanos, status: Status) {
        if let Some(known) = self.all.get_mut(place) {
            known.times.add(took, status);
        }
    }

    pub(crate) fn times(&self) -> Vec<(String, RunTimes)> {
        let ran = self.all.iter().filter(|known| known.times.count() > 0);
        ran.map(|known| (known.name.clone(), known.times.clone())).collect()
    }
}

/// Turns errors and panics into messages.
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

pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("(no message)"))
}

pub(crate) fn duration_ns(function: &str, argument: &[u8]) -> Result<Nanos, String> {
    let bytes = <[u8; 8]>::try_from(argument);
    bytes.map(u64::from_be_bytes).map_err(|_| no_duration(function, argument.len()))
}

pub(crate) fn no_duration(function: &str, length: usize) -> String {
    format!("{function} wants 8 bytes in the packet, nanoseconds in network byte order, not {length}")
}

/// How often `spin` checks for cancellation.
const LOOK_EVERY: Nanos = 5 * MS;

/// Computes until this thread has used `duration` of CPU time.
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
        // The wall clock needs no system call, and never runs slower than the thread's clock.
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
        spin(&crate::tasks::exec::tests::context(), 3_000_000).unwrap();
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
