//! Shrinks a trial: drops faults, cancellations, jobs, tasks, resources, places, clients, executors, then halves times.

use super::trial::{Party, Trial};
use crate::check::{Fails, Net, Pass, attempt, drop_faults, drop_from, forget};
use midflight_wire::tasks::SLOT_PLACES;

pub(super) const PASSES: &[Pass<Trial>] = &[
    drop_faults,
    drop_cancels,
    drop_jobs,
    drop_tasks,
    drop_resources,
    drop_ahead,
    drop_bundles,
    drop_places,
    drop_clients,
    drop_executors,
    halve_times,
];

fn drop_cancels(best: &mut Trial, fails: Fails<'_, Trial>) {
    drop_from(best, fails, |trial| &mut trial.cancels);
}

/// A cancellation names its job by its place.
fn drop_jobs(best: &mut Trial, fails: Fails<'_, Trial>) {
    let mut job = 0;
    while job < best.jobs.len() {
        let dropped = attempt(best, fails, |smaller| {
            smaller.jobs.remove(job);
            smaller.cancels.retain(|cancel| cancel.job != job);
            smaller.cancels.iter_mut().filter(|cancel| cancel.job > job).for_each(|cancel| cancel.job -= 1);
        });
        job += usize::from(!dropped);
    }
}

fn drop_tasks(best: &mut Trial, fails: Fails<'_, Trial>) {
    for job in 0..best.jobs.len() {
        if !best.cancels.iter().any(|cancel| cancel.job == job) {
            drop_from(best, fails, |trial| &mut trial.jobs[job].tasks);
        }
    }
}

/// Tasks that every executor may run need no client that dies.
fn drop_resources(best: &mut Trial, fails: Fails<'_, Trial>) {
    for job in 0..best.jobs.len() {
        attempt(best, fails, |smaller| smaller.jobs[job].tasks.iter_mut().for_each(|task| task.resources = 0));
    }
}

fn drop_ahead(best: &mut Trial, fails: Fails<'_, Trial>) {
    for executor in 0..best.executors.len() {
        attempt(best, fails, |smaller| smaller.executors[executor].ahead = 0);
        attempt(best, fails, |smaller| smaller.executors[executor].ahead_span_us = 0);
        attempt(best, fails, |smaller| smaller.executors[executor].waiting = 0);
    }
}

fn drop_bundles(best: &mut Trial, fails: Fails<'_, Trial>) {
    for executor in 0..best.executors.len() {
        attempt(best, fails, |smaller| smaller.executors[executor].bundles = Default::default());
    }
}

fn drop_places(best: &mut Trial, fails: Fails<'_, Trial>) {
    for job in 0..best.jobs.len() {
        attempt(best, fails, |smaller| {
            smaller.jobs[job].tasks.iter_mut().for_each(|task| (task.place, task.patience_ms) = (0, 0));
        });
    }
    for executor in 0..best.executors.len() {
        attempt(best, fails, |smaller| smaller.executors[executor].places = [0; SLOT_PLACES]);
    }
}

/// Removes a party with all faults that name it alone; another party gets its jobs.
fn drop_clients(best: &mut Trial, fails: Fails<'_, Trial>) {
    for client in (0..best.clients.len()).rev() {
        attempt(best, fails, |smaller| {
            smaller.clients.remove(client);
            let last = smaller.clients.len().saturating_sub(1);
            for job in &mut smaller.jobs {
                job.client = (job.client - usize::from(job.client > client)).min(last);
            }
            forget(smaller, Party::Client(client));
        });
    }
}

fn drop_executors(best: &mut Trial, fails: Fails<'_, Trial>) {
    for executor in (0..best.executors.len()).rev() {
        attempt(best, fails, |smaller| {
            smaller.executors.remove(executor);
            forget(smaller, Party::Executor(executor));
        });
    }
}

fn halve_times(best: &mut Trial, fails: Fails<'_, Trial>) {
    attempt(best, fails, |smaller| smaller.jobs.iter_mut().for_each(|job| job.at_us /= 2));
    attempt(best, fails, |smaller| {
        smaller.jobs.iter_mut().flat_map(|job| &mut job.tasks).for_each(|task| task.run_us /= 2);
    });
    for fault in 0..best.faults.len() {
        attempt(best, fails, |smaller| smaller.faults[fault].at_ms /= 2);
        attempt(best, fails, |smaller| smaller.faults[fault].for_ms /= 2);
    }
    let last = best.faults.iter().map(|fault| fault.at_ms + fault.for_ms).max().unwrap_or(0);
    attempt(best, fails, |smaller| smaller.heal_ms = smaller.heal_ms.min(last));
    for kinder in [
        |net: &mut Net| net.loss = 0.0,
        |net: &mut Net| net.duplication = 0.0,
        |net: &mut Net| net.reordering = 0.0,
        |net: &mut Net| net.delay_max_us = net.delay_min_us,
    ] {
        attempt(best, fails, |smaller| kinder(&mut smaller.network));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::shrink_while;
    use crate::check::{Common, Trial as _};
    use crate::tasks::check::FaultKind;

    fn crashes(trial: &Trial) -> usize {
        trial.faults.iter().filter(|fault| matches!(fault.what, FaultKind::Common(Common::Crash(_)))).count()
    }

    /// An assumed bug that needs a crash, and two tasks of one job.
    fn breaks(trial: &Trial) -> bool {
        crashes(trial) > 0 && trial.jobs.iter().any(|job| job.tasks.len() >= 2)
    }

    #[test]
    fn what_the_failure_does_not_need_is_dropped() {
        for trial in (0..300).map(Trial::draw).filter(breaks).take(20) {
            let small = shrink_while(&trial, |_| true, breaks);
            let sizes = (small.faults.len(), small.cancels.len(), small.clients.len(), small.tasks());
            assert_eq!(sizes, (1, 0, 1, 2), "seed {}: {small:?}", trial.seed);
            // Two tasks may need an executor each, and a third executor may be the one that crashes.
            assert!(small.executors.len() <= 3, "seed {}: {small:?}", trial.seed);
            assert!(crashes(&small) == 1 && small.network.loss == 0.0, "seed {}: {small:?}", trial.seed);
            small.validate().unwrap();
        }
    }

    #[test]
    fn whoever_sees_the_progress_may_end_it() {
        let trial = (0..300).map(Trial::draw).find(breaks).unwrap();
        let mut tried = 0;
        let small = shrink_while(
            &trial,
            |_| {
                tried += 1;
                tried < 3
            },
            breaks,
        );
        assert_eq!(tried, 3);
        assert!(breaks(&small) && small != trial);
    }
}
