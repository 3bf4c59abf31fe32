//! Handles the protocol's events: outcomes go to their jobs, references to the fetchers.

use super::fetches::Fetches;
use super::{ClientDriver, Leases, Room};
use crate::blob::{BlobStore, FetchError, Fetcher};
use crate::clock;
use crate::disk::spill::SpillRoom;
use crate::driver::{Handler, warn_of_version};
use crate::error::Error;
use crate::tasks::results::{JobState, ResultFile, TaskError, TaskOutcome, TaskResult, TaskTiming};
use midflight_tasks::client::{CancelledHow, Client, Event, LostWhy, Outcome, TaskKey};
use midflight_wire::tasks::{BlobRef, Status};
use std::collections::{BTreeMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Longest part by reference, in bytes.
pub(crate) const PART_MAX: u32 = 2 << 20;
/// Before a part is fetched again.
const PART_PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(500)];

pub(crate) struct ResultHandler {
    local: SocketAddr,
    seen_as: Option<SocketAddr>,
    /// By the key of the job's first task.
    jobs: BTreeMap<u64, Expected>,
    /// Jobs with outcomes not yet announced.
    changed: Vec<Arc<JobState>>,
    /// Parts given back by tasks, with the task's place in its job.
    parts: Vec<(Arc<JobState>, usize, Vec<u8>)>,
    /// Tasks and attempts whose part is being fetched: a repeat or a copy fetches nothing.
    fetched_parts: HashSet<(TaskKey, u8)>,
    fetches: Arc<Fetches<IpAddr, Fetch>>,
    room: Arc<Room>,
    /// Serve arguments at this port.
    blobs: (Arc<BlobStore>, u16),
}

struct Expected {
    state: Arc<JobState>,
    leases: Leases,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    pub(super) key: TaskKey,
    pub(super) status: Status,
    pub(super) attempt: u8,
    pub(super) timing: TaskTiming,
}

#[derive(Debug)]
pub(crate) struct Fetch {
    pub(super) completion: Completion,
    pub(super) executor: SocketAddr,
    pub(super) blob: BlobRef,
}

#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) value_max: u32,
    pub(crate) files: Option<Arc<SpillRoom>>,
}

impl ResultHandler {
    pub(crate) fn new(
        local: SocketAddr,
        fetches: Arc<Fetches<IpAddr, Fetch>>,
        room: Arc<Room>,
        blobs: (Arc<BlobStore>, u16),
    ) -> Self {
        let (jobs, changed) = (BTreeMap::new(), Vec::new());
        Self {
            local,
            seen_as: None,
            jobs,
            changed,
            parts: Vec::new(),
            fetched_parts: HashSet::new(),
            fetches,
            room,
            blobs,
        }
    }

    pub(crate) fn seen_as(&self) -> Option<SocketAddr> {
        self.seen_as
    }

    pub(crate) fn expect(&mut self, first: u64, state: &Arc<JobState>, leases: Leases) {
        if !state.is_empty() {
            self.jobs.insert(first, Expected { state: Arc::clone(state), leases });
        }
    }

    /// Stops all fetches. Returns the jobs that are still open.
    pub(crate) fn close(&mut self) -> Vec<Arc<JobState>> {
        self.fetches.close();
        std::mem::take(&mut self.jobs).into_values().map(|expected| expected.state).collect()
    }

    fn cancelled(&mut self, key: TaskKey, how: CancelledHow) {
        if let Some((_, expected)) = self.jobs.range(..=key.0).next_back() {
            expected.state.note_cancelled(how);
        }
        self.end(key, Err(TaskError::Cancelled.into()));
    }

    fn end(&mut self, key: TaskKey, outcome: TaskOutcome) {
        let Some((&first, expected)) = self.jobs.range_mut(..=key.0).next_back() else {
            return; // closed
        };
        let index = (key.0 - first) as usize;
        let state = Arc::clone(&expected.state);
        if let Some(lease) = expected.leases.get_mut(index) {
            *lease = None;
        }
        if state.end(index, outcome) {
            self.jobs.remove(&first);
        }
        if !self.changed.last().is_some_and(|last| Arc::ptr_eq(last, &state)) {
            self.changed.push(state);
        }
    }

    fn completed(&mut self, client: &mut Client, completion: Completion, result: Outcome) {
        match result {
            Outcome::Inline(bytes) => self.end(completion.key, completion.with(bytes)),
            Outcome::ByReference { executor, blob } => {
                let fetch = Fetch { completion, executor, blob };
                if !self.fetches.push(executor.ip(), fetch) {
                    client.fetched(completion.timing.completed, completion.key, false);
                }
            }
        }
    }

    fn gave_back(&mut self, key: TaskKey, part: Vec<u8>) {
        let Some((&first, of)) = self.jobs.range(..=key.0).next_back() else { return };
        let index = (key.0 - first) as usize;
        // If the task's job has ended, the search found an earlier job, which is too short for this index.
        if index < of.state.len() {
            self.parts.push((Arc::clone(&of.state), index, part));
        }
    }

    /// Keeps the argument of a task until it ends, for executors to fetch.
    fn serve(&mut self, client: &mut Client, key: TaskKey, argument: Arc<Vec<u8>>) {
        let Some((first, expected)) = self.jobs.range_mut(..=key.0).next_back() else { return };
        let (index, (blobs, port)) = ((key.0 - first) as usize, &self.blobs);
        let lease = blobs.keep(argument, Duration::ZERO).ok();
        client.refer(clock::now(), key, lease.as_ref().map(|lease| lease.reference(*port)));
        if expected.leases.len() <= index {
            expected.leases.resize(index + 1, None);
        }
        expected.leases[index] = lease.map(Arc::new);
    }

    fn saw_address(&mut self, seen: SocketAddr) {
        if seen.port() != self.local.port() {
            tracing::warn!(
                "the switch sees {seen} instead of port {}: there is NAT on the way, executors cannot reach this \
                 client; run it in the switch's network",
                self.local.port()
            );
        }
        self.seen_as = Some(seen);
    }
}

impl Handler<Client> for ResultHandler {
    fn event(&mut self, client: &mut Client, event: Event) {
        match event {
            Event::Completed { key, status, attempt, result, timing } => {
                self.completed(client, Completion { key, status, attempt, timing }, result);
            }
            Event::Part { key, attempt, part } => match part {
                Outcome::Inline(part) => self.gave_back(key, part),
                Outcome::ByReference { executor, blob } => {
                    if blob.length.get() <= PART_MAX && self.fetched_parts.insert((key, attempt)) {
                        let completion =
                            Completion { key, status: Status::Part, attempt, timing: TaskTiming::default() };
                        self.fetches.push(executor.ip(), Fetch { completion, executor, blob });
                    }
                }
            },
            Event::Lost { key, why } => self.end(key, Err(lost(why))),
            Event::Cancelled { key, how } => self.cancelled(key, how),
            Event::NotCancelled { .. } => {} // its end is still reported
            Event::Save(_) => {}             // this client is not durable
            Event::NeedsReference { key, argument } => self.serve(client, key, argument),
            Event::SwitchChanged { switch, epoch, resubmitted } => {
                tracing::info!("switch {switch} answers, epoch {epoch:08x}; {resubmitted} tasks submitted again");
            }
            Event::SeenAs(seen) => self.saw_address(seen),
            Event::OtherVersion { switch, version } => warn_of_version(switch, version),
        }
    }

    fn after(&mut self) -> Option<impl FnOnce() + use<>> {
        if self.changed.is_empty() && self.parts.is_empty() {
            return None;
        }
        let (changed, room) = (std::mem::take(&mut self.changed), Arc::clone(&self.room));
        let parts = std::mem::take(&mut self.parts);
        Some(move || {
            for (job, place, part) in parts {
                job.gave_back(place, &part);
            }
            for job in changed {
                job.announce();
            }
            room.announce();
        })
    }
}

impl Completion {
    pub(super) fn with(self, bytes: Vec<u8>) -> TaskOutcome {
        let Self { status, attempt, timing, .. } = self;
        match status {
            Status::Ok => Ok(TaskResult { value: bytes, file: None, attempt, timing }),
            Status::Failed => {
                let message = String::from_utf8_lossy(&bytes).into_owned();
                Err(TaskError::Failed { message, attempt, timing }.into())
            }
            Status::Unknown => Err(TaskError::Unknown.into()),
            Status::Abandoned => Err(lost(LostWhy::Abandoned)),
            Status::Cancelled | Status::Part => Err(TaskError::Cancelled.into()), // a part ends nothing
        }
    }
}

impl Fetch {
    pub(crate) fn run(self, fetcher: &Fetcher, places: &Places, driver: &ClientDriver) {
        if self.completion.status == Status::Part {
            return self.run_part(fetcher, driver);
        }
        let outcome = self.outcome(fetcher, places);
        if let Err(error) = &outcome {
            tracing::warn!("a result was not fetched: {error}");
        }
        let key = self.completion.key;
        driver.with(|now, client, handler| {
            client.fetched(now, key, outcome.is_ok());
            if let Ok(outcome) = outcome {
                handler.end(key, outcome);
            }
        });
    }

    /// The executor does not repeat an acknowledged part. If all tries fail, the final result says the same.
    fn run_part(self, fetcher: &Fetcher, driver: &ClientDriver) {
        let fetch = || fetcher.fetch(self.executor.ip(), &self.blob, PART_MAX);
        let is_final = |error: &FetchError| matches!(error, FetchError::Gone | FetchError::TooLarge { .. });
        let mut part = fetch();
        for pause in PART_PAUSES {
            if part.as_ref().map_or_else(is_final, |_| true) {
                break;
            }
            std::thread::sleep(pause);
            part = fetch();
        }
        let Completion { key, attempt, .. } = self.completion;
        driver.with(|_, _, handler| {
            handler.fetched_parts.remove(&(key, attempt));
            match part {
                Ok(part) => handler.gave_back(key, part),
                Err(error) => tracing::warn!("what a task has given back was not fetched: {error}"),
            }
        });
    }

    /// An error means that another attempt may succeed; lack of room here is final.
    pub(super) fn outcome(&self, fetcher: &Fetcher, places: &Places) -> Result<TaskOutcome, FetchError> {
        match self.fetch(fetcher, places) {
            Err(FetchError::TooLarge { length, max }) => Ok(Err(TaskError::TooLarge { length, max }.into())),
            Err(error @ FetchError::NotKept { .. }) => Ok(Err(TaskError::NotKept { why: error.to_string() }.into())),
            other => other,
        }
    }

    fn fetch(&self, fetcher: &Fetcher, places: &Places) -> Result<TaskOutcome, FetchError> {
        let (ip, length, completion) = (self.executor.ip(), self.blob.length.get(), self.completion);
        let Some(files) =
            places.files.as_ref().filter(|_| length > places.value_max && completion.status == Status::Ok)
        else {
            return fetcher.fetch(ip, &self.blob, places.value_max).map(|bytes| completion.with(bytes));
        };
        let mut file = files.file().map_err(|source| FetchError::NotKept { length, source })?;
        fetcher.fetch_to_file(ip, &self.blob, &mut file)?;
        let (file, attempt, timing) = (Some(ResultFile::new(file)), completion.attempt, completion.timing);
        Ok(Ok(TaskResult { value: Vec::new(), file, attempt, timing }))
    }
}

pub(super) fn lost(why: LostWhy) -> Error {
    let error = match why {
        LostWhy::TimedOut => TaskError::TimedOut,
        LostWhy::Abandoned => TaskError::Lost("no executor could fetch the argument"),
        LostWhy::FetchFailed => TaskError::Lost("the result could not be fetched from its executor"),
        LostWhy::Forgotten => TaskError::Forgotten,
    };
    error.into()
}
