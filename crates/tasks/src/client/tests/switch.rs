//! A small switch for tests, written from `docs/internals/tasks.md`. It shares no code with the real one.

use super::*;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Validity of a cookie; short, so that tests see it expire.
const COOKIE_WINDOW: Nanos = 500 * MS;

pub(super) type Named = (u32, u8);

struct Known {
    address: SocketAddr,
    heard: Nanos,
    highest: u32,
    answers: HashMap<u32, u32>,
    probe: u32,
}

/// A switch for one client. It queues tasks until the test removes them.
pub(super) struct FakeSwitch {
    pub(super) epoch: u32,
    pub(super) down_until: Nanos,
    pub(super) capacity: usize,
    /// The switch keeps no record of tasks: it cannot report or cancel them, and accepts a repeated SUBMIT twice.
    pub(super) no_record: bool,
    pub(super) cookies: bool,
    /// Silence after which it drops a client's queued tasks, then its record.
    pub(super) client_idle: Nanos,
    pub(super) submitter: SocketAddr,
    client: Option<Known>,
    /// Queued or assigned tasks; the value tells whether the task is still queued.
    tasks: BTreeMap<Named, bool>,
    queue: Vec<Queued>,
}

pub(super) struct Queued {
    pub(super) name: Named,
    pub(super) token: u64,
    pub(super) attempt: u8,
}

impl FakeSwitch {
    pub(super) fn new(epoch: u32) -> Self {
        Self {
            epoch,
            down_until: 0,
            capacity: 1_000,
            no_record: false,
            cookies: false,
            client_idle: Nanos::MAX,
            submitter: address("[::]:0"),
            client: None,
            tasks: BTreeMap::new(),
            queue: Vec::new(),
        }
    }

    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn assign(&mut self, count: usize) -> Vec<Queued> {
        let assigned: Vec<_> = self.queue.drain(..count).collect();
        self.tasks.extend(assigned.iter().map(|task| (task.name, false)));
        assigned
    }

    pub(super) fn done(&mut self, name: Named) {
        self.tasks.remove(&name);
    }

    pub(super) fn hear(&mut self, now: Nanos, from: SocketAddr, packet: &Sent) -> Option<Vec<u8>> {
        if now < self.down_until {
            return None;
        }
        self.tick(now);
        let &(Sent::Submit { sequence, cookie, .. }
        | Sent::Cancel { sequence, cookie, .. }
        | Sent::Probe { sequence, cookie, .. }) = packet
        else {
            panic!("not for a switch: {packet:?}")
        };
        let present = [now, now.saturating_sub(COOKIE_WINDOW)].map(|time| self.cookie_at(time, from));
        if self.cookies && self.wants_cookie(from, packet) && !present.contains(&cookie) {
            return Some(cookie_for(IDENTITY, self.epoch, sequence, present[0]));
        }
        Some(match packet {
            Sent::Probe { names, .. } => self.probed(now, from, sequence, names),
            Sent::Submit { token, tasks, .. } => {
                let taken = self.in_window(now, from, sequence, |switch| {
                    switch.submitter = from;
                    switch.take(sequence, *token, tasks)
                });
                let full = if self.epoch.is_multiple_of(2) { Reason::Full } else { Reason::Share };
                let all = u32::MAX >> (32 - tasks.len());
                submit_ack(
                    self.epoch,
                    sequence,
                    tasks.len(),
                    taken.unwrap_or(0) & all,
                    taken.map_or(Reason::TooOld, |_| full),
                )
            }
            Sent::Cancel { .. } if self.client.is_none() => cancel_ack(self.epoch, sequence, 0, &[]),
            Sent::Cancel { names, .. } => {
                let taken_out = self.in_window(now, from, sequence, |switch| switch.take_out(names));
                let held = (0..).zip(names).filter(|(_, name)| taken_out.is_some() && self.has_assigned(**name));
                let held: Vec<u8> = held.map(|(index, _)| index).collect();
                // An attacker may have used the sequence before, for more tasks.
                let all = u32::MAX >> (32 - names.len());
                let mut answer = cancel_ack(self.epoch, sequence, taken_out.unwrap_or(0) & all, &held);
                answer[36] = taken_out.map_or(Reason::TooOld, |_| Reason::None) as u8;
                answer
            }
            Sent::CompleteAck { .. } | Sent::Stop { .. } => unreachable!("not for a switch"),
        })
    }

    fn tick(&mut self, now: Nanos) {
        if self.client.as_ref().is_some_and(|client| now > client.heard.saturating_add(self.client_idle)) {
            self.queue.clear();
            self.tasks.retain(|_, is_queued| !*is_queued);
            self.client = self.client.take().filter(|_| !self.tasks.is_empty());
        }
    }

    fn cookie_at(&self, time: Nanos, address: SocketAddr) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.epoch, address, time / COOKIE_WINDOW).hash(&mut hasher);
        hasher.finish()
    }

    fn wants_cookie(&self, from: SocketAddr, packet: &Sent) -> bool {
        match (packet, &self.client) {
            (Sent::Cancel { .. }, None) => false,
            (Sent::Probe { .. }, None) => true,
            (Sent::Submit { .. }, None) => !self.no_record,
            (Sent::Probe { .. }, Some(client)) => client.address != from,
            (Sent::Submit { sequence, .. } | Sent::Cancel { sequence, .. }, Some(client)) => {
                client.address != from || ahead(*sequence, client.highest) > 64
            }
            (Sent::CompleteAck { .. } | Sent::Stop { .. }, _) => {
                unreachable!("not for a switch")
            }
        }
    }

    fn probed(&mut self, now: Nanos, from: SocketAddr, sequence: u32, names: &[Named]) -> Vec<u8> {
        let open = (0..).zip(names).filter(|(_, name)| self.tasks.contains_key(name));
        let open = open.fold(0, |bits, (i, _)| bits | 1 << i);
        if self.no_record {
            return probe_ack_of(midflight_wire::tasks::Known::NoRecord, self.epoch, sequence, names.len(), !open);
        }
        let Some(client) = &mut self.client else {
            return probe_ack_of(midflight_wire::tasks::Known::No, self.epoch, sequence, names.len(), open);
        };
        if sequence > client.probe {
            (client.probe, client.heard, client.address) = (sequence, now, from);
        }
        probe_ack(self.epoch, sequence, names.len(), open)
    }

    /// T8: executes a sequence once and repeats its result; `None` below the window.
    fn in_window(
        &mut self,
        now: Nanos,
        from: SocketAddr,
        sequence: u32,
        carry_out: impl FnOnce(&mut Self) -> u32,
    ) -> Option<u32> {
        if self.no_record {
            return Some(carry_out(self));
        }
        let new = || Known { address: from, heard: now, highest: sequence, answers: HashMap::new(), probe: 0 };
        let client = self.client.get_or_insert_with(new);
        if let Some(&answer) = client.answers.get(&sequence) {
            return Some(answer);
        }
        if ahead(sequence, client.highest) <= -64 {
            return None;
        }
        if ahead(sequence, client.highest) > 0 {
            client.highest = sequence;
            client.answers.retain(|&seen, _| ahead(sequence, seen) < 64);
        }
        (client.heard, client.address) = (now, from);
        let answer = carry_out(self);
        if let Some(client) = &mut self.client {
            client.answers.insert(sequence, answer);
        }
        Some(answer)
    }

    fn take(&mut self, sequence: u32, token: u64, tasks: &[TaskInfo]) -> u32 {
        let room = self.capacity - self.tasks.len().min(self.capacity);
        let mut taken = 0;
        for (index, task) in (0_u8..).zip(tasks).take(room) {
            let name = (sequence, index);
            self.tasks.insert(name, true);
            self.queue.push(Queued { name, token, attempt: task.attempt.saturating_add(1) });
            taken |= 1 << index;
        }
        taken
    }

    fn has_assigned(&self, name: Named) -> bool {
        !self.no_record && self.tasks.get(&name) == Some(&false)
    }

    fn take_out(&mut self, names: &[Named]) -> u32 {
        let mut taken_out = 0;
        for (i, name) in names.iter().enumerate().filter(|_| !self.no_record) {
            if self.tasks.get(name) == Some(&true) {
                self.tasks.remove(name);
                self.queue.retain(|queued| queued.name != *name);
                taken_out |= 1 << i;
            }
        }
        taken_out
    }
}

fn ahead(of: u32, other: u32) -> i32 {
    of.wrapping_sub(other) as i32
}
