//! Asks the switch for its epoch, and whether it still has the tasks that have been with it for long.

use super::in_flight::Cancellation;
use crate::Nanos;

/// A question about at most 32 tasks; at most one awaits its answer, and is repeated until then.
pub(super) struct Probe {
    pub(super) sequence: u32,
    /// What the question names: each task's key and present name, in the order of the packet's records.
    pub(super) tasks: Vec<Cancellation>,
    pub(super) awaits_answer: bool,
    pub(super) sent_once: bool,
    pub(super) sent_at: Nanos,
    /// To be sent now.
    pub(super) ready: bool,
    /// When to ask next, or again.
    pub(super) due: Nanos,
}

impl Probe {
    /// The first question, about nothing, is asked at once.
    pub(super) fn new(sequence: u32, now: Nanos) -> Self {
        Self {
            sequence,
            tasks: Vec::new(),
            awaits_answer: false,
            sent_once: false,
            sent_at: now,
            ready: true,
            due: now,
        }
    }

    /// Forgets what was asked; asks anew at `due`.
    pub(super) fn restart(&mut self, due: Nanos) {
        self.tasks.clear();
        self.awaits_answer = false;
        self.ready = false;
        self.due = due;
    }
}
