//! A run: a world from a trial, and its faults in order.

mod addresses;
mod recovery;

use super::excuses::Excuses;
use super::greedy::{Greedy, Plan};
use super::guess::CRAFT;
use super::monitor::Findings;
use super::mutants::{FIRST, MUTANTS};
use super::trial::{FaultKind, Job, Party, SwitchSpec, Trial};
use crate::check::{Checked, Mutant, Places, Rule, Subject, Trial as _, TrialRun, add_attacker};
use crate::tasks::{Command, DEAF, nodes};
use crate::{Action, NodeId, Place, World};
use midflight_dataplane::TasksConfig;
use midflight_endpoint::{MS, Nanos};
use midflight_tasks::client::{Argument, ClientConfig, Task, TaskKey};
use midflight_tasks::executor::ExecutorConfig;
use midflight_tasks::place::Preference;
use midflight_wire::tasks::{APPENDED_MAX, ARGUMENT_MAX};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// An executor clamps measured round trips to this.
const MEASURED_MAX: Nanos = 250 * MS;

const FLOOD_JOBS: u32 = 1 << 31;

/// A scheduled action; the number is the place in the trial.
pub enum ScheduledAction {
    /// Submits a job.
    Submit(usize),
    /// Cancels tasks.
    Cancel(usize),
}

/// The tasks program under faults: a cluster and its checker.
pub struct TasksSubject {
    run: TrialRun<Trial, Findings>,
    /// The switches that take over an address, by that address's switch.
    standbys: HashMap<usize, NodeId>,
}

impl Subject for TasksSubject {
    const NAME: &'static str = "tasks";
    const MUTANTS: &'static [Mutant] = MUTANTS;
    const FIRST: &'static [Rule] = FIRST;
    type Trial = Trial;
    type Findings = Findings;
    type ScheduledAction = ScheduledAction;

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
        let executor = |spec: &super::trial::ExecutorSpec| ExecutorConfig {
            ahead: spec.ahead,
            ahead_span: u64::from(spec.ahead_span_us) * 1000,
            waiting: spec.waiting,
            bundles: spec.bundles,
            places: spec.places,
            ..ExecutorConfig::new(0, 0, at.clone(), spec.slots, spec.resources)
        };
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
        let recent = add_attacker(trial, &mut world, CRAFT);
        floods(trial, &mut world, &at);
        let places = Places::default()
            .with(Party::Switch, &switches)
            .with(Party::Executor, &executors)
            .with(Party::Client, &clients);
        let mut findings = Findings::new(places.clone(), Excuses::of(trial), traced, recent);
        let excuses = Excuses::of(trial);
        (findings.callers.calm, findings.callers.forgets) = (excuses.calm, excuses.forgets);
        findings.callers.only_loses = excuses.only_loses;
        let slots = trial.executors.iter().map(|spec| spec.slots as usize);
        findings.callers.slots = executors.iter().copied().zip(slots).collect();
        let bundles = trial.executors.iter().map(|spec| spec.bundles);
        findings.holders.counts = executors.iter().copied().zip(bundles).collect();
        findings.callers.held_at_most = held_at_most(trial);
        for (jid, job) in (0..).zip(&trial.jobs) {
            let wanted = tasks(jid, job).iter().map(|task| (bytes(task), task.timeout.is_some())).collect();
            findings.callers.expect(jid, wanted);
        }
        Self { run: TrialRun::new(trial, world, places, findings), standbys }
    }

    fn trial_run(&self) -> &TrialRun<Trial, Findings> {
        &self.run
    }

    fn trial_run_mut(&mut self) -> &mut TrialRun<Trial, Findings> {
        &mut self.run
    }

    fn into_trial_run(self) -> TrialRun<Trial, Findings> {
        self.run
    }

    fn scheduled_actions(trial: &Trial) -> Vec<(Nanos, ScheduledAction)> {
        let jobs = trial.jobs.iter().enumerate().map(|(n, job)| (job.at_us * 1000, ScheduledAction::Submit(n)));
        let cancels =
            trial.cancels.iter().enumerate().map(|(n, cancel)| (cancel.at_us * 1000, ScheduledAction::Cancel(n)));
        jobs.chain(cancels).collect()
    }

    fn execute(&mut self, action: ScheduledAction) {
        match action {
            ScheduledAction::Submit(job) => self.submit(job),
            ScheduledAction::Cancel(cancel) => self.cancel(cancel),
        }
    }

    fn start_fault(&mut self, what: &FaultKind) -> bool {
        match what {
            FaultKind::Drain(executor) => self.command(Party::Executor(*executor), Command::Drain),
            FaultKind::Death(client) => self.run.crash(self.run.node(Party::Client(*client))),
            FaultKind::Move { party, .. } => self.settle(*party),
            FaultKind::Takeover(switch) => self.take_over(*switch),
            FaultKind::Mtu { .. } => self.narrow(),
            FaultKind::Flood { .. } | FaultKind::Common(_) => {}
        }
        true
    }

    fn end_fault(&mut self, what: &FaultKind) {
        match what {
            FaultKind::Drain(executor) => {
                let node = self.run.node(Party::Executor(*executor));
                self.run.crash(node);
                self.run.restart(node);
            }
            FaultKind::Move { party, .. } => self.settle(*party),
            FaultKind::Takeover(switch) => self.take_over(*switch),
            FaultKind::Mtu { .. } => self.narrow(),
            FaultKind::Death(_) | FaultKind::Flood { .. } | FaultKind::Common(_) => {}
        }
    }

    fn await_recovery(&mut self) -> Checked {
        self.all_heals().and_then(|()| self.books())
    }
}

impl TasksSubject {
    fn command(&mut self, party: Party, command: Command) {
        self.run.act(Action::command(self.run.node(party), command));
    }

    fn submit(&mut self, number: usize) {
        let job = &self.run.trial.jobs[number];
        let jid = number as u32;
        self.command(Party::Client(job.client), Command::Submit { jid, tasks: tasks(jid, job) });
    }

    fn cancel(&mut self, number: usize) {
        let cancel = self.run.trial.cancels[number];
        let Some(first) = self.run.findings().callers.first_key(cancel.job as u32) else { return };
        let keys = (cancel.first..cancel.first + cancel.count).map(|n| TaskKey(first + n as u64)).collect();
        let command = Command::Cancel { keys, stop: !cancel.queued_only };
        self.command(Party::Client(self.run.trial.jobs[cancel.job].client), command);
    }
}

fn floods(trial: &Trial, world: &mut World, switches: &[SocketAddr]) {
    for (number, fault) in trial.faults.iter().enumerate() {
        let FaultKind::Flood { sources, packets } = fault.what else { continue };
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
        // Room for the longest argument of each task: a full queue is full enough.
        arguments: (spec.queue / 2).max(8),
        queue: spec.queue,
        slots: spec.slots,
        clients: spec.clients,
        levels: spec.levels,
        places: spec.places,
        lease_ns: spec.lease_ms * MS,
        slot_idle_ns: spec.slot_idle_ms * MS,
        client_idle_ns: spec.client_idle_ms * MS,
        cookie_ns: spec.cookie_ms * MS,
    }
}

/// A job's tasks. Each argument, and so each result, is unique: run time, job, index. Some results are so long that two
/// do not share a packet (T15).
fn tasks(jid: u32, job: &Job) -> Vec<Task> {
    let task = |(n, spec): (u32, &super::trial::TaskSpec)| {
        let mut argument = [0; 16];
        argument[..8].copy_from_slice(&(spec.run_us * 1000).to_be_bytes());
        argument[1] |= if spec.deaf { DEAF } else { 0 };
        argument[0] = if n % 4 == 3 { n as u8 / 4 % 8 * 9 } else { 0 };
        argument[8..12].copy_from_slice(&jid.to_be_bytes());
        argument[12..].copy_from_slice(&n.to_be_bytes());
        Task {
            priority: spec.priority,
            resources: spec.resources,
            timeout: (spec.timeout_ms > 0).then_some(spec.timeout_ms * MS),
            attempts: spec.attempts,
            prefer: (spec.place != 0).then_some(Preference { place: spec.place, patience_ms: spec.patience_ms }),
            ..Task::new(1, sent_as(argument, jid, n))
        }
    };
    (0..).zip(&job.tasks).map(task).collect()
}

/// Inline, or of a third of the tasks repeated until it is long enough to be appended.
fn sent_as(argument: [u8; 16], jid: u32, n: u32) -> Argument {
    if n % 3 != 1 {
        return Argument::Inline { bytes: argument, length: 16 };
    }
    let length =
        ARGUMENT_MAX + 1 + (jid.wrapping_mul(31).wrapping_add(n * 97) as usize) % (APPENDED_MAX - ARGUMENT_MAX);
    Argument::Appended(Arc::new(argument.into_iter().cycle().take(length).collect()))
}

/// Longest time of a task at its executor before it starts or goes back: two spans. A round trip may include a slot's
/// parking, which the executor cannot tell from a returned task.
fn held_at_most(trial: &Trial) -> Nanos {
    let net = &trial.network;
    2 * MEASURED_MAX.max(2 * 1_000 * (net.delay_max_us + net.reordering_us))
}

fn bytes(task: &Task) -> [u8; 16] {
    match &task.argument {
        Argument::Inline { bytes, .. } => *bytes,
        Argument::Appended(bytes) => bytes[..16].try_into().expect("it is longer"),
        Argument::ByReference(_) => [0; 16],
    }
}
