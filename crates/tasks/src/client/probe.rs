//! PROBE: asks the switch for its epoch, and whether it still has the tasks that it has had for long.

use super::in_flight::Cancellation;
use crate::mutants::planted;
use midflight_endpoint::Nanos;
use midflight_wire::PROBE_MAX;

/// A PROBE about at most 32 tasks. Only one at a time waits for its answer, and it is repeated until the answer comes.
pub(super) struct Probe {
    /// The sequence of the last PROBE to any switch. Each PROBE, even a repeat, has a sequence of its own, from 1 on,
    /// because for a switch a copy of an old PROBE is no sign of life (T13).
    counted: u32,
    /// The sequences of the first and the last repeat of the outstanding PROBE.
    asked: Option<(u32, u32)>,
    /// The tasks that it asks about: key and current name, in the order of the packet's records.
    pub(super) tasks: Vec<Cancellation>,
    /// When it was last sent.
    sent_at: Nanos,
    /// To be sent now.
    pub(super) ready: bool,
    /// When to send the next PROBE or repeat.
    pub(super) due: Nanos,
}

impl Probe {
    /// The first PROBE, about no task, is sent at once; `counted` were sent by earlier processes of this client.
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

    /// The sequence of the last PROBE.
    pub(super) fn counted(&self) -> u32 {
        self.counted
    }

    /// The sequence of the next PROBE.
    pub(super) fn count(&mut self) -> u32 {
        self.counted = self.counted.wrapping_add(1);
        self.counted
    }

    /// Records that the PROBE is being sent, for the first time or again. Returns its sequence.
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

    /// Whether the outstanding PROBE was sent under this sequence. All its repeats name the same tasks.
    pub(super) fn is_asked_by(&self, sequence: u32) -> bool {
        self.asked.is_some_and(|(first, last)| sequence.wrapping_sub(first) <= last.wrapping_sub(first))
    }

    /// How long ago the PROBE was sent under this sequence; known only for the last one.
    pub(super) fn round_trip(&self, now: Nanos, sequence: u32) -> Option<Nanos> {
        self.asked.filter(|&(_, last)| sequence == last).map(|_| now.saturating_sub(self.sent_at))
    }

    /// The PROBE was answered.
    pub(super) fn answered(&mut self) {
        self.asked = None;
    }
}
