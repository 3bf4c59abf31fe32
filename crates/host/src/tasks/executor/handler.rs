//! Handles the protocol's events: each run goes to the thread of its function, and its result comes back.

#[cfg(test)]
use super::NETWORK_THREAD;
use super::{ExecutorDriver, Status};
use crate::blob::{Arguments, BlobLease, BlobStore, Content};
use crate::clock;
use crate::driver::{Handler, warn_of_version};
use crate::tasks::cancellation::CancellationToken;
use crate::tasks::client::PART_MAX;
use crate::tasks::counted::{CountedResources, Holding};
use crate::tasks::exec::Processes;
use crate::tasks::functions::{Call, Function, Functions, TaskContext, Value, duration_ns, no_duration};
#[cfg(feature = "async")]
use crate::tasks::futures::{AsyncCall, Runtime};
use crate::tasks::python::Pythons;
use crate::tasks::run_times::RunTimes;
use crate::tasks::workers::Workers;
use midflight_endpoint::Nanos;
use midflight_tasks::client::Argument;
use midflight_tasks::executor::{End, Event, Executor, Output, Run, RunKey};
use midflight_tasks::functions::{Began, SLEEP};
use midflight_wire::tasks::{RESULT_BLOB_MAX, RESULT_MAX, Status as EndStatus};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Longer calls of inline functions are counted, and occasionally reported.
const INLINE_MAX_NS: Nanos = 1_000_000;
/// How long a worker waits for room for its result.
const ROOM_PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct RunHandler {
    functions: Functions,
    /// The function of each slot's last run.
    places: Vec<usize>,
    workers: Arc<Workers>,
    status: Arc<Status>,
    runner: Arc<Runner>,
    local: SocketAddr,
    /// Sleeping tasks: end, run, begin.
    sleeping: BinaryHeap<Reverse<(Nanos, RunKey, Began)>>,
    /// Runs on worker threads, with their cancellation.
    running: HashMap<RunKey, CancellationToken>,
    started: Started,
    /// Results kept for their clients.
    leases: HashMap<RunKey, BlobLease>,
    /// Of parts that running tasks have given back.
    parts: HashMap<RunKey, BlobLease>,
    overruns: u64,
    /// The running tasks are about to be killed.
    is_ending: bool,
    /// Lets the network thread panic.
    #[cfg(test)]
    pub(super) panics: bool,
}

pub(crate) struct Started {
    pub(crate) processes: Arc<Processes>,
    /// `None` without Python.
    pub(crate) pythons: Option<Arc<Pythons>>,
}

impl Started {
    fn stop(&self, run: RunKey) {
        self.processes.stop(run);
        self.pythons.iter().for_each(|pythons| pythons.stop(run));
    }
}

pub(crate) struct Runner {
    pub(crate) driver: Weak<ExecutorDriver>,
    pub(crate) blobs: Arc<BlobStore>,
    pub(crate) blob_port: u16,
    pub(crate) arguments: Arguments,
    pub(crate) counted: CountedResources,
    /// `None` without asynchronous functions.
    #[cfg(feature = "async")]
    pub(crate) runtime: Option<Arc<Runtime>>,
}

impl RunHandler {
    pub(crate) fn new(
        functions: Functions,
        workers: Arc<Workers>,
        status: Arc<Status>,
        runner: Runner,
        started: Started,
        local: SocketAddr,
    ) -> Self {
        let (sleeping, running, leases) = (BinaryHeap::new(), HashMap::new(), HashMap::new());
        let runner = Arc::new(runner);
        Self {
            functions,
            places: Vec::new(),
            workers,
            status,
            runner,
            local,
            sleeping,
            running,
            started,
            leases,
            parts: HashMap::new(),
            overruns: 0,
            is_ending: false,
            #[cfg(test)]
            panics: false,
        }
    }

    pub(crate) fn overruns(&self) -> u64 {
        self.overruns
    }

    pub(crate) fn argument_fetches(&self) -> u64 {
        self.runner.arguments.fetches()
    }

    /// Suppresses further results, such as those of killed commands. The switch reassigns the tasks after the lease (T10).
    pub(crate) fn end(&mut self) {
        self.is_ending = true;
        self.sleeping.clear();
    }

    fn run(&mut self, executor: &mut Executor, run: Run) {
        let argument = Argument::of(&run.task, run.appended.clone());
        let function = self.function_of(&run);
        match (function, argument) {
            (None, _) => self.finish_here(executor, run.key, Ended::now(EndStatus::Unknown)),
            (Some(Function::Inline(call)), argument) => match at_hand(&argument) {
                Some(bytes) => self.call_here(executor, &run, &*call, bytes),
                None => self.give_to_worker(executor, run, call, argument),
            },
            (Some(Function::Sleep), Argument::Inline { bytes, length }) => {
                let started = clock::now();
                match duration_ns(SLEEP, &bytes[..usize::from(length)]) {
                    Ok(duration) => {
                        let began = Began { asked: run.asked, started };
                        self.sleeping.push(Reverse((started.saturating_add(duration), run.key, began)));
                    }
                    Err(message) => self.finish_here(executor, run.key, Ended::failed(message)),
                }
            }
            (Some(Function::Sleep), Argument::Appended(bytes)) => {
                self.finish_here(executor, run.key, Ended::failed(no_duration(SLEEP, bytes.len())));
            }
            (Some(Function::Sleep), Argument::ByReference(blob)) => {
                let message = no_duration(SLEEP, blob.length.get() as usize);
                self.finish_here(executor, run.key, Ended::failed(message));
            }
            #[cfg(feature = "async")]
            (Some(Function::Async(call)), argument) => self.give_to_runtime(executor, run, call, argument),
            (Some(Function::Worker(call)), argument) => self.give_to_worker(executor, run, call, argument),
        }
    }

    fn call_here(&mut self, executor: &mut Executor, run: &Run, call: &Call, argument: &[u8]) {
        let context = TaskContext { driver: Weak::new(), ..self.runner.context_of(run, CancellationToken::never()) };
        let ended = self.runner.call(call, &context, argument, Duration::ZERO);
        self.note_overrun(run, &ended);
        self.finish_here(executor, run.key, ended);
    }

    /// The function of a run, remembered for its slot.
    fn function_of(&mut self, run: &Run) -> Option<Function> {
        let place = self.functions.place(run.task.function.get());
        let slot = run.key.slot as usize;
        if slot >= self.places.len() {
            self.places.resize(slot + 1, usize::MAX);
        }
        self.places[slot] = place.unwrap_or(usize::MAX);
        self.functions.at(place?).cloned()
    }

    fn note_time(&mut self, run: RunKey, end: &End) {
        if let Some(&place) = self.places.get(run.slot as usize) {
            self.functions.ran(place, end.ended.saturating_sub(end.started), end.status);
        }
    }

    pub(crate) fn times(&self) -> Vec<(String, RunTimes)> {
        self.functions.times()
    }

    fn give_to_worker(&mut self, executor: &mut Executor, run: Run, call: Arc<Call>, argument: Argument) {
        let runner = Arc::clone(&self.runner);
        let token = CancellationToken::default();
        let key = run.key;
        self.running.insert(key, token.clone());
        let work = Box::new(move || {
            let ended = runner.run(&*call, &runner.context_of(&run, token), &argument);
            runner.finish(key, ended);
        });
        if !self.workers.run(work) {
            self.finish_here(executor, key, Ended::now(EndStatus::Abandoned));
        }
    }

    /// If the argument needs a fetch, a worker does it first.
    #[cfg(feature = "async")]
    fn give_to_runtime(&mut self, executor: &mut Executor, run: Run, call: Arc<AsyncCall>, argument: Argument) {
        let token = CancellationToken::default();
        self.running.insert(run.key, token.clone());
        let (runner, context) = (Arc::clone(&self.runner), self.runner.context_of(&run, token));
        if let Some(bytes) = at_hand(&argument) {
            return runner.start(&*call, context, bytes.to_vec());
        }
        let work = Box::new(move || match runner.argument(&context, &argument) {
            Some(bytes) => runner.start(&*call, context, bytes.into_owned()),
            None => runner.finish(run.key, Ended::now(EndStatus::Abandoned)),
        });
        if !self.workers.run(work) {
            self.finish_here(executor, run.key, Ended::now(EndStatus::Abandoned));
        }
    }

    /// Signals the worker and ends the command. The worker then reports the end.
    fn stop(&mut self, executor: &mut Executor, run: RunKey) {
        if let Some(token) = self.running.get(&run) {
            token.cancel();
            self.started.stop(run);
            return;
        }
        let before = self.sleeping.len();
        self.sleeping.retain(|Reverse((_, other, _))| *other != run);
        if self.sleeping.len() < before {
            self.finish_here(executor, run, Ended::now(EndStatus::Cancelled));
        }
    }

    /// The run has just ended: its end is the time, since reading the clock takes a tenth of a short task.
    fn finish_here(&mut self, executor: &mut Executor, run: RunKey, ended: Ended) {
        self.finish(executor, ended.end.ended, run, ended);
    }

    fn finish(&mut self, executor: &mut Executor, now: Nanos, run: RunKey, ended: Ended) {
        if !self.running.is_empty() {
            self.running.remove(&run);
            self.parts.remove(&run);
        }
        if self.is_ending {
            return;
        }
        self.leases.extend(ended.lease.map(|lease| (run, lease)));
        self.note_time(run, &ended.end);
        executor.finish(now, run, ended.end);
    }

    pub(crate) fn give_back_part(&mut self, executor: &mut Executor, now: Nanos, run: RunKey, part: Vec<u8>) -> bool {
        if part.len() > PART_MAX as usize || !self.running.contains_key(&run) {
            return false;
        }
        let Ok((part, lease)) = self.runner.keep(Value::Bytes(part), Duration::ZERO) else { return false };
        self.parts.extend(lease.map(|lease| (run, lease)));
        executor.give_back_part(now, run, part);
        true
    }

    fn note_overrun(&mut self, run: &Run, ended: &Ended) {
        let took = ended.end.ended - ended.end.started;
        if took > INLINE_MAX_NS {
            self.overruns += 1;
            if self.overruns.is_power_of_two() {
                let name = self.functions.name(run.task.function.get());
                tracing::warn!(
                    "inline function {name:?} held the network thread for {} us ({} such so far): register it with \
                     `register`, not `register_inline`",
                    took / 1000,
                    self.overruns
                );
            }
        }
    }

    fn registered(&self, switch: SocketAddr, slots: u32, seen: SocketAddr) {
        if seen.port() != self.local.port() {
            tracing::warn!(
                "the switch sees {seen} instead of port {}: there is NAT on the way, clients cannot reach this \
                 executor; run it in the switch's network",
                self.local.port()
            );
        }
        tracing::info!("{slots} slots registered at {switch}");
        self.status.set(|now| now.slots = slots);
    }
}

impl Handler<Executor> for RunHandler {
    fn event(&mut self, executor: &mut Executor, event: Event) {
        match event {
            Event::Run(run) => self.run(executor, run),
            Event::Stop(run) => self.stop(executor, run),
            Event::Settled { run, delivered } => {
                self.leases.remove(&run);
                if !delivered {
                    tracing::warn!("a result was not fetched by its client in time and is dropped");
                }
            }
            Event::Registered { switch, slots, seen } => self.registered(switch, slots, seen),
            Event::SlotsFull { got, is_share } => {
                let why = if is_share { " (this address holds its share)" } else { "" };
                tracing::warn!("the switch has room for {got} slots only{why}: raise tasks.slots in its configuration");
                self.status.set(|now| now.slots = got);
            }
            Event::SwitchChanged { switch } => tracing::warn!("the switch is silent; trying {switch}"),
            Event::OtherVersion { switch, version } => warn_of_version(switch, version),
            Event::Drained => self.status.set(|now| now.drained = true),
        }
    }

    fn deadline(&self) -> Option<Nanos> {
        #[cfg(test)]
        assert!(!self.panics || std::thread::current().name() != Some(NETWORK_THREAD), "a test wants it");
        self.sleeping.peek().map(|Reverse((end, ..))| *end)
    }

    fn due(&mut self, now: Nanos, executor: &mut Executor) {
        while let Some(&Reverse((end, run, began))) = self.sleeping.peek()
            && end <= now
        {
            self.sleeping.pop();
            let result = Output::Inline(began.encode());
            let end = End { status: EndStatus::Ok, result, started: began.started, ended: now };
            self.note_time(run, &end);
            executor.finish(now, run, end);
        }
    }
}

/// The argument, unless it is by reference.
fn at_hand(argument: &Argument) -> Option<&[u8]> {
    match argument {
        Argument::Inline { bytes, length } => Some(&bytes[..usize::from(*length)]),
        Argument::Appended(bytes) => Some(bytes),
        Argument::ByReference(_) => None,
    }
}

pub(crate) struct Ended {
    end: End,
    lease: Option<BlobLease>,
}

impl Ended {
    /// Ended before it began.
    fn now(status: EndStatus) -> Self {
        let now = clock::now();
        Self { end: End { status, result: Output::Inline(Vec::new()), started: now, ended: now }, lease: None }
    }

    fn failed(message: String) -> Self {
        let mut ended = Self::now(EndStatus::Failed);
        ended.end.result = Output::Inline(cut_message(message));
        ended
    }
}

impl Runner {
    fn context_of(&self, run: &Run, cancellation: CancellationToken) -> TaskContext {
        TaskContext {
            attempt: run.task.attempt,
            uid: run.uid,
            jid: run.jid,
            tid: run.task.tid.get(),
            priority: run.task.priority,
            client: run.client,
            asked: run.asked,
            run: run.key,
            holding: Holding::new(&self.counted, run.bundles),
            cancellation,
            driver: self.driver.clone(),
        }
    }

    fn run(&self, call: &Call, context: &TaskContext, argument: &Argument) -> Ended {
        match self.argument(context, argument) {
            Some(bytes) => self.call(call, context, &bytes, ROOM_PATIENCE),
            None => Ended::now(EndStatus::Abandoned),
        }
    }

    fn argument<'a>(&self, context: &TaskContext, argument: &'a Argument) -> Option<Cow<'a, [u8]>> {
        match argument {
            Argument::Inline { .. } | Argument::Appended(_) => at_hand(argument).map(Cow::Borrowed),
            Argument::ByReference(blob) => {
                let fetched = self.arguments.get(context.client, blob);
                fetched.inspect_err(|error| self.arguments.warn_not_fetched(context.client, error)).ok().map(Cow::Owned)
            }
        }
    }

    /// After a cancellation, an error means stopped, a value success.
    fn call(&self, call: &Call, context: &TaskContext, argument: &[u8], patience: Duration) -> Ended {
        if context.cancelled() {
            return Ended::now(EndStatus::Cancelled);
        }
        let started = clock::now();
        let result = call(context, argument);
        self.ended(context, started, result, patience)
    }

    /// Completes a run now. The value may wait `patience` for room.
    fn ended(&self, context: &TaskContext, started: Nanos, result: Result<Value, String>, patience: Duration) -> Ended {
        let ended = clock::now();
        let (status, result, lease) = match result.and_then(|value| self.keep(value, patience)) {
            Ok((output, lease)) => (EndStatus::Ok, output, lease),
            Err(_) if context.cancelled() => (EndStatus::Cancelled, Output::Inline(Vec::new()), None),
            Err(message) => (EndStatus::Failed, Output::Inline(cut_message(message)), None),
        };
        Ended { end: End { status, result, started, ended }, lease }
    }

    /// Must not run on the network thread.
    fn finish(&self, run: RunKey, ended: Ended) {
        if let Some(driver) = self.driver.upgrade() {
            driver.with(|now, executor, handler| handler.finish(executor, now, run, ended));
        }
    }

    /// Starts an asynchronous function; a cancellation drops it.
    #[cfg(feature = "async")]
    fn start(self: &Arc<Self>, call: &AsyncCall, context: TaskContext, argument: Vec<u8>) {
        let Some(runtime) = &self.runtime else { return };
        let (runner, started) = (Arc::clone(self), clock::now());
        let outcome = call(context.clone(), argument);
        runtime.spawn(async move {
            let result = tokio::select! {
                biased;
                () = context.cancellation.cancelled() => Err("cancelled".to_owned()),
                result = outcome => result,
            };
            let run = context.run;
            let is_large = matches!(&result, Ok(Value::Bytes(bytes)) if bytes.len() > RESULT_MAX);
            let end = move || {
                let ended = runner.ended(&context, started, result, ROOM_PATIENCE);
                runner.finish(run, ended);
            };
            if is_large {
                tokio::task::spawn_blocking(end); // it may wait for room
            } else {
                end();
            }
        });
    }

    /// Keeps a value that exceeds a packet.
    fn keep(&self, value: Value, patience: Duration) -> Result<(Output, Option<BlobLease>), String> {
        let content = match value {
            Value::Bytes(bytes) if bytes.len() <= RESULT_MAX => return Ok((Output::Inline(bytes), None)),
            Value::Bytes(bytes) => Content::from(Arc::new(bytes)),
            Value::Large(content) => content,
        };
        let length = content.len();
        if length > u64::from(RESULT_BLOB_MAX) {
            return Err(format!(
                "a result of {length} bytes exceeds {RESULT_BLOB_MAX}: write it to a file, or split the task"
            ));
        }
        let max = self.blobs.options().max_bytes;
        let lease = self.blobs.keep(content, patience).map_err(|_full| {
            format!("no room for a result of {length} bytes: {max} bytes are kept for clients that did not fetch them")
        })?;
        Ok((Output::ByReference(lease.reference(self.blob_port)), Some(lease)))
    }
}

/// Messages must fit into the packet.
fn cut_message(message: String) -> Vec<u8> {
    let mut length = message.len().min(RESULT_MAX);
    while !message.is_char_boundary(length) {
        length -= 1;
    }
    let mut bytes = message.into_bytes();
    bytes.truncate(length);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_between_characters() {
        assert_eq!(cut_message("short".to_owned()), b"short");
        let cut = String::from_utf8(cut_message("ä".repeat(600) + "x")).unwrap();
        assert_eq!(cut.len(), RESULT_MAX);
        let cut = String::from_utf8(cut_message("x".to_owned() + &"ä".repeat(600))).unwrap();
        assert_eq!(cut.len(), RESULT_MAX - 1);
    }
}
