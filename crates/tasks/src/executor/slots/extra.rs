//! Extra tasks: second assignments to one wait. A polled switch answers even a repeated RETRIEVE, and keeps no record. A dropped
//! task would wait for its client's timeout, so the slot runs it next.

use super::{Arrival, Given, Name, Slots, State};
use crate::executor::Run;
use midflight_endpoint::Nanos;
use midflight_wire::tasks::Assignment;
use std::collections::VecDeque;
use std::sync::Arc;

/// Assigned tasks that a slot remembers, so that it runs a repeated one only once.
const REMEMBERED: usize = 8;
/// Tasks that may wait for a slot: fewer, so that each is remembered. With doubling intervals, this many responses come after
/// half a second's suspension of the switch.
const MOST: usize = REMEMBERED - 1;

/// Token, submission and index of a task.
type TaskName = (u64, u32, u8);

#[derive(Debug, Default)]
pub(super) struct ExtraTasks {
    given: [Option<TaskName>; REMEMBERED],
    next: usize,
    waiting: VecDeque<Given>,
}

fn name(assignment: &Assignment) -> TaskName {
    (assignment.token.get(), assignment.submission.get(), assignment.index)
}

impl ExtraTasks {
    pub(super) fn remember(&mut self, assignment: &Assignment) {
        self.given[self.next] = Some(name(assignment));
        self.next = (self.next + 1) % REMEMBERED;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn has_room_for(&self, assignment: &Assignment) -> bool {
        self.waiting.len() < MOST && !self.given.contains(&Some(name(assignment)))
    }
}

impl Slots {
    /// Keeps an assignment to an answered wait: that of the current run, the one before the current, or the last of a leaving
    /// slot.
    pub(in super::super) fn keep(
        &mut self,
        now: Nanos,
        epoch: u32,
        assignment: &Assignment,
        appended: Option<&[u8]>,
    ) -> Option<u32> {
        let local = self.find(Name { number: assignment.slot.get(), generation: assignment.generation.get() })?;
        let required = self.counted_of(assignment.task.resources);
        let slot = &mut self.slots[local as usize];
        let sequence = assignment.sequence.get();
        let answered = match slot.state {
            State::Running | State::Ready => sequence == slot.sequence || sequence == slot.sequence.wrapping_sub(1),
            State::Waiting => sequence == slot.sequence.wrapping_sub(1),
            // The assignment was on its way when the drain began.
            State::Leaving => sequence == slot.sequence,
            State::Unregistered | State::Idle | State::Returning | State::Gone => false,
        };
        let lacks = required & !slot.bundles.mask() != 0;
        if !answered || lacks || sequence == 0 || !slot.extra.has_room_for(assignment) {
            return None;
        }
        slot.extra.remember(assignment);
        let appended = appended.map(|bytes| Arc::new(bytes.to_vec()));
        let arrival = Arrival { appended, epoch, arrived: now, asked: slot.asked };
        slot.extra.waiting.push_back(Given { assignment: *assignment, arrival });
        Some(local)
    }

    /// Starts the next kept task of a slot if nothing runs.
    pub(in super::super) fn run_kept(&mut self, now: Nanos, local: u32) -> Option<Run> {
        let slot = self.slots.get_mut(local as usize)?;
        let is_busy = slot.state == State::Ready || (slot.state == State::Running && slot.held.is_some());
        let given = if is_busy { None } else { slot.extra.waiting.pop_front() }?;
        Some(self.begin(now, local, &given.assignment, given.arrival))
    }
}
