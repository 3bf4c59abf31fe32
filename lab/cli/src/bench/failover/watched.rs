//! Outcomes of gets by their scheduled time.

use crate::cache::gets::Watch;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

const BUCKET: Duration = Duration::from_millis(5);
/// Longer gets were retransmitted: this is the clients' shortest timeout.
const LATE: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1_200);

pub(super) struct Watched {
    origin: Instant,
    buckets: Vec<Bucket>,
}

#[derive(Default)]
struct Bucket {
    answered: AtomicU32,
    late: AtomicU32,
}

impl Watched {
    pub(super) fn new() -> Self {
        let count = LONGEST.as_nanos() / BUCKET.as_nanos();
        Self { origin: Instant::now(), buckets: (0..count).map(|_| Bucket::default()).collect() }
    }

    fn number(&self, time: Instant) -> usize {
        let elapsed = time.saturating_duration_since(self.origin);
        ((elapsed.as_nanos() / BUCKET.as_nanos()) as usize).min(self.buckets.len() - 1)
    }

    /// Time from `from` to the end of the last bucket, within `longest`, whose gets were mostly late.
    pub(super) fn outage(&self, from: Instant, longest: Duration) -> Duration {
        let numbers = self.number(from)..self.number(from + longest);
        let first = numbers.start;
        let is_out = |bucket: &Bucket| 2 * bucket.late.load(Relaxed) > bucket.answered.load(Relaxed);
        let last = self.buckets[numbers].iter().rposition(is_out);
        last.map_or(Duration::ZERO, |last| {
            let end = self.origin + BUCKET * u32::try_from(first + last + 1).unwrap_or(u32::MAX);
            end.saturating_duration_since(from)
        })
    }

    /// Late responses among the gets scheduled in this interval.
    pub(super) fn late(&self, time: &Range<Instant>) -> u64 {
        let buckets = &self.buckets[self.number(time.start)..self.number(time.end)];
        buckets.iter().map(|bucket| u64::from(bucket.late.load(Relaxed))).sum()
    }

    pub(super) fn all_late(&self) -> u64 {
        self.buckets.iter().map(|bucket| u64::from(bucket.late.load(Relaxed))).sum()
    }
}

impl Watch for Watched {
    fn answered(&self, due: Instant, latency: Duration) {
        let bucket = &self.buckets[self.number(due)];
        bucket.answered.fetch_add(1, Relaxed);
        bucket.late.fetch_add(u32::from(latency >= LATE), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_ends_with_the_last_time_in_which_most_gets_are_late() {
        let watched = Watched::new();
        let at = |ms| watched.origin + Duration::from_millis(ms);
        for ms in 0..200 {
            // One in ten is late anyhow; from 50 to 112 ms all are.
            let late = ms % 10 == 0 || (50..=112).contains(&ms);
            watched.answered(at(ms), if late { LATE } else { Duration::from_millis(1) });
        }
        let second = Duration::from_secs(1);
        assert_eq!(watched.outage(at(52), second), Duration::from_millis(63), "from 52 to 115 ms");
        assert_eq!(watched.outage(at(120), second), Duration::ZERO);
        assert_eq!(watched.late(&(at(0)..at(50))), 5);
        assert_eq!(watched.late(&(at(50)..at(115))), 63);
        assert_eq!(watched.all_late(), 5 + 63 + 8);
    }
}
