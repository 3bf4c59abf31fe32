//! Makes a trial smaller while the same rule breaks: drops faults, cancellations, jobs, tasks, clients, executors, then halves
//! times.

use super::rules::Rule;
use super::run::run;
use super::trial::{Party, Trial, What};

/// The smallest trial that was found in which `rule` still breaks. `told` hears of each that was tried, with its number of
/// faults and tasks; where it says `false`, the smallest so far is returned.
#[must_use]
pub fn shrink(trial: &Trial, rule: Rule, mut told: impl FnMut(&Trial) -> bool) -> Trial {
    let mut best = trial.clone();
    let mut fails = |smaller: &Trial, goes_on: &mut bool| {
        if !*goes_on || smaller.validate().is_err() {
            return false;
        }
        *goes_on = told(smaller);
        run(smaller).violation.is_some_and(|violation| violation.broken.rule == rule)
    };
    let mut goes_on = true;
    loop {
        let before = best.clone();
        for pass in [drop_faults, drop_cancels, drop_jobs, drop_tasks, drop_clients, drop_executors, halve_times] {
            pass(&mut best, &mut |smaller| fails(smaller, &mut goes_on));
        }
        if best == before || !goes_on {
            return best;
        }
    }
}

type Fails<'a> = &'a mut dyn FnMut(&Trial) -> bool;

/// Keeps a change if the rule still breaks.
fn attempt(best: &mut Trial, fails: Fails<'_>, change: impl FnOnce(&mut Trial)) -> bool {
    let mut smaller = best.clone();
    change(&mut smaller);
    let kept = smaller != *best && fails(&smaller);
    if kept {
        *best = smaller;
    }
    kept
}

/// Drops elements of a list: halves of it first, then quarters, down to single ones.
fn drop_from<T>(best: &mut Trial, fails: Fails<'_>, list: impl Fn(&mut Trial) -> &mut Vec<T>) {
    let mut chunk = list(best).len().div_ceil(2);
    while chunk > 0 {
        let mut from = 0;
        while from < list(best).len() {
            let to = (from + chunk).min(list(best).len());
            if !attempt(best, fails, |smaller| drop(list(smaller).drain(from..to))) {
                from = to;
            }
        }
        chunk /= 2;
    }
}

fn drop_faults(best: &mut Trial, fails: Fails<'_>) {
    drop_from(best, fails, |trial| &mut trial.faults);
}

fn drop_cancels(best: &mut Trial, fails: Fails<'_>) {
    drop_from(best, fails, |trial| &mut trial.cancels);
}

/// A cancellation names its job by its place.
fn drop_jobs(best: &mut Trial, fails: Fails<'_>) {
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

fn drop_tasks(best: &mut Trial, fails: Fails<'_>) {
    for job in 0..best.jobs.len() {
        if !best.cancels.iter().any(|cancel| cancel.job == job) {
            drop_from(best, fails, |trial| &mut trial.jobs[job].tasks);
        }
    }
}

/// The last one goes, with all that names it.
fn drop_clients(best: &mut Trial, fails: Fails<'_>) {
    while best.clients.len() > 1 {
        let last = best.clients.len() - 1;
        let dropped = attempt(best, fails, |smaller| {
            smaller.clients.pop();
            smaller.jobs.iter_mut().for_each(|job| job.client = job.client.min(last - 1));
            forget(smaller, Party::Client(last));
        });
        if !dropped {
            return;
        }
    }
}

fn drop_executors(best: &mut Trial, fails: Fails<'_>) {
    while best.executors.len() > 1 {
        let last = best.executors.len() - 1;
        let dropped = attempt(best, fails, |smaller| {
            smaller.executors.pop();
            forget(smaller, Party::Executor(last));
        });
        if !dropped {
            break;
        }
    }
    for executor in 0..best.executors.len() {
        while best.executors[executor].slots > 1
            && attempt(best, fails, |smaller| smaller.executors[executor].slots /= 2)
        {}
    }
}

/// No fault speaks of this node any more.
fn forget(trial: &mut Trial, gone: Party) {
    for fault in &mut trial.faults {
        if let What::Partition { from, to, .. } = &mut fault.what {
            from.retain(|party| *party != gone);
            to.retain(|party| *party != gone);
        }
    }
    trial.faults.retain(|fault| match &fault.what {
        What::Crash(party) | What::Pause(party) | What::Drift { party, .. } => *party != gone,
        What::Drain(executor) => Party::Executor(*executor) != gone,
        What::Partition { .. } | What::Burst(_) | What::Garbage(_) | What::Forged(_) => true,
    });
}

fn halve_times(best: &mut Trial, fails: Fails<'_>) {
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
        |net: &mut super::Net| net.loss = 0.0,
        |net: &mut super::Net| net.duplication = 0.0,
        |net: &mut super::Net| net.reordering = 0.0,
        |net: &mut super::Net| net.delay_max_us = net.delay_min_us,
    ] {
        attempt(best, fails, |smaller| kinder(&mut smaller.network));
    }
}
