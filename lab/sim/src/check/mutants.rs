//! Bugs planted one at a time (feature `mutants`). Unit tests see none of them; the campaign must find all.
//! `docs/internals/mutants.md` says what each does.

use super::{Campaign, Rule, Subject};

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// Selects it.
    pub number: u32,
    /// Short name.
    pub name: &'static str,
    /// File that contains it.
    pub place: &'static str,
    /// Number of seeds, from 0, within which it must be found.
    pub budget: u64,
}

/// How a mutant was caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caught {
    /// The first rule it broke.
    pub rule: Rule,
    /// The seed; all smaller ones passed.
    pub seed: u64,
    /// How it broke the rule.
    pub what: String,
}

/// Whether this build has mutants.
#[must_use]
pub const fn are_planted() -> bool {
    cfg!(feature = "mutants")
}

impl Mutant {
    /// A mutant in this file with this seed budget.
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
