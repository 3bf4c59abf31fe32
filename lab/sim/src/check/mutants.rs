//! Bugs that are planted one at a time, none of which the unit tests see, and all of which the campaign must find. They are built
//! in by the feature `mutants` only. `docs/internals/mutants.md` says what each does.

use super::{Campaign, Rule, Subject};

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// By which it is chosen.
    pub number: u32,
    /// A word or three.
    pub name: &'static str,
    /// The file that it is in.
    pub place: &'static str,
    /// Seeds, from 0, within which it must be found.
    pub budget: u64,
}

/// How a mutant was caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caught {
    /// The rule that it broke first.
    pub rule: Rule,
    /// The seed in which it did; all before were tried, too.
    pub seed: u64,
    /// How it broke it.
    pub what: String,
}

/// Whether this build has them.
#[must_use]
pub const fn are_planted() -> bool {
    cfg!(feature = "mutants")
}

impl Mutant {
    /// One in this file, with so many seeds.
    #[must_use]
    pub const fn new(number: u32, name: &'static str, place: &'static str, budget: u64) -> Self {
        Self { number, name, place, budget }
    }

    /// Tries seeds until it is caught or its budget is spent.
    #[must_use]
    pub fn hunt<S: Subject>(&self, threads: usize, progress: &(dyn Fn(u64) -> bool + Sync)) -> Option<Caught> {
        let campaign = Campaign { seeds: 0..self.budget, threads, mutant: self.number };
        let (seed, outcome) = campaign.run::<S>(progress).first?;
        let broken = outcome.violation?.broken;
        Some(Caught { rule: broken.rule, seed, what: broken.what })
    }
}
