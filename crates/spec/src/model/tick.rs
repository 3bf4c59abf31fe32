//! What the silent lose (T10, T14), and what the operator takes out. Only ticks expire.

use super::answers::Answers;
use super::executors::State;
use super::queue::Task;
use super::shares::source;
use super::{Model, suffices};
use midflight_dataplane::{Datagram, Which};

/// Slots that one tick looks at.
const TICK_SLOTS: u32 = 1024;
/// Clients that one tick looks at.
const TICK_CLIENTS: usize = 64;
/// Datagrams that one call may owe.
const OUT_MAX: usize = 36;

impl Model {
    /// Looks at the next slots and clients and at what is queued, and takes from them what has been silent for too long.
    /// Says how many slots it looked at.
    pub fn tick(&mut self, now_ns: u64) -> (u32, Vec<Datagram>) {
        self.now = now_ns;
        self.notice_gap();
        let mut answers = Answers::new(self.epoch);
        if now_ns < self.expires_ns {
            return (0, answers.finish());
        }
        let looked = self.look_at_slots(&mut answers);
        self.look_at_clients();
        self.drop_tasks();
        (looked, answers.finish())
    }

    /// While the switch stood still it heard nobody: all have a whole lease to be heard again.
    fn notice_gap(&mut self) {
        let before = self.ticked_ns.replace(self.now);
        if before.is_some_and(|before| self.now - before > self.config.lease_ns / 3) {
            self.stats.gaps += 1;
            self.expires_ns = self.now + self.config.lease_ns;
        }
    }

    fn look_at_slots(&mut self, answers: &mut Answers) -> u32 {
        let mut looked = 0;
        while looked < TICK_SLOTS.min(self.known_slots.len() as u32) && answers.assigns() < OUT_MAX {
            let behind = self.known_slots.iter().find(|&&number| self.slot_cursor.is_none_or(|cursor| number > cursor));
            let Some(&next) = behind.or(self.known_slots.first()) else { break };
            self.look_at_slot(next, answers);
            self.slot_cursor = Some(next);
            looked += 1;
        }
        looked
    }

    fn look_at_slot(&mut self, number: u32, answers: &mut Answers) {
        let now = self.now;
        let lease = self.config.lease_ns;
        let Some(slot) = self.slots.get_mut(&number) else { return };
        let silent = now - slot.heard_ns;
        match slot.state.clone() {
            State::Assigned(task) if silent >= lease => {
                slot.state = State::Free { may_repeat: false };
                self.stats.expired += 1;
                self.requeue(*task, answers);
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

    /// Forgets clients that are silent and have no open tasks.
    fn look_at_clients(&mut self) {
        for _ in 0..TICK_CLIENTS.min(self.clients.ever_taken()) {
            let place = self.client_cursor;
            self.client_cursor = (place + 1) % self.clients.ever_taken();
            let Some(client) = self.clients.get(place) else { continue };
            let has_open = self.open_tasks().any(|task| task.client == client.identity);
            if !has_open && self.is_silent(client.identity) {
                self.clients.give_back(place);
            }
        }
    }

    /// What a silent client has queued is dropped: nobody waits for it.
    fn drop_tasks(&mut self) {
        self.stats.dropped += self.take_out_all(|model, task| model.is_silent(task.client));
    }

    fn is_silent(&self, client: u64) -> bool {
        let idle_ns = self.config.client_idle_ns;
        self.clients.iter().any(|known| known.identity == client && self.now - known.heard_ns >= idle_ns)
    }

    /// Takes out the queued tasks that the operator wants to be gone. Says how many.
    pub fn purge(&mut self, which: Which) -> u32 {
        let purged = self.take_out_all(|model, task| match which {
            Which::Client(identity) => task.client == identity,
            Which::Resources(mask) => suffices(task.info.resources, mask),
            Which::Address(ip) => model.client_of(task).is_some_and(|client| source(client.address.ip()) == source(ip)),
        });
        self.stats.purged += purged;
        purged as u32
    }

    fn take_out_all(&mut self, is_meant: impl Fn(&Self, &Task) -> bool) -> u64 {
        let queued = std::mem::take(&mut self.queued);
        let (out, kept): (Vec<_>, _) = queued.into_iter().partition(|task| is_meant(self, task));
        self.queued = kept;
        out.len() as u64
    }
}
