//! A network that loses, delays and copies packets between the switch and its clients and executors, and the endpoints that repeat them.
//!
//! `docs/internals/asic.md` describes the model, and which rule holds in which form. Each arrival of a SUBMIT has its own client and tasks
//! here, so the rules of the other instances hold for each arrival by itself. The endpoints know which arrivals belong to one SUBMIT.

use super::world::{Broken, Client, Fate, Step, World};
use super::{Network, Subject, Task};
use crate::Packet;

/// Fate of a packet to the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Sending {
    /// It arrives before anything else happens.
    Arrives,
    /// It never arrives.
    Lost,
    /// It arrives later.
    Late,
    /// It arrives at once, and a copy later.
    Twice,
}

impl Sending {
    const ALL: [Self; 4] = [Self::Arrives, Self::Lost, Self::Late, Self::Twice];

    fn faults(self) -> u8 {
        u8::from(self != Self::Arrives)
    }

    /// Number of its arrivals.
    fn arrivals(self) -> u8 {
        match self {
            Self::Lost => 0,
            Self::Arrives | Self::Late => 1,
            Self::Twice => 2,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Arrives => "",
            Self::Lost => ": the packet is lost",
            Self::Late => ": the packet is late",
            Self::Twice => ": the packet is copied",
        }
    }
}

/// A client, over all arrivals of its SUBMITs. Bit n of a mask is its task with the number n.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Owner {
    arrivals: u8,
    sent: bool,
    /// Whether it received an answer to its last SUBMIT.
    acked: bool,
    /// Tasks whose result it has.
    done: u8,
    /// The tasks of each SUBMIT in the network.
    air: Vec<u8>,
}

/// An executor's slot. [`Executor`](super::world::Executor) says whether it waits for an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Slot {
    /// Of its last packet.
    counter: u8,
    /// The highest that has arrived.
    arrived: u8,
    /// Unanswered requests in the switch.
    open: u8,
    /// The counters of its packets in the network.
    air: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Net {
    faults: u8,
    owners: Vec<Owner>,
    slots: Vec<Slot>,
}

impl Net {
    pub(super) fn new(network: Network, owners: usize, slots: usize) -> Self {
        Self { faults: network.faults, owners: vec![Owner::default(); owners], slots: vec![Slot::default(); slots] }
    }

    pub(super) fn pack(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.faults);
        for Owner { arrivals, sent, acked, done, air } in &self.owners {
            bytes.extend([*arrivals, u8::from(*sent) | u8::from(*acked) << 1, *done, air.len() as u8]);
            bytes.extend(air);
        }
        for Slot { counter, arrived, open, air } in &self.slots {
            bytes.extend([*counter, *arrived, *open, air.len() as u8]);
            bytes.extend(air);
        }
    }

    pub(super) fn unpack(&mut self, bytes: &mut std::slice::Iter<'_, u8>) {
        let mut next = || bytes.next().copied().unwrap_or(0);
        self.faults = next();
        for owner in &mut self.owners {
            let [arrivals, flags, done, air] = std::array::from_fn(|_| next());
            let air = (0..air).map(|_| next()).collect();
            *owner = Owner { arrivals, sent: flags & 1 == 1, acked: flags & 2 == 2, done, air };
        }
        for slot in &mut self.slots {
            let [counter, arrived, open, air] = std::array::from_fn(|_| next());
            *slot = Slot { counter, arrived, open, air: (0..air).map(|_| next()).collect() };
        }
    }

    pub(super) fn is_unanswered(&self, slot: usize) -> bool {
        self.slots[slot].open > 0
    }
}

fn number(n: usize) -> u8 {
    u8::try_from(n).unwrap_or(u8::MAX)
}

impl<S: Subject> World<'_, S> {
    /// All next steps of clients, executors and the network, and passes whose answer is lost.
    pub(super) fn net_steps(&self, passes: &[u8]) -> Vec<Step> {
        let Some(net) = &self.net else { return Vec::new() };
        let mutes: &[bool] = if net.faults > 0 { &[false, true] } else { &[false] };
        let mut steps = Vec::new();
        for (n, owner) in net.owners.iter().enumerate() {
            let room = self.setting.instance.network.map_or(0, |network| network.arrivals);
            let room = room.saturating_sub(owner.arrivals + number(owner.air.len()));
            let sendings = self.sendings(self.submits_at(n));
            let sendings = sendings.into_iter().filter(|(sending, _)| sending.arrivals() <= room && room > 0);
            steps.extend(sendings.map(|(sending, mute)| Step::Send { owner: number(n), sending, mute }));
            for copy in (0..owner.air.len()).filter(|&copy| copy == 0 || owner.air[copy] != owner.air[copy - 1]) {
                let arrive = |&mute: &bool| Step::Arrive { owner: number(n), copy: number(copy), mute };
                steps.extend(mutes.iter().map(arrive));
            }
        }
        for (n, slot) in net.slots.iter().enumerate() {
            let sendings = self.sendings(self.asks_at(n));
            steps.extend(sendings.into_iter().map(|(sending, mute)| Step::Ask { executor: number(n), sending, mute }));
            for copy in 0..slot.air.len() {
                let come = |&mute: &bool| Step::Come { executor: number(n), copy: number(copy), mute };
                steps.extend(mutes.iter().map(come));
            }
        }
        if net.faults > 0 {
            steps.extend(passes.iter().map(|&n| Step::Mute(n)));
        }
        steps
    }

    /// Possible fates of a packet and of its answer, if sending it has cost this many faults.
    fn sendings(&self, cost: Option<u8>) -> Vec<(Sending, bool)> {
        let faults = self.net.as_ref().map_or(0, |net| net.faults);
        let Some(left) = cost.and_then(|cost| faults.checked_sub(cost)) else { return Vec::new() };
        let all = Sending::ALL.into_iter().map(|sending| (sending, false)).chain([(Sending::Arrives, true)]);
        all.filter(|(sending, mute)| sending.faults() + u8::from(*mute) <= left).collect()
    }

    /// The faults that this client's sending costs: 1 if only an early time-out causes it.
    fn submits_at(&self, number: usize) -> Option<u8> {
        let (net, jobs) = (self.net.as_ref()?, &self.setting.instance.jobs);
        let owner = &net.owners[number];
        let left = self.not_done(number);
        let early = |is_early: bool| if is_early { self.is_early() } else { Some(0) };
        let inside = |place: u32| self.fates_of(place).any(|fate| matches!(fate, Fate::Accepted { .. }));
        let unanswered = self.clients.iter().skip(number).step_by(jobs.len()).any(|client| !client.sent.is_empty());
        match () {
            () if !owner.sent => Some(0),
            () if left.is_empty() => None,
            () if !owner.acked => early(unanswered || !owner.air.is_empty()),
            () => early(left.iter().any(|&place| inside(place))),
        }
    }

    /// The faults that an early time-out costs, if there are any.
    fn is_early(&self) -> Option<u8> {
        self.setting.instance.network.filter(|network| network.early).map(|_| 1)
    }

    /// The same for an executor's RETRIEVE.
    fn asks_at(&self, number: usize) -> Option<u8> {
        let (slot, executor) = (&self.net.as_ref()?.slots[number], &self.executors[number]);
        let is_expected = executor.waits && (slot.open > 0 || !slot.air.is_empty());
        let cost = if is_expected { self.is_early() } else { Some(0) };
        cost.filter(|_| executor.polls > 0)
    }

    /// The first task of a client, from 0.
    fn first(&self, owner: usize) -> u32 {
        self.setting.instance.jobs[..owner].iter().map(Vec::len).sum::<usize>() as u32
    }

    fn all_tasks(&self) -> u32 {
        self.setting.instance.jobs.iter().map(Vec::len).sum::<usize>() as u32
    }

    /// Tasks of a client, numbered over all clients from 0, whose result it lacks.
    fn not_done(&self, owner: usize) -> Vec<u32> {
        let (first, length) = (self.first(owner), self.setting.instance.jobs[owner].len() as u32);
        let done = self.net.as_ref().map_or(0, |net| net.owners[owner].done);
        (0..length).filter(|bit| done >> bit & 1 == 0).map(|bit| first + bit).collect()
    }

    /// The fate of this task in each arrival.
    fn fates_of(&self, place: u32) -> impl Iterator<Item = Fate> {
        self.fates.iter().skip(place as usize).step_by(self.all_tasks() as usize).copied()
    }

    pub(super) fn all_done(&self) -> bool {
        (0..self.setting.instance.jobs.len()).all(|owner| self.not_done(owner).is_empty())
    }

    pub(super) fn mute(&mut self, mute: bool) {
        self.mute = mute;
        if mute {
            self.fault(1);
        }
    }

    fn fault(&mut self, faults: u8) {
        if let Some(net) = &mut self.net {
            net.faults -= faults;
        }
    }

    /// Whether the answer of this pass is lost.
    fn is_muted(&mut self) -> bool {
        let mute = std::mem::take(&mut self.mute);
        if mute {
            self.say(|_| "      the answer is lost\n".into());
        }
        mute
    }

    pub(super) fn send(&mut self, number: usize, sending: Sending) -> Result<(), Broken> {
        self.fault(self.submits_at(number).unwrap_or(0) + sending.faults());
        let (first, left) = (self.first(number), self.not_done(number));
        let mask = left.iter().fold(0, |mask, place| mask | 1 << (place - first));
        let Some(net) = &mut self.net else { return Ok(()) };
        let owner = &mut net.owners[number];
        (owner.sent, owner.acked) = (true, false);
        if matches!(sending, Sending::Late | Sending::Twice) {
            owner.air.push(mask);
            owner.air.sort_unstable();
        }
        match sending {
            Sending::Arrives | Sending::Twice => self.submit_arrives(number, mask, sending.text()),
            Sending::Lost | Sending::Late => {
                self.say(|_| format!("client {number} submits{}\n", sending.text()));
                Ok(())
            }
        }
    }

    pub(super) fn arrives(&mut self, number: usize, copy: usize) -> Result<(), Broken> {
        let Some(net) = &mut self.net else { return Ok(()) };
        let mask = net.owners[number].air.remove(copy);
        self.submit_arrives(number, mask, ": the packet from before")
    }

    fn submit_arrives(&mut self, number: usize, mask: u8, how: &str) -> Result<(), Broken> {
        let (first, all) = (self.first(number), self.all_tasks());
        let Some(net) = &mut self.net else { return Ok(()) };
        let arrival = u32::from(net.owners[number].arrivals);
        net.owners[number].arrivals += 1;
        let tids = (0..8).filter(|bit| mask >> bit & 1 == 1).map(|bit| first + bit + 1 + arrival * all).collect();
        self.say(|_| format!("client {number} submits{how}; "));
        let packet = self.submits(number, arrival as usize, tids);
        self.enter(packet)
    }

    /// The SUBMIT of an arrival.
    fn submits(&mut self, owner: usize, arrival: usize, tids: Vec<u32>) -> Packet {
        let client = number(arrival * self.setting.instance.jobs.len() + owner);
        let tasks: Vec<Task> = tids.iter().map(|&tid| self.setting.tasks[tid as usize - 1]).collect();
        self.clients[usize::from(client)] = Client { sent: tids, ..Client::default() };
        let all = self.all_tasks();
        let name =
            |task: &Task| format!(" {} (level {}, resources {})", (task.tid - 1) % all + 1, task.level, task.resources);
        self.say(|_| format!("arrival {}:{}", arrival + 1, tasks.iter().map(name).collect::<String>()));
        self.setting.subject.submit(client, &tasks)
    }

    pub(super) fn asks(&mut self, number: usize, sending: Sending) -> Result<(), Broken> {
        self.fault(self.asks_at(number).unwrap_or(0) + sending.faults());
        self.executors[number].polls -= 1;
        self.executors[number].waits = true;
        let Some(net) = &mut self.net else { return Ok(()) };
        let slot = &mut net.slots[number];
        slot.counter += 1;
        let counter = slot.counter;
        if matches!(sending, Sending::Late | Sending::Twice) {
            slot.air.push(counter);
        }
        self.say(|_| format!("executor {number} polls with counter {counter}{}", sending.text()));
        if let Sending::Lost | Sending::Late = sending {
            self.say(|_| "\n".into());
            return Ok(());
        }
        let packet = self.retrieve_arrives(number, counter);
        self.enter(packet)
    }

    pub(super) fn comes(&mut self, number: usize, copy: usize) -> Result<(), Broken> {
        let Some(net) = &mut self.net else { return Ok(()) };
        let counter = net.slots[number].air.remove(copy);
        self.say(|_| format!("executor {number} polled with counter {counter}: the packet from before"));
        let packet = self.retrieve_arrives(number, counter);
        self.enter(packet)
    }

    /// T2: a counter that is not above all arrived ones belongs to a copy or a late packet, which must change nothing.
    fn retrieve_arrives(&mut self, number: usize, counter: u8) -> Packet {
        if let Some(net) = &mut self.net {
            let slot = &mut net.slots[number];
            if counter > slot.arrived {
                (slot.arrived, slot.open) = (counter, slot.open + 1);
            }
        }
        let (resources, _) = self.setting.instance.executors[number];
        let counter = self.setting.instance.start.wrapping_add(counter.into());
        self.setting.subject.retrieve_numbered(number as u8, resources, counter)
    }

    /// A RETRIEVE without faults, of a slot that may have waited in vain.
    pub(super) fn asks_anew(&mut self, number: usize) -> Packet {
        let counter = self.net.as_mut().map_or(0, |net| {
            net.slots[number].counter += 1;
            net.slots[number].counter
        });
        self.executors[number].waits = true;
        self.say(|_| format!("executor {number} polls with counter {counter}"));
        self.retrieve_arrives(number, counter)
    }

    /// A new arrival with the tasks that a client must still submit when all its packets and answers are lost.
    pub(super) fn submits_spare(&mut self, owner: usize) -> Option<Packet> {
        let (left, all) = (self.not_done(owner), self.all_tasks());
        let spare = self.setting.instance.batches() - 1;
        let inside = |fate: Fate| matches!(fate, Fate::Accepted { .. });
        let first = self.first(owner);
        let own = first..first + self.setting.instance.jobs[owner].len() as u32;
        let tid = |place: u32| place + 1 + spare as u32 * all;
        let is_used = own.clone().any(|place| inside(self.fates[tid(place) as usize - 1]));
        if left.is_empty() || is_used || left.iter().any(|&place| self.fates_of(place).any(inside)) {
            return None;
        }
        own.for_each(|place| self.fates[tid(place) as usize - 1] = Fate::Outside);
        let tids = left.into_iter().map(tid).collect();
        self.say(|_| format!("client {owner} submits again; "));
        Some(self.submits(owner, spare, tids))
    }

    /// The switch answers an executor; returns whether it receives the answer.
    pub(super) fn answers(&mut self, executor: u8) -> Result<bool, Broken> {
        let number = usize::from(executor);
        let is_open = self.net.as_mut().and_then(|net| net.slots.get_mut(number)).is_some_and(|slot| {
            let is_open = slot.open > 0;
            slot.open = slot.open.saturating_sub(1);
            is_open
        });
        if !is_open {
            self.ask("T2", format!("executor {executor} is answered, and asked no more: a copy took effect"))?;
        }
        let heard = !self.is_muted();
        if let Some(executor) = self.executors.get_mut(number).filter(|_| heard) {
            executor.waits = false;
        }
        Ok(heard)
    }

    /// A task was assigned. Its client gets the result if the executor received the task.
    pub(super) fn runs(&mut self, tid: u32, heard: bool) -> Result<(), Broken> {
        let Some(network) = self.setting.instance.network else { return Ok(()) };
        let place = (tid - 1) % self.all_tasks();
        let owner = (0..self.setting.instance.jobs.len()).rev().find(|&owner| self.first(owner) <= place);
        if let (Some(owner), true) = (owner, heard) {
            if network.strict && !self.not_done(owner).contains(&place) {
                self.ask("T2", format!("task {} runs a second time", place + 1))?;
            }
            let bit = place - self.first(owner);
            if let Some(net) = &mut self.net {
                net.owners[owner].done |= 1 << bit;
            }
        }
        Ok(())
    }

    /// The switch answers an arrival of a client's SUBMIT.
    pub(super) fn acknowledged(&mut self, client: u8) {
        if self.net.is_none() || self.is_muted() {
            return;
        }
        let owner = usize::from(client) % self.setting.instance.jobs.len();
        if let Some(net) = &mut self.net {
            net.owners[owner].acked = true;
        }
    }
}
