//! A cell: one run of one scheme on one cluster under one workload, from one seed. Data in, data out (both serde), so that
//! cells are independent processes; figures are lists of cells and what they make of the results.
//!
//! [`run`] is the one entry. Delay is what the papers mean by it: from the call of submit to the start of the task.

pub(crate) mod closed;
mod dealer;
mod jobs;
mod memory;
mod meter;
mod midflight;
mod passes;
mod percentiles;
mod run;
mod sampled;
mod site;
mod sparrow;

pub use jobs::{DrawnJob, DrawnTask, Jobs};
pub use meter::{Meter, Sample};
pub use midflight_asic::Program;
pub use midflight_workload::Replace;
pub use percentiles::{Percentiles, QUANTILES};
pub use run::{CellError, run};

use crate::calibration::{PACKET_TASKS, POLL_AGAIN_NS, SUBMIT_AGAIN_NS};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One run. What it leaves open has the papers' values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Who schedules.
    pub scheme: Scheme,
    /// What there is to schedule on.
    pub cluster: Cluster,
    /// What is submitted.
    pub load: Load,
    /// All randomness comes from it. The same seed gives all schemes the same arrivals.
    pub seed: u64,
    /// Milliseconds at the start whose tasks are run, but not measured.
    pub warmup_ms: u64,
    /// Milliseconds after which nothing is submitted any more, warm-up included.
    pub duration_ms: u64,
    /// Milliseconds that what was submitted may still take. What has not ended then is counted as open.
    #[serde(default = "Cell::default_drain_ms")]
    pub drain_ms: u64,
}

/// Who schedules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Scheme {
    /// The production switch and endpoints, as a program of the switch; free executors are parked.
    Midflight,
    /// The same as a process on a host.
    MidflightServer,
    /// The production switch in the kernel of a Linux machine, and the production endpoints on others, at costs that were measured.
    MidflightKernel(Linux),
    /// The production endpoints at an asic engine in the switch: executors poll, packets go round.
    MidflightAsic(Pipelined),
    /// The published protocol in the switch: executors poll.
    Bolt(Polling),
    /// The published protocol in a process on a host.
    BoltServer(Polling),
    /// Sparrow with the costs of the Java original.
    SparrowJava(Sampling),
    /// Sparrow with the costs of the Bolt thesis's rewrite.
    SparrowCpp(Sampling),
    /// A central scheduler with a cost for each task, for the shape only.
    Spark,
    /// A program of the asic engine alone, for the load of this name ([`Load::Queue`]): its passes are counted.
    AsicPasses {
        /// Which.
        program: Program,
    },
}

impl Scheme {
    /// A hash of the sources of all that decides the result of a cell of this scheme: a result of other sources is not reused.
    #[must_use]
    pub fn version(&self) -> &'static str {
        match self {
            Self::Midflight | Self::MidflightServer | Self::MidflightKernel(_) => env!("MIDFLIGHT_CELLS_MIDFLIGHT"),
            Self::MidflightAsic(_) | Self::AsicPasses { .. } => env!("MIDFLIGHT_CELLS_PIPELINE"),
            Self::Bolt(_) | Self::BoltServer(_) => env!("MIDFLIGHT_CELLS_BOLT"),
            Self::SparrowJava(_) | Self::SparrowCpp(_) => env!("MIDFLIGHT_CELLS_SPARROW"),
            Self::Spark => env!("MIDFLIGHT_CELLS_SPARK"),
        }
    }
}

/// Linux machines, of which one is the switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Linux {
    /// Cores that clients and executors share, as in a lab on one machine; 0: each host has its own.
    pub shared_cores: u32,
    /// What being woken up takes, in nanoseconds; none: [`crate::calibration::LINUX_WAKE_NS`].
    pub wake_ns: Option<u32>,
}

/// A switch that is a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipelined {
    /// What it runs.
    pub program: Program,
    /// Between a no-op and the next poll, in microseconds (Bolt §5.4: 50).
    #[serde(default = "fifty")]
    pub interval_us: u16,
}

/// How executors poll, and what else of the published protocol's programs may be varied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Polling {
    /// Between a no-op and the next poll, in microseconds (Bolt §5.4: 50).
    pub interval_us: u64,
    /// Whether polls that change nothing are left out of the simulation. The results are the same; a server has them always.
    pub elide: bool,
    /// Priority levels that the switch has (Bolt ch. 4: 4).
    pub levels: u8,
    /// Tasks in a job_submission packet (32).
    pub packet_tasks: u32,
    /// What clients and executors take for each packet beyond the network stack, in microseconds (0; Falcon's, which are of
    /// Sparrow's Java: 5).
    pub program_us: u64,
    /// After how long an executor asks a server again that did not answer, in microseconds (500).
    pub poll_again_us: u64,
    /// After how long a client submits again what a server did not answer, in microseconds (200,000).
    pub submit_again_us: u64,
}

impl Default for Polling {
    fn default() -> Self {
        Self {
            interval_us: 50,
            elide: true,
            levels: 4,
            packet_tasks: PACKET_TASKS as u32,
            program_us: 0,
            poll_again_us: POLL_AGAIN_NS / 1_000,
            submit_again_us: SUBMIT_AGAIN_NS / 1_000,
        }
    }
}

impl Polling {
    fn check(&self) -> Result<(), CellError> {
        let Self { interval_us, levels, packet_tasks, program_us, poll_again_us, submit_again_us, .. } = *self;
        let times = [interval_us, poll_again_us, submit_again_us];
        if times.iter().all(|us| (1..=60_000_000).contains(us))
            && program_us <= 1_000
            && (1..=8).contains(&levels)
            && (1..=1_024).contains(&packet_tasks)
        {
            return Ok(());
        }
        Err(CellError::Bad(
            "scheme: interval_us, poll_again_us and submit_again_us must be 1 to 60,000,000, levels 1 to 8, packet_tasks 1 to \
             1,024, and program_us at most 1,000"
                .into(),
        ))
    }
}

/// How Sparrow samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sampling {
    /// Schedulers; jobs go to them in turn, each client with its own first.
    pub schedulers: u32,
    /// Reservations for each task (both papers: 2).
    pub ratio: f64,
    /// `false`: free executors ask a scheduler without having a reservation (Bolt's figure 11).
    pub probing: bool,
    /// Schedulers share the clients' hosts, as in Falcon §3.5.
    pub on_clients: bool,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { schedulers: 1, ratio: 2.0, probing: true, on_clients: false }
    }
}

/// What there is to schedule on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Nodes that are alike.
    pub groups: Vec<Group>,
    /// Switches, each with an even share of the nodes and of the jobs.
    #[serde(default = "number::<1>")]
    pub shards: u32,
}

/// Nodes that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// How many nodes.
    pub nodes: u32,
    /// Executors on each: tasks that it runs at once.
    pub executors: u32,
    /// What it offers, one bit a resource.
    #[serde(default)]
    pub resources: u8,
}

/// What a task does for its duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// It waits; its end comes as late as timers do.
    Sleep,
    /// It computes, on a hardware thread of its own.
    #[default]
    Compute,
}

/// What is submitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Load {
    /// Each client submits a job every interval, in a random phase; all tasks are as long as the interval (10 ms).
    Sw1 {
        /// Clients (2).
        #[serde(default = "number::<2>")]
        clients: u32,
        /// Share of the cluster's time that tasks ask for: sets the tasks of a job, whole ones, in the mean.
        utilisation: f64,
        /// What tasks do.
        work: Work,
    },
    /// 90 tasks of 20 ms every 20 ms, which ask resource A (bit 0) for a third of the time, then B (bit 1), then C (bit 2).
    Sw2,
    /// Tasks that end at once; clients keep this many for each executor in flight.
    Noop {
        /// Clients (8).
        #[serde(default = "number::<8>")]
        clients: u32,
        /// Tasks in flight for each executor (4).
        #[serde(default = "number::<4>")]
        backlog: u32,
    },
    /// A trace's jobs, scaled in median and load; again in random order where the run is longer.
    Trace {
        /// In a format of `workload::read_file`; none: generated for all of the run, with the statistics of such a trace.
        file: Option<PathBuf>,
        /// Tasks of a generated job, in the mean, for each executor that the load keeps busy
        /// ([`crate::calibration::SAMPLE_TASKS`]): a uniform sample of a trace has jobs as large as the sample.
        #[serde(default = "sample")]
        sample: f64,
        /// Median duration to scale to, in milliseconds (Bolt §5.1.3: 5).
        median_ms: f64,
        /// Share of the cluster's time that tasks ask for.
        load: f64,
        /// Levels 1 to 4 in the shares of Bolt §5.6; else all tasks are of level 1.
        priorities: bool,
        /// Clients, which take turns (2).
        #[serde(default = "number::<2>")]
        clients: u32,
        /// What tasks do.
        work: Work,
    },
    /// A uniform sample of a trace, accelerated (Bolt §5.1.3): durations and arrivals are divided by one number, which sets the median, and
    /// the share of the tasks that is taken sets the load. Where the run is longer than the trace, the trace is sampled anew.
    Sample {
        /// In a format of `workload::read_file`; a name without a folder is looked for among the traces ([`Cell::with_traces`]).
        file: PathBuf,
        /// Median duration, in milliseconds (Bolt §5.1.3: 5).
        median_ms: f64,
        /// Share of the cluster's time that tasks ask for.
        load: f64,
        /// Each job has a level from 1 to 4 in the shares of Bolt §5.6, unless the trace has its own; else all tasks are of level 1.
        priorities: bool,
        /// Clients, which take turns (2).
        #[serde(default = "number::<2>")]
        clients: u32,
        /// What tasks do.
        work: Work,
        /// What of the trace is replaced: for experiments.
        #[serde(default)]
        replace: Replace,
    },
    /// Jobs of one task at random times (Poisson), of two sizes.
    Mix {
        /// Microseconds of a short task (10).
        short_us: f64,
        /// Microseconds of a long one (100).
        long_us: f64,
        /// Which share is short.
        short_share: f64,
        /// Share of the cluster's time that tasks ask for.
        load: f64,
        /// Clients, which take turns (2).
        #[serde(default = "number::<2>")]
        clients: u32,
    },
    /// A queue that is kept at a length while an executor retrieves from it: for [`Scheme::AsicPasses`].
    Queue {
        /// Tasks, 1 to 32,768.
        length: u32,
        /// The share of them that the executor may not run; each is drawn.
        unfit: f64,
        /// Retrievals that get a task.
        retrievals: u32,
        /// Whether it also takes all that it may run, without any that come.
        emptied: bool,
    },
}

/// A part of a task's delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// From the call of submit until the scheduler has the task.
    Submit,
    /// Sparrow: from there until the reservation that gets the task is in its worker's queue.
    Reservation,
    /// Waiting for a free executor: the task in the switch's queue, Sparrow's reservation in the worker's.
    Queueing,
    /// From an executor's request to the answer that is the task. Where the executor was parked: from the assignment.
    GetTask,
}

impl Step {
    /// All, in the order in which they happen.
    pub const ALL: [Self; 4] = [Self::Submit, Self::Reservation, Self::Queueing, Self::GetTask];
}

/// What came out of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// Tasks submitted, warm-up included; so are the next two.
    pub submitted: u64,
    /// Tasks that started.
    pub started: u64,
    /// Tasks that ended.
    pub ended: u64,
    /// Delay of the measured tasks.
    pub delay: Percentiles,
    /// Of each measured job, how long after its submission the last of its tasks started: the largest of their delays. Empty where a
    /// job has one task.
    #[serde(default)]
    pub jobs: Percentiles,
    /// Its parts, where the scheme has them.
    pub steps: BTreeMap<Step, Percentiles>,
    /// The same by priority level, where there is more than one.
    pub levels: BTreeMap<u8, LevelResult>,
    /// Starts a second after the warm-up, until submission ends.
    pub started_per_s: f64,
    /// Ends in a second and node over time, one series a group of nodes.
    pub groups: Vec<Series>,
    /// When the last task ended, in milliseconds.
    pub last_end_ms: f64,
    /// Simulated events.
    pub events: u64,
    /// What the scheme counts: polls, drops, retransmissions, …
    pub counters: BTreeMap<String, u64>,
    /// How long the run took, in milliseconds: the one number that differs between two runs.
    pub wall_ms: f64,
}

impl CellResult {
    /// Without the wall time: what two runs of one cell have in common, to the byte.
    #[must_use]
    pub fn deterministic(&self) -> Self {
        Self { wall_ms: 0.0, ..self.clone() }
    }
}

/// Results of one priority level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelResult {
    /// Delay.
    pub delay: Percentiles,
    /// Its parts.
    pub steps: BTreeMap<Step, Percentiles>,
}

/// A number over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Width of a bucket in milliseconds.
    pub bucket_ms: u64,
    /// Ends in a second and node, bucket by bucket from time 0.
    pub ended_per_node_s: Vec<f64>,
}

impl Cell {
    fn default_drain_ms() -> u64 {
        60_000
    }

    /// Whether all of it makes sense.
    ///
    /// # Errors
    /// What does not, and what would.
    pub fn check(&self) -> Result<(), CellError> {
        let bad = |what: String| Err(CellError::Bad(what));
        if self.cluster.executors() == 0 {
            return bad("cluster.groups: no executors; give at least one group with nodes and executors above 0".into());
        }
        if self.cluster.executors() > 1 << 24 {
            return bad("cluster.groups: more than 16,777,216 executors".into());
        }
        if self.cluster.shards == 0 || self.cluster.shards > self.cluster.nodes() {
            return bad(format!("cluster.shards: {}; allowed: 1 to the number of nodes", self.cluster.shards));
        }
        if self.warmup_ms >= self.duration_ms {
            return bad(format!("warmup_ms {} must be less than duration_ms {}", self.warmup_ms, self.duration_ms));
        }
        match &self.scheme {
            Scheme::Bolt(polling) | Scheme::BoltServer(polling) => polling.check()?,
            Scheme::MidflightKernel(linux)
                if linux.shared_cores > 4_096 || linux.wake_ns.is_some_and(|wake_ns| wake_ns > 1_000_000_000) =>
            {
                return bad("scheme: shared_cores must be at most 4,096, and wake_ns at most a second".into());
            }
            Scheme::MidflightKernel(Linux { shared_cores: 1.., .. }) if self.cluster.shards > 1 => {
                return bad("scheme: shared_cores need one switch, so cluster.shards 1".into());
            }
            Scheme::MidflightAsic(Pipelined { interval_us: 0, .. }) => {
                return bad("scheme: interval_us must be 1 to 65,535".into());
            }
            Scheme::SparrowJava(s) | Scheme::SparrowCpp(s)
                if !(1..=256).contains(&s.schedulers) || !(1.0..=64.0).contains(&s.ratio) =>
            {
                return bad("scheme: schedulers must be 1 to 256, and ratio 1 to 64".into());
            }
            _ => {}
        }
        if matches!(self.scheme, Scheme::AsicPasses { .. }) != matches!(self.load, Load::Queue { .. }) {
            return bad("the scheme asic-passes and the load queue belong together".into());
        }
        self.load.check()
    }
}

impl Cluster {
    /// Nodes that are all alike and offer nothing.
    #[must_use]
    pub fn uniform(nodes: u32, executors: u32) -> Self {
        Self { groups: vec![Group { nodes, executors, resources: 0 }], shards: 1 }
    }

    /// Executors of all nodes.
    #[must_use]
    pub fn executors(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.nodes) * u64::from(group.executors)).sum()
    }

    /// Nodes of all groups.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.groups.iter().map(|group| group.nodes).fold(0, u32::saturating_add)
    }
}

impl Load {
    /// How many clients submit.
    #[must_use]
    pub fn clients(&self) -> u32 {
        match *self {
            Self::Sw1 { clients, .. }
            | Self::Noop { clients, .. }
            | Self::Trace { clients, .. }
            | Self::Sample { clients, .. }
            | Self::Mix { clients, .. } => clients,
            Self::Sw2 | Self::Queue { .. } => 1,
        }
    }

    /// The file of its trace.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Trace { file, .. } => file.as_deref(),
            Self::Sample { file, .. } => Some(file),
            Self::Sw1 { .. } | Self::Sw2 | Self::Noop { .. } | Self::Mix { .. } | Self::Queue { .. } => None,
        }
    }

    /// Whether jobs have several tasks, that are submitted together.
    #[must_use]
    pub fn has_jobs(&self) -> bool {
        matches!(self, Self::Sw1 { .. } | Self::Sw2 | Self::Trace { .. } | Self::Sample { .. })
    }

    /// What tasks do.
    #[must_use]
    pub fn work(&self) -> Work {
        match self {
            Self::Sw1 { work, .. } | Self::Trace { work, .. } | Self::Sample { work, .. } => *work,
            Self::Sw2 | Self::Noop { .. } | Self::Mix { .. } | Self::Queue { .. } => Work::Compute,
        }
    }

    fn check(&self) -> Result<(), CellError> {
        let bad = |what: &str| Err(CellError::Bad(format!("load: {what}")));
        let share = |share: f64| share > 0.0 && share <= 4.0;
        if !(1..=1024).contains(&self.clients()) {
            return bad("clients must be 1 to 1024");
        }
        match *self {
            Self::Sw1 { utilisation, .. } if !share(utilisation) => bad("utilisation must be above 0 and at most 4"),
            Self::Trace { sample, .. } if !(sample > 0.0 && sample <= 1e3) => {
                bad("sample must be above 0 and at most 1000")
            }
            Self::Trace { load, .. } | Self::Sample { load, .. } | Self::Mix { load, .. } if !share(load) => {
                bad("load must be above 0 and at most 4")
            }
            Self::Trace { median_ms, .. } | Self::Sample { median_ms, .. }
                if !(median_ms > 0.0 && median_ms <= 3.6e6) =>
            {
                bad("median_ms must be above 0 and at most an hour")
            }
            Self::Mix { short_us, long_us, short_share, .. }
                if !(short_us > 0.0 && long_us >= short_us && long_us < 1e9 && (0.0..=1.0).contains(&short_share)) =>
            {
                bad("0 < short_us <= long_us < 1e9, and short_share from 0 to 1")
            }
            Self::Noop { backlog: 0, .. } => bad("backlog must be at least 1"),
            Self::Queue { length, unfit, .. } if !(1..=32_768).contains(&length) || !(0.0..=1.0).contains(&unfit) => {
                bad("length must be 1 to 32,768, and unfit from 0 to 1")
            }
            _ => Ok(()),
        }
    }
}

fn fifty() -> u16 {
    50
}

fn sample() -> f64 {
    crate::calibration::SAMPLE_TASKS
}

fn number<const N: u32>() -> u32 {
    N
}
