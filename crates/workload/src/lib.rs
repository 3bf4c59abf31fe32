//! Workloads: jobs, their tasks and their arrivals. They come from a trace of a real cluster ([`read_file`]) or from a seeded generator
//! with the same statistics ([`generate`]), are scaled to the machine ([`Workload::scale`]) and played job by job ([`Workload::arrivals`]).
//! `docs/internals/workloads.md` describes each format.

mod alibaba;
mod arrivals;
mod draconis;
mod generate;
mod google;
mod ideal;
mod lines;
mod numbers;
mod priority;
mod read;
mod sample;
mod scale;
mod tr;

pub use arrivals::{Arrival, Arrivals};
pub use generate::{Shape, generate};
pub use ideal::ideal_end_ns;
pub use lines::{Malformed, Reason};
pub use priority::{LEVEL_SHARES, LEVELS, draw_level, fold_google_priority};
pub use read::{Format, ReadError, ReadOptions, Reading, Skip, read, read_file};
pub use sample::{Replace, Sample};
pub use scale::{Scale, ScaleError, Target};

/// The duration and priority of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    /// In nanoseconds.
    pub duration_ns: u64,
    /// 1 (highest) to [`LEVELS`]; 0 if the trace has none, until [`Workload::draw_priorities`].
    pub priority: u8,
}

/// Independent tasks that are submitted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Time of submission in nanoseconds of the trace's clock; negative in some traces.
    pub arrival_ns: i64,
    /// At least one.
    pub tasks: Vec<TaskSpec>,
}

/// Jobs in the order of their arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    jobs: Vec<Job>,
}

impl Workload {
    /// Sorts the jobs by arrival, stably, and drops jobs without tasks.
    #[must_use]
    pub fn new(mut jobs: Vec<Job>) -> Self {
        jobs.retain(|job| !job.tasks.is_empty());
        jobs.sort_by_key(|job| job.arrival_ns);
        Self { jobs }
    }

    /// The jobs, in the order of their arrival.
    #[must_use]
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// Number of tasks of all jobs.
    #[must_use]
    pub fn tasks(&self) -> u64 {
        self.jobs.iter().map(|job| job.tasks.len() as u64).sum()
    }

    /// The sum of all durations, in seconds.
    #[must_use]
    pub fn work_s(&self) -> f64 {
        let work_ns: u128 = self.durations_ns().map(u128::from).sum();
        work_ns as f64 / 1e9
    }

    /// From the first arrival to the last, in nanoseconds.
    #[must_use]
    pub fn span_ns(&self) -> u64 {
        match (self.jobs.first(), self.jobs.last()) {
            (Some(first), Some(last)) => last.arrival_ns.abs_diff(first.arrival_ns),
            _ => 0,
        }
    }

    /// The duration that `quantile` (0 to 1) of the tasks do not exceed, in nanoseconds; `None` without tasks.
    #[must_use]
    pub fn duration_quantile_ns(&self, quantile: f64) -> Option<u64> {
        let mut durations: Vec<u64> = self.durations_ns().collect();
        let last = durations.len().checked_sub(1)?;
        let rank = ((durations.len() as f64 * quantile) as usize).min(last);
        Some(*durations.select_nth_unstable(rank).1)
    }

    fn durations_ns(&self) -> impl Iterator<Item = u64> + '_ {
        self.jobs.iter().flat_map(|job| job.tasks.iter().map(|task| task.duration_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_sorted_by_arrival_and_empty_ones_left_out() {
        let task = TaskSpec { duration_ns: 1, priority: 0 };
        let workload = Workload::new(vec![
            Job { arrival_ns: 9, tasks: vec![task] },
            Job { arrival_ns: 1, tasks: vec![] },
            Job { arrival_ns: 3, tasks: vec![task, task] },
        ]);
        let arrivals: Vec<i64> = workload.jobs().iter().map(|job| job.arrival_ns).collect();
        assert_eq!(arrivals, [3, 9]);
        assert_eq!((workload.tasks(), workload.span_ns()), (3, 6));
    }

    #[test]
    fn an_empty_workload_has_no_median() {
        assert_eq!(Workload::default().duration_quantile_ns(0.5), None);
    }
}
