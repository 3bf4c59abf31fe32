//! The jobs of a workload as arrivals that may last longer than the trace. The first pass has the trace's order; later passes shuffle its
//! jobs and keep the arrival times.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::{Job, Workload};

/// A job and the time of its submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival<'a> {
    /// Since the first arrival, in nanoseconds.
    pub at_ns: u64,
    /// The job. Its own `arrival_ns` is valid for the first pass only.
    pub job: &'a Job,
    /// Its index in the workload.
    pub index: usize,
}

/// See [`Workload::arrivals`].
#[derive(Clone, Debug)]
pub struct Arrivals<'a> {
    jobs: &'a [Job],
    origin_ns: i64,
    period_ns: u64,
    until_ns: Option<u64>,
    order: Vec<u32>,
    random: Pcg64,
    pass: u64,
    next: usize,
}

impl Workload {
    /// The arrivals of one pass; with `until_ns` those before that time, in as many passes as it takes. Passes are one mean gap between
    /// arrivals apart.
    #[must_use]
    pub fn arrivals(&self, until_ns: Option<u64>, seed: u64) -> Arrivals<'_> {
        let jobs = self.jobs();
        let gaps = (jobs.len() as u64).saturating_sub(1).max(1);
        Arrivals {
            jobs,
            origin_ns: jobs.first().map_or(0, |job| job.arrival_ns),
            // At least 1 ns, so that endless passes of a single instant still reach `until_ns`.
            period_ns: self.span_ns().saturating_add(self.span_ns() / gaps).max(1),
            until_ns,
            order: Vec::new(),
            random: Pcg64::seed_from_u64(seed),
            pass: 0,
            next: 0,
        }
    }
}

impl<'a> Iterator for Arrivals<'a> {
    type Item = Arrival<'a>;

    fn next(&mut self) -> Option<Arrival<'a>> {
        if self.next == self.jobs.len() {
            self.until_ns?;
            self.begin_pass();
        }
        let slot = self.jobs.get(self.next)?;
        let offset_ns = self.pass.checked_mul(self.period_ns)?;
        let at_ns = offset_ns.checked_add(slot.arrival_ns.abs_diff(self.origin_ns))?;
        if self.until_ns.is_some_and(|until_ns| at_ns >= until_ns) {
            return None;
        }
        let index = self.order.get(self.next).map_or(self.next, |&index| index as usize);
        self.next += 1;
        Some(Arrival { at_ns, job: &self.jobs[index], index })
    }
}

impl Arrivals<'_> {
    fn begin_pass(&mut self) {
        if self.order.is_empty() {
            // The reader takes fewer tasks than `u32::MAX`, and a job has at least one.
            self.order = (0..self.jobs.len() as u32).collect();
        }
        self.order.shuffle(&mut self.random);
        self.pass += 1;
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::TaskSpec;
    use super::*;

    fn workload() -> Workload {
        let job =
            |i: u64| Job { arrival_ns: i as i64 * 10 - 100, tasks: vec![TaskSpec { duration_ns: i, priority: 0 }] };
        Workload::new((0..20).map(job).collect())
    }

    fn played(until_ns: Option<u64>, seed: u64) -> Vec<(u64, u64)> {
        let workload = workload();
        workload.arrivals(until_ns, seed).map(|a| (a.at_ns, a.job.tasks[0].duration_ns)).collect()
    }

    #[test]
    fn without_an_end_the_trace_is_played_once_in_its_order_from_time_zero() {
        let expected: Vec<(u64, u64)> = (0..20).map(|i| (i * 10, i)).collect();
        assert_eq!(played(None, 1), expected);
    }

    #[test]
    fn a_longer_run_repeats_all_jobs_in_a_seeded_random_order() {
        let long = played(Some(400), 1);
        assert_eq!(long.len(), 40);
        let times: Vec<u64> = long.iter().map(|&(at_ns, _)| at_ns).collect();
        assert_eq!(times, (0..40).map(|i| i * 10).collect::<Vec<_>>());
        let mut second: Vec<u64> = long[20..].iter().map(|&(_, job)| job).collect();
        assert_ne!(second, (0..20).collect::<Vec<_>>());
        second.sort_unstable();
        assert_eq!(second, (0..20).collect::<Vec<_>>());
        assert_eq!(long, played(Some(400), 1));
        assert_ne!(long, played(Some(400), 2));
    }

    #[test]
    fn a_shorter_run_ends_before_its_end() {
        assert_eq!(played(Some(50), 1).len(), 5);
        assert_eq!(Workload::default().arrivals(Some(50), 1).count(), 0);
    }

    #[test]
    fn jobs_of_one_instant_still_reach_the_end() {
        let workload = Workload::new(vec![workload().jobs()[0].clone(); 2]);
        assert_eq!(workload.arrivals(Some(3), 1).count(), 6);
    }
}
