//! A generated workload with the statistics of the `yahoo-like` trace: see [`Shape`].

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::{Job, TaskSpec, Workload};

/// The statistics of a generated workload. Durations are relative to the median of short tasks, which is 1 ms; scaling sets the real one.
/// The defaults reproduce `yahoo-like-80.tr`: jobs of 20 tasks on average, durations with p25 : p50 : p75 : p95 : p99 of 0.39 : 1 : 2.5 :
/// 9.4 : 170 and a mean of 6.2 medians, Poisson arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Mean of the exponential distribution of tasks per job.
    pub tasks_mean: f64,
    /// Most tasks of a job; larger draws are repeated.
    pub tasks_max: u32,
    /// Standard deviation of the logarithm of the jobs' mean durations.
    pub between_jobs: f64,
    /// Standard deviation of the logarithm of durations within a job.
    pub within_job: f64,
    /// The share of jobs whose tasks are long.
    pub long_share: f64,
    /// Factor by which long tasks are longer.
    pub long_factor: f64,
    /// Longest task, in medians; longer draws are repeated, so that a run ends.
    pub longest: f64,
    /// Generation stops when the sum of all durations reaches this many medians.
    pub work: f64,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            tasks_mean: 20.0,
            tasks_max: 100,
            between_jobs: 1.23,
            within_job: 0.375,
            long_share: 0.018,
            long_factor: 200.0,
            longest: 375.0,
            work: 60_000.0,
        }
    }
}

const UNIT_NS: f64 = 1e6;
const GAP_NS: f64 = 1e7;
/// A bound for shapes that make no progress.
const MOST_JOBS: usize = 10_000_000;

/// Generates jobs until they hold the work of `shape`; the same seed generates the same jobs.
#[must_use]
pub fn generate(shape: &Shape, seed: u64) -> Workload {
    let mut random = Pcg64::seed_from_u64(seed);
    let (mut jobs, mut work, mut arrival_ns) = (Vec::new(), 0.0, 0.0);
    while jobs.len() < 2 || (work < shape.work && jobs.len() < MOST_JOBS) {
        let tasks = job(shape, &mut random);
        work += tasks.iter().map(|task| task.duration_ns as f64).sum::<f64>() / UNIT_NS;
        jobs.push(Job { arrival_ns: arrival_ns as i64, tasks });
        arrival_ns += 1.0 + GAP_NS * exponential(&mut random);
    }
    Workload::new(jobs)
}

fn job(shape: &Shape, random: &mut Pcg64) -> Vec<TaskSpec> {
    let centre = centre(shape, random);
    let count = within(shape.tasks_max.into(), || 1.0 + (shape.tasks_mean * exponential(random)).floor());
    (0..count as u32).map(|_| TaskSpec { duration_ns: duration_ns(shape, centre, random), priority: 0 }).collect()
}

/// The typical duration of a job's tasks, in medians.
fn centre(shape: &Shape, random: &mut Pcg64) -> f64 {
    let is_long = random.random_bool(shape.long_share.clamp(0.0, 1.0));
    // Long jobs are alike in the traces: the spread between jobs is that of the short ones.
    if is_long { shape.long_factor } else { (shape.between_jobs * normal(random)).exp() }
}

fn duration_ns(shape: &Shape, centre: f64, random: &mut Pcg64) -> u64 {
    let medians = within(shape.longest, || centre * (shape.within_job * normal(random)).exp());
    (medians * UNIT_NS).round() as u64
}

pub(super) fn redraw(jobs: &mut [Job], shape: &Shape, random: &mut Pcg64) {
    for task in jobs.iter_mut().flat_map(|job| &mut job.tasks) {
        let centre = centre(shape, random);
        task.duration_ns = duration_ns(shape, centre, random);
    }
}

/// Draws until the number is at most `limit`; returns `limit` if that does not succeed.
fn within(limit: f64, mut draw: impl FnMut() -> f64) -> f64 {
    const TRIES: u32 = 1_000;
    (0..TRIES).map(|_| draw()).find(|&number| number <= limit).unwrap_or(limit)
}

/// Exponential, with a mean of 1.
pub(super) fn exponential(random: &mut Pcg64) -> f64 {
    -(1.0 - random.random::<f64>()).ln()
}

/// Box–Muller transform.
fn normal(random: &mut Pcg64) -> f64 {
    let radius = (2.0 * exponential(random)).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_generates_the_same() {
        assert_eq!(generate(&Shape::default(), 5), generate(&Shape::default(), 5));
        assert_ne!(generate(&Shape::default(), 5), generate(&Shape::default(), 6));
    }

    #[test]
    fn the_default_shape_has_the_statistics_it_states() {
        let workload = generate(&Shape { work: 1_500_000.0, ..Shape::default() }, 3);
        let median = workload.duration_quantile_ns(0.5).unwrap() as f64;
        let relative = |quantile| workload.duration_quantile_ns(quantile).unwrap() as f64 / median;
        let near = |got: f64, wanted: f64| assert!((got / wanted - 1.0).abs() < 0.25, "{got} for {wanted}");
        near(workload.tasks() as f64 / workload.jobs().len() as f64, 20.0);
        near(relative(0.25), 0.39);
        near(relative(0.75), 2.5);
        near(relative(0.95), 9.4);
        near(relative(0.99), 170.0);
        near(workload.work_s() * 1e9 / workload.tasks() as f64 / median, 6.2);
        assert!(workload.duration_quantile_ns(1.0).unwrap() as f64 <= 375.0 * UNIT_NS);
    }

    #[test]
    fn a_shape_without_work_still_has_two_arrivals_to_scale() {
        let shape = Shape { work: 0.0, ..Shape::default() };
        assert!(generate(&shape, 1).span_ns() > 0);
    }
}
