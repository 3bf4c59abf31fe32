//! One transaction of the submitter. Its effects in memory follow once it is on disk.

use super::server::no_job;
use super::submitter_loop::SubmitterLoop;
use super::task::{Place, ended, task};
use super::unix_ms;
use crate::kept::{Change, ClientRow, OpenRow, Page, SentRow, StoreError};
use crate::model::{After, EndedRow, How, JobRow, JobSpec, JobState, When};
use crate::protocol::Answer;
use midflight_host::Happened;
use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;

const JOBS_MAX: u64 = 1 << 20;

/// A change in memory that follows the transaction.
pub(super) enum Effect {
    Job(Box<JobRow>),
    Gone(u64),
    Again(Place),
    Cancelled(u64),
    Totals { next_job: u64, stored: u64, bytes: u64 },
}

pub(super) struct Draft<'a> {
    submitter: &'a SubmitterLoop,
    change: Change<'a>,
    rows: BTreeMap<u64, JobRow>,
    gone: HashSet<u64>,
    effects: Vec<Effect>,
    next_job: u64,
    stored: u64,
    bytes: u64,
    now: u64,
    /// The switch that answers, if it has changed.
    pub(super) epoch: Option<(SocketAddr, u32)>,
}

impl<'a> Draft<'a> {
    pub(super) fn begin(submitter: &'a SubmitterLoop) -> Result<Self, StoreError> {
        Ok(Self {
            submitter,
            change: submitter.shared.store.change()?,
            rows: BTreeMap::new(),
            gone: HashSet::new(),
            effects: Vec::new(),
            next_job: submitter.next_job,
            stored: submitter.stored,
            bytes: submitter.bytes,
            now: unix_ms(),
            epoch: None,
        })
    }

    pub(super) fn commit(mut self, client: Option<&ClientRow>) -> Result<Vec<Effect>, StoreError> {
        if let Some(client) = client {
            self.change.put_meta("client", client)?;
        }
        if self.next_job != self.submitter.next_job {
            self.change.put_meta("next_job", &self.next_job)?;
        }
        for row in self.rows.values() {
            self.change.put_job(row)?;
        }
        self.change.commit()?;
        let Self { rows, effects, next_job, stored, bytes, .. } = self;
        // Active jobs come first, because the other effects refer to them; ended jobs last, because they drop their tasks.
        let (ended, active): (Vec<_>, Vec<_>) = rows.into_values().partition(|row| row.state.has_ended());
        let jobs = |rows: Vec<JobRow>| rows.into_iter().map(|row| Effect::Job(Box::new(row)));
        let totals = Effect::Totals { next_job, stored, bytes };
        Ok(jobs(active).chain(effects).chain(jobs(ended)).chain([totals]).collect())
    }

    fn active_row_mut(&mut self, job: u64) -> Option<&mut JobRow> {
        if !self.rows.contains_key(&job) {
            let row = self.submitter.jobs.get(&job)?.row.clone();
            self.rows.insert(job, row);
        }
        self.rows.get_mut(&job)
    }

    /// Any job, as it is in this transaction.
    fn job(&self, job: u64) -> Result<Option<JobRow>, StoreError> {
        if let Some(row) = self.rows.get(&job) {
            return Ok(Some(row.clone()));
        }
        match self.submitter.jobs.get(&job) {
            Some(active) => Ok(Some(active.row.clone())),
            None => self.submitter.shared.store.job(job),
        }
    }

    pub(super) fn happened(&mut self, happened: &Happened) -> Result<(), StoreError> {
        match happened {
            Happened::Switch(address, epoch) => self.epoch = Some((*address, *epoch)),
            Happened::Save(tasks) => {
                for saved in tasks {
                    let Some(at) = self.submitter.place_of(saved.key.0) else { continue };
                    if !self.gone.contains(&saved.key.0) {
                        self.begin_command(at)?;
                        let row = OpenRow { tries: at.tries, sent: Some(SentRow::of(saved)) };
                        self.change.put_open(at.job, at.place, &row)?;
                    }
                }
            }
            Happened::Ended(key, outcome) => {
                let Some(at) = self.submitter.place_of(*key) else {
                    self.effects.push(Effect::Gone(*key)); // of a job that has ended: cancelled before it was saved
                    return Ok(());
                };
                if !self.gone.insert(*key) {
                    return Ok(());
                }
                self.effects.push(Effect::Gone(*key));
                let Some(row) = self.active_row_mut(at.job) else { return Ok(()) };
                if at.place >= row.next {
                    return Ok(()); // cancelled before it was saved: counted with those that were not begun
                }
                let spec = row.spec.clone();
                let (row, outputs) = ended(&spec, at.tries, outcome.clone());
                self.command_ended(at, row, &outputs)?;
            }
        }
        Ok(())
    }

    pub(super) fn unable(&mut self, at: Place, why: &str) -> Result<(), StoreError> {
        self.begin_command(at)?;
        self.command_ended(at, EndedRow::without_result(How::Failed, why, u32::MAX), &[])
    }

    fn begin_command(&mut self, at: Place) -> Result<(), StoreError> {
        let now = self.now;
        let Some(row) = self.active_row_mut(at.job) else { return Ok(()) };
        if at.place >= row.next {
            row.next = at.place + 1;
            row.open += 1;
            row.begun.get_or_insert(now);
        }
        Ok(())
    }

    fn command_ended(&mut self, at: Place, mut ended: EndedRow, outputs: &[u8]) -> Result<(), StoreError> {
        let (bytes_max, bytes) = (self.submitter.settings.bytes_max, self.bytes);
        let Some(row) = self.active_row_mut(at.job) else { return Ok(()) };
        let has_failed = matches!(ended.how, How::Failed | How::TimedOut | How::Lost);
        if has_failed && ended.tries < row.spec.retries && !row.cancel {
            let again = Place { tries: at.tries + 1, ..at };
            self.change.put_open(at.job, at.place, &OpenRow { tries: again.tries, sent: None })?;
            self.effects.push(Effect::Again(again));
            return Ok(());
        }
        ended.tries = at.tries;
        if bytes + outputs.len() as u64 > bytes_max {
            ended.kept = false;
            row.left_out += 1;
        }
        let kept = if ended.kept { outputs } else { &[] };
        row.bytes += kept.len() as u64;
        row.open -= 1;
        let count = match ended.how {
            How::Succeeded => &mut row.counts.succeeded,
            How::Failed | How::TimedOut => &mut row.counts.failed,
            How::Lost => &mut row.counts.lost,
            How::Cancelled => &mut row.counts.cancelled,
        };
        *count += 1;
        self.bytes += kept.len() as u64;
        self.change.remove_open(at.job, at.place)?;
        self.change.put_ended(at.job, at.place, &ended)?;
        if !kept.is_empty() {
            self.change.put_outputs(at.job, at.place, kept)?;
        }
        self.end_if_done(at.job)
    }

    fn end_if_done(&mut self, job: u64) -> Result<(), StoreError> {
        let Some(row) = self.active_row_mut(job) else { return Ok(()) };
        if row.state.has_ended() || row.open > 0 || (row.next < row.count() && !row.cancel) {
            return Ok(());
        }
        let state = match (row.cancel, row.counts.succeeded == row.count()) {
            (_, true) => JobState::Succeeded,
            (true, _) => JobState::Cancelled,
            _ => JobState::Failed,
        };
        self.end_job(job, state);
        Ok(())
    }

    /// Ends a job; begins or skips the jobs that wait for it, recursively.
    fn end_job(&mut self, job: u64, state: JobState) {
        let now = self.now;
        let mut ended = vec![(job, state)];
        while let Some((job, state)) = ended.pop() {
            let Some(row) = self.active_row_mut(job) else { continue };
            (row.state, row.ended) = (state, Some(now));
            let waits = |row: &JobRow| row.state == JobState::Waiting && row.spec.after.iter().any(|a| a.job == job);
            let known = self.submitter.jobs.values().map(|active| &active.row);
            let mut waiting: Vec<u64> = known.filter(|row| waits(row)).map(|row| row.job).collect();
            waiting.extend(self.rows.values().filter(|row| waits(row)).map(|row| row.job));
            waiting.sort_unstable();
            waiting.dedup();
            for other in waiting {
                let Some(row) = self.active_row_mut(other) else { continue };
                if row.state != JobState::Waiting {
                    continue;
                }
                // Other dependencies are checked when they end; those that have ended did not skip the job.
                let mine: Vec<When> = row.spec.after.iter().filter(|a| a.job == job).map(|a| a.when).collect();
                if mine.iter().any(|when| !suits(*when, state)) {
                    ended.push((other, JobState::Skipped));
                    continue;
                }
                let after = row.spec.after.clone();
                if after.iter().all(|after| self.has_ended(after.job)) {
                    self.begin_job(other);
                }
            }
        }
    }

    /// A removed job had ended.
    fn has_ended(&self, job: u64) -> bool {
        match (self.rows.get(&job), self.submitter.jobs.get(&job)) {
            (Some(row), _) => row.state.has_ended(),
            (None, Some(active)) => active.row.state.has_ended(),
            (None, None) => true,
        }
    }

    fn begin_job(&mut self, job: u64) {
        if let Some(row) = self.active_row_mut(job) {
            row.state = JobState::Running;
        }
    }

    pub(super) fn submit(&mut self, spec: &JobSpec, items: &[Vec<u8>]) -> Result<Answer, StoreError> {
        let bytes = (spec.argument.len() + items.iter().map(Vec::len).sum::<usize>()) as u64;
        if let Err(why) = self.check(spec, items, bytes) {
            return Ok(Answer::Refused(why));
        }
        let mut state = JobState::Running;
        for &After { job, when } in &spec.after {
            let Some(other) = self.job(job)? else { return Ok(no_job(job)) };
            state = match (state, other.state.has_ended()) {
                (JobState::Skipped, _) => state,
                (_, true) if !suits(when, other.state) => JobState::Skipped,
                (_, true) => state,
                (_, false) => JobState::Waiting,
            };
        }
        let job = self.next_job;
        self.next_job += 1;
        self.stored += 1;
        self.bytes += bytes;
        let row = JobRow {
            job,
            spec: spec.clone(),
            state,
            next: 0,
            open: 0,
            counts: crate::model::Counts::default(),
            cancel: false,
            submitted: self.now,
            begun: None,
            ended: state.has_ended().then_some(self.now),
            bytes,
            left_out: 0,
        };
        self.rows.insert(job, row);
        for (place, item) in (0..).zip(items) {
            self.change.put_item(job, place, item)?;
        }
        Ok(Answer::Submitted { job, state })
    }

    fn check(&self, spec: &JobSpec, items: &[Vec<u8>], bytes: u64) -> Result<(), String> {
        spec.check()?;
        if spec.has_items && items.len() != spec.count() as usize {
            return Err(format!("{} command lines came for {} commands", items.len(), spec.count()));
        }
        if self.stored >= JOBS_MAX {
            return Err(format!("the store has {JOBS_MAX} jobs: remove some (`midflight job remove`)"));
        }
        let bytes_max = self.submitter.settings.bytes_max;
        if self.bytes + bytes > bytes_max {
            return Err(format!(
                "the store has {} of {bytes_max} bytes, and this job has {bytes}: remove jobs (`midflight job remove`), or \
                 raise --store-max of `midflight submitter`",
                self.bytes
            ));
        }
        let at = |place| Place { job: u64::MAX, place, tries: 0 };
        match spec.has_items {
            false => task(spec, at(0), None).map(|_| ()),
            true => (0..).zip(items).try_for_each(|(place, item)| match task(spec, at(place), Some(item.clone())) {
                Ok(_) => Ok(()),
                Err(why) => Err(format!("command {}: {why}", place + 1)),
            }),
        }
    }

    pub(super) fn cancel(&mut self, jobs: &[u64]) -> Result<Answer, StoreError> {
        for &job in jobs {
            if self.job(job)?.is_none() {
                return Ok(no_job(job));
            }
        }
        for &job in jobs {
            let Some(row) = self.active_row_mut(job).filter(|row| !row.cancel && !row.state.has_ended()) else {
                continue;
            };
            row.cancel = true;
            row.counts.cancelled += row.count() - row.next;
            let submitter = self.submitter;
            for at in submitter.jobs.get(&job).into_iter().flat_map(|active| active.waiting_again()) {
                self.command_ended(at, EndedRow::without_result(How::Cancelled, "", at.tries), &[])?;
            }
            self.effects.push(Effect::Cancelled(job));
            self.end_if_done(job)?;
        }
        Ok(Answer::Done)
    }

    pub(super) fn remove(&mut self, jobs: &[u64]) -> Result<Answer, StoreError> {
        let mut rows = Vec::new();
        for &job in jobs {
            match self.job(job)? {
                None => return Ok(no_job(job)),
                Some(row) if !row.state.has_ended() => {
                    return Ok(Answer::Refused(format!(
                        "job {job} has not ended: cancel it first (`midflight job cancel {job}`), then wait for it"
                    )));
                }
                // A job that ends in this transaction is written at its end.
                Some(_) if self.rows.contains_key(&job) => {
                    return Ok(Answer::Refused(format!("job {job} ends at this moment: try again")));
                }
                Some(row) => rows.push(row),
            }
        }
        rows.sort_by_key(|row| row.job);
        rows.dedup_by_key(|row| row.job);
        rows.iter().try_for_each(|row| self.forget(row))?;
        Ok(Answer::Done)
    }

    fn forget(&mut self, row: &JobRow) -> Result<(), StoreError> {
        self.stored = self.stored.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(row.bytes);
        self.change.remove_job(row.job)
    }

    /// Removes at most `most` jobs that ended long ago.
    pub(super) fn remove_old(&mut self, now: u64, most: usize) -> Result<(), StoreError> {
        let keep = u64::try_from(self.submitter.settings.keep.as_millis()).unwrap_or(u64::MAX);
        let Some(before) = now.checked_sub(keep) else { return Ok(()) };
        let rows = self.submitter.shared.store.jobs(0, Page { rows: most, bytes: usize::MAX })?;
        let is_old = |row: &&JobRow| row.ended.is_some_and(|ended| ended < before) && !self.rows.contains_key(&row.job);
        let old: Vec<JobRow> = rows.iter().filter(is_old).cloned().collect();
        old.iter().try_for_each(|row| self.forget(row))
    }
}

fn suits(when: When, state: JobState) -> bool {
    match when {
        When::Succeeded => state == JobState::Succeeded,
        When::Ended => true,
        When::Failed => state == JobState::Failed,
    }
}
