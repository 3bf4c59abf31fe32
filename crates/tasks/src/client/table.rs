//! The open tasks: a slab of records, found by key or by submission name.
//!
//! A free list reuses records. Each is in at most one of three doubly linked lists, so every change of state takes constant time.

use super::TaskKey;
use crate::place::Preference;
use midflight_endpoint::Nanos;
use midflight_wire::tasks::{SUBMIT_MAX, TaskInfo, TaskName};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// Names that a task keeps; a completion under any of them counts.
const NAMES_MAX: usize = 4;
const NONE: u32 = u32::MAX;

/// One submission of a task: sequence of the SUBMIT and index in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct SubmissionName {
    pub(super) submission: u32,
    pub(super) index: u8,
}

impl SubmissionName {
    pub(super) fn on_the_wire(self) -> TaskName {
        TaskName::new(self.submission, self.index)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Waits to be sent, in [`List::Returned`] or [`List::Fresh`].
    Waiting,
    /// In an unacknowledged SUBMIT.
    Sent,
    /// Accepted by the switch, in [`List::Open`].
    Open,
    /// Completed; the driver fetches or saves its result.
    Fetching,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cancel {
    /// Run it.
    No,
    /// Do not run it, unless it runs already.
    Queued,
    /// Do not run it, or stop it.
    Stop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// To be submitted again, before `Fresh`.
    Returned = 0,
    /// To be submitted for the first time.
    Fresh = 1,
    /// Accepted by the switch, in the order of `checked_at`.
    Open = 2,
}

#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) key: u64,
    /// As sent; `attempt` counts the earlier attempts.
    pub(super) info: TaskInfo,
    /// The argument, if it is appended.
    pub(super) appended: Option<Arc<Vec<u8>>>,
    pub(super) jid: u32,
    pub(super) prefer: Option<Preference>,
    pub(super) attempts_left: u32,
    pub(super) submitted: Nanos,
    pub(super) sent: Option<Nanos>,
    /// `Nanos::MAX`: unlimited.
    pub(super) timeout: Nanos,
    pub(super) deadline: Nanos,
    /// When the switch accepted it, or was last probed about it.
    pub(super) checked_at: Nanos,
    /// Further timeouts to wait, at a switch that keeps no record.
    pub(super) patience: u8,
    pub(super) state: State,
    pub(super) retry_failed: bool,
    pub(super) cancel: Cancel,
    /// The switch no longer has it. `Client::gone` says when its completion is overdue.
    pub(super) gone: bool,
    /// An earlier process sent its current attempt, which may have ended while none was running.
    pub(super) resumed: bool,
    list: Option<List>,
    named: u8,
    names: [SubmissionName; NAMES_MAX],
    previous: u32,
    next: u32,
}

impl Record {
    pub(super) fn new(key: u64, jid: u32, info: TaskInfo, now: Nanos) -> Self {
        Self {
            key,
            info,
            appended: None,
            jid,
            prefer: None,
            attempts_left: 0,
            submitted: now,
            sent: None,
            timeout: Nanos::MAX,
            deadline: Nanos::MAX,
            checked_at: now,
            patience: 0,
            state: State::Waiting,
            retry_failed: false,
            cancel: Cancel::No,
            gone: false,
            resumed: false,
            list: None,
            named: 0,
            names: [SubmissionName::default(); NAMES_MAX],
            previous: NONE,
            next: NONE,
        }
    }

    pub(super) fn name(&self) -> Option<SubmissionName> {
        Some(self.names[usize::from(self.named.checked_sub(1)?)])
    }

    /// The latest last.
    pub(super) fn names(&self) -> &[SubmissionName] {
        &self.names[..usize::from(self.named)]
    }

    pub(super) fn key(&self) -> TaskKey {
        TaskKey(self.key)
    }

    /// Whether the switch may have it under its current name.
    pub(super) fn is_with_switch(&self) -> bool {
        matches!(self.state, State::Sent | State::Open)
    }
}

/// For numbers that the client assigns itself, so no attacker can choose colliding keys.
#[derive(Default)]
pub(super) struct CountingHasher(u64);

impl Hasher for CountingHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0.rotate_left(8) ^ u64::from(byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    /// Consecutive numbers get consecutive low bits (buckets) and well-mixed high bits (tags).
    fn write_u64(&mut self, number: u64) {
        self.0 = number ^ (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) & !0xFFFF_FFFF);
    }
}

pub(super) type CountingMap<K, V> = HashMap<K, V, BuildHasherDefault<CountingHasher>>;

struct Submission {
    records: Box<[u32]>,
    live: u8,
}

#[derive(Clone, Copy)]
struct Ends {
    head: u32,
    tail: u32,
}

pub(super) struct Table {
    records: Vec<Record>,
    free: Vec<u32>,
    lists: [Ends; 3],
    by_key: CountingMap<u64, u32>,
    submissions: CountingMap<u32, Submission>,
}

impl Table {
    pub(super) fn new() -> Self {
        Self {
            records: Vec::new(),
            free: Vec::new(),
            lists: [Ends { head: NONE, tail: NONE }; 3],
            by_key: CountingMap::default(),
            submissions: CountingMap::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Adds a task at the end of [`List::Fresh`].
    pub(super) fn insert(&mut self, record: Record) -> u32 {
        let key = record.key;
        let at = if let Some(at) = self.free.pop() {
            self.records[at as usize] = record;
            at
        } else {
            self.records.push(record);
            u32::try_from(self.records.len() - 1).expect("max_open is far below 2^32")
        };
        self.by_key.insert(key, at);
        self.append(at, List::Fresh);
        at
    }

    pub(super) fn remove(&mut self, at: u32) {
        self.unlink(at);
        let record = &mut self.records[at as usize];
        record.appended = None;
        let (names, named) = (record.names, usize::from(record.named));
        self.by_key.remove(&record.key);
        for name in &names[..named] {
            self.forget_name(*name);
        }
        self.free.push(at);
    }

    pub(super) fn get(&self, at: u32) -> &Record {
        &self.records[at as usize]
    }

    pub(super) fn get_mut(&mut self, at: u32) -> &mut Record {
        &mut self.records[at as usize]
    }

    pub(super) fn by_key(&self, key: u64) -> Option<u32> {
        self.by_key.get(&key).copied()
    }

    pub(super) fn by_key_and_name(&self, key: u64, name: SubmissionName) -> Option<u32> {
        self.by_key(key).filter(|&at| self.get(at).name() == Some(name))
    }

    pub(super) fn by_name(&self, name: SubmissionName) -> Option<u32> {
        let submission = self.submissions.get(&name.submission)?;
        submission.records.get(usize::from(name.index)).copied().filter(|&at| at != NONE)
    }

    pub(super) fn knows_submission(&self, sequence: u32) -> bool {
        self.submissions.contains_key(&sequence)
    }

    /// The tasks of a SUBMIT that wait for its response, with indices.
    pub(super) fn sent_in(&self, sequence: u32) -> impl Iterator<Item = (u8, u32)> + use<> {
        let mut waiting = [(0, NONE); SUBMIT_MAX];
        let mut count = 0;
        if let Some(submission) = self.submissions.get(&sequence) {
            for (index, &at) in (0_u8..).zip(&submission.records) {
                if at != NONE
                    && self.get(at).state == State::Sent
                    && self.get(at).name() == Some(SubmissionName { submission: sequence, index })
                {
                    waiting[count] = (index, at);
                    count += 1;
                }
            }
        }
        waiting.into_iter().take(count)
    }

    /// Adds a name; a task with too many loses the oldest.
    pub(super) fn name(&mut self, sequence: u32, records: &[u32]) {
        for (index, &at) in (0_u8..).zip(records) {
            let record = &mut self.records[at as usize];
            if usize::from(record.named) == NAMES_MAX {
                let oldest = record.names[0];
                record.names.rotate_left(1);
                record.named -= 1;
                self.forget_name(oldest);
            }
            let record = &mut self.records[at as usize];
            record.names[usize::from(record.named)] = SubmissionName { submission: sequence, index };
            record.named += 1;
        }
        let live = u8::try_from(records.len()).expect("a SUBMIT has at most 32 tasks");
        self.submissions.insert(sequence, Submission { records: records.into(), live });
    }

    /// Restores names from an earlier process; the `u8` is the number of tasks in the SUBMIT.
    pub(super) fn rename(&mut self, at: u32, names: &[(SubmissionName, u8)]) {
        for &(name, of) in names.iter().skip(names.len().saturating_sub(NAMES_MAX)) {
            let empty = || Submission { records: vec![NONE; usize::from(of)].into(), live: 0 };
            let submission = self.submissions.entry(name.submission).or_insert_with(empty);
            let Some(place) = submission.records.get_mut(usize::from(name.index)).filter(|place| **place == NONE)
            else {
                continue; // two tasks with one name: the saved state is invalid
            };
            *place = at;
            submission.live += 1;
            let record = &mut self.records[at as usize];
            record.names[usize::from(record.named)] = name;
            record.named += 1;
        }
    }

    /// The tasks of a SUBMIT; `None` if one has ended or lost this name.
    pub(super) fn tasks_of(&self, sequence: u32) -> Vec<Option<u32>> {
        let records = self.submissions.get(&sequence).map(|submission| &submission.records[..]).unwrap_or_default();
        records.iter().map(|&at| (at != NONE).then_some(at)).collect()
    }

    pub(super) fn width(&self, sequence: u32) -> u8 {
        self.submissions.get(&sequence).map_or(0, |submission| submission.records.len() as u8)
    }

    /// Removes the task's current name, which the switch never accepted.
    pub(super) fn unname(&mut self, at: u32) {
        let record = &mut self.records[at as usize];
        if let Some(name) = record.name() {
            record.named -= 1;
            self.forget_name(name);
        }
    }

    fn forget_name(&mut self, name: SubmissionName) {
        let Some(submission) = self.submissions.get_mut(&name.submission) else { return };
        submission.records[usize::from(name.index)] = NONE;
        submission.live -= 1;
        if submission.live == 0 {
            self.submissions.remove(&name.submission);
        }
    }

    pub(super) fn front(&self, list: List) -> Option<u32> {
        let head = self.lists[list as usize].head;
        (head != NONE).then_some(head)
    }

    pub(super) fn append(&mut self, at: u32, list: List) {
        self.unlink(at);
        let tail = std::mem::replace(&mut self.lists[list as usize].tail, at);
        let record = &mut self.records[at as usize];
        record.list = Some(list);
        record.previous = tail;
        if tail == NONE {
            self.lists[list as usize].head = at;
        } else {
            self.records[tail as usize].next = at;
        }
    }

    pub(super) fn unlink(&mut self, at: u32) {
        let record = &mut self.records[at as usize];
        let Some(list) = record.list.take() else { return };
        let previous = std::mem::replace(&mut record.previous, NONE);
        let next = std::mem::replace(&mut record.next, NONE);
        let ends = &mut self.lists[list as usize];
        match previous {
            NONE => ends.head = next,
            _ => self.records[previous as usize].next = next,
        }
        match next {
            NONE => ends.tail = previous,
            _ => self.records[next as usize].previous = previous,
        }
    }
}
