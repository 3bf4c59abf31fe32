//! Second answers to one wait. A switch that is polled answers each RETRIEVE that it hears, the repeated ones too, and forgets
//! what it gives: nobody else would run the second task before its client's time-out. So the slot runs it next.

use super::{Given, Name, Slots, State};
use crate::executor::Run;
use midflight_endpoint::Nanos;
use midflight_wire::Assignment;
use std::collections::VecDeque;

/// Tasks that a slot remembers to have been given, so that one that comes twice is run once.
const REMEMBERED: usize = 8;
/// Tasks that may wait for a slot: fewer, so that each of them is remembered. Repeats double, so these are the answers of a
/// switch that stood still for half a second.
const MOST: usize = REMEMBERED - 1;

/// A task by its token, submission and index.
type TaskName = (u64, u32, u8);

#[derive(Debug, Default)]
pub(super) struct Surplus {
    given: [Option<TaskName>; REMEMBERED],
    /// Where the next one is remembered.
    next: usize,
    waiting: VecDeque<Given>,
}

fn name(assignment: &Assignment) -> TaskName {
    (assignment.token.get(), assignment.submission.get(), assignment.index)
}

impl Surplus {
    pub(super) fn remember(&mut self, assignment: &Assignment) {
        self.given[self.next] = Some(name(assignment));
        self.next = (self.next + 1) % REMEMBERED;
    }

    fn has_room_for(&self, assignment: &Assignment) -> bool {
        self.waiting.len() < MOST && !self.given.contains(&Some(name(assignment)))
    }
}

impl Slots {
    /// Keeps an assignment to a wait that was answered: that of the present run, or the one before a present wait; or to
    /// the last wait of a slot that leaves. Says which slot is to run it.
    pub(in super::super) fn keep(&mut self, now: Nanos, epoch: u32, assignment: &Assignment) -> Option<u32> {
        let local = self.find(Name { number: assignment.slot.get(), generation: assignment.generation.get() })?;
        let slot = &mut self.slots[local as usize];
        let sequence = assignment.sequence.get();
        let answered = match slot.state {
            State::Running => sequence == slot.sequence || sequence == slot.sequence.wrapping_sub(1),
            State::Waiting => sequence == slot.sequence.wrapping_sub(1),
            // It was on its way when the slot was told to leave.
            State::Leaving => sequence == slot.sequence,
            State::Unregistered | State::Gone => false,
        };
        if !answered || sequence == 0 || !slot.surplus.has_room_for(assignment) {
            return None;
        }
        slot.surplus.remember(assignment);
        slot.surplus.waiting.push_back(Given { assignment: *assignment, epoch, arrived: now, asked: slot.asked });
        Some(local)
    }

    /// Runs what was kept for a slot, if anything was and nothing runs.
    pub(in super::super) fn run_kept(&mut self, local: u32) -> Option<Run> {
        let slot = self.slots.get_mut(local as usize)?;
        let is_busy = slot.state == State::Running && slot.held.is_some();
        let given = if is_busy { None } else { slot.surplus.waiting.pop_front() }?;
        Some(self.begin(local, &given))
    }
}
