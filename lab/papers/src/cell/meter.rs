//! Collects what schemes report about tasks, in constant memory.

use super::percentiles::Recorder;
use super::{Cell, CellResult, LevelResult, Series, Step};
use midflight_endpoint::Nanos;
use std::collections::BTreeMap;

const BUCKET_MS: u64 = 500;
const STEPS: usize = Step::ALL.len();

/// A task that starts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Submission time.
    pub submitted: Nanos,
    /// Start time.
    pub started: Nanos,
    /// Priority level; 1 is the highest.
    pub level: u8,
    /// Parts of the delay, in the order of [`Step::ALL`]; `None` if the scheme has no such step.
    pub steps: [Option<Nanos>; STEPS],
}

impl Sample {
    fn delay(&self) -> Nanos {
        self.started.saturating_sub(self.submitted)
    }
}

struct Recorders {
    delay: Recorder,
    steps: [Option<Recorder>; STEPS],
}

impl Recorders {
    fn new() -> Self {
        Self { delay: Recorder::new(), steps: [const { None }; STEPS] }
    }

    fn record(&mut self, sample: &Sample) {
        self.delay.record(sample.delay());
        for (recorder, step) in self.steps.iter_mut().zip(sample.steps) {
            if let Some(ns) = step {
                recorder.get_or_insert_with(Recorder::new).record(ns);
            }
        }
    }

    fn steps(&self) -> BTreeMap<Step, super::Percentiles> {
        let recorded = Step::ALL.into_iter().zip(&self.steps);
        recorded.filter_map(|(step, recorder)| Some((step, recorder.as_ref()?.percentiles()))).collect()
    }
}

/// Measures a cell's tasks.
pub struct Meter {
    from: Nanos,
    until: Nanos,
    all: Recorders,
    levels: BTreeMap<u8, Recorders>,
    /// A job's largest delay, by its submission time, which is unique. `None` if jobs have one task.
    jobs: Option<BTreeMap<Nanos, Nanos>>,
    groups: Vec<Vec<u64>>,
    nodes: Vec<u32>,
    started_in_time: u64,
    last_end: Nanos,
    result: CellResult,
}

impl Meter {
    /// Creates a meter for tasks submitted after the cell's warm-up.
    #[must_use]
    pub fn new(cell: &Cell) -> Self {
        Self {
            from: cell.warmup_ms * 1_000_000,
            until: cell.duration_ms * 1_000_000,
            all: Recorders::new(),
            levels: BTreeMap::new(),
            jobs: cell.load.has_jobs().then(BTreeMap::new),
            groups: vec![Vec::new(); cell.cluster.groups.len()],
            nodes: cell.cluster.groups.iter().map(|group| group.nodes).collect(),
            started_in_time: 0,
            last_end: 0,
            result: CellResult::default(),
        }
    }

    /// Counts submitted tasks.
    pub fn submitted(&mut self, tasks: u64) {
        self.result.submitted += tasks;
    }

    /// Records a task's start.
    pub fn started(&mut self, sample: &Sample) {
        self.result.started += 1;
        self.started_in_time += u64::from((self.from..self.until).contains(&sample.started));
        if sample.submitted >= self.from {
            self.all.record(sample);
            if let Some(jobs) = &mut self.jobs {
                let largest = jobs.entry(sample.submitted).or_default();
                *largest = sample.delay().max(*largest);
            }
            self.levels.entry(sample.level).or_insert_with(Recorders::new).record(sample);
        }
    }

    /// Records a task's end, on a node of this group.
    pub fn ended(&mut self, now: Nanos, group: usize) {
        self.result.ended += 1;
        self.last_end = self.last_end.max(now);
        let bucket = (now / (BUCKET_MS * 1_000_000)) as usize;
        let Some(series) = self.groups.get_mut(group) else { return };
        if series.len() <= bucket {
            series.resize(bucket + 1, 0);
        }
        series[bucket] += 1;
    }

    /// Adds to a counter.
    pub fn count(&mut self, name: &str, number: u64) {
        *self.result.counters.entry(name.to_owned()).or_default() += number;
    }

    /// Submitted tasks that have not ended. A task that ends twice hides another.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.result.submitted.saturating_sub(self.result.ended)
    }

    /// The result so far.
    #[must_use]
    pub fn result(&self, events: u64) -> CellResult {
        let mut result = CellResult { events, ..self.result.clone() };
        result.last_end_ms = self.last_end as f64 / 1e6;
        result.started_per_s = self.started_in_time as f64 * 1e9 / (self.until - self.from) as f64;
        result.delay = self.all.delay.percentiles();
        let mut jobs = Recorder::new();
        self.jobs.iter().flat_map(BTreeMap::values).for_each(|&delay| jobs.record(delay));
        result.jobs = jobs.percentiles();
        result.steps = self.all.steps();
        if self.levels.len() > 1 {
            let levels = self.levels.iter();
            let level = |r: &Recorders| LevelResult { delay: r.delay.percentiles(), steps: r.steps() };
            result.levels = levels.map(|(&number, recorders)| (number, level(recorders))).collect();
        }
        let per_node_s = |count: u64, nodes: u32| count as f64 * 1e3 / BUCKET_MS as f64 / f64::from(nodes.max(1));
        let series = self.groups.iter().zip(&self.nodes).map(|(buckets, &nodes)| Series {
            bucket_ms: BUCKET_MS,
            ended_per_node_s: buckets.iter().map(|&count| per_node_s(count, nodes)).collect(),
        });
        result.groups = series.collect();
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Cluster, Load, Scheme, Work};

    #[test]
    fn a_job_is_as_late_as_its_last_task() {
        let cell = |load| Cell {
            scheme: Scheme::Spark,
            cluster: Cluster::uniform(1, 1),
            load,
            seed: 1,
            warmup_ms: 1,
            duration_ms: 100,
            drain_ms: 0,
        };
        let tasks = [(0, 900_000), (2_000_000, 2_100_000), (2_000_000, 2_700_000), (5_000_000, 5_300_000)];
        let measured = |load| {
            let mut meter = Meter::new(&cell(load));
            for (submitted, started) in tasks {
                meter.started(&Sample { submitted, started, level: 1, ..Sample::default() });
            }
            meter.result(0)
        };
        let jobs = measured(Load::Sw1 { clients: 2, utilisation: 0.5, work: Work::Sleep });
        assert_eq!((jobs.delay.count, jobs.jobs.count), (3, 2), "the first one was submitted before measuring began");
        assert!((jobs.jobs.at(1.0) - 0.7).abs() < 1e-3 && (jobs.jobs.at(0.0) - 0.3).abs() < 1e-3, "{:?}", jobs.jobs);
        let single = measured(Load::Noop { clients: 1, backlog: 1 });
        assert_eq!((single.delay.count, single.jobs.count), (3, 0));
    }
}
