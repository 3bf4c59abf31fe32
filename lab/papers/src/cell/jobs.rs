//! What a cell submits, job by job. Arrivals depend on load, cluster and seed only, so all schemes see the same.

use super::sampled::Sampled;
use super::{Cell, CellError, Load, Work};
use crate::calibration::{CLIENT_LATE_NS, SLEEP_LATE_NS};
use midflight_endpoint::{MS, Nanos};
use midflight_workload::{Shape, Target, Workload, generate, read_file};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use std::rc::Rc;

/// A submitted task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawnTask {
    /// How long it occupies its executor, in nanoseconds.
    pub duration_ns: Nanos,
    /// Priority level; 1 is the highest.
    pub level: u8,
    /// Resources it requires, one bit each.
    pub resources: u8,
}

/// A submitted job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnJob {
    /// Submission time, in nanoseconds.
    pub at: Nanos,
    /// Its client, from 0.
    pub client: u32,
    /// At least one task.
    pub tasks: Vec<DrawnTask>,
}

/// A cell's jobs in time order. Closed loops ([`Load::Noop`]) have none: the scheme's clients submit when tasks end.
#[derive(Clone)]
pub struct Jobs {
    source: Source,
    until: Nanos,
    late_ns: Nanos,
}

#[derive(Clone)]
enum Source {
    Periodic { clients: Vec<Periodic>, interval: Nanos, duration_ns: Nanos },
    Thirds { next: Nanos, third: Nanos },
    Trace(Box<Trace>),
    Sample(Box<Sampled>),
    Mix { next: f64, gap: f64, sizes: [Nanos; 2], short_share: f64, random: Pcg64, jobs: u64, clients: u32 },
    Closed,
}

#[derive(Clone)]
struct Periodic {
    next: Nanos,
    tasks: f64,
    owed: f64,
}

#[derive(Clone)]
struct Trace {
    workload: Rc<Workload>,
    /// After the end of the trace.
    order: Vec<u32>,
    /// The first job. For a file it depends on the seed; a generated trace itself differs by seed.
    first: usize,
    /// Time of one pass.
    period: Nanos,
    jobs: u64,
    clients: u32,
    random: Pcg64,
}

/// One stream per purpose and client.
pub(super) fn stream(seed: u64, index: u64) -> Pcg64 {
    Pcg64::new(u128::from(seed), 0xCE11_0000 + u128::from(index))
}

impl Jobs {
    /// Creates the cell's jobs.
    ///
    /// # Errors
    /// If a trace cannot be read or scaled.
    pub fn new(cell: &Cell) -> Result<Self, CellError> {
        let executors = cell.cluster.executors();
        let source = match &cell.load {
            Load::Sw1 { clients, utilisation, .. } => {
                let tasks = utilisation * executors as f64 / f64::from(*clients);
                let interval = 10 * MS + CLIENT_LATE_NS;
                let client =
                    |index| Periodic { next: stream(cell.seed, index).random_range(0..interval), tasks, owed: 0.0 };
                let clients = (0..u64::from(*clients)).map(client).collect();
                Source::Periodic { clients, interval, duration_ns: 10 * MS }
            }
            Load::Sw2 => Source::Thirds { next: 0, third: cell.duration_ms * MS / 3 },
            Load::Noop { .. } | Load::Queue { .. } => Source::Closed,
            Load::Trace { .. } => Source::Trace(Box::new(Trace::new(cell)?)),
            Load::Sample { .. } => Source::Sample(Box::new(Sampled::new(cell)?)),
            Load::Mix { short_us, long_us, short_share, load, clients } => {
                let mean_ns = 1e3 * (short_us * short_share + long_us * (1.0 - short_share));
                Source::Mix {
                    next: 0.0,
                    gap: mean_ns / (load * executors as f64),
                    sizes: [(short_us * 1e3) as Nanos, (long_us * 1e3) as Nanos],
                    short_share: *short_share,
                    random: stream(cell.seed, 0),
                    jobs: 0,
                    clients: *clients,
                }
            }
        };
        let late_ns = if cell.load.work() == Work::Sleep { SLEEP_LATE_NS } else { 0 };
        Ok(Self { source, until: cell.duration_ms * MS, late_ns })
    }
}

impl Iterator for Jobs {
    type Item = DrawnJob;

    fn next(&mut self) -> Option<DrawnJob> {
        let mut job = match &mut self.source {
            Source::Periodic { clients, interval, duration_ns } => periodic(clients, *interval, *duration_ns)?,
            Source::Thirds { next, third } => thirds(next, *third),
            Source::Trace(trace) => trace.next()?,
            Source::Sample(sampled) => sampled.next()?,
            Source::Mix { next, gap, sizes, short_share, random, jobs, clients } => {
                *next -= (1.0 - random.random::<f64>()).ln() * *gap;
                let duration_ns = sizes[usize::from(!random.random_bool(*short_share))];
                *jobs += 1;
                let client = (*jobs % u64::from(*clients)) as u32;
                DrawnJob { at: *next as Nanos, client, tasks: vec![DrawnTask { duration_ns, level: 1, resources: 0 }] }
            }
            Source::Closed => return None,
        };
        for task in &mut job.tasks {
            task.duration_ns += self.late_ns;
        }
        (job.at < self.until).then_some(job)
    }
}

fn periodic(clients: &mut [Periodic], interval: Nanos, duration_ns: Nanos) -> Option<DrawnJob> {
    loop {
        let (client, state) = clients.iter_mut().enumerate().min_by_key(|(_, state)| state.next)?;
        let at = state.next;
        state.next += interval;
        state.owed += state.tasks;
        let tasks = (state.owed + 1e-6).floor();
        state.owed -= tasks;
        if tasks >= 1.0 {
            let task = DrawnTask { duration_ns, level: 1, resources: 0 };
            return Some(DrawnJob { at, client: client as u32, tasks: vec![task; tasks as usize] });
        }
        if state.tasks <= 0.0 {
            return None;
        }
    }
}

fn thirds(next: &mut Nanos, third: Nanos) -> DrawnJob {
    let at = *next;
    *next += 20_000_000;
    let resources = 1 << (at / third.max(1)).min(2);
    DrawnJob { at, client: 0, tasks: vec![DrawnTask { duration_ns: 20_000_000, level: 1, resources }; 90] }
}

impl Trace {
    fn new(cell: &Cell) -> Result<Self, CellError> {
        let Load::Trace { file, sample, median_ms, load, priorities, clients, .. } = &cell.load else {
            return Err(CellError::Bad("load: not a trace".into()));
        };
        let mut workload = match file {
            Some(file) => {
                let reading = read_file(file, &Default::default());
                reading.map_err(|source| CellError::Trace { file: file.clone(), source })?.workload
            }
            None => {
                let busy = load * cell.cluster.executors() as f64;
                let tasks_mean = sample * busy;
                let tasks_max = (10.0 * tasks_mean).clamp(10.0, 1e5) as u32;
                let work = busy * cell.duration_ms as f64 / median_ms;
                generate(&Shape { tasks_mean, tasks_max, work, ..Shape::default() }, cell.seed)
            }
        };
        let executors = u32::try_from(cell.cluster.executors()).unwrap_or(u32::MAX);
        let target = Target { median_ns: (median_ms * 1e6) as u64, load: *load, executors };
        workload.scale(&target).map_err(CellError::Scale)?;
        if *priorities {
            workload.draw_job_priorities(cell.seed)
        } else {
            workload.set_priorities(1)
        }
        let jobs = workload.jobs().len();
        let mut random = stream(cell.seed, 0);
        let first = if file.is_some() && jobs > 0 { random.random_range(0..jobs) } else { 0 };
        let gap = workload.span_ns() / jobs.max(1) as u64;
        let period = (workload.span_ns() + gap).max(1);
        let order = (0..jobs as u32).collect();
        Ok(Self { workload: Rc::new(workload), order, first, period, jobs: 0, clients: *clients, random })
    }

    /// The first pass keeps the jobs' order, from `first` on. Later passes repeat the arrival times with shuffled jobs.
    fn next(&mut self) -> Option<DrawnJob> {
        let jobs = self.workload.jobs();
        let (pass, place) = (self.jobs / jobs.len().max(1) as u64, self.jobs as usize % jobs.len().max(1));
        if pass > 0 && place == 0 {
            self.order.shuffle(&mut self.random);
        }
        let time = |place: usize| jobs.get(place).map(|job| job.arrival_ns.unsigned_abs());
        let slot = (self.first + place) % jobs.len().max(1);
        let wrapped = if slot < self.first { self.period } else { 0 };
        let at = pass * self.period + time(slot)? + wrapped - time(self.first)?;
        let job = jobs.get(if pass == 0 { slot } else { self.order[place] as usize })?;
        let client = (self.jobs % u64::from(self.clients)) as u32;
        self.jobs += 1;
        let task = |task: &midflight_workload::TaskSpec| DrawnTask {
            duration_ns: task.duration_ns,
            level: task.priority.clamp(1, 4),
            resources: 0,
        };
        Some(DrawnJob { at, client, tasks: job.tasks.iter().map(task).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cluster, Scheme};
    use super::*;

    fn cell(load: Load, seed: u64) -> Cell {
        let cluster = Cluster::uniform(10, 6);
        Cell { scheme: Scheme::Spark, cluster, load, seed, warmup_ms: 0, duration_ms: 3_000, drain_ms: 1_000 }
    }

    fn jobs(load: Load, seed: u64) -> Vec<DrawnJob> {
        Jobs::new(&cell(load, seed)).unwrap().collect()
    }

    #[test]
    fn sw1_asks_for_the_utilisation_in_whole_tasks() {
        let load = Load::Sw1 { clients: 2, utilisation: 0.95, work: Work::Compute };
        let jobs = jobs(load, 1);
        assert!((585..=600).contains(&jobs.len()), "{}", jobs.len());
        assert!(jobs.iter().all(|job| (28..=29).contains(&job.tasks.len())));
        let tasks: usize = jobs.iter().map(|job| job.tasks.len()).sum();
        assert!((tasks as f64 / jobs.len() as f64 / 28.5 - 1.0).abs() < 0.001);
        assert!(jobs.windows(2).all(|pair| pair[0].at <= pair[1].at));
    }

    #[test]
    fn sw2_asks_for_one_resource_after_the_other() {
        let jobs = jobs(Load::Sw2, 1);
        assert_eq!(jobs.len(), 150);
        for (at, resources) in [(0, 1), (980, 1), (1_000, 2), (2_000, 4), (2_980, 4)] {
            let job = jobs.iter().find(|job| job.at == at * 1_000_000).unwrap();
            assert_eq!((job.tasks.len(), job.tasks[0].resources), (90, resources), "at {at} ms");
        }
    }

    #[test]
    fn a_trace_has_the_load_that_was_asked_and_the_order_of_the_seed() {
        let load = Load::Trace {
            file: None,
            sample: 1.2,
            median_ms: 5.0,
            load: 0.5,
            priorities: true,
            clients: 2,
            work: Work::Compute,
        };
        let (one, other) = (jobs(load.clone(), 1), jobs(load.clone(), 2));
        assert_ne!(one, other);
        assert_eq!(one, jobs(load, 1));
        assert!(one.windows(2).all(|pair| pair[0].at <= pair[1].at));
        assert!(one.iter().any(|job| job.tasks.iter().any(|task| task.level == 4)));
    }

    #[test]
    fn a_file_s_jobs_come_in_their_own_order_from_a_job_that_differs_by_seed() {
        let file = std::env::temp_dir().join(format!("midflight-jobs-{}.tr", std::process::id()));
        // Jobs of 1, 2, 3, … tasks, with growing intervals.
        let line = |n: u32| format!("{} {n} 0.01 {}\n", n * n, "0.01 ".repeat(n as usize));
        std::fs::write(&file, (1..=20).map(line).collect::<String>()).unwrap();
        let load = Load::Trace {
            file: Some(file.clone()),
            sample: 1.0,
            median_ms: 10.0,
            load: 0.2,
            priorities: false,
            clients: 2,
            work: Work::Compute,
        };
        let mut begins = std::collections::BTreeSet::new();
        for seed in 0..5 {
            let mut trace = Trace::new(&cell(load.clone(), seed)).unwrap();
            let jobs: Vec<DrawnJob> = (0..40).map(|_| trace.next().unwrap()).collect();
            let tasks: Vec<usize> = jobs.iter().map(|job| job.tasks.len()).collect();
            assert!((0..19).all(|i| tasks[i + 1] == tasks[i] % 20 + 1), "{tasks:?}");
            let mut again = tasks[20..].to_vec();
            again.sort_unstable();
            assert_eq!(again, (1..=20).collect::<Vec<_>>(), "all jobs, once more");
            assert!(jobs.windows(2).all(|pair| pair[0].at < pair[1].at) && jobs[0].at == 0);
            assert_eq!(jobs[20].at, jobs[0].at + (jobs[21].at - jobs[1].at));
            begins.insert(tasks[0]);
        }
        assert!(begins.len() > 1);
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn a_mix_has_its_load_and_shares() {
        let load = Load::Mix { short_us: 10.0, long_us: 100.0, short_share: 0.9, load: 0.5, clients: 2 };
        let jobs = jobs(load, 1);
        let work: u64 = jobs.iter().map(|job| job.tasks[0].duration_ns).sum();
        assert!((work as f64 / (3e9 * 60.0) / 0.5 - 1.0).abs() < 0.01);
        let short = jobs.iter().filter(|job| job.tasks[0].duration_ns == 10_000).count();
        assert!((short as f64 / jobs.len() as f64 - 0.9).abs() < 0.01);
    }
}
