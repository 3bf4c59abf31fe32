//! Makes a trial smaller while the same rule breaks.

use super::{PartyOf, Rule, Subject, Trial, What, run};

/// One way to make a trial smaller: changes it, and keeps what still fails.
pub type Pass<T> = fn(&mut T, Fails<'_, T>);

/// Whether the rule still breaks.
pub type Fails<'a, T> = &'a mut dyn FnMut(&T) -> bool;

/// The smallest trial that was found in which `rule` still breaks. `progress` is given each one that was tried; where it says
/// `false`, the smallest so far is returned.
#[must_use]
pub fn shrink<S: Subject>(trial: &S::Trial, rule: Rule, progress: impl FnMut(&S::Trial) -> bool) -> S::Trial {
    let breaks = |smaller: &S::Trial| run::<S>(smaller).violation.is_some_and(|seen| seen.broken.rule == rule);
    shrink_while(trial, progress, breaks)
}

/// As [`shrink`], for what `breaks` says.
pub fn shrink_while<T: Trial>(trial: &T, mut progress: impl FnMut(&T) -> bool, breaks: impl Fn(&T) -> bool) -> T {
    let (mut best, mut goes_on) = (trial.clone(), true);
    loop {
        let before = best.clone();
        for pass in T::PASSES {
            pass(&mut best, &mut |smaller| {
                if !goes_on || smaller.validate().is_err() {
                    return false;
                }
                goes_on = progress(smaller);
                breaks(smaller)
            });
        }
        if best == before || !goes_on {
            return best;
        }
    }
}

/// Keeps a change if the rule still breaks.
pub fn attempt<T: Trial>(best: &mut T, fails: Fails<'_, T>, change: impl FnOnce(&mut T)) -> bool {
    let mut smaller = best.clone();
    change(&mut smaller);
    let kept = smaller != *best && fails(&smaller);
    if kept {
        *best = smaller;
    }
    kept
}

/// Drops elements of a list: halves of it first, then quarters, down to single ones.
pub fn drop_from<T: Trial, E>(best: &mut T, fails: Fails<'_, T>, list: impl Fn(&mut T) -> &mut Vec<E>) {
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

/// Drops faults.
pub fn drop_faults<T: Trial>(best: &mut T, fails: Fails<'_, T>) {
    drop_from(best, fails, T::faults_mut);
}

/// Removes a party from faults, and renumbers those behind it.
pub fn forget<T: Trial>(trial: &mut T, gone: PartyOf<T>) {
    trial.faults_mut().retain_mut(|fault| fault.what.without(gone));
}
