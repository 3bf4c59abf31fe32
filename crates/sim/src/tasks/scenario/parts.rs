//! What a scenario file may say. `docs/simulator.md` explains every key.

use super::values::{Time, Who};
use crate::Faults;
use crate::tasks::asic::RECIRCULATION;
use midflight_dataplane::asic::Program;
use midflight_workload::Format;
use serde::Deserialize;
use std::path::PathBuf;

/// A run: a cluster, its network, what is submitted, and what goes wrong.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// All randomness comes from it.
    pub seed: u64,
    /// Nothing is submitted after this.
    pub duration: Time,
    /// What was submitted may still take this long.
    pub patience: Time,
    /// Who takes part.
    pub cluster: Cluster,
    /// The switches' queues.
    pub queue: Queue,
    /// The switches as pipelines, where `cluster.engine` is one.
    pub asic: Asic,
    /// What hosts are alike in.
    pub host: Host,
    /// What connects them.
    pub network: NetworkPart,
    /// What befalls datagrams from the beginning.
    pub datagrams: Datagrams,
    /// What is submitted.
    pub workload: WorkloadPart,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

/// Who takes part.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cluster {
    /// Midflight switches; executors and clients are dealt out to them. Each is in a rack of its own.
    pub switches: u32,
    /// Where they run.
    pub place: SwitchPlace,
    /// What they run.
    pub engine: ScenarioEngine,
    /// Whether executors and clients turn to another switch when theirs is silent.
    pub failover: bool,
    /// Executors, each on a host of its own.
    pub executors: u32,
    /// Tasks that an executor runs at once.
    pub slots: u32,
    /// Clients, each on a host of its own; jobs are dealt out to them.
    pub clients: u32,
    /// How much later than asked tasks end: timers of real machines are that late.
    pub late: Time,
    /// Further executors, that differ.
    pub groups: Vec<Group>,
}

/// Further executors. They are numbered on.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// How many.
    pub executors: u32,
    /// Tasks that each runs at once; without it, as many as the others.
    pub slots: Option<u32>,
    /// What each offers: numbers from 0 to 7.
    #[serde(default)]
    pub resources: Vec<u8>,
}

/// What a share of the tasks asks for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demand {
    /// Of all tasks.
    pub share: f64,
    /// What they ask for: numbers from 0 to 7.
    pub resources: Vec<u8>,
}

/// Resources as one bit each.
pub(super) fn mask(resources: &[u8]) -> u8 {
    resources.iter().fold(0, |mask, &bit| mask | 1u8.checked_shl(bit.into()).unwrap_or(0))
}

/// Where a switch runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchPlace {
    /// In the switch of its rack.
    Switch,
    /// As a process on a host.
    Server,
}

/// What a switch runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScenarioEngine {
    /// The C core.
    Soft,
    /// A program of a pipeline, whose pointers never err.
    AsicSafe,
    /// The papers', errors included.
    AsicPublished,
}

impl ScenarioEngine {
    /// Their names.
    pub const NAMES: [&'static str; 3] = ["soft", "asic-safe", "asic-published"];

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Soft, Self::AsicSafe, Self::AsicPublished];
        all.into_iter().find(|&engine| engine.name() == name)
    }

    /// As in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The program of the pipeline, if it is one.
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
    /// How long a packet that goes round is on its way.
    pub recirculation: Time,
    /// Packets that enter the pipeline in a second, those that go round included; 0: no limit.
    pub passes_per_s: u64,
    /// Packets that may be on their way round at once; beyond, they are dropped.
    pub recirculating: u32,
    /// Passes that one packet may take; beyond, it is dropped. 0: no limit.
    pub passes: u32,
    /// From a NO_OP to the slot's next request.
    pub poll: Time,
    /// Priority levels.
    pub levels: u32,
    /// Tasks that each holds.
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

/// What hosts are alike in.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Host {
    /// Packets that the network stack works on at once.
    pub lanes: u32,
    /// What it takes for a packet that leaves.
    pub send: Time,
    /// What it takes for a packet that comes.
    pub receive: Time,
    /// Packets that wait; beyond, they are dropped.
    pub receive_buffer: u32,
}

/// What connects hosts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkPart {
    /// Of a link between a host and its switch.
    pub latency: Time,
    /// The same in Gbit/s; 0: no limit.
    pub gbit_per_s: f64,
    /// Of a link between a rack's switch and the spine.
    pub trunk_latency: Time,
    /// The same in Gbit/s; 0: no limit.
    pub trunk_gbit_per_s: f64,
    /// Through a switch.
    pub pass: Time,
    /// Packets that a switch passes; 0: no limit.
    pub packets_per_s: u64,
    /// Packets that wait in a switch; beyond, they are dropped.
    pub switch_queue: u32,
}

/// What befalls datagrams. What a fault leaves out is 0.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Datagrams {
    /// Additional delay of each, at most.
    pub jitter: Time,
    /// The probability that one is lost.
    pub loss: f64,
    /// The probability that one arrives twice.
    pub duplication: f64,
    /// The probability that one is held back.
    pub reordering: f64,
    /// For how long, at most.
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

/// What is submitted.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkloadPart {
    /// Where jobs come from, without a trace.
    pub shape: ShapeName,
    /// A trace, relative to the scenario's file; jobs come from it.
    pub trace: Option<PathBuf>,
    /// Its format; without it, its name and first line tell.
    pub format: Option<Format>,
    /// Durations are scaled so that this is their median.
    pub median: Time,
    /// Arrivals are scaled so that slots are busy for this share of the time.
    pub load: f64,
    /// Tasks of a job, where `shape` is "equal".
    pub tasks: u32,
    /// Whether tasks have four priorities (the trace's, or drawn), or one.
    pub priorities: bool,
    /// Tasks that ask for resources.
    pub demands: Vec<Demand>,
}

/// Where jobs come from, without a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShapeName {
    /// Jobs of different sizes with tasks of different durations, as in real clusters.
    Mixed,
    /// Jobs of equal sizes and tasks of equal durations.
    Equal,
}

/// Something that goes wrong, or right again: one of its keys beside `at` and `lasts`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// When.
    pub at: Time,
    /// It ends by itself after this: what crashed starts again, what was paused goes on, and so on.
    pub lasts: Option<Time>,
    /// These processes die.
    pub crash: Option<Who>,
    /// These start anew.
    pub restart: Option<Who>,
    /// These stand still.
    pub pause: Option<Who>,
    /// These go on.
    pub resume: Option<Who>,
    /// These executors take nothing new.
    pub drain: Option<Who>,
    /// Some do not reach others.
    pub partition: Option<Partition>,
    /// All partitions end.
    #[serde(default)]
    pub heal: bool,
    /// A clock runs wrong.
    pub drift: Option<Drift>,
    /// This befalls datagrams from now on.
    pub datagrams: Option<Datagrams>,
    /// This befalls them on one host's link, besides.
    pub link: Option<Link>,
}

impl Fault {
    /// What may befall nodes by name, and whom it befalls.
    pub(super) fn whos(&self) -> [(&'static str, Option<Who>); 5] {
        let Self { crash, restart, pause, resume, drain, .. } = *self;
        [("crash", crash), ("restart", restart), ("pause", pause), ("resume", resume), ("drain", drain)]
    }
}

/// Some do not reach others.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// The ones.
    pub from: Vec<Who>,
    /// The others.
    pub to: Vec<Who>,
    /// Nor do these reach those.
    #[serde(default = "yes")]
    pub both: bool,
}

fn yes() -> bool {
    true
}

/// What befalls datagrams on the links of some hosts. What is left out is 0.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Whose.
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
    /// Without whose.
    pub(super) fn datagrams(&self) -> Datagrams {
        let Self { jitter, loss, duplication, reordering, reordering_delay, .. } = *self;
        Datagrams { jitter, loss, duplication, reordering, reordering_delay }
    }
}

/// A clock runs wrong.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drift {
    /// Whose.
    pub node: Who,
    /// Millionths by which it is too fast; below 0, too slow.
    #[serde(default)]
    pub ppm: i32,
    /// How far it jumps ahead.
    #[serde(default)]
    pub jump: Time,
}

impl Cluster {
    /// All kinds of executors: how many, their slots, what they offer.
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
    /// As large as a Tofino holds it, and without limits that the papers do not give.
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
    /// A kernel's network stack, as round trips of microseconds need it.
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
        }
    }
}
