//! The results of a replay.

use std::collections::BTreeMap;
use std::time::Duration;

use super::delays::{Delays, Distribution, Passage};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All jobs were submitted and all tasks ended.
    Complete,
    /// Ctrl-C: the remaining jobs were not submitted.
    Interrupted,
    /// No task ended for too long, and the rest was abandoned.
    Stalled,
}

/// Counts and distributions of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Jobs submitted.
    pub jobs: u64,
    /// Tasks submitted.
    pub tasks: u64,
    /// Tasks whose result arrived.
    pub completed: u64,
    /// Tasks whose function failed.
    pub failed: u64,
    /// Tasks that ended without a result, or not at all.
    pub lost: u64,
    /// Results of a second or later attempt.
    pub retried: u64,
    /// Delays of all tasks.
    pub all: Delays,
    /// Delays by priority level.
    pub levels: BTreeMap<u8, Delays>,
    /// Delay of each job's submission after its planned time.
    pub lateness: Distribution,
    /// Total run time of functions, in nanoseconds.
    pub busy_ns: u128,
    origin_ns: u64,
    last_end_ns: u64,
    /// Why the run ended.
    pub ended: Ended,
}

impl Outcome {
    /// An empty outcome of a run that starts at `origin_ns`.
    pub fn new(origin_ns: u64) -> Self {
        Self {
            jobs: 0,
            tasks: 0,
            completed: 0,
            failed: 0,
            lost: 0,
            retried: 0,
            all: Delays::default(),
            levels: BTreeMap::new(),
            lateness: Distribution::default(),
            busy_ns: 0,
            origin_ns,
            last_end_ns: origin_ns,
            ended: Ended::Complete,
        }
    }

    /// Records a result.
    pub fn record(&mut self, passage: &Passage, attempt: u8) {
        self.completed += 1;
        self.retried += u64::from(attempt > 1);
        self.all.record(passage);
        self.levels.entry(passage.level).or_default().record(passage);
        self.busy_ns += u128::from(passage.ended_ns.saturating_sub(passage.started_ns));
        self.last_end_ns = self.last_end_ns.max(passage.ended_ns);
    }

    /// From the first planned arrival to the last end of a task.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.last_end_ns - self.origin_ns)
    }

    /// Results per second.
    pub fn throughput(&self) -> f64 {
        self.completed as f64 / self.elapsed().as_secs_f64().max(1e-9)
    }

    /// Share of the executors' time spent in functions, 0 to 1.
    pub fn utilisation(&self, executors: u32) -> f64 {
        self.busy_ns as f64 / (self.elapsed().as_nanos().max(1) as f64 * f64::from(executors.max(1)))
    }
}
