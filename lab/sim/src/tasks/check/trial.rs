//! A trial: a cluster, its work and its faults, as data. A run is a pure function of it.

use super::smaller;
use crate::check::{self, BadTrial, Common, Net, Pass, keep, keep_place};
use midflight_dataplane::TasksConfig;
use midflight_endpoint::Nanos;
use midflight_tasks::executor::{AHEAD_MAX, AHEAD_SPAN_MAX, BUNDLES_MAX, WAITING_MAX};
use midflight_tasks::resources::RESOURCE_BITS;
use midflight_wire::tasks::SLOT_PLACES;
use serde::{Deserialize, Serialize};

/// An hour: the latest event and the longest duration.
const LONGEST_MS: u64 = 3_600_000;
const LONGEST_US: u64 = LONGEST_MS * 1_000;

/// All input of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// Seed of all randomness in the world: identities, delays, losses.
    pub seed: u64,
    /// When all faults end: dead processes restart, and the network is normal again.
    pub heal_ms: u64,
    /// The network outside of faults.
    pub network: Net,
    /// At least one, in the order of preference.
    pub switches: Vec<SwitchSpec>,
    /// At least one.
    pub executors: Vec<ExecutorSpec>,
    /// At least one.
    pub clients: Vec<ClientSpec>,
    /// The submitted jobs.
    #[serde(default)]
    pub jobs: Vec<Job>,
    /// The cancellations of tasks.
    #[serde(default)]
    pub cancels: Vec<Cancel>,
    /// The faults.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

/// A switch's bounds and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "as in `TasksConfig`")]
pub struct SwitchSpec {
    pub queue: u32,
    pub slots: u32,
    pub clients: u32,
    pub levels: u32,
    #[serde(default = "usual_places", skip_serializing_if = "are_usual_places")]
    pub places: u32,
    pub lease_ms: u64,
    pub slot_idle_ms: u64,
    pub client_idle_ms: u64,
    pub cookie_ms: u64,
}

/// An executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "as in `ExecutorConfig`")]
pub struct ExecutorSpec {
    pub slots: u32,
    pub resources: u8,
    #[serde(default, skip_serializing_if = "is_none")]
    pub ahead: u32,
    #[serde(default, skip_serializing_if = "is_none")]
    pub ahead_span_us: u32,
    #[serde(default, skip_serializing_if = "is_none")]
    pub waiting: u32,
    /// Bundles of each resource, by its bit; 0: not counted.
    #[serde(default, skip_serializing_if = "is_uncounted")]
    pub bundles: [u16; RESOURCE_BITS as usize],
    #[serde(default, skip_serializing_if = "is_nowhere")]
    pub places: [u32; SLOT_PLACES],
}

/// A client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientSpec {
    /// Maximum SUBMITs in flight.
    pub window: u32,
}

/// Tasks that are submitted together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// When it is submitted.
    pub at_us: u64,
    /// The client that submits it.
    pub client: usize,
    /// Its tasks.
    pub tasks: Vec<TaskSpec>,
}

/// A task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskSpec {
    /// Its run time.
    pub run_us: u64,
    /// 1 is the highest.
    pub priority: u8,
    /// Resources that its executor must have.
    pub resources: u8,
    /// Time-out of an attempt; 0: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub timeout_ms: u64,
    /// Maximum attempts after time-outs.
    #[serde(default = "three", skip_serializing_if = "is_three")]
    pub attempts: u32,
    /// Ignores a stop and runs to its end.
    #[serde(default, skip_serializing_if = "is_false")]
    pub deaf: bool,
    /// Preferred place; 0: anywhere.
    #[serde(default, skip_serializing_if = "is_none")]
    pub place: u32,
    /// How long it waits for its place.
    #[serde(default, skip_serializing_if = "is_none")]
    pub patience_ms: u32,
}

fn usual_places() -> u32 {
    TasksConfig::default().places
}

fn are_usual_places(places: &u32) -> bool {
    *places == usual_places()
}

fn is_nowhere(places: &[u32; SLOT_PLACES]) -> bool {
    *places == [0; SLOT_PLACES]
}

fn is_false(yes: &bool) -> bool {
    !yes
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_none(number: &u32) -> bool {
    *number == 0
}

fn is_uncounted(bundles: &[u16; RESOURCE_BITS as usize]) -> bool {
    bundles.iter().all(|count| *count == 0)
}

fn three() -> u32 {
    3
}

fn is_three(number: &u32) -> bool {
    *number == 3
}

/// Tasks of a job that their client cancels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// When they are cancelled; has no effect before the job's submission.
    pub at_us: u64,
    /// The job's place in the trial.
    pub job: usize,
    /// The first of its tasks.
    pub first: usize,
    /// Number of tasks.
    pub count: usize,
    /// Spares running tasks.
    #[serde(default, skip_serializing_if = "is_false")]
    pub queued_only: bool,
}

/// A fault of a cluster.
pub type Fault = check::Fault<FaultKind>;

/// A node of the cluster, by its place in the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "they say it")]
pub enum Party {
    Switch(usize),
    Executor(usize),
    Client(usize),
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", expecting = "a fault that docs/checking.md names, with its fields")]
pub enum FaultKind {
    /// An executor drains; at the end a new one replaces it.
    Drain(usize),
    /// A client's process dies for good. Its tasks may need resources that no executor has.
    Death(usize),
    /// An executor or a client gets another address instead of its old one.
    Move {
        /// The party.
        party: Party,
        /// It gets its old address back at the end.
        returns: bool,
    },
    /// Another switch without this one's state has its address; at the end this one has it again (as with VRRP). The
    /// other one, the same each time, counts as the next after the switches of the trial.
    Takeover(usize),
    /// Larger packets are lost on the path to and from a party.
    Mtu {
        /// The party; `None`: all parties.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        party: Option<Party>,
        /// Maximum size of an IPv6 packet.
        bytes: usize,
    },
    /// Parties that follow the protocol, with their own identities, request room for clients, slots and tasks at all
    /// switches. Their tasks need resources that no executor has.
    Flood {
        /// Number of parties, each at its own address.
        sources: u32,
        /// Number of requests of each.
        packets: u32,
    },
    /// A common fault.
    #[serde(untagged)]
    Common(Common<Party>),
}

impl check::FaultKind for FaultKind {
    type Party = Party;

    fn common(&self) -> Option<&Common<Party>> {
        if let Self::Common(common) = self { Some(common) } else { None }
    }

    fn has_no_end(&self) -> bool {
        matches!(self, Self::Death(_) | Self::Move { returns: false, .. })
    }

    fn without(&mut self, gone: Party) -> bool {
        match self {
            Self::Common(common) => common.without(gone),
            Self::Move { party, .. } | Self::Mtu { party: Some(party), .. } => keep(party, gone),
            Self::Drain(executor) => keep_place(Party::Executor, executor, gone),
            Self::Death(client) => keep_place(Party::Client, client, gone),
            Self::Takeover(switch) => keep_place(Party::Switch, switch, gone),
            Self::Mtu { party: None, .. } | Self::Flood { .. } => true,
        }
    }
}

impl From<Common<Party>> for FaultKind {
    fn from(common: Common<Party>) -> Self {
        Self::Common(common)
    }
}

impl FaultKind {
    /// Whether it may only change waiting times: attackers send packets (T13, T14), or links have a small MTU (T15).
    pub(super) fn is_harmless(&self) -> bool {
        match self {
            Self::Common(common) => common.is_attack(),
            Self::Flood { .. } | Self::Mtu { .. } => true,
            Self::Drain(_) | Self::Death(_) | Self::Move { .. } | Self::Takeover(_) => false,
        }
    }
}

impl check::Party for Party {
    fn kind(self) -> &'static str {
        match self {
            Self::Switch(_) => "switch",
            Self::Executor(_) => "executor",
            Self::Client(_) => "client",
        }
    }

    fn place(&mut self) -> &mut usize {
        match self {
            Self::Switch(place) | Self::Executor(place) | Self::Client(place) => place,
        }
    }
}

impl check::Trial for Trial {
    type FaultKind = FaultKind;
    const PASSES: &'static [Pass<Self>] = smaller::PASSES;

    check::kept_in_fields!();

    fn size(&self) -> String {
        let (faults, executors, clients) = (self.faults.len(), self.executors.len(), self.clients.len());
        format!("{faults} faults, {executors} executors, {clients} clients, {} tasks", self.tasks())
    }

    /// Nodes exist, shares are shares, and every task has an executor that may run it, or a client that dies.
    fn validate(&self) -> Result<(), BadTrial> {
        let bad = |what: String| Err(BadTrial(what));
        for (name, count, most) in [
            ("switches", self.switches.len(), 8),
            ("executors", self.executors.len(), 64),
            ("clients", self.clients.len(), 64),
        ] {
            if count == 0 || count > most {
                return bad(format!("{count} {name}: use 1 to {most}"));
            }
        }
        self.network.validate("network")?;
        if self.heal_ms > LONGEST_MS {
            return bad(format!("heal_ms = {}: use at most {LONGEST_MS}", self.heal_ms));
        }
        if let Some(executor) = self.executors.iter().find(|e| e.slots == 0 || e.slots > 256) {
            return bad(format!("an executor of {} slots: use 1 to 256", executor.slots));
        }
        for executor in &self.executors {
            let mut offered = executor.bundles.iter().enumerate().filter(|(_, count)| **count > 0);
            if let Some((bit, count)) =
                offered.find(|(bit, count)| **count > BUNDLES_MAX || executor.resources & 1 << bit == 0)
            {
                return bad(format!("{count} bundles of resource {bit}: use up to {BUNDLES_MAX}, of one that it has"));
            }
        }
        if let Some(executor) = self.executors.iter().find(|e| e.ahead > AHEAD_MAX) {
            return bad(format!("an executor asks ahead with {} slots: use 0 to {AHEAD_MAX}", executor.ahead));
        }
        if let Some(executor) = self.executors.iter().find(|e| e.waiting > WAITING_MAX) {
            return bad(format!(
                "{} tasks of an executor may wait for others: use 0 to {WAITING_MAX}",
                executor.waiting
            ));
        }
        let span_max = AHEAD_SPAN_MAX / 1000;
        if let Some(executor) = self.executors.iter().find(|e| Nanos::from(e.ahead_span_us) > span_max) {
            return bad(format!("ahead_span_us = {}: use 0 to {span_max}", executor.ahead_span_us));
        }
        let slots: u32 = self.executors.iter().map(|executor| executor.slots).sum();
        for switch in &self.switches {
            switch.validate()?;
            let masks_differ = self.executors.iter().any(|executor| executor.resources != self.executors[0].resources);
            if masks_differ && switch.slots < slots {
                return bad(format!(
                    "slots = {} for executors with {slots} slots of different resources: some tasks may never find \
                     one; use {slots} or more, or the same resources",
                    switch.slots
                ));
            }
        }
        if let Some(client) = self.clients.iter().find(|c| c.window == 0 || c.window > 32) {
            return bad(format!("a client's window of {}: use 1 to 32", client.window));
        }
        self.validate_jobs()?;
        self.faults.iter().try_for_each(|fault| self.validate_fault(fault))
    }
}

impl Trial {
    fn validate_jobs(&self) -> Result<(), BadTrial> {
        let bad = |what: String| Err(BadTrial(what));
        let levels = self.switches.iter().map(|switch| switch.levels).min().unwrap_or(1);
        for (place, job) in self.jobs.iter().enumerate() {
            if job.client >= self.clients.len() || job.tasks.is_empty() || job.tasks.len() > 100_000 {
                return bad(format!("job {place}: it needs a client that exists and 1 to 100000 tasks"));
            }
            if job.at_us > LONGEST_US {
                return bad(format!("job {place}: at_us = {}: use at most {LONGEST_US}", job.at_us));
            }
            for task in &job.tasks {
                if task.priority == 0 || u32::from(task.priority) > levels {
                    return bad(format!("job {place}: priority {}: use 1 to {levels}", task.priority));
                }
                if !self.is_runnable(task.resources) && !self.dies(job.client) {
                    return bad(format!(
                        "job {place}: no executor has the resources {:#04x}, which only a client that dies may ask for",
                        task.resources
                    ));
                }
                if task.attempts == 0 || task.run_us > 60_000_000 || task.timeout_ms > LONGEST_MS {
                    return bad(format!(
                        "job {place}: use at least one attempt, run_us up to 60000000, timeout_ms up to {LONGEST_MS}"
                    ));
                }
            }
        }
        for cancel in &self.cancels {
            let job = self.jobs.get(cancel.job);
            if job.is_none_or(|job| cancel.first.saturating_add(cancel.count) > job.tasks.len()) {
                return bad(format!("{cancel:?}: name tasks of a job that exists"));
            }
            if cancel.at_us > LONGEST_US {
                return bad(format!("{cancel:?}: use at_us up to {LONGEST_US}"));
            }
        }
        Ok(())
    }

    fn validate_fault(&self, fault: &Fault) -> Result<(), BadTrial> {
        let bad = |what: String| Err(BadTrial(format!("fault at {} ms: {what}", fault.at_ms)));
        if fault.at_ms > LONGEST_MS || fault.for_ms > LONGEST_MS {
            return bad(format!("for_ms = {}: use at most {LONGEST_MS} for at_ms and for_ms", fault.for_ms));
        }
        let known = |party: &Party| match *party {
            Party::Switch(n) => n < self.switches.len(),
            Party::Executor(n) => n < self.executors.len(),
            Party::Client(n) => n < self.clients.len(),
        };
        let ok = match &fault.what {
            FaultKind::Common(common) => {
                return common.validate(|party| known(&party)).or_else(|BadTrial(why)| bad(why));
            }
            FaultKind::Drain(executor) => known(&Party::Executor(*executor)),
            FaultKind::Death(client) => known(&Party::Client(*client)),
            FaultKind::Move { party, .. } => known(party) && !matches!(party, Party::Switch(_)),
            FaultKind::Takeover(switch) => known(&Party::Switch(*switch)),
            FaultKind::Mtu { party, bytes } => party.as_ref().is_none_or(known) && (1_280..=9_000).contains(bytes),
            FaultKind::Flood { sources, packets } => *sources <= 16 && *packets <= 10_000 && !self.is_runnable(u8::MAX),
        };
        if ok {
            Ok(())
        } else {
            bad(format!(
                "{:?}: name nodes that exist (a move: no switch), an MTU of 1280 to 9000; a flood has up to 16 sources of \
                 10000 packets, and no executor all resources",
                fault.what
            ))
        }
    }

    pub(super) fn is_runnable(&self, resources: u8) -> bool {
        self.executors.iter().any(|executor| resources & !executor.resources == 0)
    }

    fn dies(&self, client: usize) -> bool {
        self.faults.iter().any(|fault| fault.what == FaultKind::Death(client))
    }

    /// The switches whose address another takes over: the first of these is the next after the switches of the trial.
    pub(super) fn taken_over(&self) -> Vec<usize> {
        let switches = 0..self.switches.len();
        switches.filter(|&switch| self.faults.iter().any(|fault| fault.what == FaultKind::Takeover(switch))).collect()
    }

    /// Tasks of all jobs.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.jobs.iter().map(|job| job.tasks.len()).sum()
    }
}

impl SwitchSpec {
    pub(super) const SLOTS_MAX: u32 = 1024;

    fn validate(&self) -> Result<(), BadTrial> {
        let in_range = (1..=256).contains(&self.queue)
            && (1..=Self::SLOTS_MAX).contains(&self.slots)
            && (1..=64).contains(&self.clients)
            && (1..=8).contains(&self.levels)
            && (1..=1024).contains(&self.places)
            && (40..=60_000).contains(&self.lease_ms)
            && (self.lease_ms..=LONGEST_MS).contains(&self.slot_idle_ms)
            && (100..=LONGEST_MS).contains(&self.client_idle_ms)
            && (1..=self.slot_idle_ms.min(self.client_idle_ms) / 2).contains(&self.cookie_ms);
        if in_range {
            return Ok(());
        }
        Err(BadTrial(format!(
            "{self:?}: use queue 1 to 256, slots 1 to 1024, clients 1 to 64, levels 1 to 8, places 1 to 1024, lease_ms 40 to 60000, \
             slot_idle_ms from a lease and client_idle_ms from 100, to {LONGEST_MS}, cookie_ms at most half of both"
        )))
    }
}
