//! RETRIEVE, including prefetch.

use super::Model;
use super::answers::Answers;
use super::executors::State;
use midflight_dataplane::Verdict;
use midflight_endpoint::serial::is_later;
use midflight_wire::packet;
use midflight_wire::tasks::{NoOp, Retrieve, Wait};
use std::net::SocketAddr;

enum Ahead {
    /// The executor must register the slot again.
    Void,
    Stale,
    Assigned,
    /// Got no task; prefetch waits are never parked.
    Nothing,
}

impl Model {
    pub(super) fn retrieve(
        &mut self,
        from: SocketAddr,
        retrieve: &Retrieve,
        waits: &[Wait],
        answers: &mut Answers,
    ) -> Verdict {
        let counter = retrieve.counter;
        if self.is_foreign(from, &retrieve.header, counter, answers) {
            return Verdict::ForeignEpoch;
        }
        if retrieve.ahead != 0 {
            return self.retrieve_ahead(from, retrieve, waits, answers);
        }
        let mut void = Vec::new();
        for wait in waits {
            if self.names(from, wait, counter, &mut void)
                && self.wait(wait.slot.get(), wait.sequence.get(), retrieve.resources, answers)
            {
                void.push(*wait);
            }
        }
        self.say_reset(from, counter, &void, answers);
        Verdict::Ok
    }

    /// The answer is an ASSIGN that repeats the sequence, or NO_OP for waits without a task.
    fn retrieve_ahead(
        &mut self,
        from: SocketAddr,
        retrieve: &Retrieve,
        waits: &[Wait],
        answers: &mut Answers,
    ) -> Verdict {
        let counter = retrieve.counter;
        answers.number_assigns(retrieve.header.sequence.get());
        let (mut void, mut nothing) = (Vec::new(), Vec::new());
        for wait in waits {
            if !self.names(from, wait, counter, &mut void) {
                continue;
            }
            // Waits that the only ASSIGN does not list got nothing.
            let is_full = self.blocks() > 0 && !answers.has_room_for_any();
            match self.wait_ahead(wait.slot.get(), wait.sequence.get(), retrieve.resources, is_full, answers) {
                Ahead::Void => void.push(*wait),
                Ahead::Nothing => nothing.push(*wait),
                Ahead::Stale | Ahead::Assigned => {}
            }
        }
        if answers.assigns() == 0 && !nothing.is_empty() {
            answers.answer(from, packet(&NoOp::new(self.epoch, retrieve.header.sequence.get()), &nothing));
        }
        self.say_reset(from, counter, &void, answers);
        Verdict::Ok
    }

    fn wait_ahead(&mut self, number: u32, sequence: u32, resources: u8, is_full: bool, answers: &mut Answers) -> Ahead {
        let slot = self.slots[&number].clone();
        let is_repeat = sequence == slot.sequence;
        if !is_repeat && !is_later(sequence, slot.sequence) {
            self.count(Verdict::StaleWait, 1);
            return Ahead::Stale;
        }
        if is_repeat && is_full {
            self.parked.retain(|&other| other != number);
            if matches!(slot.state, State::Waiting) {
                self.slot(number).state = State::Free { may_repeat: true };
            }
            return Ahead::Nothing;
        }
        if is_repeat && matches!(slot.state, State::Free { may_repeat: false }) {
            self.count(Verdict::StaleWait, 1);
            return Ahead::Void;
        }
        if is_repeat {
            self.count(Verdict::RepeatedWait, 1);
            if slot.task().is_some() {
                self.say_assignment(number, answers);
                return Ahead::Assigned;
            }
        } else {
            self.finish(number);
        }
        self.parked.retain(|&other| other != number);
        let slot = self.hear(number);
        slot.state = State::Free { may_repeat: true };
        slot.sequence = sequence;
        if !is_repeat {
            slot.resources = resources;
        }
        if is_full {
            return Ahead::Nothing;
        }
        match self.dequeue_first_attempt(number) {
            Some(task) => {
                self.assign(number, task, answers);
                Ahead::Assigned
            }
            None => Ahead::Nothing,
        }
    }

    /// One column of the table in `docs/internals/tasks.md`. Returns whether the executor must register the slot again.
    fn wait(&mut self, number: u32, sequence: u32, resources: u8, answers: &mut Answers) -> bool {
        let slot = &self.slots[&number];
        if sequence == slot.sequence {
            return self.repeat_wait(number, answers);
        }
        if !is_later(sequence, slot.sequence) {
            self.count(Verdict::StaleWait, 1);
            return false;
        }
        self.finish(number);
        self.wait_anew(number, sequence, resources, answers);
        false
    }

    /// Returns whether the wait is stale, so that RESET must name it.
    fn repeat_wait(&mut self, number: u32, answers: &mut Answers) -> bool {
        let slot = self.slots[&number].clone();
        if matches!(slot.state, State::Free { may_repeat: false }) {
            self.count(Verdict::StaleWait, 1);
            return true;
        }
        self.count(Verdict::RepeatedWait, 1);
        match slot.state {
            State::Free { .. } => self.wait_anew(number, slot.sequence, slot.resources, answers),
            State::Waiting => drop(self.hear(number)),
            State::Assigned(_) => self.say_assignment(number, answers),
        }
        false
    }

    fn wait_anew(&mut self, number: u32, sequence: u32, resources: u8, answers: &mut Answers) {
        let slot = self.hear(number);
        let keeps_place = matches!(slot.state, State::Waiting) && slot.resources == resources;
        slot.state = State::Waiting;
        slot.sequence = sequence;
        slot.resources = resources;
        if !keeps_place {
            self.parked.retain(|&other| other != number);
            self.parked.push(number);
        }
        if let Some(task) = self.dequeue(number) {
            self.assign(number, task, answers);
        }
    }
}
