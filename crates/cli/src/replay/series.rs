//! Time series: tasks that arrived, started and ended per step. If a run needs more than the bounded number of steps, the step doubles.

use super::delays::Passage;

const FIRST_STEP_NS: u64 = 1_000_000;
const MAX_STEPS: usize = 1 << 14;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Step {
    submitted: u32,
    started: u32,
    ended: u32,
    work_ns: u64,
}

/// Counts per step since an origin.
#[derive(Clone, Debug)]
pub struct Series {
    origin_ns: u64,
    step_ns: u64,
    steps: Vec<Step>,
}

/// The state over one interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// End of the interval, in seconds since the origin.
    pub at_s: f64,
    /// Tasks submitted and not started: the maximum in the interval.
    pub waiting: u64,
    /// Tasks started and not ended: the mean of the interval.
    pub running: f64,
    /// Submitted work, in seconds per second.
    pub offered: f64,
}

impl Series {
    /// Empty; times count from `origin_ns`.
    pub fn new(origin_ns: u64) -> Self {
        Self { origin_ns, step_ns: FIRST_STEP_NS, steps: Vec::new() }
    }

    /// Adds a task.
    pub fn record(&mut self, passage: &Passage) {
        self.at(passage.submitted_ns).submitted += 1;
        self.at(passage.submitted_ns).work_ns += passage.ended_ns.saturating_sub(passage.started_ns);
        self.at(passage.started_ns).started += 1;
        self.at(passage.ended_ns).ended += 1;
    }

    fn at(&mut self, time_ns: u64) -> &mut Step {
        let since_ns = time_ns.saturating_sub(self.origin_ns);
        while since_ns / self.step_ns >= MAX_STEPS as u64 {
            self.halve();
        }
        let index = (since_ns / self.step_ns) as usize;
        if index >= self.steps.len() {
            self.steps.resize(index + 1, Step::default());
        }
        &mut self.steps[index]
    }

    fn halve(&mut self) {
        let pair = |pair: &[Step]| Step {
            submitted: pair.iter().map(|step| step.submitted).sum(),
            started: pair.iter().map(|step| step.started).sum(),
            ended: pair.iter().map(|step| step.ended).sum(),
            work_ns: pair.iter().map(|step| step.work_ns).sum(),
        };
        self.steps = self.steps.chunks(2).map(pair).collect();
        self.step_ns *= 2;
    }

    /// At most `limit` points, each of the same number of steps.
    pub fn points(&self, limit: usize) -> Vec<Point> {
        let group = self.steps.len().div_ceil(limit.max(1)).max(1);
        let (mut submitted, mut started, mut ended) = (0u64, 0u64, 0u64);
        let mut points = Vec::new();
        for (index, steps) in self.steps.chunks(group).enumerate() {
            let (mut waiting, mut running, mut work_ns) = (0, 0, 0);
            for step in steps {
                submitted += u64::from(step.submitted);
                started += u64::from(step.started);
                ended += u64::from(step.ended);
                waiting = waiting.max(submitted.saturating_sub(started));
                running += started.saturating_sub(ended);
                work_ns += step.work_ns;
            }
            let length_ns = (steps.len() as u64 * self.step_ns) as f64;
            let end_ns = (index * group) as f64 * self.step_ns as f64 + length_ns;
            points.push(Point {
                at_s: end_ns / 1e9,
                waiting,
                running: running as f64 / steps.len() as f64,
                offered: work_ns as f64 / length_ns,
            });
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn passage(submitted_ms: u64, started_ms: u64, ended_ms: u64) -> Passage {
        let [submitted_ns, started_ns, ended_ns] = [submitted_ms, started_ms, ended_ms].map(|ms| 7 * MS + ms * MS);
        Passage { submitted_ns, started_ns, ended_ns, ..Passage::default() }
    }

    #[test]
    fn tasks_wait_from_submission_to_start_and_run_until_they_end() {
        let mut series = Series::new(7 * MS);
        series.record(&passage(0, 2, 3));
        series.record(&passage(1, 1, 3));
        let points = series.points(100);
        let states: Vec<(u64, f64)> = points.iter().map(|point| (point.waiting, point.running)).collect();
        assert_eq!(states, [(1, 0.0), (1, 1.0), (0, 2.0), (0, 0.0)]);
        assert_eq!(points[0].offered, 1.0);
        assert_eq!(points[3].at_s, 0.004);
    }

    #[test]
    fn a_long_run_takes_longer_steps_and_loses_no_task() {
        let mut series = Series::new(7 * MS);
        for ms in [0, 10, 20_000, 100_000] {
            series.record(&passage(ms, ms, ms + 5));
        }
        assert!(series.steps.len() <= MAX_STEPS);
        assert_eq!(series.steps.iter().map(|step| step.ended).sum::<u32>(), 4);
        let points = series.points(50);
        assert!(points.len() <= 50);
        assert!((100.0..101.0).contains(&points.last().unwrap().at_s));
    }
}
