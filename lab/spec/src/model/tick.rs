//! What silent clients and executors lose (T10, T14), and what the operator purges. Only ticks let something expire.

use super::answers::Answers;
use super::executors::{Slot, State};
use super::queue::Task;
use super::{Model, suffices};
use midflight_dataplane::{Datagram, Which};
use midflight_wire::{DURABLE, Host};

/// How many tasks one tick lets go anywhere at most, of those whose patience has run out.
pub(super) const TICK_WISHES: usize = 1024;
/// How many slots one tick visits at most.
const TICK_SLOTS: u32 = 1024;
/// How many clients one tick visits at most.
const TICK_CLIENTS: usize = 64;
/// How many datagrams one call may send.
pub(super) const OUT_MAX: usize = 36;

impl Model {
    /// Visits the next slots, the next clients and all queued tasks, and removes what belongs to somebody silent for too
    /// long. Returns how many slots it visited.
    pub fn tick(&mut self, now_ns: u64) -> (u32, Vec<Datagram>) {
        self.now = now_ns;
        self.notice_gap();
        let mut answers = Answers::new(self.epoch);
        self.run_out_of_patience(&mut answers);
        if now_ns < self.expires_ns {
            return (0, answers.finish());
        }
        let visited = self.visit_slots(&mut answers);
        self.visit_clients();
        self.drop_tasks();
        (visited, answers.finish())
    }

    /// While the switch stood still it could receive nothing, so afterwards nothing expires for a whole lease.
    fn notice_gap(&mut self) {
        let before = self.ticked_ns.replace(self.now);
        if before.is_some_and(|before| self.now - before > self.config.lease_ns / 3) {
            self.stats.gaps += 1;
            self.expires_ns = self.now + self.config.lease_ns;
        }
    }

    fn visit_slots(&mut self, answers: &mut Answers) -> u32 {
        let mut visited = 0;
        while visited < TICK_SLOTS.min(self.known_slots.len() as u32) && answers.assigns() < OUT_MAX {
            let unvisited = self.slot_cursor.map_or(0, |cursor| cursor + 1);
            let Some(&next) = self.known_slots.range(unvisited..).next().or(self.known_slots.first()) else { break };
            self.visit_slot(next, answers);
            self.slot_cursor = Some(next);
            visited += 1;
        }
        visited
    }

    fn visit_slot(&mut self, number: u32, answers: &mut Answers) {
        let now = self.now;
        let lease = self.config.lease_ns;
        let Some(slot) = self.slots.get_mut(&number) else { return };
        let silent = now - slot.heard_ns;
        match slot.state.clone() {
            State::Assigned(task) if silent >= lease => {
                slot.state = State::Free { may_repeat: false };
                self.stats.tasks.expired += 1;
                let task = *task;
                if let Some(task) = self.offer(task, answers) {
                    self.queue_again(task);
                }
            }
            State::Waiting if silent >= lease / 2 => {
                slot.state = State::Free { may_repeat: true };
                self.parked.retain(|&other| other != number);
            }
            State::Free { .. } if silent >= self.config.slot_idle_ns => {
                self.slots.remove(&number);
            }
            _ => {}
        }
    }

    /// Removes clients that are silent and have no open tasks. Those of others are to stop, unless the client is durable.
    fn visit_clients(&mut self) {
        for _ in 0..TICK_CLIENTS.min(self.clients.high_water()) {
            let place = self.next_client;
            self.next_client = (place + 1) % self.clients.high_water();
            let Some(client) = self.clients.get(place) else { continue };
            let identity = client.identity;
            if !self.is_silent(identity) {
                continue;
            }
            if !self.open_tasks().any(|task| task.client == identity) {
                self.clients.remove(place);
            } else if identity & DURABLE == 0 {
                self.clients[place].unwanted_ns = Some(self.accepted_ns);
            }
        }
    }

    /// Drops the queued tasks of silent clients: nobody waits for their results.
    fn drop_tasks(&mut self) {
        if self.clients.iter().any(|client| self.is_silent(client.identity)) {
            self.stats.tasks.dropped += self.take_out_all(|model, task| model.is_silent(task.client));
        }
    }

    fn is_silent(&self, client: u64) -> bool {
        let idle_ns = self.config.client_idle_ns;
        self.clients.iter().any(|known| known.identity == client && self.now - known.heard_ns >= idle_ns)
    }

    /// Removes the queued tasks that the operator named. Returns how many. Running tasks of clients that were named are to stop.
    pub fn purge(&mut self, which: Which) -> u32 {
        let is_meant = |model: &Self, task: &Task| match which {
            Which::Client(identity) => task.client == identity,
            Which::Resources(mask) => suffices(task.info.resources, mask),
            Which::Address(ip) => {
                model.client_of(task).is_some_and(|client| Host::of(client.address.ip()) == Host::of(ip))
            }
        };
        if !matches!(which, Which::Resources(_)) {
            let held = self.slots.values().filter_map(Slot::task).filter(|task| is_meant(self, task));
            let clients: Vec<u64> = held.map(|task| task.client).collect();
            let now = self.accepted_ns;
            for client in self.clients.iter_mut().filter(|client| clients.contains(&client.identity)) {
                client.unwanted_ns = Some(now);
            }
        }
        let purged = self.take_out_all(is_meant);
        self.stats.tasks.purged += purged;
        purged as u32
    }

    fn take_out_all(&mut self, matches: impl Fn(&Self, &Task) -> bool) -> u64 {
        let queued = std::mem::take(&mut self.queued);
        let (out, kept): (Vec<_>, _) = queued.into_iter().partition(|task| matches(self, task));
        self.queued = kept;
        out.len() as u64
    }
}
