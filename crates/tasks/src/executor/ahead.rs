//! Decides when an executor prefetches, and how many tasks: those that it runs in a round trip, or one per slot.

use super::ExecutorConfig;
use midflight_endpoint::Nanos;

/// Number of run times considered.
const RUNS: usize = 64;
/// Long runs to ignore among them: a machine interrupts some.
const OUTLIERS: usize = 4;
/// Run times vary if a long one exceeds a usual one by this factor.
const STEADY: Nanos = 4;
/// But not if it is below this fraction of the span, because it then delays no task.
const SHORT: Nanos = 8;

#[derive(Debug)]
pub(super) struct Ahead {
    slots: u32,
    most: u32,
    /// Lower bound of the span, which otherwise is a round trip.
    shortest_span: Nanos,
    refused_for: Nanos,
    /// Last run times: from when a worker could start the task until it was free again.
    run_times: [Nanos; RUNS],
    runs: usize,
    /// Duration that only `OUTLIERS` runs exceeded, and the median. `None` before `RUNS` runs.
    long_and_usual: Option<(Nanos, Nanos)>,
    is_outdated: bool,
    /// The switch had more tasks for this executor at its last response.
    pub(super) has_backlog: bool,
    /// When it last looked for unused slots.
    pub(super) looked_for_unused: Nanos,
    /// No prefetch slot registers before this time, because the switch refused some.
    refused_until: Nanos,
}

impl Ahead {
    pub(super) fn new(config: &ExecutorConfig) -> Self {
        Self {
            slots: config.slots,
            most: config.ahead,
            shortest_span: config.ahead_span,
            refused_for: config.slots_full_max,
            run_times: [0; RUNS],
            runs: 0,
            long_and_usual: None,
            is_outdated: false,
            has_backlog: false,
            looked_for_unused: 0,
            refused_until: 0,
        }
    }

    pub(super) fn ran(&mut self, for_ns: Nanos) {
        self.run_times[self.runs % RUNS] = for_ns;
        self.runs += 1;
        self.is_outdated = true;
    }

    pub(super) fn refused(&mut self, now: Nanos) {
        self.refused_until = now + self.refused_for;
    }

    pub(super) fn may_register(&self, now: Nanos) -> bool {
        self.refused_until <= now
    }

    /// Longest run time of tasks to prefetch. A task not started after two spans is returned.
    pub(super) fn span(&self, round_trip: Nanos) -> Nanos {
        round_trip.max(self.shortest_span)
    }

    /// Number of tasks to prefetch: those run in a round trip, and at least one per slot. None without a backlog, if run times
    /// vary (the next tasks may be long), or if they exceed the span (asking after each costs little).
    pub(super) fn wanted(&mut self, round_trip: Nanos) -> u32 {
        if self.most == 0 || !self.has_backlog {
            return 0;
        }
        if std::mem::take(&mut self.is_outdated) && self.runs >= RUNS {
            self.long_and_usual = Some(long_and_usual(self.run_times));
        }
        let Some((long, usual)) = self.long_and_usual else { return 0 };
        let span = self.span(round_trip);
        let varies = long > STEADY * usual && long > span / SHORT;
        if varies || long > span {
            return 0;
        }
        let wanted = (round_trip.max(long) * Nanos::from(self.slots)).div_ceil(long.max(1));
        u32::try_from(wanted).unwrap_or(u32::MAX).min(self.most)
    }
}

fn long_and_usual(mut run_times: [Nanos; RUNS]) -> (Nanos, Nanos) {
    let (shorter, &mut long, _) = run_times.select_nth_unstable(RUNS - 1 - OUTLIERS);
    let (_, &mut usual, _) = shorter.select_nth_unstable(RUNS / 2);
    (long, usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Nanos = 80_000;

    fn config() -> ExecutorConfig {
        ExecutorConfig::new(0, 0, Vec::new(), 2, 0)
    }

    fn new() -> Ahead {
        Ahead::new(&config())
    }

    fn after(run_times: impl IntoIterator<Item = Nanos>) -> u32 {
        let mut ahead = new();
        ahead.has_backlog = true;
        run_times.into_iter().for_each(|run_time| ahead.ran(run_time));
        ahead.wanted(ROUND_TRIP)
    }

    #[test]
    fn it_asks_for_as_many_as_run_in_a_round_trip() {
        assert_eq!(after([20_000; 64]), 8);
        assert_eq!(after([30_000; 64]), 6, "rounded up");
        assert_eq!(after([80_000; 64]), 2);
        assert_eq!(after([1; 64]), 256, "at most");
        assert_eq!(after([0; 64]), 256);
    }

    #[test]
    fn it_asks_for_nothing_before_it_knows_how_long_tasks_run() {
        assert_eq!(after([20_000; 63]), 0);
    }

    #[test]
    fn it_asks_for_nothing_where_tasks_take_longer_than_a_round_trip() {
        assert_eq!(after([80_001; 64]), 0);
    }

    #[test]
    fn with_a_longer_span_it_asks_for_one_task_a_slot_where_tasks_take_longer_than_a_round_trip() {
        let with = |run_time: Nanos| {
            let mut ahead = Ahead::new(&ExecutorConfig { ahead_span: 10 * ROUND_TRIP, ..config() });
            ahead.has_backlog = true;
            (0..64).for_each(|_| ahead.ran(run_time));
            ahead.wanted(ROUND_TRIP)
        };
        assert_eq!(with(20_000), 8, "as without");
        assert_eq!(with(ROUND_TRIP + 1), 2);
        assert_eq!(with(10 * ROUND_TRIP), 2);
        assert_eq!(with(10 * ROUND_TRIP + 1), 0);
        let ahead = Ahead::new(&ExecutorConfig { ahead_span: ROUND_TRIP / 2, ..config() });
        assert_eq!(ahead.span(ROUND_TRIP), ROUND_TRIP, "never less than a round trip");
    }

    #[test]
    fn it_asks_for_nothing_where_run_times_vary() {
        let with = |long: Nanos, count: usize| after(std::iter::repeat_n(long, count).chain([5_000; 64]).take(64));
        assert_eq!(with(20_000, 5), 8, "four times as long is steady");
        assert_eq!(with(20_001, 5), 0);
        assert_eq!(with(20_001, 4), 32, "as few as the machine may have interrupted");
        let short = |long: Nanos| after(std::iter::repeat_n(long, 5).chain([100; 64]).take(64));
        assert_eq!(short(10_000), 16, "a long one delays nobody");
        assert_eq!(short(10_001), 0);
    }

    #[test]
    fn the_last_runs_count() {
        assert_eq!(after([1_000_000; 100].into_iter().chain([20_000; 60])), 8);
        assert_eq!(after([20_000; 100].into_iter().chain([1_000_000; 5])), 0);
    }

    #[test]
    fn it_asks_only_while_there_are_tasks_and_if_it_may() {
        let mut ahead = new();
        (0..64).for_each(|_| ahead.ran(20_000));
        assert_eq!(ahead.wanted(ROUND_TRIP), 0);
        ahead.has_backlog = true;
        assert_eq!(ahead.wanted(ROUND_TRIP), 8);
        ahead.most = 0;
        assert_eq!(ahead.wanted(ROUND_TRIP), 0);
    }
}
