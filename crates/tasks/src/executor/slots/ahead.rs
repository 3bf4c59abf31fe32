//! Prefetch: waits of further slots, and returns of tasks that did not start in time. `docs/internals/tasks.md` ("Prefetch")
//! specifies the protocol.

use super::{Kind, Slots, State};
use crate::executor::{Run, RunKey};
use crate::mutants::planted;
use midflight_endpoint::Nanos;
use midflight_wire::tasks::SLOTS_MAX;

/// Bound of unanswered RETRIEVEs of prefetch waits; beyond it the oldest counts as lost.
const UNANSWERED_MAX: usize = 64;

#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    number: u32,
    sent: Nanos,
    locals: [u32; SLOTS_MAX],
    count: usize,
}

impl Asked {
    pub(super) fn new(number: u32, sent: Nanos) -> Self {
        Self { number, sent, locals: [0; SLOTS_MAX], count: 0 }
    }

    pub(super) fn push(&mut self, local: u32) {
        self.locals[self.count] = local;
        self.count += 1;
    }
}

/// Content of the response to prefetch waits.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct AnsweredAhead {
    pub(in super::super) round_trip: Nanos,
    /// Some wait got no task: the queue has no more for this executor.
    pub(in super::super) is_short: bool,
}

impl Slots {
    pub(super) fn asked(&mut self, asked: Asked) {
        if self.asked.len() == UNANSWERED_MAX {
            self.asked.pop_front();
        }
        self.asked.push_back(asked);
    }

    /// Handles the response to the prefetch waits with this number. Waits without a task become idle, unless a later packet
    /// repeated them. `is_full`: it had no room for more tasks. `None` if it is unexpected.
    pub(in super::super) fn answered_ahead(&mut self, now: Nanos, number: u32, is_full: bool) -> Option<AnsweredAhead> {
        let place = self.asked.iter().position(|asked| asked.number == number)?;
        let asked = self.asked.remove(place)?;
        let mut is_short = false;
        for &local in &asked.locals[..asked.count] {
            let slot = &self.slots[local as usize];
            if slot.state == State::Waiting && slot.asked_in == number {
                is_short = !is_full;
                self.take_rest(local);
            }
        }
        Some(AnsweredAhead { round_trip: now.saturating_sub(asked.sent), is_short })
    }

    /// Makes a registered slot idle. If its last task is done, the switch must still be told.
    pub(in super::super) fn take_rest(&mut self, local: u32) {
        self.enter(local, State::Idle);
        if self.is_ahead(local) {
            let is_told = !self.slots[local as usize].done;
            if is_told { &mut self.idle } else { &mut self.untold }.push(local);
        }
    }

    /// An idle prefetch slot, preferably one whose next wait reports its task done.
    pub(in super::super) fn next_idle(&mut self) -> Option<u32> {
        self.next_untold().or_else(|| {
            let slots = &self.slots;
            let is_idle =
                |local: &u32| slots[*local as usize].state == State::Idle && slots[*local as usize].registered;
            std::iter::from_fn(|| self.idle.pop()).find(is_idle)
        })
    }

    /// An idle prefetch slot whose last task the switch does not know to be done.
    pub(in super::super) fn next_untold(&mut self) -> Option<u32> {
        let slots = &self.slots;
        let is_untold = |local: &u32| slots[*local as usize].state == State::Idle && slots[*local as usize].done;
        std::iter::from_fn(|| self.untold.pop()).find(is_untold)
    }

    /// Reports a slot's task done, by a larger sequence, without asking for another.
    pub(in super::super) fn tell_done(&mut self, local: u32) {
        let is_untold = planted(29) && self.ordinary > 2;
        let slot = &mut self.slots[local as usize];
        slot.sequence = slot.sequence.wrapping_add(u32::from(!is_untold));
        self.give_back(local);
    }

    /// Returns a slot's task or withdraws its wait; the slot stays registered.
    pub(in super::super) fn give_back(&mut self, local: u32) {
        self.enter(local, State::Returning);
        let slot = &mut self.slots[local as usize];
        (slot.tries, slot.queued, slot.done) = (0, true, false);
        self.leaves.push_back(local);
        self.note_fewer_takers();
    }

    /// Starts the next task that is ready, if a worker is free.
    pub(in super::super) fn start_ready(&mut self, now: Nanos) -> Option<Run> {
        if self.census.working() >= self.ordinary {
            return None;
        }
        let (local, given) = self.ready.pop_front()?;
        Some(self.begin(now, local, &given.assignment, given.arrival))
    }

    pub(in super::super) fn ready(&self) -> u32 {
        self.ready.len() as u32
    }

    pub(in super::super) fn ready_since(&self) -> Option<Nanos> {
        self.ready.front().map(|(_, given)| given.arrival.arrived)
    }

    /// Returns tasks that arrived before `arrived` and have not started, the last first, so that they keep their order at the
    /// head of the switch's queue. Returns their number.
    pub(in super::super) fn give_back_before(&mut self, arrived: Nanos) -> u64 {
        let late = self.ready.iter().take_while(|(_, given)| given.arrival.arrived <= arrived).count();
        let locals: Vec<u32> = self.ready.iter().take(late).map(|(local, _)| *local).collect();
        if planted(30) && late > 4 {
            self.ready.iter_mut().take(late).for_each(|(_, given)| given.arrival.arrived = Nanos::MAX / 2); // planted bug: they may start
        } else {
            self.ready.drain(..late);
        }
        locals.iter().rev().for_each(|&local| self.give_back(local));
        late as u64
    }

    /// Start of the oldest running prefetched task that is not overdue.
    pub(in super::super) fn lent_since(&self) -> Option<Nanos> {
        self.lent.front().map(|(started, _)| *started)
    }

    /// Removes prefetched runs that have ended from the front.
    pub(in super::super) fn forget_lent(&mut self) {
        while let Some((_, run)) = self.lent.front()
            && !self.is_running(*run)
        {
            self.lent.pop_front();
        }
    }

    /// Marks prefetched runs that began before `started` as overdue.
    pub(in super::super) fn are_overdue(&mut self, started: Nanos) {
        while let Some(&(began, run)) = self.lent.front()
            && began <= started
        {
            self.lent.pop_front();
            if self.is_running(run) {
                self.slots[run.slot as usize].is_overdue = true;
                self.census.overdue += 1;
                self.note_fewer_takers();
            }
        }
    }

    fn is_running(&self, run: RunKey) -> bool {
        let slot = &self.slots[run.slot as usize];
        slot.state == State::Running && slot.run == run.run
    }

    /// A slot of this kind in this state that satisfies `is_meant`.
    pub(in super::super) fn one_in(&self, kind: Kind, state: State, is_meant: impl Fn(u32) -> bool) -> Option<u32> {
        let mut locals = if kind == Kind::Spare { self.spares() } else { self.ordinary() };
        let is_one = |&local: &u32| self.slots[local as usize].state == state && is_meant(local);
        (self.census.of(kind, state) > 0).then(|| locals.find(is_one)).flatten()
    }

    /// Prefetch slots and spares that are idle and have not asked since `before`.
    pub(in super::super) fn unused(&self, before: Nanos) -> Vec<u32> {
        let is_unused = |&local: &u32| {
            let slot = &self.slots[local as usize];
            slot.registered && slot.state == State::Idle && slot.asked <= before
        };
        (self.ordinary..self.slots.len() as u32).filter(is_unused).collect()
    }

    /// The unregistered among the first `most` prefetch slots.
    pub(in super::super) fn unregistered_ahead(&self, most: u32) -> Vec<u32> {
        let last = (self.ordinary + most).min(self.first_spare);
        let is_free = |&local: &u32| self.slots[local as usize].state == State::Unregistered;
        (self.ordinary..last).filter(is_free).collect()
    }
}
