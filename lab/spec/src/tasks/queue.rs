//! The queue: which slot gets which task.

use super::answers::Answers;
use super::clients::Client;
use super::executors::State;
use super::tick::{OUT_MAX, TICK_WISHES};
use super::{Model, suffices};
use midflight_dataplane::WAIT_BUCKETS;
use midflight_wire::tasks::{APPENDED, Assignment, PATIENCE_MAX, TaskInfo};

/// The placement preference of a queued task (T19).
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) place: u32,
    /// How long it waits for the place: a power of two.
    pub(super) patience_ms: u64,
}

impl Wish {
    /// From the fields of a SUBMIT.
    pub(super) fn new(place: u32, patience_ms: u32) -> Self {
        let patience_ms = if patience_ms == 0 { 0 } else { patience_ms.min(PATIENCE_MAX).next_power_of_two() };
        Self { place, patience_ms: patience_ms.into() }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) client: u64,
    pub(super) submission: u32,
    pub(super) index: u8,
    pub(super) token: u64,
    pub(super) jid: u32,
    /// As submitted; each assignment adds 1 to `attempt`.
    pub(super) info: TaskInfo,
    /// The argument if it is appended, with its padding.
    pub(super) appended: Vec<u8>,
    /// When it was acknowledged, in nanoseconds, strictly increasing: a smaller value is an older task.
    pub(super) accepted_ns: u64,
    /// How long it waited before its last assignment.
    pub(super) waited_us: u32,
    pub(super) assigned_ns: u64,
    pub(super) was_assigned: bool,
    /// `None`: may go anywhere.
    pub(super) wish: Option<Wish>,
    /// Cancelled while assigned, so it is not assigned again.
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

    /// Assigns a new task to a slot parked at its place, or queues it for that place (T19).
    pub(super) fn accept_at_place(&mut self, mut task: Task, wish: Wish, answers: &mut Answers) {
        if let Some(number) = self.parked_at(&task, Some(wish.place)) {
            self.stats.tasks.at_place += 1;
            self.assign(number, task, answers);
        } else if wish.patience_ms == 0 {
            self.stats.tasks.out_of_patience += 1;
            self.enqueue(task, answers);
        } else {
            task.wish = Some(wish);
            self.queued.push(task);
        }
    }

    /// Lets tasks whose patience has run out go anywhere, in order of expiry. Leaves half of a tick's datagrams to
    /// expired leases.
    pub(super) fn run_out_of_patience(&mut self, answers: &mut Answers) {
        let ends_ns = |task: &Task| task.wish.map(|wish| task.accepted_ns + wish.patience_ms * 1_000_000);
        let mut due: Vec<_> = self
            .queued
            .iter()
            .filter_map(|task| ends_ns(task).filter(|&ns| ns <= self.now).map(|ns| (ns, task.wish, task.accepted_ns)))
            .collect();
        due.sort_unstable_by_key(|&(ns, wish, _)| (ns, wish.map(|wish| wish.patience_ms)));
        for (_, _, accepted_ns) in due.into_iter().take(TICK_WISHES) {
            if answers.assigns() == OUT_MAX / 2 {
                break;
            }
            let at = self.queued.iter().position(|task| task.accepted_ns == accepted_ns).expect("it is queued");
            let task = Task { wish: None, ..self.queued.remove(at) };
            self.stats.tasks.out_of_patience += 1;
            self.enqueue(task, answers);
        }
    }

    /// Assigns a task without a place to a parked slot (T6), or appends it to its list (T3).
    pub(super) fn enqueue(&mut self, task: Task, answers: &mut Answers) {
        match self.parked_at(&task, None) {
            Some(number) => self.assign(number, task, answers),
            None => self.queued.push(task),
        }
    }

    /// Assigns a task that a slot lost to another slot, or drops it if unwanted. Otherwise returns it.
    pub(super) fn offer(&mut self, task: Task, answers: &mut Answers) -> Option<Task> {
        if task.is_cancelled || self.is_unwanted(&task) {
            self.stats.tasks.cancelled += 1;
            return None;
        }
        match self.parked_at(&task, None) {
            Some(number) => self.assign(number, task, answers),
            None => return Some(task),
        }
        None
    }

    /// Whether its client was given up or purged (T14).
    pub(super) fn is_unwanted(&self, task: &Task) -> bool {
        self.client_of(task).is_some_and(|client| client.unwanted_ns.is_some_and(|until| task.accepted_ns <= until))
    }

    /// Puts a returned task at the head of its list (T3, T10).
    pub(super) fn queue_again(&mut self, task: Task) {
        let list = list_of(&task);
        let head = self.queued.iter().position(|other| list_of(other) == list).unwrap_or(self.queued.len());
        self.queued.insert(head, task);
    }

    /// The parked slot, at a place or anywhere, with the fewest resources that suffice. Tie-break: the longest wait.
    fn parked_at(&self, task: &Task, place: Option<u32>) -> Option<u32> {
        self.parked
            .iter()
            .copied()
            .filter(|number| place.is_none_or(|place| self.slots[number].places.contains(&place)))
            .filter(|number| suffices(self.slots[number].resources, task.info.resources))
            .min_by_key(|number| self.slots[number].resources.count_ones())
    }

    /// The oldest list head that a slot may run, at the highest level that has one (T3, T4, T5).
    pub(super) fn dequeue(&mut self, number: u32) -> Option<Task> {
        let best = self.next_task(number)?;
        Some(self.take_at(best))
    }

    /// [`dequeue`](Self::dequeue) if that task was never assigned: a returned task is not prefetched again.
    pub(super) fn dequeue_first_attempt(&mut self, number: u32) -> Option<Task> {
        let best = self.next_task(number).filter(|&best| !self.queued[best].was_assigned)?;
        Some(self.take_at(best))
    }

    fn take_at(&mut self, position: usize) -> Task {
        let mut task = self.queued.remove(position);
        self.stats.tasks.at_place += u64::from(task.wish.take().is_some());
        task
    }

    fn next_task(&self, number: u32) -> Option<usize> {
        let slot = &self.slots[&number];
        let (mut lists, mut heads) = (Vec::new(), Vec::new());
        for (position, task) in self.queued.iter().enumerate() {
            let list = list_of(task);
            if lists.contains(&list) {
                continue;
            }
            lists.push(list);
            let is_here = task.wish.is_none_or(|wish| slot.places.contains(&wish.place));
            if is_here && suffices(slot.resources, task.info.resources) {
                heads.push(position);
            }
        }
        heads.into_iter().min_by_key(|&head| (self.queued[head].info.priority, self.queued[head].accepted_ns))
    }

    pub(super) fn assign(&mut self, number: u32, mut task: Task, answers: &mut Answers) {
        let waited_us = self.now.saturating_sub(task.accepted_ns) / 1000;
        task.waited_us = u32::try_from(waited_us).unwrap_or(u32::MAX);
        task.info.attempt = task.info.attempt.saturating_add(1);
        self.stats.tasks.assigned += 1;
        if !task.was_assigned {
            self.stats.wait_us[bucket_of(waited_us)] += 1;
            self.stats.wait_sum_us += waited_us;
        }
        task.was_assigned = true;
        task.assigned_ns = self.now;
        self.parked.retain(|&other| other != number);
        if let Some(slot) = self.slots.get_mut(&number) {
            slot.state = State::Assigned(Box::new(task));
            slot.heard_ns = self.now; // the lease starts here
        }
        self.say_assignment(number, answers);
    }

    pub(super) fn finish(&mut self, number: u32) {
        let Some(task) = self.slots[&number].task() else { return };
        let run_us = self.now.saturating_sub(task.assigned_ns) / 1000;
        self.stats.run_us[bucket_of(run_us)] += 1;
        self.stats.run_sum_us += run_us;
        self.stats.tasks.completed += 1;
    }

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
            task: sent_info(task),
            uid: client.uid.into(),
            jid: task.jid.into(),
            address: client.address.into(),
            submission: task.submission.into(),
            index: task.index,
            reserved: [0; 3],
        };
        answers.assign(slot.address, assignment, &task.appended);
    }

    /// Always found: a client with an open task is never forgotten.
    pub(super) fn client_of(&self, task: &Task) -> Option<&Client> {
        self.clients.iter().find(|client| client.identity == task.client)
    }
}

/// As in an ASSIGN: the switch keeps a number of its own in four reserved bytes of an appended argument's record.
fn sent_info(task: &Task) -> TaskInfo {
    let mut info = task.info;
    if info.argument_length == APPENDED {
        info.argument[4..8].fill(0);
    }
    info
}

/// Histogram bucket: 0 below 1 µs, b from 2^(b-1) to 2^b µs.
fn bucket_of(us: u64) -> usize {
    ((u64::BITS - us.leading_zeros()) as usize).min(WAIT_BUCKETS - 1)
}

/// The list of a queued task: by level and mask, or by level and place.
fn list_of(task: &Task) -> (u8, Result<u8, u32>) {
    (task.info.priority, task.wish.map_or(Ok(task.info.resources), |wish| Err(wish.place)))
}
