//! The contents of a scenario file. `docs/simulator.md` explains every key.

use super::values::{Time, Who};
use crate::Faults;
use crate::tasks::asic::RECIRCULATION;
use midflight_asic::Program;
use midflight_workload::Format;
use serde::Deserialize;
use std::path::PathBuf;

/// A run: a cluster, its network, workload and faults.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// The seed of all random numbers.
    pub seed: u64,
    /// Jobs are submitted until this time.
    pub duration: Time,
    /// Time for submitted tasks after that.
    pub patience: Time,
    /// Switches, executors and clients.
    pub cluster: Cluster,
    /// The switches' queues.
    pub queue: Queue,
    /// The switches as pipelines, if `cluster.engine` is one.
    pub asic: Asic,
    /// The common properties of all hosts.
    pub host: Host,
    /// The links between hosts.
    pub network: NetworkPart,
    /// The initial faults of datagrams.
    pub datagrams: Datagrams,
    /// The workload.
    pub workload: WorkloadPart,
    /// The faults, with their times.
    pub faults: Vec<Fault>,
}

/// Switches, executors and clients.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cluster {
    /// Midflight switches, each in its own rack; executors and clients are assigned to them round-robin.
    pub switches: u32,
    /// The place of the switches.
    pub place: SwitchPlace,
    /// The engine of the switches.
    pub engine: ScenarioEngine,
    /// Executors and clients turn to another switch if theirs is silent.
    pub failover: bool,
    /// Executors, each on its own host.
    pub executors: u32,
    /// Tasks that an executor runs in parallel.
    pub slots: u32,
    /// Clients, each on its own host; jobs are assigned to them round-robin.
    pub clients: u32,
    /// Delay of task ends, as timers of real machines are late.
    pub late: Time,
    /// Further executors, with other properties.
    pub groups: Vec<Group>,
}

/// Further executors, numbered after those before.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Number of executors.
    pub executors: u32,
    /// Tasks that each runs in parallel; default: as the others.
    pub slots: Option<u32>,
    /// The resources of each: numbers from 0 to 7.
    #[serde(default)]
    pub resources: Vec<u8>,
}

/// The resources that a share of the tasks needs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demand {
    /// The share of all tasks.
    pub share: f64,
    /// The resources that they need: numbers from 0 to 7.
    pub resources: Vec<u8>,
}

/// One bit each.
pub(super) fn mask(resources: &[u8]) -> u8 {
    resources.iter().fold(0, |mask, &bit| mask | 1u8.checked_shl(bit.into()).unwrap_or(0))
}

/// The place of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchPlace {
    /// In the switch of its rack.
    Switch,
    /// As a process on a host.
    Server,
}

/// The engine of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScenarioEngine {
    /// The C core.
    Soft,
    /// The safe program of a pipeline, whose pointers are never wrong.
    AsicSafe,
    /// The papers' program, including its errors.
    AsicPublished,
}

impl ScenarioEngine {
    /// Their names.
    pub const NAMES: [&'static str; 3] = ["soft", "asic-safe", "asic-published"];

    /// The engine of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Soft, Self::AsicSafe, Self::AsicPublished];
        all.into_iter().find(|&engine| engine.name() == name)
    }

    /// The name, as in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    pub(super) fn program(self) -> Option<Program> {
        match self {
            Self::Soft => None,
            Self::AsicSafe => Some(Program::Safe),
            Self::AsicPublished => Some(Program::Published),
        }
    }
}

impl<'de> Deserialize<'de> for ScenarioEngine {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let name = String::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| match &*name {
            "switch" | "server" => D::Error::custom(format_args!("where switches run is `place = \"{name}\"`")),
            _ => D::Error::unknown_variant(&name, &Self::NAMES),
        })
    }
}

/// A switch as a pipeline, and the program's tables.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Asic {
    /// The delay of a recirculation.
    pub recirculation: Time,
    /// Packets that enter the pipeline per second, including recirculating ones; 0: no limit.
    pub passes_per_s: u64,
    /// Maximum packets in recirculation; further ones are dropped.
    pub recirculating: u32,
    /// Maximum passes of one packet; then it is dropped. 0: no limit.
    pub passes: u32,
    /// Time from a NO_OP to the slot's next request.
    pub poll: Time,
    /// Priority levels.
    pub levels: u32,
    /// Tasks that each level holds.
    pub queue: u32,
}

/// The switches' queues.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Queue {
    /// Tasks that one switch holds, queued and assigned.
    pub tasks: u32,
    /// Silence after which an assigned task is queued again.
    pub lease: Time,
}

/// The common properties of all hosts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Host {
    /// Packets that the network stack handles in parallel.
    pub lanes: u32,
    /// The stack's time for a sent packet.
    pub send: Time,
    /// The stack's time for a received packet.
    pub receive: Time,
    /// Maximum packets that wait; further ones are dropped.
    pub receive_buffer: u32,
}

/// The links and switches between hosts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkPart {
    /// Latency of a link between a host and its switch.
    pub latency: Time,
    /// Bandwidth of that link in Gbit/s; 0: no limit.
    pub gbit_per_s: f64,
    /// Latency of a link between a rack's switch and the spine.
    pub trunk_latency: Time,
    /// Bandwidth of that link in Gbit/s; 0: no limit.
    pub trunk_gbit_per_s: f64,
    /// Latency of a switch.
    pub pass: Time,
    /// Packets per second of a switch; 0: no limit.
    pub packets_per_s: u64,
    /// Maximum packets that wait in a switch; further ones are dropped.
    pub switch_queue: u32,
}

/// The faults of datagrams. A missing key is 0.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Datagrams {
    /// Maximum additional delay of each.
    pub jitter: Time,
    /// Probability of a loss.
    pub loss: f64,
    /// Probability of a second copy.
    pub duplication: f64,
    /// Probability of being delayed for reordering.
    pub reordering: f64,
    /// Maximum delay for reordering.
    pub reordering_delay: Time,
}

impl From<&Datagrams> for Faults {
    fn from(datagrams: &Datagrams) -> Self {
        Self {
            delay_min: 0,
            delay_max: datagrams.jitter.0,
            loss: datagrams.loss,
            duplication: datagrams.duplication,
            reordering: datagrams.reordering,
            reordering_delay: datagrams.reordering_delay.0,
        }
    }
}

/// The workload.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkloadPart {
    /// The source of jobs, without a trace.
    pub shape: ShapeName,
    /// A trace with the jobs, relative to the scenario's file.
    pub trace: Option<PathBuf>,
    /// The trace's format; by default, its name and first line decide.
    pub format: Option<Format>,
    /// Durations are scaled to this median.
    pub median: Time,
    /// Arrivals are scaled so that slots are busy for this share of the time.
    pub load: f64,
    /// Tasks of a job, for the shape "equal".
    pub tasks: u32,
    /// Tasks have four priorities (the trace's, or drawn), or one.
    pub priorities: bool,
    /// Tasks that need resources.
    pub demands: Vec<Demand>,
    /// Where the tasks' data is, and where they prefer to run.
    pub places: PlacesPart,
}

/// Places (T19): each task's data is at a random one, where it prefers to run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlacesPart {
    /// Number of places, assigned to executors round-robin; 0: none.
    pub count: u32,
    /// How long a task waits for its place, at most 32.768 s; by default it has no preference.
    pub patience: Option<Time>,
    /// Additional time of a task elsewhere.
    pub far: Time,
}

/// The source of jobs, without a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShapeName {
    /// Jobs of different sizes with tasks of different durations, as in real clusters.
    Mixed,
    /// Jobs of equal sizes and tasks of equal durations.
    Equal,
}

/// A fault, or its end: `at`, perhaps `lasts`, and one other key.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// When.
    pub at: Time,
    /// Time until it ends by itself: crashed processes restart, paused ones resume, and so on.
    pub lasts: Option<Time>,
    /// These processes die.
    pub crash: Option<Who>,
    /// These restart.
    pub restart: Option<Who>,
    /// These are paused.
    pub pause: Option<Who>,
    /// These resume.
    pub resume: Option<Who>,
    /// These executors drain: they accept no new tasks.
    pub drain: Option<Who>,
    /// Some nodes do not reach others.
    pub partition: Option<Partition>,
    /// All partitions end.
    #[serde(default)]
    pub heal: bool,
    /// A clock is wrong.
    pub drift: Option<Drift>,
    /// The faults of all datagrams from now on.
    pub datagrams: Option<Datagrams>,
    /// The additional faults of some hosts' links.
    pub link: Option<Link>,
}

impl Fault {
    /// The faults of nodes by name, each with its nodes.
    pub(super) fn whos(&self) -> [(&'static str, Option<Who>); 5] {
        let Self { crash, restart, pause, resume, drain, .. } = *self;
        [("crash", crash), ("restart", restart), ("pause", pause), ("resume", resume), ("drain", drain)]
    }
}

/// Some nodes do not reach others.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// The senders.
    pub from: Vec<Who>,
    /// The receivers.
    pub to: Vec<Who>,
    /// Datagrams in the other direction are lost too.
    #[serde(default = "yes")]
    pub both: bool,
}

fn yes() -> bool {
    true
}

/// The faults of datagrams on the links of some hosts. A missing key is 0.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The nodes.
    pub of: Who,
    /// As [`Datagrams::jitter`].
    #[serde(default)]
    pub jitter: Time,
    /// As [`Datagrams::loss`].
    #[serde(default)]
    pub loss: f64,
    /// As [`Datagrams::duplication`].
    #[serde(default)]
    pub duplication: f64,
    /// As [`Datagrams::reordering`].
    #[serde(default)]
    pub reordering: f64,
    /// As [`Datagrams::reordering_delay`].
    #[serde(default)]
    pub reordering_delay: Time,
}

impl Link {
    pub(super) fn datagrams(&self) -> Datagrams {
        let Self { jitter, loss, duplication, reordering, reordering_delay, .. } = *self;
        Datagrams { jitter, loss, duplication, reordering, reordering_delay }
    }
}

/// A clock is wrong.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drift {
    /// The nodes.
    pub node: Who,
    /// Parts per million by which it is too fast; below 0, too slow.
    #[serde(default)]
    pub ppm: i32,
    /// How far it jumps ahead.
    #[serde(default)]
    pub jump: Time,
}

impl Cluster {
    /// All kinds of executors: number, slots, resources.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (u32, u32, u8)> + '_ {
        let groups = self.groups.iter();
        let groups = groups.map(|group| (group.executors, group.slots.unwrap_or(self.slots), mask(&group.resources)));
        std::iter::once((self.executors, self.slots, 0)).chain(groups)
    }

    /// All executors.
    #[must_use]
    pub fn all_executors(&self) -> u32 {
        self.kinds().fold(0, |sum, (executors, ..)| sum.saturating_add(executors))
    }

    /// Slots of all executors.
    #[must_use]
    pub fn all_slots(&self) -> u64 {
        self.kinds().map(|(executors, slots, _)| u64::from(executors) * u64::from(slots)).sum()
    }
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            seed: 1,
            duration: Time::ms(1_000),
            patience: Time::ms(60_000),
            cluster: Cluster::default(),
            queue: Queue::default(),
            asic: Asic::default(),
            host: Host::default(),
            network: NetworkPart::default(),
            datagrams: Datagrams::default(),
            workload: WorkloadPart::default(),
            faults: Vec::new(),
        }
    }
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            switches: 1,
            place: SwitchPlace::Switch,
            engine: ScenarioEngine::Soft,
            failover: false,
            executors: 8,
            slots: 8,
            clients: 2,
            late: Time(0),
            groups: Vec::new(),
        }
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self { tasks: 131_072, lease: Time::ms(1_000) }
    }
}

impl Default for Asic {
    /// As large as fits a Tofino, and without limits that the papers do not give.
    fn default() -> Self {
        Self {
            recirculation: Time(RECIRCULATION),
            passes_per_s: 0,
            recirculating: 4_096,
            passes: 0,
            poll: Time::us(50),
            levels: 4,
            queue: 16_384,
        }
    }
}

impl Default for Host {
    /// A kernel's network stack, with the costs behind round trips of microseconds.
    fn default() -> Self {
        Self { lanes: 4, send: Time::us(2), receive: Time::us(3), receive_buffer: 4_096 }
    }
}

impl Default for NetworkPart {
    /// A rack with links of 100 Gbit/s and a switch that passes a packet in less than a microsecond.
    fn default() -> Self {
        Self {
            latency: Time(500),
            gbit_per_s: 100.0,
            trunk_latency: Time::us(1),
            trunk_gbit_per_s: 400.0,
            pass: Time(400),
            packets_per_s: 0,
            switch_queue: 4_096,
        }
    }
}

impl Default for WorkloadPart {
    fn default() -> Self {
        Self {
            shape: ShapeName::Mixed,
            trace: None,
            format: None,
            median: Time::ms(1),
            load: 0.8,
            tasks: 20,
            priorities: false,
            demands: Vec::new(),
            places: PlacesPart::default(),
        }
    }
}

impl Default for PlacesPart {
    fn default() -> Self {
        Self { count: 0, patience: None, far: Time(0) }
    }
}

impl PlacesPart {
    /// The number of the n-th place: above 1, the number of the function that has no data.
    pub(super) fn number(n: u32) -> u32 {
        2 + n
    }
}
