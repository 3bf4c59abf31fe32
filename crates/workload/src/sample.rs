//! A uniform sample of a trace, accelerated by one factor, as in the Bolt thesis (§5.1.3). Durations and arrivals are divided by the same
//! number, which sets the median; the sampled share of the tasks sets the load. A job keeps that share of its tasks.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use super::generate::{exponential, redraw};
use super::{Job, ScaleError, Shape, Target, TaskSpec, Workload};

/// A part of a trace to replace, to find out which part causes a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replace {
    /// The trace's jobs at the trace's times.
    #[default]
    Nothing,
    /// The times: the trace's jobs as a Poisson process of the same rate.
    Times,
    /// Times and jobs: each task is a job, drawn from all tasks, as a Poisson process of the same rate.
    Jobs,
    /// The durations: each task draws one of the generator's ([`Shape`]).
    Durations,
    /// The order of durations: the trace's durations, shuffled among all its tasks.
    Order,
}

/// Endless jobs: pass after pass through the trace in its own order, each pass a new sample. See [`Workload::sample`].
#[derive(Clone, Debug)]
pub struct Sample {
    workload: Workload,
    rate: f64,
    /// See [`Self::squeezed`].
    squeezed: f64,
    period_ns: u64,
    replace: Replace,
    random: Pcg64,
    first: usize,
    pass: u64,
    place: usize,
    skip: u64,
    /// Of [`Replace::Times`] and [`Replace::Jobs`]: the time, and the mean time to the next job.
    now_ns: f64,
    gap_ns: f64,
    /// Tasks of the jobs up to each one, inclusive.
    tasks_up_to: Vec<u64>,
}

impl Workload {
    /// Samples the workload to `target`. The same seed gives the same jobs; the first one arrives at 0.
    ///
    /// # Errors
    /// As [`Workload::scale`].
    pub fn sample(mut self, target: &Target, replace: Replace, seed: u64) -> Result<Sample, ScaleError> {
        let mut random = Pcg64::seed_from_u64(seed);
        // By the trace's own durations, so that it keeps its pace whatever replaces them.
        let f = self.factor(target)?;
        match replace {
            Replace::Durations => redraw(&mut self.jobs, &Shape::default(), &mut random),
            Replace::Order => shuffle(&mut self.jobs, &mut random),
            Replace::Nothing | Replace::Times | Replace::Jobs => {}
        }
        let durations = self.factor(target)?;
        let gaps = (self.jobs.len() as u64).saturating_sub(1).max(1);
        let period_ns = (self.span_ns() + self.span_ns() / gaps) as f64 / f;
        let wanted = target.load * f64::from(target.executors) * period_ns / (self.work_s() * 1e9 / durations);
        let squeezed = wanted.max(1.0);
        self.fits(durations, f * squeezed)?;
        self.apply(durations, 1.0 / (f * squeezed));
        let first = random.random_range(0..self.jobs.len());
        let mut sample = Sample {
            rate: wanted.min(1.0),
            squeezed,
            period_ns: ((period_ns / squeezed) as u64).max(1),
            workload: self,
            replace,
            random,
            first,
            pass: 0,
            place: 0,
            skip: 0,
            now_ns: 0.0,
            gap_ns: 0.0,
            tasks_up_to: Vec::new(),
        };
        sample.prepare();
        Ok(sample)
    }
}

impl Sample {
    /// The sampled share of the tasks, at most 1.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// The arrivals' divisor over the durations': 1 unless even the whole trace has too little work.
    #[must_use]
    pub fn squeezed(&self) -> f64 {
        self.squeezed
    }

    /// Duration of one pass through the trace, in nanoseconds.
    #[must_use]
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    fn prepare(&mut self) {
        self.skip = self.draw_skip();
        let sizes = || self.workload.jobs.iter().map(|job| job.tasks.len());
        let a_pass = match self.replace {
            Replace::Nothing | Replace::Durations | Replace::Order => return,
            // Jobs with at least one sampled task.
            Replace::Times => sizes().map(|tasks| 1.0 - (1.0 - self.rate).powf(tasks as f64)).sum::<f64>(),
            Replace::Jobs => self.rate * self.workload.tasks() as f64,
        };
        self.gap_ns = self.period_ns as f64 / a_pass;
        let mut tasks = 0;
        self.tasks_up_to = sizes()
            .map(|size| {
                tasks += size as u64;
                tasks
            })
            .collect();
    }

    /// Tasks to skip before the next sampled one: geometric.
    fn draw_skip(&mut self) -> u64 {
        if self.rate >= 1.0 {
            return 0;
        }
        ((1.0 - self.random.random::<f64>()).ln() / (-self.rate).ln_1p()) as u64
    }

    /// The trace's next job with a sampled task.
    fn next_job(&mut self) -> Option<Job> {
        loop {
            let count = self.workload.jobs.len();
            if self.place == count {
                (self.place, self.pass) = (0, self.pass + 1);
            }
            let slot = (self.first + self.place) % count;
            let wrapped = self.pass + u64::from(slot < self.first);
            self.place += 1;
            let length = self.workload.jobs[slot].tasks.len() as u64;
            if self.skip >= length {
                self.skip -= length;
                continue;
            }
            let tasks = self.take(slot, length);
            let time = |slot: usize| self.workload.jobs[slot].arrival_ns.unsigned_abs();
            let at = wrapped.checked_mul(self.period_ns)?.checked_add(time(slot))?.checked_sub(time(self.first))?;
            return Some(Job { arrival_ns: i64::try_from(at).ok()?, tasks });
        }
    }

    fn take(&mut self, slot: usize, length: u64) -> Vec<TaskSpec> {
        let mut tasks = Vec::new();
        while self.skip < length {
            tasks.push(self.workload.jobs[slot].tasks[self.skip as usize]);
            self.skip += 1 + self.draw_skip();
        }
        self.skip -= length;
        tasks
    }

    fn any_task(&mut self) -> Option<TaskSpec> {
        let nth = self.random.random_range(0..*self.tasks_up_to.last()?);
        let slot = self.tasks_up_to.partition_point(|&up_to| up_to <= nth);
        let tasks = &self.workload.jobs[slot].tasks;
        Some(tasks[tasks.len() - (self.tasks_up_to[slot] - nth) as usize])
    }
}

fn shuffle(jobs: &mut [Job], random: &mut Pcg64) {
    let mut all: Vec<u64> = jobs.iter().flat_map(|job| job.tasks.iter().map(|task| task.duration_ns)).collect();
    all.shuffle(random);
    let tasks = jobs.iter_mut().flat_map(|job| &mut job.tasks);
    tasks.zip(all).for_each(|(task, duration_ns)| task.duration_ns = duration_ns);
}

impl Iterator for Sample {
    type Item = Job;

    /// `None` only if the time no longer fits an `i64`.
    fn next(&mut self) -> Option<Job> {
        let tasks = match self.replace {
            Replace::Nothing | Replace::Durations | Replace::Order => return self.next_job(),
            Replace::Times => self.next_job()?.tasks,
            Replace::Jobs => vec![self.any_task()?],
        };
        let arrival_ns = self.now_ns as i64;
        self.now_ns += self.gap_ns * exponential(&mut self.random);
        Some(Job { arrival_ns, tasks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Jobs of 1 to 40 tasks, all of distinct durations, at growing distances; one job is the largest.
    fn workload() -> Workload {
        let job = |n: u64| {
            let size = if n == 30 { 400 } else { 1 + n % 40 };
            let task = |i: u64| TaskSpec { duration_ns: 1_000 * MS + n * MS + i, priority: 0 };
            Job { arrival_ns: (5 + n * n) as i64 * 1_000_000_000, tasks: (0..size).map(task).collect() }
        };
        Workload::new((0..60).map(job).collect())
    }

    /// 1 s becomes 10 ms, arrivals with it: the trace's 59² s become 35 s.
    fn sample(load: f64, executors: u32, replace: Replace, seed: u64) -> Sample {
        workload().sample(&Target { median_ns: 10 * MS, load, executors }, replace, seed).unwrap()
    }

    fn jobs(sample: &Sample, passes: u64) -> Vec<Job> {
        let until = (passes * sample.period_ns()) as i64;
        sample.clone().take_while(|job| job.arrival_ns < until).collect()
    }

    fn load(sample: &Sample, passes: u64) -> f64 {
        let work: u64 = jobs(sample, passes).iter().flat_map(|job| &job.tasks).map(|task| task.duration_ns).sum();
        work as f64 / (passes * sample.period_ns()) as f64
    }

    #[test]
    fn durations_and_arrivals_have_one_factor_and_the_share_of_tasks_sets_the_load() {
        let whole = workload();
        let sample = sample(0.2, 1, Replace::Nothing, 1);
        assert_eq!(sample.squeezed(), 1.0);
        let f = whole.duration_quantile_ns(0.5).unwrap() as f64 / (10 * MS) as f64;
        let period_s = whole.span_ns() as f64 * (1.0 + 1.0 / 59.0) / 1e9 / f;
        assert!((sample.period_ns() as f64 / 1e9 / period_s - 1.0).abs() < 1e-6);
        assert!((sample.rate() / (0.2 * period_s / (whole.work_s() / f)) - 1.0).abs() < 1e-6, "{}", sample.rate());
        let of_a_pass = |tasks: &u64| (*tasks as f64 / (20.0 * whole.tasks() as f64) / sample.rate() - 1.0).abs() < 0.2;
        let tasks = jobs(&sample, 20).iter().map(|job| job.tasks.len() as u64).sum();
        assert!(of_a_pass(&tasks), "{tasks}");
        assert!((load(&sample, 20) / 0.2 - 1.0).abs() < 0.2);
    }

    #[test]
    fn jobs_keep_their_order_and_their_times_in_each_pass_and_a_pass_is_another_sample() {
        let sample = sample(0.2, 1, Replace::Nothing, 3);
        let (number, index) = (|task: &TaskSpec| task.duration_ns, |job: &Job| job.tasks[0].duration_ns);
        let all = jobs(&sample, 6);
        assert!(all.windows(2).all(|pair| pair[0].arrival_ns <= pair[1].arrival_ns));
        assert!(all.iter().all(|job| job.tasks.windows(2).all(|pair| number(&pair[0]) <= number(&pair[1]))));
        let mut passes: Vec<Vec<&Job>> = vec![vec![]; 6];
        all.iter().for_each(|job| passes[job.arrival_ns as usize / sample.period_ns() as usize].push(job));
        for pass in &passes {
            // In the order of the trace, from the first job on: the numbers fall at most once.
            let falls = pass.windows(2).filter(|pair| index(pair[0]) > index(pair[1])).count();
            assert!(falls <= 1, "{pass:?}");
        }
        assert_ne!(passes[0].iter().map(|job| index(job)).collect::<Vec<_>>(), {
            passes[1].iter().map(|job| index(job)).collect::<Vec<_>>()
        });
    }

    #[test]
    fn a_seed_gives_its_own_jobs_and_always_the_same() {
        let of = |seed| jobs(&sample(0.5, 1, Replace::Nothing, seed), 3);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn the_largest_job_keeps_its_share_of_tasks() {
        let sample = sample(0.1, 1, Replace::Nothing, 1);
        let largest = jobs(&sample, 40).iter().map(|job| job.tasks.len()).max().unwrap();
        let expected = 400.0 * sample.rate();
        assert!((1.0..1.5).contains(&(largest as f64 / expected)), "{largest} for {expected}");
    }

    #[test]
    fn where_the_whole_trace_is_too_little_its_arrivals_are_squeezed_and_the_load_is_as_asked() {
        let sample = sample(0.5, 64, Replace::Nothing, 1);
        assert_eq!(sample.rate(), 1.0);
        assert!(sample.squeezed() > 1.0);
        assert!((load(&sample, 3) / 32.0 - 1.0).abs() < 1e-3, "{}", load(&sample, 3));
        assert_eq!(jobs(&sample, 2).len(), 120);
    }

    #[test]
    fn what_is_replaced_leaves_the_load_and_the_trace_s_pace() {
        let pace = sample(0.2, 1, Replace::Nothing, 1);
        for replace in [Replace::Times, Replace::Jobs, Replace::Durations, Replace::Order] {
            let sample = sample(0.2, 1, replace, 1);
            assert_eq!(sample.period_ns(), pace.period_ns(), "{replace:?}");
            let got = load(&sample, 60);
            assert!((got / 0.2 - 1.0).abs() < 0.15, "{replace:?}: {got}");
            let sizes: Vec<usize> = jobs(&sample, 60).iter().map(|job| job.tasks.len()).collect();
            assert_eq!(sizes.iter().all(|&tasks| tasks == 1), replace == Replace::Jobs, "{replace:?}");
        }
    }

    #[test]
    fn shuffled_durations_are_the_trace_s_in_other_jobs() {
        let durations = |jobs: &[Job]| -> Vec<u64> {
            jobs.iter().flat_map(|job| job.tasks.iter().map(|task| task.duration_ns)).collect()
        };
        let whole = workload();
        let mut jobs = whole.jobs().to_vec();
        shuffle(&mut jobs, &mut Pcg64::seed_from_u64(1));
        assert_ne!(durations(&jobs), durations(whole.jobs()));
        let sorted = |mut all: Vec<u64>| {
            all.sort_unstable();
            all
        };
        assert_eq!(sorted(durations(&jobs)), sorted(durations(whole.jobs())));
    }

    #[test]
    fn what_cannot_be_sampled_says_why() {
        let target = Target { median_ns: 5, load: 0.5, executors: 4 };
        let error = |workload: Workload| workload.sample(&target, Replace::Nothing, 1).unwrap_err();
        assert_eq!(error(Workload::default()), ScaleError::NoTasks);
        let job = |arrival_ns, duration_ns| Job { arrival_ns, tasks: vec![TaskSpec { duration_ns, priority: 0 }] };
        assert_eq!(error(Workload::new(vec![job(1, 5), job(1, 5)])), ScaleError::SpanZero);
        assert_eq!(error(Workload::new(vec![job(1, 0), job(2, 0)])), ScaleError::MedianZero);
        let long = Workload::new(vec![job(0, 1), job(i64::MAX / 2, 1), job(i64::MAX / 2, 1)]);
        let far = Target { median_ns: u64::MAX, ..target };
        assert_eq!(long.sample(&far, Replace::Nothing, 1).unwrap_err(), ScaleError::TooLong);
    }
}
