//! Run times of functions.

use midflight_endpoint::Nanos;
use midflight_wire::tasks::Status;

/// Buckets of [`RunTimes`]; the last one begins at 2^38 µs, three days.
pub const RUN_BUCKETS: usize = 40;

/// Statuses and run times of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunTimes {
    /// Bucket b counts runs of 2^(b-1) to 2^b µs, bucket 0 those below 1 µs, the last one all longer ones.
    pub buckets: [u64; RUN_BUCKETS],
    /// Sum of the run times in nanoseconds.
    pub sum_ns: u64,
    /// Failed runs.
    pub failed: u64,
    /// Stopped runs.
    pub stopped: u64,
}

impl Default for RunTimes {
    fn default() -> Self {
        Self { buckets: [0; RUN_BUCKETS], sum_ns: 0, failed: 0, stopped: 0 }
    }
}

impl RunTimes {
    /// Number of runs.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    pub(crate) fn add(&mut self, took: Nanos, status: Status) {
        let bucket = (u64::BITS - (took / 1_000).leading_zeros()) as usize;
        self.buckets[bucket.min(RUN_BUCKETS - 1)] += 1;
        self.sum_ns = self.sum_ns.saturating_add(took);
        match status {
            Status::Failed => self.failed += 1,
            Status::Cancelled => self.stopped += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_in_the_bucket_of_its_time() {
        let bucket = |took: Nanos| {
            let mut times = RunTimes::default();
            times.add(took, Status::Ok);
            times.buckets.iter().position(|&runs| runs == 1)
        };
        let us = 1_000;
        assert_eq!([0, 999, us, 2 * us - 1, 2 * us].map(bucket), [Some(0), Some(0), Some(1), Some(1), Some(2)]);
        assert_eq!((bucket(1 << 20), bucket(u64::MAX)), (Some(11), Some(39)));
        let mut times = RunTimes::default();
        [Status::Ok, Status::Failed, Status::Cancelled].into_iter().for_each(|status| times.add(5 * us, status));
        assert_eq!((times.count(), times.sum_ns, times.failed, times.stopped), (3, 15 * us, 1, 1));
    }
}
