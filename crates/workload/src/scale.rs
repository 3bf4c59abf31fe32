//! Scales a workload to a machine by two factors: durations are divided by `f` to reach the target's median, then arrivals are multiplied
//! by `g` to make work / (span × executors) the target's load, which one factor would leave to chance. Nothing is clamped; durations that
//! round to zero nanoseconds are counted.

use super::Workload;

/// The target of scaling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The median of the durations, in nanoseconds.
    pub median_ns: u64,
    /// Work per executor and time: 1 keeps all executors busy.
    pub load: f64,
    /// Number of tasks that may run in parallel.
    pub executors: u32,
}

/// The result of scaling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Durations were divided by this.
    pub f: f64,
    /// Arrivals were multiplied by this; below 1 they came closer together.
    pub g: f64,
    /// The sum of the durations after scaling, in seconds.
    pub work_s: f64,
    /// From the first arrival to the last after scaling, in seconds.
    pub span_s: f64,
    /// Tasks whose duration became zero: below half a nanosecond.
    pub rounded_to_zero: u64,
}

/// Why a workload cannot be scaled.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScaleError {
    /// No tasks.
    #[error("the workload has no tasks")]
    NoTasks,
    /// Half of the tasks take no time.
    #[error("the median duration is 0, which no factor scales: use a trace with a finer clock")]
    MedianZero,
    /// All jobs arrive at the same instant.
    #[error("all jobs arrive at the same time, so no load can be set: use a trace with more than one arrival")]
    SpanZero,
    /// A target out of range.
    #[error("{0} must be greater than 0")]
    BadTarget(&'static str),
    /// A scaled time does not fit 64 bits of nanoseconds.
    #[error("a task or an arrival would be later than 146 years from now: ask for a smaller median or a higher load")]
    TooLong,
}

/// As in the readers: the difference of two times fits 64 bits.
const LONGEST_NS: f64 = (1u64 << 62) as f64;

impl Workload {
    /// Scales durations and arrivals to `target`; the first job then arrives at 0. On an error nothing has changed.
    pub fn scale(&mut self, target: &Target) -> Result<Scale, ScaleError> {
        let f = self.factor(target)?;
        let span_s = self.work_s() / f / (target.load * f64::from(target.executors));
        let g = span_s * 1e9 / self.span_ns() as f64;
        self.fits(f, 1.0 / g)?;
        let rounded_to_zero = self.apply(f, g);
        Ok(Scale { f, g, work_s: self.work_s(), span_s: self.span_ns() as f64 / 1e9, rounded_to_zero })
    }

    /// The divisor of durations that gives the target's median.
    pub(super) fn factor(&self, target: &Target) -> Result<f64, ScaleError> {
        check(target)?;
        let median_ns = self.duration_quantile_ns(0.5).ok_or(ScaleError::NoTasks)?;
        if median_ns == 0 {
            return Err(ScaleError::MedianZero);
        }
        if self.span_ns() == 0 {
            return Err(ScaleError::SpanZero);
        }
        Ok(median_ns as f64 / target.median_ns as f64)
    }

    pub(super) fn fits(&self, durations: f64, arrivals: f64) -> Result<(), ScaleError> {
        let longest_ns = self.durations_ns().max().unwrap_or(0) as f64 / durations;
        let span_ns = self.span_ns() as f64 / arrivals;
        if span_ns >= LONGEST_NS || longest_ns >= LONGEST_NS { Err(ScaleError::TooLong) } else { Ok(()) }
    }

    /// The first job then arrives at 0.
    pub(super) fn apply(&mut self, f: f64, g: f64) -> u64 {
        let origin_ns = self.jobs.first().map_or(0, |job| job.arrival_ns);
        let mut rounded_to_zero = 0;
        for job in &mut self.jobs {
            job.arrival_ns = (job.arrival_ns.abs_diff(origin_ns) as f64 * g).round() as i64;
            for task in &mut job.tasks {
                let scaled_ns = (task.duration_ns as f64 / f).round() as u64;
                rounded_to_zero += u64::from(scaled_ns == 0 && task.duration_ns != 0);
                task.duration_ns = scaled_ns;
            }
        }
        rounded_to_zero
    }
}

fn check(target: &Target) -> Result<(), ScaleError> {
    if target.median_ns == 0 {
        return Err(ScaleError::BadTarget("the median"));
    }
    if !(target.load > 0.0 && target.load.is_finite()) {
        return Err(ScaleError::BadTarget("the load"));
    }
    if target.executors == 0 {
        return Err(ScaleError::BadTarget("the number of executors"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Job, TaskSpec};
    use super::*;

    fn job(arrival_ns: i64, durations_ns: &[u64]) -> Job {
        let task = |&duration_ns: &u64| TaskSpec { duration_ns, priority: 0 };
        Job { arrival_ns, tasks: durations_ns.iter().map(task).collect() }
    }

    #[test]
    fn durations_are_divided_by_f_and_arrivals_multiplied_by_g() {
        let mut workload = Workload::new(vec![job(1_000, &[100, 200, 300]), job(2_000, &[200]), job(3_000, &[1_000])]);
        let scale = workload.scale(&Target { median_ns: 20, load: 0.5, executors: 2 }).unwrap();
        // The median 200 becomes 20; 180 ns of work at load 0.5 on 2 executors are 180 ns of span, which was 2,000 ns.
        assert_eq!((scale.f, scale.g), (10.0, 0.09));
        assert_eq!(workload.jobs(), [job(0, &[10, 20, 30]), job(90, &[20]), job(180, &[100])]);
        assert_eq!(scale.rounded_to_zero, 0);
    }

    #[test]
    fn nothing_is_clamped_and_what_rounds_to_zero_is_counted() {
        let mut workload = Workload::new(vec![job(0, &[1, 1_000_000]), job(10, &[1_000, 0, 9_000])]);
        let scale = workload.scale(&Target { median_ns: 1, load: 1.0, executors: 1 }).unwrap();
        assert_eq!(scale.rounded_to_zero, 1);
        assert_eq!(workload.jobs()[0].tasks[1].duration_ns, 1_000);
    }

    #[test]
    fn what_cannot_be_scaled_says_why_and_changes_nothing() {
        let target = Target { median_ns: 5, load: 0.8, executors: 4 };
        let scaled = |jobs: Vec<Job>, target: Target| {
            let mut workload = Workload::new(jobs.clone());
            let error = workload.scale(&target).unwrap_err();
            assert_eq!(workload, Workload::new(jobs));
            error
        };
        assert_eq!(scaled(vec![], target), ScaleError::NoTasks);
        assert_eq!(scaled(vec![job(0, &[0]), job(1, &[0])], target), ScaleError::MedianZero);
        assert_eq!(scaled(vec![job(3, &[1]), job(3, &[1])], target), ScaleError::SpanZero);
        let fine = vec![job(0, &[1]), job(3, &[1])];
        for bad in
            [Target { median_ns: 0, ..target }, Target { load: f64::NAN, ..target }, Target { executors: 0, ..target }]
        {
            assert!(matches!(scaled(fine.clone(), bad), ScaleError::BadTarget(_)));
        }
        assert_eq!(scaled(fine, Target { median_ns: u64::MAX, ..target }), ScaleError::TooLong);
    }
}
