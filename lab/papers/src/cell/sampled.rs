//! The jobs of a sampled trace ([`Load::Sample`]), and facts about the sample.

use super::jobs::{DrawnJob, DrawnTask, Jobs, stream};
use super::{Cell, CellError, Load};
use midflight_workload::{Sample, Target, draw_level, read_file};
use rand_pcg::Pcg64;
use std::collections::BTreeMap;
use std::path::Path;

/// Counters are whole, so shares are in millionths.
const MILLION: f64 = 1e6;

#[derive(Clone)]
pub(super) struct Sampled {
    sample: Sample,
    priorities: bool,
    clients: u32,
    jobs: u64,
    random: Pcg64,
}

impl Sampled {
    pub(super) fn new(cell: &Cell) -> Result<Self, CellError> {
        let Load::Sample { file, median_ms, load, priorities, clients, replace, .. } = &cell.load else {
            return Err(CellError::Bad("load: not a sampled trace".into()));
        };
        let reading = read_file(file, &Default::default());
        let workload = reading.map_err(|source| CellError::Trace { file: file.clone(), source })?.workload;
        let executors = u32::try_from(cell.cluster.executors()).unwrap_or(u32::MAX);
        let target = Target { median_ns: (median_ms * 1e6) as u64, load: *load, executors };
        let sample = workload.sample(&target, *replace, cell.seed).map_err(CellError::Scale)?;
        let (priorities, clients) = (*priorities, *clients);
        Ok(Self { sample, priorities, clients, jobs: 0, random: stream(cell.seed, 0) })
    }

    pub(super) fn next(&mut self) -> Option<DrawnJob> {
        let job = self.sample.next()?;
        // The tasks of a job have one level, as in Google's trace.
        let drawn = if self.priorities { draw_level(&mut self.random) } else { 1 };
        let client = (self.jobs % u64::from(self.clients)) as u32;
        self.jobs += 1;
        let task = |task: &midflight_workload::TaskSpec| {
            let own = self.priorities && task.priority > 0;
            let level = if own { task.priority.min(4) } else { drawn };
            DrawnTask { duration_ns: task.duration_ns, level, resources: 0 }
        };
        Some(DrawnJob { at: job.arrival_ns.unsigned_abs(), client, tasks: job.tasks.iter().map(task).collect() })
    }
}

/// Facts about a cell's sample, by name; empty for other loads.
///
/// # Errors
/// If the trace cannot be read or sampled.
pub(super) fn facts(cell: &Cell) -> Result<BTreeMap<String, u64>, CellError> {
    if !matches!(cell.load, Load::Sample { .. }) {
        return Ok(BTreeMap::new());
    }
    let sampled = Sampled::new(cell)?;
    let (rate, squeezed, period) = (sampled.sample.rate(), sampled.sample.squeezed(), sampled.sample.period_ns());
    let (mut jobs, mut tasks, mut largest, mut work_ns) = (0u64, 0u64, 0u64, 0f64);
    for job in Jobs::new(cell)? {
        jobs += 1;
        tasks += job.tasks.len() as u64;
        largest = largest.max(job.tasks.len() as u64);
        work_ns += job.tasks.iter().map(|task| task.duration_ns as f64).sum::<f64>();
    }
    let offered = work_ns / (cell.duration_ms as f64 * 1e6 * cell.cluster.executors() as f64);
    let facts = [
        ("trace.rate_ppm", (rate * MILLION).round() as u64),
        ("trace.squeezed_ppm", (squeezed * MILLION).round() as u64),
        ("trace.pass_us", period / 1_000),
        ("trace.jobs", jobs),
        ("trace.tasks", tasks),
        ("trace.largest_job", largest),
        ("trace.offered_ppm", (offered * MILLION).round() as u64),
    ];
    Ok(facts.into_iter().map(|(name, number)| (name.to_owned(), number)).collect())
}

impl Cell {
    /// This cell, with a bare trace file name resolved in `directory`. Cells keep bare names, so results do not depend on the location of
    /// the files.
    #[must_use]
    pub fn with_traces(&self, directory: &Path) -> Self {
        let mut cell = self.clone();
        if let Load::Sample { file, .. } = &mut cell.load {
            *file = directory.join(&file);
        }
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cluster, Replace, Scheme, Work};
    use super::*;

    fn cell(seed: u64, priorities: bool) -> Cell {
        let load = Load::Sample {
            file: "a.tr".into(),
            median_ms: 5.0,
            load: 0.5,
            priorities,
            clients: 2,
            work: Work::Compute,
            replace: Replace::Nothing,
        };
        let (scheme, cluster) = (Scheme::Spark, Cluster::uniform(2, 4));
        Cell { scheme, cluster, load, seed, warmup_ms: 0, duration_ms: 20_000, drain_ms: 1_000 }
    }

    /// A temporary folder with one trace of 200 jobs of 1 to 50 tasks.
    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("midflight-sampled-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            let line = |n: usize| format!("{n} {0} 5 {1}\n", 1 + n % 50, "5 ".repeat(1 + n % 50));
            std::fs::write(folder.join("a.tr"), (0..200).map(line).collect::<String>()).unwrap();
            Self(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_sample_asks_for_the_load_and_says_what_it_took() {
        let folder = Folder::new("load");
        let cell = cell(1, false).with_traces(&folder.0);
        let facts = facts(&cell).unwrap();
        assert!((470_000..530_000).contains(&facts["trace.offered_ppm"]), "{facts:?}");
        assert_eq!(facts["trace.squeezed_ppm"], 1_000_000);
        // 200 jobs of 25.5 tasks of 5 ms in a pass of 0.2 s keep 127.5 executors busy; the cell wants work for 4.
        assert!((facts["trace.rate_ppm"] as f64 / 1e6 * 127.5 / 4.0 - 1.0).abs() < 0.01, "{facts:?}");
        assert_eq!(facts["trace.pass_us"], 200_000);
        let jobs: Vec<DrawnJob> = Jobs::new(&cell).unwrap().collect();
        assert_eq!(jobs.len() as u64, facts["trace.jobs"]);
        assert!(jobs.iter().enumerate().all(|(i, job)| job.client == i as u32 % 2));
        assert!(jobs.iter().all(|job| job.tasks.iter().all(|task| task.level == 1)));
    }

    #[test]
    fn a_job_has_one_level() {
        let folder = Folder::new("levels");
        let jobs: Vec<DrawnJob> = Jobs::new(&cell(1, true).with_traces(&folder.0)).unwrap().collect();
        let alike = |job: &DrawnJob| job.tasks.iter().all(|task| task.level == job.tasks[0].level);
        assert!(jobs.iter().all(alike));
        let share = |level| jobs.iter().filter(|job| job.tasks[0].level == level).count() as f64 / jobs.len() as f64;
        assert!((share(3) - 0.648).abs() < 0.03 && (share(4) - 0.323).abs() < 0.03, "{}, {}", share(3), share(4));
    }

    #[test]
    fn only_a_name_without_a_folder_is_looked_for_among_the_traces() {
        let file = |cell: &Cell| match &cell.load {
            Load::Sample { file, .. } => file.clone(),
            _ => "".into(),
        };
        let there = cell(1, false).with_traces(Path::new("/traces"));
        assert_eq!(file(&there), Path::new("/traces/a.tr"));
        assert_eq!(file(&there.with_traces(Path::new("/elsewhere"))), Path::new("/traces/a.tr"));
    }

    #[test]
    fn a_file_that_is_absent_is_named() {
        let error = Jobs::new(&cell(1, false).with_traces(Path::new("/nowhere"))).err().unwrap();
        assert!(error.to_string().contains("/nowhere/a.tr"), "{error}");
    }
}
