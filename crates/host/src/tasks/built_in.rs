//! The built-in functions for executors of other protocols, such as Sparrow's workers.

use crate::blob::BlobOptions;
use crate::clock;
use crate::disk::spill::SpillRoom;
use crate::error::Error;
use crate::tasks::cancellation::CancellationToken;
use crate::tasks::counted::Holding;
use crate::tasks::exec::Processes;
use crate::tasks::functions::{Call, Function, Functions, TaskContext, duration_ns};
use crate::tasks::workers::Workers;
use midflight_endpoint::Nanos;
use midflight_tasks::executor::RunKey;
use midflight_tasks::functions::SLEEP;
use midflight_wire::tasks::Status;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

const DROP_PATIENCE: Duration = Duration::from_secs(1);

/// Runs `noop`, `sleep`, `spin` and `exec`, and reports only the status. Dropping it kills what it runs.
pub struct BuiltIn {
    functions: Functions,
    workers: Workers,
    processes: Arc<Processes>,
}

/// A task of another protocol.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// Number of the function.
    pub function: u32,
    /// Argument.
    pub argument: &'a [u8],
    /// Number of the job.
    pub job: u32,
    /// Number of the task in its job.
    pub tid: u32,
    /// 1 (highest) to 8.
    pub priority: u8,
    /// When its slot asked for a task.
    pub asked: Nanos,
    /// Slot, and number of the run in the slot.
    pub run: (u32, u32),
}

/// The state of a task after `begin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It has ended.
    Ended(Status),
    /// It sleeps until then, and the caller ends it.
    Sleeps(Nanos),
    /// It runs on a thread that calls `done` at the end.
    Runs,
}

impl BuiltIn {
    /// Uses at most one thread per slot.
    ///
    /// # Errors
    ///
    /// If the system refuses what processes need.
    pub fn new(slots: usize) -> Result<Self, Error> {
        let processes = Arc::new(Processes::new(SpillRoom::new(None, BlobOptions::default().max_file_bytes)));
        Ok(Self { functions: Functions::built_in(&processes)?, workers: Workers::new(slots), processes })
    }

    /// Begins a task.
    pub fn begin(&self, task: &Task<'_>, done: impl FnOnce(Status) + Send + 'static) -> Begun {
        match self.functions.get(task.function) {
            None => Begun::Ended(Status::Unknown),
            // No built-in function is a future.
            #[cfg(feature = "async")]
            Some(Function::Async(_)) => Begun::Ended(Status::Unknown),
            Some(Function::Inline(call)) => Begun::Ended(call_it(&**call, &context(task), task.argument)),
            Some(Function::Sleep) => match duration_ns(SLEEP, task.argument) {
                Ok(duration) => Begun::Sleeps(clock::now().saturating_add(duration)),
                Err(message) => Begun::Ended(failed(&message)),
            },
            Some(Function::Worker(call)) => {
                let (call, context, argument) = (Arc::clone(call), context(task), task.argument.to_vec());
                let is_begun = self.workers.run(Box::new(move || done(call_it(&*call, &context, &argument))));
                if is_begun { Begun::Runs } else { Begun::Ended(Status::Abandoned) }
            }
        }
    }
}

impl BuiltIn {
    /// Kills the processes that run, and waits for the threads, a second at most.
    pub fn stop(&self) {
        self.processes.kill_all();
        self.workers.close(DROP_PATIENCE);
    }
}

impl std::fmt::Debug for BuiltIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BuiltIn").finish_non_exhaustive()
    }
}

impl Drop for BuiltIn {
    fn drop(&mut self) {
        self.stop();
    }
}

fn context(task: &Task<'_>) -> TaskContext {
    TaskContext {
        attempt: 1,
        uid: 0,
        jid: task.job,
        tid: task.tid,
        priority: task.priority,
        client: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        asked: task.asked,
        run: RunKey { slot: task.run.0, run: task.run.1 },
        holding: Holding::default(),
        cancellation: CancellationToken::never(),
        driver: Weak::new(),
    }
}

fn call_it(call: &Call, context: &TaskContext, argument: &[u8]) -> Status {
    match call(context, argument) {
        Ok(_) => Status::Ok,
        Err(message) => failed(&message),
    }
}

fn failed(message: &str) -> Status {
    tracing::warn!("a task failed: {message}");
    Status::Failed
}
