//! The queue: which slot gets which task.

use super::answers::Answers;
use super::clients::Client;
use super::executors::State;
use super::{Model, suffices};
use midflight_wire::{Assignment, TaskInfo};

/// A task record, queued or held by a slot.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) client: u64,
    pub(super) submission: u32,
    pub(super) index: u8,
    /// The token of its SUBMIT.
    pub(super) token: u64,
    pub(super) jid: u32,
    /// As submitted; each assignment adds 1 to `attempt`.
    pub(super) info: TaskInfo,
    /// When it was acknowledged, in nanoseconds, made strictly increasing: a smaller one is an older task.
    pub(super) accepted_ns: u64,
    /// How long it waited before its last assignment.
    pub(super) waited_us: u32,
    pub(super) was_assigned: bool,
    /// Its client has cancelled it while a slot has it: it is not assigned again.
    pub(super) is_cancelled: bool,
}

impl Model {
    /// Records in use: T7 bounds queued and assigned tasks together.
    pub(super) fn records(&self) -> usize {
        self.queued.len() + self.slots.values().filter(|slot| slot.task().is_some()).count()
    }

    pub(super) fn room(&self) -> u32 {
        self.config.queue - self.records() as u32
    }

    /// A new task goes at once to a parked slot (T6), else to the tail of its list (T3).
    pub(super) fn enqueue(&mut self, task: Task, answers: &mut Answers) {
        match self.parked_for(&task) {
            Some(number) => self.assign(number, task, answers),
            None => self.queued.push(task),
        }
    }

    /// A task that a slot lost goes at once to another, else to the head of its list (T3, T10); a cancelled one is gone.
    pub(super) fn requeue(&mut self, task: Task, answers: &mut Answers) {
        if task.is_cancelled {
            self.stats.tasks.cancelled += 1;
            return;
        }
        if let Some(number) = self.parked_for(&task) {
            return self.assign(number, task, answers);
        }
        let same_list =
            |other: &Task| other.info.priority == task.info.priority && other.info.resources == task.info.resources;
        let head = self.queued.iter().position(same_list).unwrap_or(self.queued.len());
        self.queued.insert(head, task);
    }

    /// The parked slot with the fewest resources that suffices; among equals the one that has waited longest.
    fn parked_for(&self, task: &Task) -> Option<u32> {
        self.parked
            .iter()
            .copied()
            .filter(|number| suffices(self.slots[number].resources, task.info.resources))
            .min_by_key(|number| self.slots[number].resources.count_ones())
    }

    /// The oldest head of the lists that a slot may run, at the highest level that has one (T3, T4, T5).
    pub(super) fn dequeue(&mut self, offered: u8) -> Option<Task> {
        let best = self.next_task(offered)?;
        Some(self.queued.remove(best))
    }

    /// The same, if it was never assigned: else nothing, because what was given back is not taken ahead again.
    pub(super) fn dequeue_first_attempt(&mut self, offered: u8) -> Option<Task> {
        let best = self.next_task(offered).filter(|&best| !self.queued[best].was_assigned)?;
        Some(self.queued.remove(best))
    }

    /// The place of the task that a slot gets next.
    fn next_task(&self, offered: u8) -> Option<usize> {
        let (mut lists, mut heads) = (Vec::new(), Vec::new());
        for (position, task) in self.queued.iter().enumerate() {
            let list = (task.info.priority, task.info.resources);
            if lists.contains(&list) {
                continue;
            }
            lists.push(list);
            if suffices(offered, task.info.resources) {
                heads.push(position);
            }
        }
        heads.into_iter().min_by_key(|&head| (self.queued[head].info.priority, self.queued[head].accepted_ns))
    }

    /// Gives a task to a slot.
    pub(super) fn assign(&mut self, number: u32, mut task: Task, answers: &mut Answers) {
        let waited_us = self.now.saturating_sub(task.accepted_ns) / 1000;
        task.waited_us = u32::try_from(waited_us).unwrap_or(u32::MAX);
        task.info.attempt = task.info.attempt.saturating_add(1);
        self.stats.tasks.assigned += 1;
        if !task.was_assigned {
            let bucket = (u64::BITS - waited_us.leading_zeros()) as usize;
            let last = self.stats.wait_us.len() - 1;
            self.stats.wait_us[bucket.min(last)] += 1;
            self.stats.wait_sum_us += waited_us;
        }
        task.was_assigned = true;
        self.parked.retain(|&other| other != number);
        if let Some(slot) = self.slots.get_mut(&number) {
            slot.state = State::Assigned(Box::new(task));
            slot.heard_ns = self.now; // its lease runs from here
        }
        self.say_assignment(number, answers);
    }

    /// Adds the ASSIGN for the task that the slot has.
    pub(super) fn say_assignment(&self, number: u32, answers: &mut Answers) {
        let slot = &self.slots[&number];
        let Some(task) = slot.task() else { return };
        let Some(client) = self.client_of(task) else { return };
        let assignment = Assignment {
            token: task.token.into(),
            slot: number.into(),
            generation: slot.generation.into(),
            sequence: slot.sequence.into(),
            waited_us: task.waited_us.into(),
            task: task.info,
            uid: client.uid.into(),
            jid: task.jid.into(),
            address: client.address.into(),
            submission: task.submission.into(),
            index: task.index,
            reserved: [0; 3],
        };
        answers.assign(slot.address, assignment);
    }

    /// A client with an open task is never forgotten, so it is found.
    pub(super) fn client_of(&self, task: &Task) -> Option<&Client> {
        self.clients.iter().find(|client| client.identity == task.client)
    }
}
