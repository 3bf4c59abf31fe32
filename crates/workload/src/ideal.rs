//! The bound of any scheduler: the same arrivals on the same executors, first come first served, at no cost.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Arrival;

/// End of the last task if scheduling cost nothing, in nanoseconds since the first arrival. A late burst keeps executors busy long after
/// the last arrival, whatever the mean load.
#[must_use]
pub fn ideal_end_ns<'a>(arrivals: impl Iterator<Item = Arrival<'a>>, executors: u32) -> u64 {
    let mut free: BinaryHeap<Reverse<u64>> = (0..executors).map(|_| Reverse(0)).collect();
    let mut end_ns = 0;
    for arrival in arrivals {
        for task in &arrival.job.tasks {
            let Some(mut next) = free.peek_mut() else { return end_ns };
            let done_ns = next.0.max(arrival.at_ns).saturating_add(task.duration_ns);
            end_ns = end_ns.max(done_ns);
            *next = Reverse(done_ns);
        }
    }
    end_ns
}

#[cfg(test)]
mod tests {
    use super::super::{Job, TaskSpec, Workload};
    use super::*;

    fn job(arrival_ns: i64, durations_ns: &[u64]) -> Job {
        let task = |&duration_ns: &u64| TaskSpec { duration_ns, priority: 1 };
        Job { arrival_ns, tasks: durations_ns.iter().map(task).collect() }
    }

    #[test]
    fn a_task_starts_when_it_has_arrived_and_an_executor_is_free() {
        let workload = Workload::new(vec![job(0, &[10, 10, 10]), job(100, &[5])]);
        let end_ns = |executors| ideal_end_ns(workload.arrivals(None, 1), executors);
        assert_eq!([end_ns(1), end_ns(2), end_ns(3)], [105, 105, 105]);
        let burst = Workload::new(vec![job(0, &[1]), job(100, &[10, 10, 10])]);
        assert_eq!([1, 2, 3].map(|executors| ideal_end_ns(burst.arrivals(None, 1), executors)), [130, 120, 110]);
    }

    #[test]
    fn no_executor_ends_nothing() {
        assert_eq!(ideal_end_ns(Workload::new(vec![job(0, &[1])]).arrivals(None, 1), 0), 0);
    }
}
