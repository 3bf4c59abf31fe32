//! Expiry of silent clients and executors (T10, T14), and the operator's purges. Only a tick lets something expire.

use super::answers::Answers;
use super::executors::{Slot, State};
use super::queue::Task;
use super::{Model, suffices};
use midflight_dataplane::{Datagram, Which};
use midflight_wire::Host;
use midflight_wire::tasks::DURABLE;

/// Tasks per tick whose expired patience lets them go anywhere.
pub(super) const TICK_WISHES: usize = 1024;
const TICK_SLOTS: u32 = 1024;
const TICK_CLIENTS: usize = 64;
pub(super) const OUT_MAX: usize = 36;

impl Model {
    /// Visits the next slots, the next clients and all queued tasks, and removes what has expired. Returns the number
    /// of visited slots.
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

    /// After a gap in the ticks, nothing expires for a whole lease: the switch could not receive anything.
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

    /// Removes silent clients without open tasks. For the others, stops their tasks unless the client is durable.
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

    fn drop_tasks(&mut self) {
        if self.clients.iter().any(|client| self.is_silent(client.identity)) {
            self.stats.tasks.dropped += self.take_out_all(|model, task| model.is_silent(task.client));
        }
    }

    fn is_silent(&self, client: u64) -> bool {
        let idle_ns = self.config.client_idle_ns;
        self.clients.iter().any(|known| known.identity == client && self.now - known.heard_ns >= idle_ns)
    }

    /// Purges the queued tasks that the operator named and returns their number. Running tasks of named clients are
    /// stopped.
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
