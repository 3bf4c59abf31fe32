//! A cell: one run of one scheme on one cluster under one workload, from one seed. A figure is a list of cells and a reduction of their
//! results.
//!
//! The entry point is [`run`]. Delay is as in the papers: from the call of submit to the start of the task.

pub(crate) mod closed;
mod dealer;
mod jobs;
mod machine;
mod memory;
mod meter;
mod midflight;
mod passes;
pub(crate) mod percentiles;
mod run;
mod sampled;
mod site;
mod sparrow;
pub(crate) mod testbed;

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

/// One run. Omitted fields have the papers' values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The scheduler.
    pub scheme: Scheme,
    /// The cluster.
    pub cluster: Cluster,
    /// The workload.
    pub load: Load,
    /// Seed of all randomness. All schemes see the same arrivals.
    pub seed: u64,
    /// Milliseconds of unmeasured warm-up.
    pub warmup_ms: u64,
    /// Milliseconds until submission ends, warm-up included.
    pub duration_ms: u64,
    /// Milliseconds to wait for submitted tasks. Later ones count as open.
    #[serde(default = "Cell::default_drain_ms")]
    pub drain_ms: u64,
}

/// A scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Scheme {
    /// The production switch and endpoints in the switch; free executors park.
    Midflight,
    /// The same, as a process on a host.
    MidflightServer,
    /// The production switch in a Linux kernel, and the production endpoints, at measured costs.
    MidflightKernel(Linux),
    /// The production endpoints with an asic engine: executors poll, packets recirculate.
    MidflightAsic(Pipelined),
    /// The published protocol in the switch: executors poll.
    Bolt(Polling),
    /// The published protocol in a process on a host.
    BoltServer(Polling),
    /// Sparrow with the costs of the Java original.
    SparrowJava(Sampling),
    /// Sparrow with the costs of the Bolt thesis's rewrite.
    SparrowCpp(Sampling),
    /// A central scheduler with a cost per task, for its shape only.
    Spark,
    /// A program of the asic engine alone, under [`Load::Queue`]: counts its passes.
    AsicPasses {
        /// The program.
        program: Program,
    },
}

impl Scheme {
    /// A hash of the sources that decide a cell's result. Results of other sources are not reused.
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

/// Linux machines, one of them the switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Linux {
    /// Cores shared by clients and executors; 0: each host has its own.
    pub shared_cores: u32,
    /// Wake-up time in nanoseconds; default [`crate::calibration::LINUX_WAKE_NS`].
    pub wake_ns: Option<u32>,
    /// Costs measured on a machine, instead of the calibrated ones and `wake_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

/// Costs of a machine on which clients, switch and executors run, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Core time of a turn of a process, in which it handles what has come for it.
    pub turn_ns: u32,
    /// Delay of a submission for each of its tasks.
    pub task_ns: u32,
    /// Delay of a packet that uses no core.
    pub way_ns: u32,
    /// Mean of an exponential delay of packets to the switch.
    pub jitter_ns: u32,
    /// Delay of a sleeping task's end.
    pub late_ns: u32,
    /// Whether the switch is a process on the machine instead of a program in its kernel.
    pub is_process: bool,
}

/// A pipelined switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipelined {
    /// Its program.
    pub program: Program,
    /// Microseconds between a no-op and the next poll (Bolt §5.4: 50).
    #[serde(default = "fifty")]
    pub interval_us: u16,
}

/// How executors poll, and other parameters of the published protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Polling {
    /// Microseconds between a no-op and the next poll (Bolt §5.4: 50).
    pub interval_us: u64,
    /// Elide polls without effect, which does not change results. Never for a server.
    pub elide: bool,
    /// Priority levels of the switch (Bolt ch. 4: 4).
    pub levels: u8,
    /// Tasks in a job_submission packet (32).
    pub packet_tasks: u32,
    /// Microseconds per packet of clients and executors, beyond the network stack (0; Falcon's Java: 5).
    pub program_us: u64,
    /// Microseconds until an executor retries an unanswered poll (500).
    pub poll_again_us: u64,
    /// Microseconds until a client resubmits (200,000).
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
    /// Schedulers; each client uses them round robin from another start.
    pub schedulers: u32,
    /// Reservations per task (both papers: 2).
    pub ratio: f64,
    /// `false`: free executors ask without a reservation (Bolt's figure 11).
    pub probing: bool,
    /// Run schedulers on the clients' hosts, as in Falcon §3.5.
    pub on_clients: bool,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { schedulers: 1, ratio: 2.0, probing: true, on_clients: false }
    }
}

/// A cluster to schedule on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Groups of identical nodes.
    pub groups: Vec<Group>,
    /// Switches; nodes and jobs are spread evenly over them.
    #[serde(default = "number::<1>")]
    pub shards: u32,
}

/// Identical nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Number of nodes.
    pub nodes: u32,
    /// Executors on each node: tasks it runs at once.
    pub executors: u32,
    /// Resources it offers, one bit each.
    #[serde(default)]
    pub resources: u8,
}

/// What a task does for its duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Sleep; its end is as late as timers are.
    Sleep,
    /// Compute, on its own hardware thread.
    #[default]
    Compute,
}

/// A workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Load {
    /// Each client submits a job every interval, in a random phase. Tasks last for the interval (10 ms).
    Sw1 {
        /// Number of clients (2).
        #[serde(default = "number::<2>")]
        clients: u32,
        /// Share of the cluster's time that tasks use; sets the mean tasks of a job.
        utilisation: f64,
        /// What tasks do.
        work: Work,
    },
    /// 90 tasks of 20 ms every 20 ms, which require resource A (bit 0), then B (bit 1), then C (bit 2), for a third of the time each.
    Sw2,
    /// Tasks that end at once, with a fixed number in flight.
    Noop {
        /// Number of clients (8).
        #[serde(default = "number::<8>")]
        clients: u32,
        /// Tasks in flight per executor (4).
        #[serde(default = "number::<4>")]
        backlog: u32,
    },
    /// A trace's jobs, scaled in median and load. Longer runs repeat them in random order.
    Trace {
        /// In a format of `workload::read_file`; none: a generated trace for the whole run.
        file: Option<PathBuf>,
        /// Mean tasks of a generated job, for each executor the load keeps busy ([`crate::calibration::SAMPLE_TASKS`]).
        #[serde(default = "sample")]
        sample: f64,
        /// Median duration to scale to, in milliseconds (Bolt §5.1.3: 5).
        median_ms: f64,
        /// Share of the cluster's time that tasks use.
        load: f64,
        /// Levels 1 to 4 in the shares of Bolt §5.6; otherwise level 1.
        priorities: bool,
        /// Number of clients, which take turns (2).
        #[serde(default = "number::<2>")]
        clients: u32,
        /// What tasks do.
        work: Work,
    },
    /// A uniform sample of a trace, accelerated (Bolt §5.1.3): one factor on durations and arrivals sets the median; the share of tasks
    /// sampled sets the load. Longer runs sample again.
    Sample {
        /// In a format of `workload::read_file`; [`Cell::with_traces`] resolves a bare name.
        file: PathBuf,
        /// Median duration, in milliseconds (Bolt §5.1.3: 5).
        median_ms: f64,
        /// Share of the cluster's time that tasks use.
        load: f64,
        /// Levels 1 to 4, per job, in the shares of Bolt §5.6, unless the trace has its own; otherwise level 1.
        priorities: bool,
        /// Number of clients, which take turns (2).
        #[serde(default = "number::<2>")]
        clients: u32,
        /// What tasks do.
        work: Work,
        /// Parts of the trace to replace, for experiments.
        #[serde(default)]
        replace: Replace,
    },
    /// Jobs of one task of two sizes, in a Poisson process.
    Mix {
        /// Microseconds of a short task (10).
        short_us: f64,
        /// Microseconds of a long task (100).
        long_us: f64,
        /// Share of short tasks.
        short_share: f64,
        /// Share of the cluster's time that tasks use.
        load: f64,
        /// Number of clients, which take turns (2).
        #[serde(default = "number::<2>")]
        clients: u32,
    },
    /// A queue of constant length with one executor: for [`Scheme::AsicPasses`].
    Queue {
        /// Tasks in the queue, 1 to 32,768.
        length: u32,
        /// Share of tasks that the executor may not run.
        unfit: f64,
        /// Number of retrievals that get a task.
        retrievals: u32,
        /// Whether the executor also empties the queue, without refills.
        emptied: bool,
    },
}

/// A part of a task's delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Until the scheduler has the task.
    Submit,
    /// Sparrow: from there until its reservation is in the worker's queue.
    Reservation,
    /// Waiting for a free executor, in the switch's queue or Sparrow's worker.
    Queueing,
    /// From an executor's request (if parked: from the assignment) to the answer.
    GetTask,
}

impl Step {
    /// All steps, in order.
    pub const ALL: [Self; 4] = [Self::Submit, Self::Reservation, Self::Queueing, Self::GetTask];
}

/// Result of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// Tasks submitted; includes warm-up, like the next two.
    pub submitted: u64,
    /// Tasks that started.
    pub started: u64,
    /// Tasks that ended.
    pub ended: u64,
    /// Delay of the measured tasks.
    pub delay: Percentiles,
    /// Each measured job's largest task delay. Empty if jobs have one task.
    #[serde(default)]
    pub jobs: Percentiles,
    /// Delay by step, for the steps the scheme has.
    pub steps: BTreeMap<Step, Percentiles>,
    /// The same by priority level, if there are several.
    pub levels: BTreeMap<u8, LevelResult>,
    /// Task starts a second between warm-up and end of submission.
    pub started_per_s: f64,
    /// Ends per second and node over time, by group of nodes.
    pub groups: Vec<Series>,
    /// When the last task ended, in milliseconds.
    pub last_end_ms: f64,
    /// Simulated events.
    pub events: u64,
    /// The scheme's counters: polls, drops, retransmissions, …
    pub counters: BTreeMap<String, u64>,
    /// Wall time in milliseconds: the only number that differs between runs.
    pub wall_ms: f64,
}

impl CellResult {
    /// Without wall time: identical in every run.
    #[must_use]
    pub fn deterministic(&self) -> Self {
        Self { wall_ms: 0.0, ..self.clone() }
    }
}

/// Results of one priority level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelResult {
    /// Delay of its tasks.
    pub delay: Percentiles,
    /// Delay by step.
    pub steps: BTreeMap<Step, Percentiles>,
}

/// A number over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Width of a bucket in milliseconds.
    pub bucket_ms: u64,
    /// Ends per second and node, one value per bucket from time 0.
    pub ended_per_node_s: Vec<f64>,
}

impl Cell {
    fn default_drain_ms() -> u64 {
        60_000
    }

    /// Checks that all fields are valid.
    ///
    /// # Errors
    /// Says which field is invalid and what is allowed.
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
    /// Identical nodes without resources.
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
    /// Number of clients that submit.
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

    /// The trace's file, if any.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Trace { file, .. } => file.as_deref(),
            Self::Sample { file, .. } => Some(file),
            Self::Sw1 { .. } | Self::Sw2 | Self::Noop { .. } | Self::Mix { .. } | Self::Queue { .. } => None,
        }
    }

    /// Whether jobs have several tasks.
    #[must_use]
    pub fn has_jobs(&self) -> bool {
        matches!(self, Self::Sw1 { .. } | Self::Sw2 | Self::Trace { .. } | Self::Sample { .. })
    }

    /// What its tasks do.
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
