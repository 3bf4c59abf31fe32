//! A run: a world from a trial, and its faults in their order.

mod addresses;
mod heal;

use super::attacker::{Attack, Attacker, Recent};
use super::excuses::Excuses;
use super::greedy::{Greedy, Plan};
use super::monitor::{Findings, Monitor, Places};
use super::mutants::MUTANTS;
use super::trial::{Job, Party, SwitchSpec, Trial, What};
use crate::check::{Checked, Disturbed, Mutant, Subject, Violation, act};
use crate::tasks::{Command, nodes};
use crate::{Action, NodeId, Place, World};
use midflight_dataplane::TasksConfig;
use midflight_endpoint::{MS, Nanos};
use midflight_tasks::client::{Argument, ClientConfig, Task, TaskKey};
use midflight_tasks::executor::ExecutorConfig;
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;

/// The number of the first job of a flood.
const FLOOD_JOBS: u32 = 1 << 31;

/// A scheduled step. The end of a fault stands behind steps that begin at the same time.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begin(usize),
    End(usize),
    Submit(usize),
    Cancel(usize),
}

/// The tasks program under faults: a cluster and its checker.
pub struct TasksSubject {
    trial: Rc<Trial>,
    world: World,
    findings: Rc<RefCell<Findings>>,
    /// The trial's switches, then those that take over addresses.
    switches: Vec<NodeId>,
    /// The switches that take over addresses, by the switch whose address it is.
    standbys: HashMap<usize, NodeId>,
    executors: Vec<NodeId>,
    clients: Vec<NodeId>,
    disturbed: Disturbed,
    /// Present faults, in the order in which they began.
    lasting: Vec<usize>,
    befell: u64,
}

impl Subject for TasksSubject {
    const NAME: &'static str = "tasks";
    const MUTANTS: &'static [Mutant] = MUTANTS;
    type Trial = Trial;

    fn draw(seed: u64) -> Trial {
        Trial::draw(seed)
    }

    fn build(trial: &Trial, traced: bool) -> Self {
        let mut world = World::new(trial.seed, trial.network.faults());
        let configs: Vec<_> = trial.switches.iter().map(config).collect();
        let sound = "a trial is validated before it is run";
        let mut switches: Vec<_> =
            configs.iter().map(|config| nodes::add_switch(&mut world, *config).expect(sound)).collect();
        let at: Vec<_> = switches.iter().map(|switch| world.address(*switch)).collect();
        let executor =
            |spec: &super::trial::ExecutorSpec| ExecutorConfig::new(0, 0, at.clone(), spec.slots, spec.resources);
        let executors: Vec<_> =
            trial.executors.iter().map(|spec| nodes::add_executor(&mut world, executor(spec)).expect(sound)).collect();
        let client = |spec: &super::trial::ClientSpec| ClientConfig {
            window_max: spec.window,
            ..ClientConfig::new(0, 0, at.clone())
        };
        let clients: Vec<_> =
            trial.clients.iter().map(|spec| nodes::add_client(&mut world, client(spec)).expect(sound)).collect();
        let mut standbys = HashMap::new();
        for switch in trial.taken_over() {
            let node = nodes::add_switch(&mut world, configs[switch]).expect(sound);
            standbys.insert(switch, node);
            switches.push(node);
        }
        let recent = attacker(trial, &mut world);
        floods(trial, &mut world, &at);
        let places = Places { switches: switches.clone(), executors: executors.clone(), clients: clients.clone() };
        let mut findings = Findings::new(places, Excuses::of(trial), traced, recent);
        findings.callers.calm = Excuses::of(trial).calm;
        let findings = Rc::new(RefCell::new(findings));
        for (jid, job) in (0..).zip(&trial.jobs) {
            let wanted = tasks(jid, job).iter().map(|task| (bytes(task), task.timeout.is_some())).collect();
            findings.borrow_mut().callers.expect(jid, wanted);
        }
        world.set_observer(Box::new(Monitor(Rc::clone(&findings))));
        let (trial, disturbed, lasting) = (Rc::new(trial.clone()), Disturbed::default(), Vec::new());
        Self { trial, world, findings, switches, standbys, executors, clients, disturbed, lasting, befell: 0 }
    }

    fn judge(&mut self) -> Checked {
        self.script()
    }

    fn heal(&mut self) -> Checked {
        self.all_heals().and_then(|()| self.books())
    }

    fn world(&self) -> &World {
        &self.world
    }

    fn faults(&self) -> u64 {
        self.befell
    }

    fn violation(&self) -> Option<Violation> {
        self.findings.borrow().broken.clone().map(|(at, broken)| Violation { at, broken })
    }

    fn into_lines(self) -> Vec<String> {
        let trace = self.findings.borrow_mut().trace.take();
        trace.map(|trace| trace.into_lines()).unwrap_or_default()
    }
}

impl TasksSubject {
    /// All steps of the trial, with their times.
    fn script(&mut self) -> Checked {
        let trial = Rc::clone(&self.trial);
        let mut steps = Vec::new();
        for (n, fault) in trial.faults.iter().enumerate() {
            let (begin, end) = trial.times(fault);
            steps.push((begin, Step::Begin(n)));
            steps.push((end, Step::End(n)));
        }
        steps.extend(trial.jobs.iter().enumerate().map(|(n, job)| (job.at_us * 1000, Step::Submit(n))));
        steps.extend(trial.cancels.iter().enumerate().map(|(n, cancel)| (cancel.at_us * 1000, Step::Cancel(n))));
        steps.sort_by_key(|(at, _)| *at);
        for (at, step) in steps {
            self.run_until(at)?;
            match step {
                Step::Begin(fault) => self.begin(fault),
                Step::End(fault) => self.end(fault),
                Step::Submit(job) => self.submit(job),
                Step::Cancel(cancel) => self.cancel(cancel),
            }
        }
        self.run_until(trial.heal_ms * MS)
    }

    /// `Err` as soon as a rule is broken.
    fn run_until(&mut self, at: Nanos) -> Checked {
        let findings = Rc::clone(&self.findings);
        self.world.run(at, |_| findings.borrow().broken.is_some());
        self.so_far()
    }

    fn so_far(&self) -> Checked {
        self.findings.borrow().broken.as_ref().map_or(Ok(()), |(_, broken)| Err(broken.clone()))
    }

    fn node(&self, party: Party) -> NodeId {
        match party {
            Party::Switch(n) => self.switches[n],
            Party::Executor(n) => self.executors[n],
            Party::Client(n) => self.clients[n],
        }
    }

    /// It happens before any other step.
    fn act(&mut self, action: Action) {
        act(&mut self.world, action);
    }

    fn begin(&mut self, number: usize) {
        let trial = Rc::clone(&self.trial);
        self.befell += 1;
        self.lasting.push(number);
        match &trial.faults[number].what {
            What::Crash(party) => {
                let node = self.node(*party);
                self.disturbed.crash(&mut self.world, node);
            }
            What::Pause(party) => {
                let node = self.node(*party);
                self.disturbed.pause(&mut self.world, node);
            }
            What::Drift { party, ppm, ahead_ms } => {
                self.act(Action::Drift { node: self.node(*party), ppm: *ppm, offset: ahead_ms * MS });
            }
            What::Partition { .. } => self.partition(),
            What::Burst(net) => self.act(Action::Faults(net.faults())),
            What::Drain(executor) => self.act(Action::command(self.executors[*executor], Command::Drain)),
            What::Death(client) => self.disturbed.crash(&mut self.world, self.clients[*client]),
            What::Move { party, .. } => self.settle(*party),
            What::Takeover(switch) => self.take_over(*switch),
            What::Mtu { .. } => self.narrow(),
            What::Garbage(_) | What::Forged(_) | What::Replayed(_) | What::Guessed(_) | What::Flood { .. } => {}
        }
    }

    fn end(&mut self, number: usize) {
        let trial = Rc::clone(&self.trial);
        if !trial.faults[number].what.has_no_end() {
            self.lasting.retain(|lasting| *lasting != number);
        }
        match &trial.faults[number].what {
            What::Crash(party) => {
                let node = self.node(*party);
                self.disturbed.restart(&mut self.world, node);
            }
            What::Pause(party) => {
                let node = self.node(*party);
                self.disturbed.resume(&mut self.world, node);
            }
            What::Drift { party, .. } => self.act(Action::Drift { node: self.node(*party), ppm: 0, offset: 0 }),
            What::Partition { .. } => self.partition(),
            What::Burst(_) => {
                let net = |number: &usize| match &trial.faults[*number].what {
                    What::Burst(net) => Some(net),
                    _ => None,
                };
                let net = self.lasting.iter().rev().find_map(net).unwrap_or(&trial.network);
                self.act(Action::Faults(net.faults()));
            }
            What::Drain(executor) => {
                let node = self.executors[*executor];
                self.disturbed.crash(&mut self.world, node);
                self.disturbed.restart(&mut self.world, node);
            }
            What::Move { party, .. } => self.settle(*party),
            What::Takeover(switch) => self.take_over(*switch),
            What::Mtu { .. } => self.narrow(),
            What::Death(_) => {}
            What::Garbage(_) | What::Forged(_) | What::Replayed(_) | What::Guessed(_) | What::Flood { .. } => {}
        }
    }

    /// Applies the present partitions.
    fn partition(&mut self) {
        let trial = Rc::clone(&self.trial);
        self.act(Action::Heal);
        for number in self.lasting.clone() {
            if let What::Partition { from, to, both } = &trial.faults[number].what {
                let nodes = |parties: &[Party]| parties.iter().map(|party| self.node(*party)).collect();
                self.act(Action::Partition { from: nodes(from), to: nodes(to), both: *both });
            }
        }
    }

    fn submit(&mut self, number: usize) {
        let job = &self.trial.jobs[number];
        let jid = number as u32;
        self.act(Action::command(self.clients[job.client], Command::Submit { jid, tasks: tasks(jid, job) }));
    }

    fn cancel(&mut self, number: usize) {
        let cancel = self.trial.cancels[number];
        let Some(first) = self.findings.borrow().callers.first_key(cancel.job as u32) else { return };
        let keys = (cancel.first..cancel.first + cancel.count).map(|n| TaskKey(first + n as u64)).collect();
        self.act(Action::command(self.clients[self.trial.jobs[cancel.job].client], Command::Cancel(keys)));
    }
}

/// The attacker's node, if the trial has one, and the datagrams that it may overhear.
fn attacker(trial: &Trial, world: &mut World) -> Recent {
    let mut attacks = Vec::new();
    for fault in &trial.faults {
        let (count, attack) = match fault.what {
            What::Garbage(count) => (count, Attack::Garbage),
            What::Forged(count) => (count, Attack::Forge),
            What::Replayed(count) => (count, Attack::Replay),
            What::Guessed(count) => (count, Attack::Guess),
            _ => continue,
        };
        let every = fault.for_ms * MS / u64::from(count.max(1));
        attacks.extend((0..u64::from(count)).map(|n| (fault.at_ms * MS + n * every, attack)));
    }
    if attacks.is_empty() {
        return Recent::default();
    }
    attacks.sort_by_key(|(at, _)| *at);
    let recent = Recent::listening();
    let overheard = recent.clone();
    world.add_actor(
        Place::Apart,
        Box::new(move |_| Box::new(Attacker { recent: overheard.clone(), attacks: attacks.clone().into() })),
    );
    recent
}

/// A node for each source of a flood.
fn floods(trial: &Trial, world: &mut World, switches: &[SocketAddr]) {
    for (number, fault) in trial.faults.iter().enumerate() {
        let What::Flood { sources, packets } = fault.what else { continue };
        let (begin, end) = trial.times(fault);
        let every = (end - begin) / u64::from(packets.max(1));
        for source in 0..sources {
            let plan = Plan {
                switches: switches.to_vec(),
                times: (0..u64::from(packets)).map(|n| begin + n * every).collect(),
                jid: FLOOD_JOBS + 16 * number as u32 + source,
            };
            world.add_actor(Place::Apart, Box::new(move |_| Box::new(Greedy::new(plan.clone()))));
        }
    }
}

fn config(spec: &SwitchSpec) -> TasksConfig {
    TasksConfig {
        queue: spec.queue,
        slots: spec.slots,
        clients: spec.clients,
        levels: spec.levels,
        lease_ns: spec.lease_ms * MS,
        slot_idle_ns: spec.slot_idle_ms * MS,
        client_idle_ns: spec.client_idle_ms * MS,
        cookie_ns: spec.cookie_ms * MS,
    }
}

/// A job's tasks. Each argument, and so each result, is one of its own: run time, job, place in it.
fn tasks(jid: u32, job: &Job) -> Vec<Task> {
    let task = |(n, spec): (u32, &super::trial::TaskSpec)| {
        let mut argument = [0; 16];
        argument[..8].copy_from_slice(&(spec.run_us * 1000).to_be_bytes());
        argument[8..12].copy_from_slice(&jid.to_be_bytes());
        argument[12..].copy_from_slice(&n.to_be_bytes());
        Task {
            priority: spec.priority,
            resources: spec.resources,
            timeout: (spec.timeout_ms > 0).then_some(spec.timeout_ms * MS),
            attempts: spec.attempts,
            ..Task::new(1, Argument::Inline { bytes: argument, length: 16 })
        }
    };
    (0..).zip(&job.tasks).map(task).collect()
}

fn bytes(task: &Task) -> [u8; 16] {
    match task.argument {
        Argument::Inline { bytes, .. } => bytes,
        Argument::ByReference(_) => [0; 16],
    }
}
