//! A client whose tasks outlive its process. Its driver saves under which names tasks are submitted before their SUBMIT leaves, and
//! each result before its executor may forget it; the next process of the same client goes on from there.
//! `docs/internals/jobs.md` says what follows at each step at which the process may die.

use super::in_flight::{Held, Request, SPAN_MAX};
use super::table::{Cancel, List, Name, Record, State};
use super::{Client, ClientConfig, ConfigError, Event, TaskKey};
use crate::place::Preference;
use midflight_endpoint::Nanos;
use midflight_wire::TaskInfo;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// How far a resumed client goes past the last sequence that was saved: CANCELs use sequences that are not.
const SEQUENCES_SKIPPED: u32 = 1 << 20;
/// The same of PROBEs.
const PROBES_SKIPPED: u32 = 1 << 20;

/// What a driver saves of a task that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// Which task.
    pub key: TaskKey,
    /// The job's number that it was submitted with.
    pub jid: u32,
    /// As it was sent.
    pub info: TaskInfo,
    /// Attempts that may follow.
    pub attempts_left: u32,
    /// As of [`super::Task`].
    pub retry_failed: bool,
    /// Where its next attempt prefers to run.
    pub prefer: Option<Preference>,
    /// Its last names, the present one at the end.
    pub names: Vec<SavedName>,
    /// Where it is.
    pub state: SavedState,
}

/// One submission of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedName {
    /// The SUBMIT's sequence.
    pub submission: u32,
    /// The task's place in it.
    pub index: u8,
    /// The tasks of that SUBMIT; 0 if none of them has this name any more.
    pub of: u8,
}

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedState {
    /// To be submitted: no switch has it.
    Waiting,
    /// Its SUBMIT may have been sent, and has no answer yet.
    Sent,
    /// The switch has accepted it.
    Open,
}

/// What a driver saves of the client itself, whenever it saves something, and every minute while tasks are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// The next sequence.
    pub sequence: u32,
    /// PROBEs sent so far.
    pub probes: u32,
    /// The key of the next task.
    pub next_key: u64,
}

/// What an earlier process of a client has left.
#[derive(Clone, Debug)]
pub struct Resumption {
    /// The last ones that were saved.
    pub marks: Marks,
    /// The last switch and epoch of [`Event::SwitchChanged`].
    pub switch: Option<(SocketAddr, u32)>,
    /// The tasks that had not ended.
    pub tasks: Vec<Saved>,
}

impl Client {
    /// A client that goes on where an earlier process with the same identity, secret and UDP port ended. SUBMITs without an answer are
    /// sent again as they were, so that the switch takes none twice (T8). Tasks that the switch no longer has may have ended while
    /// nobody listened: unless their completions still come, that is a failed attempt, which is repeated as [`super::Task::retry_failed`]
    /// says, and else ends as [`super::LostWhy::Forgotten`].
    ///
    /// # Errors
    /// As of [`Self::new`].
    pub fn resume(config: ClientConfig, now: Nanos, left: Resumption) -> Result<Self, ConfigError> {
        let mut client = Self::new(ClientConfig { durable: true, ..config }, now)?;
        client.next_key = left.marks.next_key;
        client.probe = super::Probe::new(now, left.marks.probes.wrapping_add(PROBES_SKIPPED));
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
        client.restore_flights(&unanswered, left.marks.sequence);
        Ok(client)
    }

    /// Puts a saved task into the table.
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
            names.map(|name| (Name { submission: name.submission, index: name.index }, name.of)).collect();
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

    /// Writes the SUBMITs again that had no answer, with their jobs, to be sent when the switch has said that it is still the same.
    /// One of which a task has ended was accepted: that the switch has the others is what PROBE asks.
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

    /// What was sent under this sequence may be with the switch.
    fn take_as_open(&mut self, sequence: u32) {
        for at in self.table.tasks_of(sequence).into_iter().flatten() {
            if self.is_sent_under(at, sequence) {
                self.table.get_mut(at).state = State::Open;
                self.table.append(at, List::Open);
            }
        }
    }

    /// Another switch answers than the one that an earlier process has left: what that one may have run is not submitted again at
    /// once. Takes these tasks out of [`List::Open`]; the caller puts them back, and PROBE finds that the new switch has none.
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

    /// The switch that answers is the one that may have the SUBMITs of the earlier process.
    pub(super) fn release_resumed(&mut self) {
        self.flights.release(Held::Resumed, self.round_trip.timeout());
    }

    /// Tells the driver of a durable client what to save of these tasks.
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
        let name = |name: &Name| SavedName {
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

    /// The driver has saved all that it was told: what waited for that may be sent.
    pub fn saved(&mut self) {
        self.unsaved = false;
        self.flights.release(Held::Unsaved, self.round_trip.timeout());
    }

    /// What to save of the client itself.
    #[must_use]
    pub fn marks(&self) -> Marks {
        Marks { sequence: self.flights.unused(), probes: self.probe.counted(), next_key: self.next_key }
    }
}
