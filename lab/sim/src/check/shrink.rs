//! Shrinks a trial while it breaks the same rule.

use super::{FaultKind, PartyOf, Rule, Subject, Trial, run};

/// One way to shrink a trial: changes it, and keeps what still fails.
pub type Pass<T> = fn(&mut T, Fails<'_, T>);

/// Whether the rule still breaks.
pub type Fails<'a, T> = &'a mut dyn FnMut(&T) -> bool;

/// The smallest trial found that still breaks `rule`. `progress` gets each tried one; if it returns `false`, the search
/// stops.
#[must_use]
pub fn shrink<S: Subject>(trial: &S::Trial, rule: Rule, progress: impl FnMut(&S::Trial) -> bool) -> S::Trial {
    let breaks = |smaller: &S::Trial| run::<S>(smaller).violation.is_some_and(|seen| seen.broken.rule == rule);
    shrink_while(trial, progress, breaks)
}

/// [`shrink`] with `breaks` as the condition.
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

/// Drops elements of a list: halves first, then quarters, down to single ones.
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

/// Removes a party from faults, and renumbers those after it.
pub fn forget<T: Trial>(trial: &mut T, gone: PartyOf<T>) {
    trial.faults_mut().retain_mut(|fault| fault.what.without(gone));
}
