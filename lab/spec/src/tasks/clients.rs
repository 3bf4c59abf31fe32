//! The packets of clients: SUBMIT, CANCEL, PROBE.

use super::answers::Answers;
use super::queue::{Task, Wish};
use super::shares::Refusal;
use super::{Model, TASK_APART_NS};
use midflight_dataplane::Verdict;
use midflight_endpoint::serial::is_later;
use midflight_wire::tasks::{
    Appendix, Cancel, CancelAck, Holder, Preference, Probe, ProbeAck, Reason, Submit, SubmitAck, TaskInfo, TaskName,
    WINDOW,
};
use midflight_wire::{counting, packet};
use std::collections::BTreeMap;
use std::net::SocketAddr;

#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) identity: u64,
    pub(super) address: SocketAddr,
    /// From its last new SUBMIT.
    pub(super) uid: u32,
    pub(super) heard_ns: u64,
    /// Tasks acknowledged up to this time are no longer wanted.
    pub(super) unwanted_ns: Option<u64>,
    highest: u32,
    /// For each sequence in the window, the bitmap that answered it.
    answered: BTreeMap<u32, u32>,
    probed: u32,
}

/// Whether the client's window has a sequence (T8).
enum Seen {
    New,
    Before(u32),
    TooOld,
}

impl Client {
    fn find(&self, sequence: u32) -> Seen {
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

    /// Whether the sequence is more than a window ahead: the client has used another switch for a while.
    fn is_far_ahead(&self, sequence: u32) -> bool {
        sequence.wrapping_sub(self.highest).cast_signed() > WINDOW.cast_signed()
    }
}

impl Model {
    pub(super) fn submit(
        &mut self,
        from: SocketAddr,
        submit: &Submit,
        tasks: &[TaskInfo],
        appendix: Appendix<'_>,
        preference: Option<&Preference>,
        answers: &mut Answers,
    ) -> Verdict {
        let sequence = submit.header.sequence.get();
        let known = self.place_of(submit.client.get());
        let is_trusted = known.is_some_and(|place| self.is_trusted(place, from, Some(sequence)));
        if !is_trusted && !self.takes_cookie(from, &submit.header, submit.client, submit.cookie, answers) {
            return Verdict::NoCookie;
        }
        let place = match known.map_or_else(|| self.remember_client(from, submit.client.get(), sequence), Ok) {
            Ok(place) => place,
            Err((verdict, reason)) => {
                self.say_submit_ack(from, submit, 0, reason, answers);
                return verdict;
            }
        };
        match self.clients[place].find(sequence) {
            Seen::TooOld => {
                self.say_submit_ack(from, submit, 0, Reason::TooOld, answers);
                Verdict::TooOld
            }
            Seen::Before(taken) => {
                self.say_submit_ack(from, submit, taken, Reason::Full, answers);
                Verdict::RepeatedSubmit
            }
            Seen::New => {
                self.hear_client(place, from);
                self.clients[place].uid = submit.uid.get();
                let (taken, why) = self.accept_all(from, submit, tasks, appendix, preference, answers);
                self.clients[place].remember(sequence, taken);
                self.say_submit_ack(from, submit, taken, why, answers);
                Verdict::Ok
            }
        }
    }

    fn place_of(&self, client: u64) -> Option<usize> {
        self.clients.position(|known| known.identity == client)
    }

    /// Whether a known client needs no cookie (T13): its address has not changed, and `sequence` is not far ahead.
    fn is_trusted(&self, place: usize, from: SocketAddr, sequence: Option<u32>) -> bool {
        let client = &self.clients[place];
        client.address == from && !sequence.is_some_and(|sequence| client.is_far_ahead(sequence))
    }

    fn hear_client(&mut self, place: usize, from: SocketAddr) {
        let client = &mut self.clients[place];
        client.heard_ns = self.now;
        client.address = from;
    }

    /// Accepts tasks in order until one finds no room. Returns the bitmap of accepted tasks, and why the rest was
    /// refused.
    fn accept_all(
        &mut self,
        from: SocketAddr,
        submit: &Submit,
        tasks: &[TaskInfo],
        mut appendix: Appendix<'_>,
        preference: Option<&Preference>,
        answers: &mut Answers,
    ) -> (u32, Reason) {
        let mut taken = 0;
        let preference = preference.filter(|preference| preference.place != 0);
        let is_known = |at: u32| self.slots.values().any(|slot| slot.places.contains(&at));
        let wish =
            preference.filter(|it| is_known(it.place.get())).map(|it| Wish::new(it.place.get(), it.patience_ms.get()));
        for (index, info) in tasks.iter().enumerate() {
            let room = self.argument_room(from, info).and_then(|()| self.task_room(from));
            if let Err((verdict, reason)) = room {
                self.count(verdict, tasks.len() - index);
                return (taken, reason);
            }
            taken |= 1 << index;
            let task = self.accept(submit, index as u8, *info, appendix.next_padded(info).to_vec());
            match wish {
                Some(wish) => self.accept_at_place(task, wish, answers),
                None => self.enqueue(task, answers),
            }
            if preference.is_some() && wish.is_none() {
                self.count(Verdict::NoPlace, 1);
            }
        }
        (taken, Reason::None)
    }

    fn accept(&mut self, submit: &Submit, index: u8, info: TaskInfo, appended: Vec<u8>) -> Task {
        self.stats.tasks.submitted += 1;
        self.accepted_ns = (self.now - self.now % TASK_APART_NS).max(self.accepted_ns + TASK_APART_NS);
        Task {
            client: submit.client.get(),
            submission: submit.header.sequence.get(),
            index,
            token: submit.token.get(),
            jid: submit.jid.get(),
            info,
            appended,
            accepted_ns: self.accepted_ns,
            waited_us: 0,
            assigned_ns: 0,
            was_assigned: false,
            wish: None,
            is_cancelled: false,
        }
    }

    /// `why`: the reason if not all tasks were accepted.
    fn say_submit_ack(&self, to: SocketAddr, submit: &Submit, taken: u32, why: Reason, answers: &mut Answers) {
        let asked = all(submit.header.count);
        let not_taken = asked & !taken;
        let ack = SubmitAck {
            client: submit.client,
            taken: (taken & asked).into(),
            not_taken: not_taken.into(),
            reason: if not_taken == 0 { Reason::None } else { why } as u8,
            room: self.room().into(),
            ..SubmitAck::new(self.epoch, submit.header.sequence.get())
        };
        answers.answer(to, counting(&ack, submit.header.count));
    }

    fn remember_client(&mut self, from: SocketAddr, identity: u64, sequence: u32) -> Result<usize, Refusal> {
        self.client_room(from)?;
        Ok(self.clients.insert(Client {
            identity,
            address: from,
            uid: 0,
            heard_ns: self.now,
            unwanted_ns: None,
            highest: sequence,
            answered: BTreeMap::new(),
            probed: 0,
        }))
    }

    pub(super) fn open_tasks(&self) -> impl Iterator<Item = &Task> {
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
        let known = self.place_of(identity);
        let is_trusted = known.is_none_or(|place| self.is_trusted(place, from, Some(sequence)));
        if !is_trusted && !self.takes_cookie(from, &cancel.header, cancel.client, cancel.cookie, answers) {
            return Verdict::NoCookie;
        }
        let (verdict, taken_out) = match known.map(|place| (place, self.clients[place].find(sequence))) {
            None => {
                self.count(Verdict::NotQueued, names.len());
                (Verdict::Ok, 0)
            }
            Some((_, Seen::TooOld)) => (Verdict::TooOld, 0),
            Some((_, Seen::Before(bitmap))) => (Verdict::RepeatedSubmit, bitmap),
            Some((place, Seen::New)) => {
                self.hear_client(place, from);
                let taken_out = self.take_out(identity, names);
                self.clients[place].remember(sequence, taken_out);
                (Verdict::Ok, taken_out)
            }
        };
        let (reason, holders) = match verdict {
            Verdict::TooOld => (Reason::TooOld, Vec::new()),
            _ => (Reason::None, self.holders(identity, names)),
        };
        let ack = CancelAck {
            client: cancel.client,
            taken_out: (taken_out & all(cancel.header.count)).into(),
            reason: reason as u8,
            ..CancelAck::new(self.epoch, sequence)
        };
        answers.answer(from, packet(&ack, &holders));
        verdict
    }

    /// The acknowledgement time of the youngest task with this name. Names repeat if a client's 32-bit sequence wraps
    /// around while older tasks are open.
    fn named(&self, client: u64, name: &TaskName) -> Option<u64> {
        self.open_tasks().filter(|task| is_named(task, client, name)).map(|task| task.accepted_ns).max()
    }

    /// Removes queued tasks, and keeps assigned ones from being assigned again. Returns the bitmap of removed tasks.
    fn take_out(&mut self, client: u64, names: &[TaskName]) -> u32 {
        let mut taken_out = 0;
        for (bit, name) in names.iter().enumerate() {
            let Some(accepted_ns) = self.named(client, name) else {
                self.count(Verdict::NotQueued, 1);
                continue;
            };
            if let Some(position) = self.queued.iter().position(|task| task.accepted_ns == accepted_ns) {
                self.queued.remove(position);
                self.stats.tasks.cancelled += 1;
                taken_out |= 1 << bit;
            }
            let held = self.slots.values_mut().filter_map(|slot| slot.task_mut());
            held.filter(|task| task.accepted_ns == accepted_ns).for_each(|task| task.is_cancelled = true);
        }
        taken_out
    }

    fn holders(&self, client: u64, names: &[TaskName]) -> Vec<Holder> {
        let mut holders = Vec::new();
        for (index, name) in (0..).zip(names) {
            let accepted_ns = self.named(client, name);
            let slot = self.slots.values().find(|slot| {
                slot.task().is_some_and(|task| task.is_cancelled && Some(task.accepted_ns) == accepted_ns)
            });
            holders.extend(slot.map(|slot| Holder { executor: slot.address.into(), index, reserved: [0; 3] }));
        }
        holders
    }

    pub(super) fn probe(
        &mut self,
        from: SocketAddr,
        probe: &Probe,
        names: &[TaskName],
        answers: &mut Answers,
    ) -> Verdict {
        let identity = probe.client.get();
        let sequence = probe.header.sequence.get();
        let known = self.place_of(identity);
        let is_trusted = known.is_some_and(|place| self.is_trusted(place, from, None));
        if !is_trusted && !self.takes_cookie(from, &probe.header, probe.client, probe.cookie, answers) {
            return Verdict::NoCookie;
        }
        if let Some(place) = known
            && is_later(sequence, self.clients[place].probed)
        {
            self.clients[place].probed = sequence;
            self.hear_client(place, from);
        }
        let mut open = 0u32;
        for (bit, name) in names.iter().enumerate() {
            if self.open_tasks().any(|task| is_named(task, identity, name)) {
                open |= 1 << bit;
            }
        }
        let ack = ProbeAck {
            client: probe.client,
            seen: from.into(),
            room: self.room().into(),
            open: open.into(),
            known: u8::from(known.is_some()),
            ..ProbeAck::new(self.epoch, sequence)
        };
        answers.answer(from, counting(&ack, probe.header.count));
        Verdict::Ok
    }
}

fn is_named(task: &Task, client: u64, name: &TaskName) -> bool {
    task.client == client && task.submission == name.submission.get() && task.index == name.index
}

fn all(count: u8) -> u32 {
    (0..u32::from(count)).fold(0, |bits, bit| bits | 1 << bit)
}
