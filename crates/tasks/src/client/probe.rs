//! PROBE: asks the switch for its epoch, and for the tasks that it has had for a while.

use super::in_flight::Cancellation;
use crate::mutants::planted;
use midflight_endpoint::Nanos;
use midflight_wire::tasks::PROBE_MAX;

/// A PROBE about at most 32 tasks. Only one is outstanding; it is repeated until answered.
pub(super) struct Probe {
    /// Sequence of the last PROBE to any switch. Each repeat has its own, from 1 on, because a switch does not take copies of old
    /// PROBEs as signs of life (T13).
    counted: u32,
    /// First and last repeat of the outstanding PROBE.
    asked: Option<(u32, u32)>,
    /// Keys and current names of its tasks, in the order of the records.
    pub(super) tasks: Vec<Cancellation>,
    sent_at: Nanos,
    pub(super) ready: bool,
    pub(super) due: Nanos,
}

impl Probe {
    /// The first PROBE names no task; earlier processes of this client sent `counted`.
    pub(super) fn new(now: Nanos, counted: u32) -> Self {
        Self { counted, asked: None, tasks: Vec::new(), sent_at: now, ready: true, due: now }
    }

    /// Drops the outstanding PROBE; the next one is sent at `due`.
    pub(super) fn restart(&mut self, due: Nanos) {
        self.tasks.clear();
        self.asked = None;
        self.ready = false;
        self.due = due;
    }

    pub(super) fn counted(&self) -> u32 {
        self.counted
    }

    pub(super) fn count(&mut self) -> u32 {
        self.counted = self.counted.wrapping_add(1);
        self.counted
    }

    /// Returns the sequence of the PROBE or repeat to send.
    pub(super) fn ask(&mut self, now: Nanos) -> u32 {
        let sequence = if planted(34) && self.tasks.len() == PROBE_MAX { self.counted } else { self.count() };
        let first = self.asked.map_or(sequence, |(first, _)| first);
        self.asked = Some((first, sequence));
        self.sent_at = now;
        self.ready = false;
        sequence
    }

    pub(super) fn awaits_answer(&self) -> bool {
        self.asked.is_some()
    }

    /// Whether the outstanding PROBE used this sequence.
    pub(super) fn is_asked_by(&self, sequence: u32) -> bool {
        self.asked.is_some_and(|(first, last)| sequence.wrapping_sub(first) <= last.wrapping_sub(first))
    }

    /// Known only for the last repeat.
    pub(super) fn round_trip(&self, now: Nanos, sequence: u32) -> Option<Nanos> {
        self.asked.filter(|&(_, last)| sequence == last).map(|_| now.saturating_sub(self.sent_at))
    }

    pub(super) fn answered(&mut self) {
        self.asked = None;
    }
}
