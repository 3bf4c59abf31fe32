//! Asks the switch for its epoch, and whether it still has the tasks that have been with it for long.

use super::in_flight::Cancellation;
use crate::mutants::planted;
use midflight_endpoint::Nanos;
use midflight_wire::PROBE_MAX;

/// A question about at most 32 tasks; at most one awaits its answer, and is repeated until then.
pub(super) struct Probe {
    /// The sequence of the last PROBE, to whichever switch. Each has one of its own, repeats too, from 1 on: a switch takes a
    /// copy of one for no sign of life (T13).
    counted: u32,
    /// The sequences of the first and the last PROBE that ask the present question, while it awaits its answer.
    asked: Option<(u32, u32)>,
    /// What the question names: each task's key and present name, in the order of the packet's records.
    pub(super) tasks: Vec<Cancellation>,
    /// When the question was sent last.
    sent_at: Nanos,
    /// To be sent now.
    pub(super) ready: bool,
    /// When to ask next, or again.
    pub(super) due: Nanos,
}

impl Probe {
    /// The first question, about nothing, is asked at once.
    pub(super) fn new(now: Nanos) -> Self {
        Self { counted: 0, asked: None, tasks: Vec::new(), sent_at: now, ready: true, due: now }
    }

    /// Forgets what was asked; asks anew at `due`.
    pub(super) fn restart(&mut self, due: Nanos) {
        self.tasks.clear();
        self.asked = None;
        self.ready = false;
        self.due = due;
    }

    /// The sequence of the next PROBE.
    pub(super) fn count(&mut self) -> u32 {
        self.counted = self.counted.wrapping_add(1);
        self.counted
    }

    /// The question is being sent, for the first time or again: its sequence.
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

    /// Whether the present question was sent under this sequence: all its repeats name the same tasks.
    pub(super) fn is_asked_by(&self, sequence: u32) -> bool {
        self.asked.is_some_and(|(first, last)| sequence.wrapping_sub(first) <= last.wrapping_sub(first))
    }

    /// How long ago the question was sent under this sequence; known of the last one.
    pub(super) fn round_trip(&self, now: Nanos, sequence: u32) -> Option<Nanos> {
        self.asked.filter(|&(_, last)| sequence == last).map(|_| now.saturating_sub(self.sent_at))
    }

    /// The question was answered.
    pub(super) fn answered(&mut self) {
        self.asked = None;
    }
}
