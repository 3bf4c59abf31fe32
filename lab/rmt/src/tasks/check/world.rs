//! A state, its steps, and the rules that each must keep.

use super::net::{Net, Sending};
use super::{Instance, Order, PassOutcome, Seen, Subject, Task};
use crate::{Crossing, Machine, Outputs, Packet, To};
use std::fmt::Write;

/// Polls of an executor that asks for ever.
pub(super) const FOREVER: u8 = 127;

/// A broken rule, and what happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broken {
    /// T1 to T7 of `docs/internals/tasks.md`; "registers": the program's own invariants; "progress".
    pub rule: &'static str,
    /// Description of the event.
    pub what: String,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    Submit(u8),
    Poll(u8),
    /// The packet with this number among those inside.
    Pass(u8),
    /// That packet is lost.
    Lose(u8),
    /// The egress of the packet with this number among those between the pipelines.
    Leave(u8),
    /// A client sends what is not done, with this fate; `mute`: the answer of that pass is lost.
    Send {
        owner: u8,
        sending: Sending,
        mute: bool,
    },
    /// A client's SUBMIT with this number in the network arrives.
    Arrive {
        owner: u8,
        copy: u8,
        mute: bool,
    },
    /// An executor asks, for the first time or again.
    Ask {
        executor: u8,
        sending: Sending,
        mute: bool,
    },
    /// An executor's RETRIEVE with this number in the network arrives.
    Come {
        executor: u8,
        copy: u8,
        mute: bool,
    },
    /// A pass whose answer is lost.
    Mute(u8),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Client {
    /// To be sent.
    pub(super) todo: Vec<u32>,
    /// Sent, and not answered.
    pub(super) sent: Vec<u32>,
    pub(super) retries: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Executor {
    pub(super) polls: u8,
    pub(super) waits: bool,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The switch has not taken it.
    Outside,
    Accepted {
        /// A search has held it.
        moved: bool,
    },
    Assigned,
}

/// The constant part of all states.
#[derive(Debug)]
pub(super) struct Setting<S> {
    pub(super) subject: S,
    pub(super) instance: Instance,
    pub(super) tasks: Vec<Task>,
    pub(super) order: Order,
    pub(super) machine: Machine,
}

impl<S: Subject> Setting<S> {
    pub(super) fn new(subject: S, instance: Instance) -> Self {
        let (mut tasks, order, machine) = (instance.tasks(), instance.order(), subject.machine(instance.start));
        // Each arrival of a SUBMIT has its own tasks: the program does not read their numbers.
        let number = tasks.len();
        for arrival in 1..instance.batches() {
            let again = |n: usize| Task { tid: tasks[n].tid + (arrival * number) as u32, ..tasks[n] };
            let again: Vec<Task> = (0..number).map(again).collect();
            tasks.extend(again);
        }
        Self { subject, instance, tasks, order, machine }
    }

    pub(super) fn holds(&self, rule: &str) -> bool {
        self.instance.rules.as_ref().is_none_or(|rules| rules.contains(&rule))
    }

    pub(super) fn task(&self, tid: u32) -> Option<Task> {
        self.tasks.get((tid as usize).checked_sub(1)?).copied()
    }
}

pub(super) struct World<'a, S> {
    pub(super) setting: &'a Setting<S>,
    pub(super) machine: Machine,
    pub(super) flight: Vec<Packet>,
    /// Packets between the pipelines, in order of arrival.
    pub(super) between: Vec<Crossing>,
    /// How many packets may yet be lost.
    pub(super) drops: u8,
    pub(super) clients: Vec<Client>,
    pub(super) executors: Vec<Executor>,
    pub(super) fates: Vec<Fate>,
    /// Of each level the accepted tasks that are not assigned, in the order of acceptance.
    pub(super) order: Vec<Vec<u32>>,
    pub(super) seen: Seen,
    /// The network and the endpoints, if the instance has them.
    pub(super) net: Option<Net>,
    /// The next answer is lost.
    pub(super) mute: bool,
    /// The text of the steps, if requested.
    pub(super) log: Option<String>,
}

impl<'a, S: Subject> World<'a, S> {
    pub(super) fn new(setting: &'a Setting<S>) -> Self {
        let instance = &setting.instance;
        let (mut clients, mut tids) = (Vec::new(), 1..);
        for job in &instance.jobs {
            let todo = tids.by_ref().take(job.len()).collect();
            clients.push(Client { todo, sent: Vec::new(), retries: instance.retries });
        }
        let net = instance.network.map(|network| {
            // A client for each arrival, which sends nothing by itself.
            clients = vec![Client::default(); instance.jobs.len() * instance.batches()];
            Net::new(network, instance.jobs.len(), instance.executors.len())
        });
        Self {
            setting,
            machine: setting.machine.clone(),
            flight: Vec::new(),
            between: Vec::new(),
            drops: instance.drops,
            clients,
            executors: instance.executors.iter().map(|&(_, polls)| Executor { polls, waits: false }).collect(),
            fates: vec![Fate::Outside; setting.tasks.len()],
            order: vec![Vec::new(); setting.subject.levels().into()],
            seen: Seen::default(),
            net,
            mute: false,
            log: None,
        }
    }

    /// All possible next steps. Of equal packets one is enough; they are sorted.
    pub(super) fn steps(&self) -> Vec<Step> {
        let number = |n: usize| u8::try_from(n).unwrap_or(u8::MAX);
        let submits = self.clients.iter().enumerate();
        let submits = submits.filter(|(_, client)| !client.todo.is_empty() || self.times_out(client));
        let polls = self.executors.iter().enumerate().filter(|(_, executor)| executor.polls > 0 && !executor.waits);
        let alike = |n: usize| n > 0 && self.flight[n] == self.flight[n - 1];
        let polls = polls.filter(|_| !self.setting.instance.informed || self.queues().iter().any(|q| !q.is_empty()));
        let mut passes: Vec<u8> = (0..self.flight.len()).filter(|&n| !alike(n)).map(number).collect();
        if self.setting.instance.fifo {
            passes.truncate(1);
        }
        let losses = passes.iter().filter(|_| self.drops > 0);
        let first = |&n: &usize| !self.between[..n].iter().any(|other| other.to() == self.between[n].to());
        let leaves = (0..self.between.len()).filter(first);
        let steps = submits.map(|(n, _)| Step::Submit(number(n))).chain(polls.map(|(n, _)| Step::Poll(number(n))));
        let steps = steps.chain(passes.iter().map(|&n| Step::Pass(n))).chain(losses.map(|&n| Step::Lose(n)));
        let steps = steps.chain(leaves.map(|n| Step::Leave(number(n))));
        if self.net.is_some() {
            steps.filter(|step| !matches!(step, Step::Poll(_))).chain(self.net_steps(&passes)).collect()
        } else {
            steps.collect()
        }
    }

    fn times_out(&self, client: &Client) -> bool {
        let rest = self.flight.is_empty() && self.between.is_empty();
        self.setting.instance.timeouts && rest && self.unheard(client).is_some()
    }

    /// A task that was sent and is not in the switch, while its client waits.
    pub(super) fn unheard(&self, client: &Client) -> Option<u32> {
        client.sent.iter().copied().find(|&tid| self.fates[tid as usize - 1] == Fate::Outside)
    }

    pub(super) fn step(&mut self, step: Step) -> Result<(), Broken> {
        let result = match step {
            Step::Submit(client) => {
                let packet = self.submit(client);
                self.enter(packet)
            }
            Step::Poll(executor) => {
                let packet = self.poll(executor);
                self.enter(packet)
            }
            Step::Pass(number) | Step::Mute(number) => {
                self.mute(matches!(step, Step::Mute(_)));
                let packet = self.flight.remove(number.into());
                self.say(|world| world.setting.subject.describe(&packet));
                self.enter(packet)
            }
            Step::Lose(number) => {
                let packet = self.flight.remove(number.into());
                self.say(|world| format!("{} is lost\n", world.setting.subject.describe(&packet)));
                self.drops -= 1;
                self.account(&[])
            }
            Step::Leave(number) => {
                let crossing = self.between.remove(number.into());
                self.say(|world| format!("egress of {}", world.setting.subject.describe(crossing.packet())));
                self.leave(crossing, None)
            }
            Step::Send { owner, sending, mute } => {
                self.mute(mute);
                self.send(owner.into(), sending)
            }
            Step::Arrive { owner, copy, mute } => {
                self.mute(mute);
                self.arrives(owner.into(), copy.into())
            }
            Step::Ask { executor, sending, mute } => {
                self.mute(mute);
                self.asks(executor.into(), sending)
            }
            Step::Come { executor, copy, mute } => {
                self.mute(mute);
                self.comes(executor.into(), copy.into())
            }
        };
        self.say(|world| {
            let levels = 1..=world.setting.subject.levels();
            let queues = levels.map(|level| world.setting.subject.show(&world.machine, level));
            format!("      queues: {}\n", queues.collect::<Vec<_>>().join(" "))
        });
        result
    }

    pub(super) fn say(&mut self, text: impl Fn(&Self) -> String) {
        if let Some(mut log) = self.log.take() {
            log.push_str(&text(self));
            self.log = Some(log);
        }
    }

    pub(super) fn submit(&mut self, number: u8) -> Packet {
        let client = &mut self.clients[usize::from(number)];
        if !client.todo.is_empty() {
            client.sent = std::mem::take(&mut client.todo);
        }
        let tasks: Vec<Task> = client.sent.iter().map(|&tid| self.setting.tasks[tid as usize - 1]).collect();
        let name = |task: &Task| format!(" {} (level {}, resources {})", task.tid, task.level, task.resources);
        self.say(|_| format!("client {number} submits{}", tasks.iter().map(name).collect::<String>()));
        self.setting.subject.submit(number, &tasks)
    }

    pub(super) fn poll(&mut self, number: u8) -> Packet {
        let executor = &mut self.executors[usize::from(number)];
        executor.waits = true;
        if executor.polls != FOREVER {
            executor.polls = executor.polls.saturating_sub(1);
        }
        let (resources, _) = self.setting.instance.executors[usize::from(number)];
        self.say(|_| format!("executor {number} (resources {resources}) polls"));
        self.setting.subject.retrieve(number, resources)
    }

    fn queues(&self) -> Vec<Vec<u32>> {
        let subject = &self.setting.subject;
        (1..=subject.levels()).map(|level| subject.queued(&self.machine, level)).collect()
    }

    /// A pass, or its first half.
    pub(super) fn enter(&mut self, packet: Packet) -> Result<(), Broken> {
        if !self.setting.instance.halves {
            return self.pass(packet);
        }
        let (crossing, copy) = self.machine.ingress(packet);
        if let To::Dropped(_) = crossing.to() {
            return self.leave(crossing, copy);
        }
        self.flight.extend(copy);
        self.say(|_| format!(" → between, {:?}\n", crossing.to()));
        self.between.push(crossing);
        Ok(())
    }

    /// The second half; the copy is of the first.
    fn leave(&mut self, crossing: Crossing, copy: Option<Packet>) -> Result<(), Broken> {
        let (sent, other) = self.machine.egress(crossing);
        self.come(Outputs { packet: sent, copies: [copy, other] }, Ok(()))
    }

    pub(super) fn pass(&mut self, packet: Packet) -> Result<(), Broken> {
        let subject = &self.setting.subject;
        let asked = subject.asks(&packet).map(|level| (level, self.queues()));
        let searched = subject.searches(&packet).map(|level| (level, self.queues()));
        let outputs = self.machine.pass(packet);
        let levels = asked.map_or(Ok(()), |(level, queues)| self.levels(level, &queues, &outputs));
        let lower = searched.map_or(Ok(()), |(level, queues)| self.lower_levels(level, &queues, &outputs));
        self.come(outputs, levels.and(lower))
    }

    /// T4: a search that ends without a task leaves no lower level that has one.
    fn lower_levels(&self, level: u8, queues: &[Vec<u32>], outputs: &Outputs) -> Result<(), Broken> {
        let ends = matches!(self.setting.subject.told(&outputs.packet), PassOutcome::NoOp { .. });
        let mut lower = (level + 1..).zip(queues.iter().skip(level.into())).filter(|(_, queue)| !queue.is_empty());
        match lower.next() {
            Some((left, _)) if ends => self.ask("T4", format!("level {left} had tasks, and the search ended above it")),
            _ => Ok(()),
        }
    }

    /// Records and checks the result of a pass; `known` is the result of the checks before it.
    fn come(&mut self, outputs: Outputs, known: Result<(), Broken>) -> Result<(), Broken> {
        let subject = &self.setting.subject;
        let told: Vec<_> = outputs.into_iter().map(|sent| (subject.told(&sent), sent.packet)).collect();
        self.say(|_| told.iter().fold(String::new(), |text, (told, _)| format!("{text} → {told:?}")) + "\n");
        known?;
        // Tasks accepted in this pass are recorded before any answer is checked.
        let (round, out): (Vec<_>, Vec<_>) = told.into_iter().partition(|(told, _)| *told == PassOutcome::Round);
        self.flight.extend(round.into_iter().map(|(_, packet)| packet));
        let mut leaving: Vec<u32> = out.iter().flat_map(|(told, _)| told.tids()).copied().collect();
        leaving.retain(|&tid| self.accepted(tid));
        if self.between.is_empty() {
            self.account(&leaving)?;
        }
        out.into_iter().try_for_each(|(told, _)| self.told(told))
    }

    /// T4: levels above the task's had none, and it was the first of its own.
    fn levels(&self, asked: u8, queues: &[Vec<u32>], outputs: &Outputs) -> Result<(), Broken> {
        let subject = &self.setting.subject;
        let got = match subject.told(&outputs.packet) {
            // It was stopped before it looked at a level; T7 requires an answer if one is due.
            PassOutcome::Gone => return Ok(()),
            PassOutcome::Assigned { tid, .. } => Some(tid),
            PassOutcome::Round => subject.held(&outputs.packet.packet),
            _ => None,
        };
        let next = subject.asks(&outputs.packet.packet).filter(|_| subject.told(&outputs.packet) == PassOutcome::Round);
        let level = got.and_then(|tid| self.setting.task(tid)).map(|task| task.level);
        let below = level.or(next).unwrap_or(subject.levels() + 1);
        let queue = |level: u8| &queues[usize::from(level) - 1];
        if let Some(skipped) = (asked..below).find(|&level| !queue(level).is_empty()) {
            self.ask("T4", format!("level {skipped} had tasks, and was passed over"))?;
        }
        match (got, level) {
            (Some(tid), Some(level)) if queue(level).first() != Some(&tid) => {
                self.ask("T3", format!("task {tid} was not at the head of its queue"))
            }
            _ => Ok(()),
        }
    }

    /// Locates all tasks: each accepted one is in exactly one place.
    fn account(&mut self, leaving: &[u32]) -> Result<(), Broken> {
        let queues = self.queues();
        for (number, queue) in queues.iter().enumerate() {
            for &tid in queue {
                let Some(task) = self.setting.task(tid) else {
                    self.ask("T1", format!("an entry in the queue holds no task ({tid})"))?;
                    continue;
                };
                if usize::from(task.level) != number + 1 {
                    self.ask("T4", format!("task {tid} is in the queue of level {}", number + 1))?;
                }
                if self.fates[tid as usize - 1] == Fate::Outside {
                    self.fates[tid as usize - 1] = Fate::Accepted { moved: false };
                    self.order[number].push(tid);
                }
            }
        }
        let held: Vec<u32> = self.flight.iter().filter_map(|packet| self.setting.subject.held(packet)).collect();
        self.seen.held += held.len() as u64;
        for &tid in &held {
            match self.fates.get_mut((tid as usize).wrapping_sub(1)) {
                Some(Fate::Accepted { moved }) => *moved = true,
                _ => self.ask("T1", format!("a packet holds task {tid}, which the switch has not taken"))?,
            }
        }
        for (tid, fate) in (1..).zip(&self.fates) {
            let places = queues.iter().flatten().chain(&held).chain(leaving).filter(|&&there| there == tid).count();
            match (fate, places) {
                (Fate::Accepted { .. }, 0) => self.ask("T1", format!("task {tid} is lost"))?,
                (Fate::Accepted { .. }, 1) | (_, 0) => {}
                _ => self.ask("T2", format!("task {tid} is in {places} places, and {fate:?}"))?,
            }
        }
        self.registers(&queues, &held)
    }

    fn registers(&self, queues: &[Vec<u32>], held: &[u32]) -> Result<(), Broken> {
        for (level, queue) in (1..).zip(queues) {
            let of_level = |tid: &&u32| self.setting.task(**tid).is_some_and(|task| task.level == level);
            let held = held.iter().filter(of_level).count();
            if queue.len() + held > self.setting.subject.size() {
                self.ask("registers", format!("level {level} has {} tasks", queue.len() + held))?;
            }
            let sound = self.setting.subject.sound(&self.machine, level, held);
            sound.or_else(|what| self.ask("registers", format!("level {level}: {what}")))?;
            let mut order = self.order[usize::from(level) - 1].iter();
            if self.setting.order != Order::Held && !queue.iter().all(|tid| order.any(|next| next == tid)) {
                self.ask("T3", format!("level {level}'s queue is out of order: {queue:?}"))?;
            }
        }
        Ok(())
    }

    pub(super) fn accepted(&self, tid: u32) -> bool {
        matches!(self.fates.get((tid as usize).wrapping_sub(1)), Some(Fate::Accepted { .. }))
    }

    /// Reports a broken rule, if the instance checks it.
    pub(super) fn ask(&self, rule: &'static str, what: impl Into<String>) -> Result<(), Broken> {
        if self.setting.holds(rule) { Err(Broken { rule, what: what.into() }) } else { Ok(()) }
    }
}

/// These steps as a text, and the state in which they end.
pub(super) fn narrate<S: Subject>(setting: &Setting<S>, steps: &[Step]) -> (String, Option<Broken>) {
    let mut world = World::new(setting);
    let mut text = String::new();
    for (number, &step) in (1..).zip(steps) {
        world.log = Some(String::new());
        let result = world.step(step);
        let said = world.log.take().unwrap_or_default();
        write!(text, "{number:>4}  {said}").expect("memory");
        if let Err(broken) = result {
            return (text, Some(broken));
        }
        super::pack::sort(&mut world);
    }
    let (cycle, stuck) = world.ends();
    (text + &cycle, stuck)
}
