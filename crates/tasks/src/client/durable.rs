//! A client whose tasks outlive its process. The driver saves a task's name before its SUBMIT is sent, and a result before the
//! executor may drop it; the next process resumes from this. `docs/internals/jobs.md` explains what follows from a crash at each
//! step.

use super::in_flight::{Held, Request, SPAN_MAX};
use super::table::{Cancel, List, Record, State, SubmissionName};
use super::{Client, ClientConfig, ConfigError, Event, TaskKey};
use crate::place::Preference;
use midflight_endpoint::Nanos;
use midflight_wire::tasks::TaskInfo;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Sequences skipped on resumption, because CANCELs use sequences that are not saved.
const SEQUENCES_SKIPPED: u32 = 1 << 20;
/// The same for PROBEs.
const PROBES_SKIPPED: u32 = 1 << 20;

/// Saved state of an open task.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// Key of the task.
    pub key: TaskKey,
    /// Number of its job.
    pub jid: u32,
    /// The task as it was sent.
    pub info: TaskInfo,
    /// Further attempts allowed.
    pub attempts_left: u32,
    /// As in [`super::Task`].
    pub retry_failed: bool,
    /// Placement preference of its next attempt.
    pub prefer: Option<Preference>,
    /// Its latest names, the current one last.
    pub names: Vec<SavedName>,
    /// Progress of the task.
    pub state: SavedState,
}

/// One submission of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedName {
    /// Sequence of the SUBMIT.
    pub submission: u32,
    /// Index of the task in it.
    pub index: u8,
    /// Number of tasks in that SUBMIT; 0 if none has this name any more.
    pub of: u8,
}

/// Progress of a saved task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedState {
    /// Not submitted: no switch has it.
    Waiting,
    /// Its SUBMIT may have been sent and is unanswered.
    Sent,
    /// The switch accepted it.
    Open,
}

/// State of the client itself, from which its next process continues. Saved with each `Save`, and every minute while tasks are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedCounters {
    /// The next sequence.
    pub sequence: u32,
    /// Number of PROBEs sent.
    pub probes: u32,
    /// Key of the next task.
    pub next_key: u64,
}

/// State left by an earlier process of a client.
#[derive(Clone, Debug)]
pub struct Resumption {
    /// The last saved counters.
    pub saved_counters: SavedCounters,
    /// Switch and epoch of the last [`Event::SwitchChanged`].
    pub switch: Option<(SocketAddr, u32)>,
    /// The open tasks.
    pub tasks: Vec<Saved>,
}

impl Client {
    /// Continues for an earlier process with the same identity, secret and UDP port. Repeats unanswered SUBMITs unchanged, so
    /// that the switch accepts none twice (T8). If the switch no longer has a task and no completion arrives, the attempt counts
    /// as failed: it is repeated if [`super::Task::retry_failed`] allows it, and otherwise ends as [`super::LostWhy::Forgotten`].
    ///
    /// # Errors
    /// As of [`Self::new`].
    pub fn resume(config: ClientConfig, now: Nanos, left: Resumption) -> Result<Self, ConfigError> {
        let mut client = Self::new(ClientConfig { durable: true, ..config }, now)?;
        client.next_key = left.saved_counters.next_key;
        client.probe = super::Probe::new(now, left.saved_counters.probes.wrapping_add(PROBES_SKIPPED));
        if let Some((address, epoch)) = left.switch {
            client.switches.resume(address, epoch);
        }
        let mut unanswered = BTreeMap::new();
        for saved in &left.tasks {
            let at = client.restore(now, saved);
            let record = client.table.get(at);
            if record.state == State::Sent
                && let Some(name) = record.name()
            {
                unanswered.insert(name.submission, record.jid);
            }
        }
        client.restore_flights(&unanswered, left.saved_counters.sequence);
        Ok(client)
    }

    fn restore(&mut self, now: Nanos, saved: &Saved) -> u32 {
        let mut record = Record::new(saved.key.0, saved.jid, saved.info, now);
        record.attempts_left = saved.attempts_left;
        (record.retry_failed, record.prefer) = (saved.retry_failed, saved.prefer);
        record.checked_at = 0;
        record.resumed = saved.state != SavedState::Waiting;
        self.next_key = self.next_key.max(saved.key.0 + 1);
        let at = self.table.insert(record);
        let in_full = |name: &&SavedName| name.index < name.of;
        let names = saved.names.iter().filter(in_full);
        let names: Vec<_> =
            names.map(|name| (SubmissionName { submission: name.submission, index: name.index }, name.of)).collect();
        self.table.rename(at, &names);
        let (state, list) = match saved.state {
            SavedState::Waiting => (State::Waiting, Some(List::Returned)),
            SavedState::Sent => (State::Sent, None),
            SavedState::Open => (State::Open, Some(List::Open)),
        };
        self.table.get_mut(at).state = state;
        match list {
            Some(list) => self.table.append(at, list),
            None => self.table.unlink(at),
        }
        at
    }

    /// Rebuilds unanswered SUBMITs, given with their jobs, to send once the switch has confirmed its epoch. If a task of one has
    /// ended, the SUBMIT was accepted, and PROBE asks for its other tasks.
    fn restore_flights(&mut self, unanswered: &BTreeMap<u32, u32>, next: u32) {
        let newest_first = |sequence: &u32| next.wrapping_sub(*sequence);
        let mut sequences: Vec<u32> = unanswered.keys().copied().collect();
        sequences.sort_by_key(newest_first);
        let whole = |sequence: &u32| {
            let tasks = self.table.tasks_of(*sequence);
            let is_sent = |at: &Option<u32>| at.is_some_and(|at| self.is_sent_under(at, *sequence));
            (newest_first(sequence) as usize <= SPAN_MAX && tasks.iter().all(is_sent)).then_some(*sequence)
        };
        let flights: Vec<u32> = sequences.iter().filter_map(whole).collect();
        for sequence in sequences.into_iter().filter(|sequence| !flights.contains(sequence)) {
            self.take_as_open(sequence);
        }
        let base = flights.last().copied().unwrap_or(next);
        let length = flights.first().map_or(0, |newest| newest.wrapping_sub(base) + 1);
        let packets = (0..length).map(|place| {
            let sequence = base.wrapping_add(place);
            let jid = unanswered.get(&sequence).filter(|_| flights.contains(&sequence))?;
            let records: Vec<u32> = self.table.tasks_of(sequence).into_iter().flatten().collect();
            let mut packet = Vec::new();
            let count = self.build_submit(sequence, *jid, &records, &mut packet);
            Some((packet, Request::Submit { count, unwanted: Vec::new() }))
        });
        let packets = packets.collect();
        self.flights.resume(base, packets, next.wrapping_add(SEQUENCES_SKIPPED));
    }

    fn is_sent_under(&self, at: u32, sequence: u32) -> bool {
        let record = self.table.get(at);
        record.state == State::Sent && record.name().is_some_and(|name| name.submission == sequence)
    }

    fn take_as_open(&mut self, sequence: u32) {
        for at in self.table.tasks_of(sequence).into_iter().flatten() {
            if self.is_sent_under(at, sequence) {
                self.table.get_mut(at).state = State::Open;
                self.table.append(at, List::Open);
            }
        }
    }

    /// Another switch answers than the saved one, whose executors may have run tasks. Takes these out of [`List::Open`], so that
    /// they are not submitted again at once. The caller puts them back, and PROBE finds them gone.
    pub(super) fn keep_resumed(&mut self) -> Vec<u32> {
        for sequence in self.flights.held(Held::Resumed) {
            self.flights.take(sequence);
            self.take_as_open(sequence);
        }
        let mut resumed = Vec::new();
        let mut others = Vec::new();
        while let Some(at) = self.table.front(List::Open) {
            self.table.unlink(at);
            let record = self.table.get_mut(at);
            if record.resumed && record.cancel == Cancel::No {
                (record.gone, record.checked_at) = (false, 0);
                resumed.push(at);
            } else {
                others.push(at);
            }
        }
        others.into_iter().for_each(|at| self.table.append(at, List::Open));
        resumed
    }

    /// The saved switch answers: sends the SUBMITs of the earlier process.
    pub(super) fn release_resumed(&mut self) {
        self.flights.release(Held::Resumed, self.round_trip.timeout());
    }

    pub(super) fn save(&mut self, records: &[u32]) {
        if !self.config.durable || records.is_empty() {
            return;
        }
        let saved = records.iter().map(|&at| self.saved_of(at)).collect();
        self.events.push_back(Event::Save(saved));
        self.unsaved = true;
    }

    fn saved_of(&self, at: u32) -> Saved {
        let record = self.table.get(at);
        let name = |name: &SubmissionName| SavedName {
            submission: name.submission,
            index: name.index,
            of: self.table.width(name.submission),
        };
        Saved {
            key: record.key(),
            jid: record.jid,
            info: record.info,
            attempts_left: record.attempts_left,
            retry_failed: record.retry_failed,
            prefer: record.prefer,
            names: record.names().iter().map(name).collect(),
            state: match record.state {
                State::Waiting => SavedState::Waiting,
                State::Sent => SavedState::Sent,
                State::Open | State::Fetching => SavedState::Open,
            },
        }
    }

    /// The driver has saved everything: sends what waited for it.
    pub fn saved(&mut self) {
        self.unsaved = false;
        self.flights.release(Held::Unsaved, self.round_trip.timeout());
    }

    /// The state of the client itself to save.
    #[must_use]
    pub fn saved_counters(&self) -> SavedCounters {
        SavedCounters { sequence: self.flights.unused(), probes: self.probe.counted(), next_key: self.next_key }
    }
}
