//! What a client says: SUBMIT, CANCEL, PROBE.

use super::answers::Answers;
use super::queue::Task;
use super::{Model, TASK_APART_NS, is_later};
use crate::Verdict;
use midflight_wire::{
    Cancel, CancelAck, Operation, Probe, ProbeAck, Reason, Submit, SubmitAck, TaskInfo, TaskName, WINDOW,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A client process that the switch remembers.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) identity: u64,
    pub(super) address: SocketAddr,
    /// Whose process it is, as its last new SUBMIT said.
    pub(super) uid: u32,
    heard_ns: u64,
    /// The highest sequence seen.
    highest: u32,
    /// The bitmap that each sequence seen within the window was answered.
    answered: BTreeMap<u32, u32>,
}

/// What a client's window says of a sequence (T8).
enum Seen {
    New,
    Before(u32),
    TooOld,
}

impl Client {
    fn look_up(&self, sequence: u32) -> Seen {
        if let Some(&bitmap) = self.answered.get(&sequence) {
            return Seen::Before(bitmap);
        }
        let is_old = !is_later(sequence, self.highest) && self.highest.wrapping_sub(sequence) >= WINDOW;
        if is_old { Seen::TooOld } else { Seen::New }
    }

    fn remember(&mut self, sequence: u32, bitmap: u32) {
        if is_later(sequence, self.highest) {
            self.highest = sequence;
        }
        self.answered.insert(sequence, bitmap);
        let highest = self.highest;
        self.answered.retain(|&other, _| highest.wrapping_sub(other) < WINDOW);
    }
}

impl Model {
    pub(super) fn submit(
        &mut self,
        from: SocketAddr,
        submit: &Submit,
        tasks: &[TaskInfo],
        answers: &mut Answers,
    ) -> Verdict {
        let sequence = submit.header.sequence.get();
        let Some(position) = self.remember_client(from, submit.client.get(), sequence) else {
            self.say_submit_ack(from, submit, 0, Reason::ClientsFull, answers);
            return Verdict::ClientsFull;
        };
        match self.hear_client(position, from, sequence) {
            Seen::TooOld => {
                self.say_submit_ack(from, submit, 0, Reason::TooOld, answers);
                Verdict::TooOld
            }
            Seen::Before(taken) => {
                self.say_submit_ack(from, submit, taken, Reason::Full, answers);
                Verdict::RepeatedSubmit
            }
            Seen::New => {
                self.clients[position].uid = submit.uid.get();
                let mut taken = 0;
                for (index, info) in tasks.iter().enumerate() {
                    if self.room() == 0 {
                        self.count(Verdict::Full, 1);
                        continue;
                    }
                    taken |= 1 << index;
                    let task = self.accept(submit, index as u8, *info);
                    self.enqueue(task, answers);
                }
                self.clients[position].remember(sequence, taken);
                self.say_submit_ack(from, submit, taken, Reason::Full, answers);
                Verdict::Ok
            }
        }
    }

    /// What the client's window says of a sequence. Every packet counts as heard; only an ancient one, which may
    /// have been on its way for long, does not say where the client is now.
    fn hear_client(&mut self, position: usize, from: SocketAddr, sequence: u32) -> Seen {
        let client = &mut self.clients[position];
        client.heard_ns = self.now;
        let seen = client.look_up(sequence);
        if !matches!(seen, Seen::TooOld) {
            client.address = from;
        }
        seen
    }

    fn accept(&mut self, submit: &Submit, index: u8, info: TaskInfo) -> Task {
        self.stats.submitted += 1;
        self.accepted_ns = (self.now - self.now % TASK_APART_NS).max(self.accepted_ns + TASK_APART_NS);
        Task {
            client: submit.client.get(),
            submission: submit.header.sequence.get(),
            index,
            jid: submit.jid.get(),
            info,
            accepted_ns: self.accepted_ns,
            waited_us: 0,
            was_assigned: false,
        }
    }

    /// `why` is the reason where a task was not taken.
    fn say_submit_ack(&self, to: SocketAddr, submit: &Submit, taken: u32, why: Reason, answers: &mut Answers) {
        let asked = all(submit.header.count);
        let not_taken = asked & !taken;
        let ack = SubmitAck {
            header: answers.header(Operation::SubmitAck, &submit.header),
            client: submit.client,
            taken: (taken & asked).into(),
            not_taken: not_taken.into(),
            reason: if not_taken == 0 { Reason::None } else { why } as u8,
            reserved: [0; 3],
            room: self.room().into(),
        };
        answers.answer::<_, u8>(to, &ack, &[], submit.header.count);
    }

    /// The client's place, where it is known or there is room for it.
    fn remember_client(&mut self, from: SocketAddr, identity: u64, sequence: u32) -> Option<usize> {
        if let Some(position) = self.clients.iter().position(|client| client.identity == identity) {
            return Some(position);
        }
        if self.clients.len() == self.config.clients as usize {
            let longest_silent = self.evictable()?;
            self.clients.remove(longest_silent);
        }
        self.clients.push(Client {
            identity,
            address: from,
            uid: 0,
            heard_ns: self.now,
            highest: sequence,
            answered: BTreeMap::new(),
        });
        Some(self.clients.len() - 1)
    }

    /// The client that has been silent for longest, if for long enough, among those without open tasks.
    fn evictable(&self) -> Option<usize> {
        (0..self.clients.len())
            .filter(|&position| {
                let client = &self.clients[position];
                let open = self.open_tasks().any(|task| task.client == client.identity);
                !open && self.now - client.heard_ns >= self.config.client_idle_ns
            })
            .min_by_key(|&position| self.clients[position].heard_ns)
    }

    fn open_tasks(&self) -> impl Iterator<Item = &Task> {
        self.queued.iter().chain(self.slots.values().filter_map(|slot| slot.task()))
    }

    pub(super) fn cancel(
        &mut self,
        from: SocketAddr,
        cancel: &Cancel,
        names: &[TaskName],
        answers: &mut Answers,
    ) -> Verdict {
        let identity = cancel.client.get();
        let sequence = cancel.header.sequence.get();
        let known = self.clients.iter().position(|client| client.identity == identity);
        let (verdict, taken_out) = match known {
            None => {
                self.count(Verdict::NotQueued, names.len());
                (Verdict::Ok, 0)
            }
            Some(position) => match self.hear_client(position, from, sequence) {
                Seen::TooOld => (Verdict::TooOld, 0),
                Seen::Before(bitmap) => (Verdict::RepeatedSubmit, bitmap),
                Seen::New => {
                    let taken_out = self.take_out(identity, names);
                    self.clients[position].remember(sequence, taken_out);
                    (Verdict::Ok, taken_out)
                }
            },
        };
        let reason = if verdict == Verdict::TooOld { Reason::TooOld } else { Reason::None };
        let ack = CancelAck {
            header: answers.header(Operation::CancelAck, &cancel.header),
            client: cancel.client,
            taken_out: (taken_out & all(cancel.header.count)).into(),
            reason: reason as u8,
            reserved: [0; 3],
        };
        answers.answer::<_, u8>(from, &ack, &[], cancel.header.count);
        verdict
    }

    /// A name speaks of the youngest task that has it: a client that turns its 32-bit sequence round while tasks are
    /// open has several.
    fn take_out(&mut self, client: u64, names: &[TaskName]) -> u32 {
        let mut taken_out = 0;
        for (bit, name) in names.iter().enumerate() {
            let named =
                self.open_tasks().filter(|task| is_named(task, client, name)).max_by_key(|task| task.accepted_ns);
            let accepted_ns = named.map(|task| task.accepted_ns);
            match self.queued.iter().position(|task| Some(task.accepted_ns) == accepted_ns) {
                Some(position) => {
                    self.queued.remove(position);
                    self.stats.cancelled += 1;
                    taken_out |= 1 << bit;
                }
                None => self.count(Verdict::NotQueued, 1),
            }
        }
        taken_out
    }

    pub(super) fn probe(
        &mut self,
        from: SocketAddr,
        probe: &Probe,
        names: &[TaskName],
        answers: &mut Answers,
    ) -> Verdict {
        let identity = probe.client.get();
        let known = self.clients.iter().position(|client| client.identity == identity);
        if let Some(position) = known {
            self.clients[position].heard_ns = self.now;
        }
        let mut open = 0u32;
        for (bit, name) in names.iter().enumerate() {
            if self.open_tasks().any(|task| is_named(task, identity, name)) {
                open |= 1 << bit;
            }
        }
        let ack = ProbeAck {
            header: answers.header(Operation::ProbeAck, &probe.header),
            client: probe.client,
            seen: from.into(),
            room: self.room().into(),
            open: open.into(),
            known: u8::from(known.is_some()),
            reserved: [0; 3],
        };
        answers.answer::<_, u8>(from, &ack, &[], probe.header.count);
        Verdict::Ok
    }
}

fn is_named(task: &Task, client: u64, name: &TaskName) -> bool {
    task.client == client && task.submission == name.submission.get() && task.index == name.index
}

/// The bits of `count` records.
fn all(count: u8) -> u32 {
    (0..u32::from(count)).fold(0, |bits, bit| bits | 1 << bit)
}
