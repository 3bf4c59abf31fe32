//! The submitter's loop: begin commands, receive events, save them, and only then act on them.

use super::day::Day;
use super::draft::{Draft, Effect};
use super::task::{Place, task};
use super::{Ask, Settings, Shared, SubmitterError, Wish, lock, unix_ms};
use crate::kept::{ClientRow, Page, StoreError};
use crate::model::{JobRow, JobState};
use crate::protocol::Answer;
use midflight_host::{DurableClient, DurableOptions, Happened, Resumption, TaskSpec};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// Longest wait of an idle turn.
const TURN: Duration = Duration::from_secs(1);
/// Commands that one job may begin before the next job's turn.
const SHARE: usize = 256;
const ASKS_MAX: usize = 256;
/// Interval of saving the client's counters and of removing old jobs.
const HOUSEKEEPING_INTERVAL: Duration = Duration::from_secs(60);
const OLD_MAX: usize = 64;
/// Events that may wait while saving fails; beyond it nothing more is received.
const UNSAVED_MAX: usize = 100_000;
const UNSAVED_BYTES_MAX: usize = 256 << 20;
/// Bytes of a result: a larger output fails its command.
const VALUE_MAX: u32 = 64 << 20;
const ARGUMENTS_MAX: usize = 1 << 30;
const FETCHERS: usize = 8;
const PAGE: Page = Page { rows: 1_000, bytes: 64 << 20 };

pub(super) struct Active {
    pub(super) row: JobRow,
    /// Place of the first command that was not given to the client.
    begun: u32,
    again: VecDeque<Place>,
    keys: BTreeMap<u64, Place>,
}

impl Active {
    pub(super) fn new(row: JobRow) -> Self {
        Self { begun: row.next, row, again: VecDeque::new(), keys: BTreeMap::new() }
    }

    fn may_begin(&self) -> bool {
        self.row.state == JobState::Running && !self.row.cancel
    }

    /// Commands that wait to run again; cancelling the job ends them.
    pub(super) fn waiting_again(&self) -> impl Iterator<Item = Place> + '_ {
        self.again.iter().copied()
    }
}

/// Owns the client of the tasks program and is the only writer of the store. Nothing is done before the reason for it is saved.
pub(super) struct SubmitterLoop {
    pub(super) settings: Settings,
    pub(super) shared: Arc<Shared>,
    asks: mpsc::Receiver<Ask>,
    client: Option<DurableClient>,
    /// As saved with each transaction.
    row: Option<ClientRow>,
    pub(super) jobs: BTreeMap<u64, Active>,
    job_of: HashMap<u64, u64>,
    pub(super) next_job: u64,
    pub(super) stored: u64,
    pub(super) bytes: u64,
    unsaved: Vec<Happened>,
    /// Commands that cannot be run at all, and why.
    unable: Vec<(Place, String)>,
    trouble: Option<String>,
    /// Whether nothing was saved since the last error, which is logged once.
    had_trouble: bool,
    failed: Instant,
    housekept: Instant,
    day: Day,
    /// The job whose turn it is to begin commands.
    turn_of: u64,
}

impl SubmitterLoop {
    pub(super) fn load(
        settings: Settings,
        shared: Arc<Shared>,
        asks: mpsc::Receiver<Ask>,
    ) -> Result<Self, SubmitterError> {
        let store = &shared.store;
        let row: Option<ClientRow> = store.meta("client")?;
        let next_job = store.meta("next_job")?.unwrap_or(1);
        let mut submitter = Self {
            settings,
            asks,
            client: None,
            row,
            jobs: BTreeMap::new(),
            job_of: HashMap::new(),
            next_job,
            stored: 0,
            bytes: 0,
            unsaved: Vec::new(),
            unable: Vec::new(),
            trouble: None,
            had_trouble: false,
            failed: Instant::now(),
            housekept: Instant::now(),
            day: Day::new(Instant::now(), unix_ms()),
            turn_of: 0,
            shared: Arc::clone(&shared),
        };
        let mut first = 0;
        loop {
            let rows = store.jobs(first, PAGE)?;
            let Some(last) = rows.last() else { break };
            first = last.job + 1;
            for row in rows {
                submitter.stored += 1;
                submitter.bytes += row.bytes;
                if !row.state.has_ended() {
                    submitter.jobs.insert(row.job, Active::new(row));
                }
            }
        }
        submitter.resume()?;
        submitter.publish();
        Ok(submitter)
    }

    fn resume(&mut self) -> Result<(), SubmitterError> {
        let mut tasks = Vec::new();
        for (job, place, open) in self.shared.store.open_rows()? {
            let active = self.jobs.get_mut(&job).ok_or_else(|| damaged("jobs", &self.shared))?;
            let at = Place { job, place, tries: open.tries };
            match open.sent {
                None => active.again.push_back(at),
                Some(sent) => {
                    active.keys.insert(sent.key, at);
                    self.job_of.insert(sent.key, job);
                    tasks.push(sent.saved().ok_or_else(|| damaged("open", &self.shared))?);
                }
            }
        }
        let Some(row) = self.row.clone() else { return Ok(()) };
        let left = Resumption { saved_counters: row.saved_counters(), switch: row.epoch, tasks };
        let is_empty = left.tasks.is_empty();
        let client = DurableClient::start(&self.options(&row), Some(left), |saved| {
            let job = self.job_of.get(&saved.key.0)?;
            let active = self.jobs.get(job)?;
            let task = self.task_of(active, *active.keys.get(&saved.key.0)?).ok()?;
            Some(task.argument.to_vec())
        });
        match client {
            Ok(client) => self.use_client(row, client),
            // Its ports are in use, but no task needs them.
            Err(_) if is_empty => self.new_client(&row.switches)?,
            Err(error) => return Err(error.into()),
        }
        let cancelled: Vec<u64> = self.jobs.values().filter(|active| active.row.cancel).map(|a| a.row.job).collect();
        cancelled.into_iter().for_each(|job| self.cancel_tasks(job));
        Ok(())
    }

    /// The same in each process.
    fn task_of(&self, active: &Active, at: Place) -> Result<TaskSpec, String> {
        let spec = &active.row.spec;
        let item = match spec.has_items {
            true => self.shared.store.item(at.job, at.place).map_err(|error| error.to_string())?,
            false => None,
        };
        if spec.has_items && item.is_none() {
            return Err("its command line is not in the store".to_owned());
        }
        task(spec, at, item)
    }

    fn options(&self, row: &ClientRow) -> DurableOptions {
        DurableOptions {
            switches: row.switches.clone(),
            identity: row.identity,
            secret: row.secret,
            udp_port: row.udp_port,
            tcp_port: row.tcp_port,
            max_open: self.settings.open_max,
            value_max: VALUE_MAX,
            arguments_max: ARGUMENTS_MAX,
            fetchers: FETCHERS,
        }
    }

    fn use_client(&mut self, mut row: ClientRow, client: DurableClient) {
        (row.udp_port, row.tcp_port) = client.ports();
        *lock(&self.shared.waker) = Some(client.waker());
        (self.row, self.client) = (Some(row), Some(client));
        // Before the job is accepted: the command then asks whether a switch answers, which must not be the previous one.
        self.publish();
    }

    /// Connects to these switches, unless it is connected already. If jobs on other switches are still open, returns an error.
    fn serve(&mut self, switches: &[SocketAddr]) -> Result<(), String> {
        if let (Some(row), Some(_)) = (&self.row, &self.client) {
            if row.switches == switches {
                return Ok(());
            }
            if !self.jobs.is_empty() {
                let present: Vec<_> = row.switches.iter().map(ToString::to_string).collect();
                return Err(format!(
                    "jobs of {} have not ended, and a submitter serves one cluster at a time: use --switch {0}, wait for \
                     them, or set MIDFLIGHT_STATE to another directory",
                    present.join(",")
                ));
            }
        }
        self.new_client(switches).map_err(|error| error.to_string())
    }

    fn new_client(&mut self, switches: &[SocketAddr]) -> Result<(), midflight_host::Error> {
        let row = ClientRow {
            identity: rand::random(),
            secret: rand::random(),
            switches: switches.to_vec(),
            udp_port: 0,
            tcp_port: 0,
            saved_counters: (0, 0, 0),
            epoch: None,
        };
        let client = DurableClient::start(&self.options(&row), None, |_| None)?;
        self.use_client(row, client);
        Ok(())
    }

    pub(super) fn turn(&mut self) {
        if self.trouble.is_none() {
            self.fill();
        }
        let can_wait = self.unable.is_empty() && self.trouble.is_none();
        let mut asks: Vec<Ask> = Vec::new();
        if let Some(client) = self.client.as_mut().filter(|_| self.shared.is_asked.swap(false, Ordering::AcqRel)) {
            client.ask_switch();
        }
        match &mut self.client {
            Some(client) if !is_too_much(&self.unsaved) => {
                let happened = client.turn(if can_wait { TURN } else { TURN / 10 });
                self.unsaved.extend(happened);
            }
            Some(_) => std::thread::sleep(TURN / 10),
            None => asks.extend(self.asks.recv_timeout(TURN)),
        }
        asks.extend(self.asks.try_iter().take(ASKS_MAX));
        let is_due = self.housekept.elapsed() >= HOUSEKEEPING_INTERVAL;
        if self.unsaved.is_empty() && self.unable.is_empty() && asks.is_empty() && !is_due {
            return self.publish();
        }
        if self.trouble.is_some() {
            self.try_again();
        }
        match self.trouble.clone() {
            None => self.save(asks, is_due),
            Some(why) => {
                for ask in asks {
                    let _ = ask.answer.send(Answer::Refused(why.clone())); // the command may have gone
                }
            }
        }
        self.publish();
    }

    /// Reopens the file periodically after an error. The client runs on, or its switch would seem silent.
    fn try_again(&mut self) {
        if self.failed.elapsed() >= TURN {
            self.failed = Instant::now();
            self.trouble = self.shared.store.reopen().err().map(|error| error.to_string());
        }
    }

    fn save(&mut self, asks: Vec<Ask>, is_due: bool) {
        let mut answers = Vec::with_capacity(asks.len());
        let asks = self.prepare(asks, &mut answers);
        match self.draft(&asks, is_due) {
            Ok((effects, of_asks)) => {
                (self.trouble, self.had_trouble) = (None, false);
                if is_due {
                    self.housekept = Instant::now();
                }
                self.apply(effects);
                answers.extend(asks.into_iter().map(|ask| ask.answer).zip(of_asks));
                self.shared.announce();
            }
            Err(error) => {
                let why = error.to_string();
                if !std::mem::replace(&mut self.had_trouble, true) {
                    tracing::error!("{why}"); // once, not every second
                }
                answers.extend(asks.into_iter().map(|ask| (ask.answer, Answer::Refused(why.clone()))));
                (self.trouble, self.failed) = (Some(why), Instant::now());
            }
        }
        for (to, answer) in answers {
            let _ = to.send(answer); // the command may have gone
        }
    }

    /// Starts the client that a job needs; answers requests that cannot have one.
    fn prepare(&mut self, asks: Vec<Ask>, answers: &mut Vec<(mpsc::SyncSender<Answer>, Answer)>) -> Vec<Ask> {
        let mut ready: Vec<Ask> = Vec::with_capacity(asks.len());
        for ask in asks {
            let refused = match &ask.wish {
                Wish::Submit { switches, .. } => {
                    let other = |ask: &Ask| matches!(&ask.wish, Wish::Submit { switches: s, .. } if s != switches);
                    match ready.iter().any(other) {
                        true => Err("another cluster's job is submitted at this moment: try again".to_owned()),
                        false => self.serve(switches),
                    }
                }
                Wish::Cancel(_) | Wish::Remove(_) => Ok(()),
            };
            match refused {
                Ok(()) => ready.push(ask),
                Err(why) => answers.push((ask.answer, Answer::Refused(why))),
            }
        }
        ready
    }

    fn draft(&mut self, asks: &[Ask], is_due: bool) -> Result<(Vec<Effect>, Vec<Answer>), StoreError> {
        let removes_old = is_due && self.day.is_steady(Instant::now(), unix_ms());
        let mut draft = Draft::begin(self)?;
        for happened in &self.unsaved {
            draft.happened(happened)?;
        }
        for (at, why) in &self.unable {
            draft.unable(*at, why)?;
        }
        let mut answers = Vec::with_capacity(asks.len());
        for ask in asks {
            answers.push(match &ask.wish {
                Wish::Submit { spec, items, .. } => draft.submit(spec, items)?,
                Wish::Cancel(jobs) => draft.cancel(jobs)?,
                Wish::Remove(jobs) => draft.remove(jobs)?,
            });
        }
        if removes_old {
            draft.remove_old(unix_ms(), OLD_MAX)?;
        }
        let row = self.row.as_ref().map(|row| {
            let saved_counters = self.client.as_ref().map(DurableClient::saved_counters);
            let saved_counters = saved_counters.map_or(row.saved_counters, |saved_counters| {
                (saved_counters.sequence, saved_counters.probes, saved_counters.next_key)
            });
            let epoch = draft.epoch.or(row.epoch);
            ClientRow { saved_counters, epoch, ..row.clone() }
        });
        let effects = draft.commit(row.as_ref())?;
        self.row = row;
        Ok((effects, answers))
    }

    fn apply(&mut self, effects: Vec<Effect>) {
        self.unsaved.clear();
        self.unable.clear();
        let mut ended = Vec::new();
        for effect in effects {
            match effect {
                Effect::Job(row) if row.state.has_ended() => {
                    self.jobs.remove(&row.job);
                }
                Effect::Job(row) => match self.jobs.get_mut(&row.job) {
                    Some(active) => active.row = *row,
                    None => {
                        self.jobs.insert(row.job, Active::new(*row));
                    }
                },
                Effect::Gone(key) => {
                    ended.push(key);
                    if let Some(active) = self.job_of.remove(&key).and_then(|job| self.jobs.get_mut(&job)) {
                        active.keys.remove(&key);
                    }
                }
                Effect::Again(at) => {
                    if let Some(active) = self.jobs.get_mut(&at.job) {
                        active.again.push_back(at);
                    }
                }
                Effect::Cancelled(job) => self.cancel_tasks(job),
                Effect::Totals { next_job, stored, bytes } => {
                    (self.next_job, self.stored, self.bytes) = (next_job, stored, bytes);
                }
            }
        }
        if let Some(client) = &mut self.client {
            client.saved(&ended);
        }
    }

    fn cancel_tasks(&mut self, job: u64) {
        if let (Some(active), Some(client)) = (self.jobs.get_mut(&job), &mut self.client) {
            active.again.clear();
            client.cancel(&active.keys.keys().copied().collect::<Vec<_>>());
        }
    }

    /// Some commands of each job in turn.
    fn fill(&mut self) {
        let jobs: Vec<u64> = self.jobs.iter().filter(|(_, active)| active.may_begin()).map(|(job, _)| *job).collect();
        let start = jobs.partition_point(|job| *job <= self.turn_of);
        for place in 0..jobs.len() {
            let job = jobs[(start + place) % jobs.len()];
            if !self.begin_some(job) {
                return;
            }
            self.turn_of = job;
        }
    }

    /// `false` if the client has no room for more.
    fn begin_some(&mut self, job: u64) -> bool {
        let (Some(active), Some(client)) = (self.jobs.get(&job), &self.client) else { return true };
        let room = self.settings.open_max.saturating_sub(client.open());
        let window = (self.settings.window as usize).saturating_sub(active.keys.len());
        let count = room.min(window).min(SHARE);
        let fresh = (active.begun..active.row.count()).map(|place| Place { job, place, tries: 0 });
        let places: Vec<Place> = active.again.iter().copied().chain(fresh).take(count).collect();
        let from_again = places.len().min(active.again.len());
        let (mut ready, mut specs) = (Vec::new(), Vec::new());
        for &at in &places {
            match self.task_of(active, at) {
                Ok(spec) => {
                    ready.push(at);
                    specs.push(spec);
                }
                Err(why) => self.unable.push((at, why)),
            }
        }
        let keys = match (&mut self.client, specs.is_empty()) {
            (Some(client), false) => client.submit(job as u32, specs),
            _ => Ok(0..0),
        };
        let Some(active) = self.jobs.get_mut(&job) else { return true };
        match keys {
            Ok(keys) => {
                active.again.drain(..from_again);
                active.begun += (places.len() - from_again) as u32;
                for (key, at) in keys.zip(ready) {
                    active.keys.insert(key, at);
                    self.job_of.insert(key, job);
                }
                room > places.len()
            }
            Err(error) => {
                tracing::debug!("no room for commands of job {job}: {error}");
                self.unable.retain(|(at, _)| !places.contains(at));
                false
            }
        }
    }

    pub(super) fn place_of(&self, key: u64) -> Option<Place> {
        self.jobs.get(self.job_of.get(&key)?)?.keys.get(&key).copied()
    }

    fn publish(&self) {
        let mut published = lock(&self.shared.status);
        let (status, at) = &mut *published;
        *at = Instant::now();
        (status.answered, status.unanswered) = self.client.as_ref().map_or((None, None), DurableClient::contact);
        status.switches = self.row.as_ref().map(|row| row.switches.clone()).unwrap_or_default();
        status.open = u32::try_from(self.job_of.len()).unwrap_or(u32::MAX);
        status.bytes = self.bytes;
        status.trouble.clone_from(&self.trouble);
    }
}

fn damaged(table: &'static str, shared: &Shared) -> StoreError {
    StoreError::Row { path: shared.store.path().to_owned(), table }
}

fn is_too_much(unsaved: &[Happened]) -> bool {
    let bytes = |happened: &Happened| match happened {
        Happened::Ended(_, Ok(result)) => result.value.len(),
        _ => 0,
    };
    unsaved.len() > UNSAVED_MAX || unsaved.iter().map(bytes).sum::<usize>() > UNSAVED_BYTES_MAX
}
