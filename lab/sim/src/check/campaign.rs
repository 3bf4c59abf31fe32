//! Runs many seeds on several threads; the result does not depend on their number.

use super::{Outcome, Subject, run};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The seeds to run, and how.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Seeds to try.
    pub seeds: Range<u64>,
    /// Number of threads.
    pub threads: usize,
    /// Number of the planted bug (feature `mutants`); 0: none.
    pub mutant: u32,
}

/// Result of a campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Seeds that were tried: all, or those up to the first violation.
    pub seeds: u64,
    /// Virtual nanoseconds.
    pub simulated_ns: u128,
    /// Faults that occurred.
    pub faults: u64,
    /// Events of the worlds.
    pub events: u64,
    /// The first seed whose run broke a rule, and how.
    pub first: Option<(u64, Outcome)>,
}

impl Campaign {
    /// Tries the seeds up to the first violation. `progress` gets each completed seed; if it returns `false`, the
    /// campaign stops.
    #[must_use]
    pub fn run<S: Subject>(&self, progress: &(dyn Fn(u64) -> bool + Sync)) -> Totals {
        let next = AtomicU64::new(self.seeds.start);
        // The smallest failed seed: larger ones are skipped, smaller ones are all tried.
        let failed = AtomicU64::new(self.seeds.end);
        let results = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    S::plant(self.mutant);
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= failed.load(Ordering::Relaxed) {
                            return;
                        }
                        let outcome = run::<S>(&S::draw(seed));
                        if outcome.violation.is_some() {
                            failed.fetch_min(seed, Ordering::Relaxed);
                        }
                        results.lock().unwrap_or_else(PoisonError::into_inner).push((seed, outcome));
                        if !progress(seed) {
                            failed.fetch_min(self.seeds.start, Ordering::Relaxed);
                            return;
                        }
                    }
                });
            }
        });
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.sort_by_key(|(seed, _)| *seed);
        let mut totals = Totals::default();
        for (seed, outcome) in results {
            totals.seeds += 1;
            totals.simulated_ns += u128::from(outcome.simulated);
            totals.faults += outcome.faults;
            totals.events += outcome.events;
            if outcome.violation.is_some() {
                totals.first = Some((seed, outcome));
                break;
            }
        }
        totals
    }
}
