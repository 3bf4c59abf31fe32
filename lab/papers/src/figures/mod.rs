//! The papers' figures, one file each. A figure is the cells to run and a pure function from their results to plots and rows.
//!
//! Nothing here runs a cell: `midflight-lab sim figure` runs each as a process and passes the outcomes to [`Figure::findings`].

mod asic_passes;
mod bolt_11;
mod bolt_12;
mod bolt_13a;
mod bolt_13b;
mod bolt_14;
mod bolt_15;
mod bolt_16;
mod bolt_17;
mod contenders;
mod falcon_8;
mod falcon_9_10;
mod flair;
mod netrs;
mod results;
mod scale;
mod traces;

pub use results::{Case, Results};
pub use traces::{TRACES, TraceFile};

use crate::experiment::Outcome;
use crate::findings::Findings;
use crate::netrs::CellResult;

/// A figure.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Name on the command line.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Paper, section and figure.
    pub source: &'static str,
    /// A paragraph about what is run.
    pub set_up: &'static str,
    /// A paragraph about differences from the paper, and why.
    pub differs: &'static str,
    /// The cells to run.
    pub cases: fn(Effort) -> Vec<Case>,
    /// Additional columns with a real trace instead of the generated one; empty for a figure without a trace.
    pub columns: fn(Effort, &TraceFile) -> Vec<Case>,
    /// Reduces results to findings; omits columns without results.
    pub reduce: Reduce,
}

/// How to reduce a figure's results.
#[derive(Clone, Copy, Debug)]
pub enum Reduce {
    /// For cells of the tasks program.
    Tasks(fn(&Results) -> Findings),
    /// For cells of the cache program.
    Cache(fn(&Results<CellResult>) -> Findings),
    /// For cells of a store.
    Store(fn(&Results<crate::flair::CellResult>) -> Findings),
}

impl Figure {
    /// Cells to run, with columns for these traces.
    #[must_use]
    pub fn cases(&self, effort: Effort, traces: &[TraceFile]) -> Vec<Case> {
        let columns = traces.iter().flat_map(|trace| (self.columns)(effort, trace));
        (self.cases)(effort).into_iter().chain(columns).collect()
    }

    /// Findings from the outcomes of its cases, each with its case's name, in the order of seeds.
    #[must_use]
    pub fn findings<'a>(&self, outcomes: impl IntoIterator<Item = (&'a str, Outcome)>) -> Findings {
        let (mut tasks, mut cache, mut store) = (Results::default(), Results::default(), Results::default());
        for (case, outcome) in outcomes {
            match outcome {
                Outcome::Tasks(result) => tasks.push(case, result),
                Outcome::Cache(result) => cache.push(case, result),
                Outcome::Store(result) => store.push(case, result),
            }
        }
        match self.reduce {
            Reduce::Tasks(reduce) => reduce(&tasks),
            Reduce::Cache(reduce) => reduce(&cache),
            Reduce::Store(reduce) => reduce(&store),
        }
    }

    /// The first word of its name: its paper, or what it is about.
    #[must_use]
    pub fn paper(&self) -> &'static str {
        self.name.split('-').next().unwrap_or(self.name)
    }

    /// Whether it has columns for real traces.
    #[must_use]
    pub fn has_columns(&self) -> bool {
        TRACES.iter().any(|trace| !(self.columns)(Effort::Quick, trace).is_empty())
    }
}

/// How long to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// As long as the verdicts need.
    Full,
    /// Long enough to test everything and give approximate results.
    Quick,
}

impl Effort {
    /// Selects one of two values.
    pub fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }
}

/// All figures, in the order of the papers.
pub const ALL: [Figure; 28] = [
    falcon_8::FIGURE,
    falcon_9_10::FIGURE,
    bolt_11::FIGURE,
    bolt_12::FIGURE,
    bolt_13a::FIGURE,
    bolt_13b::FIGURE,
    bolt_14::FIGURE,
    bolt_15::FIGURE,
    bolt_16::FIGURE,
    bolt_17::FIGURE,
    scale::FIGURE,
    asic_passes::FIGURE,
    netrs::clients::FIGURE,
    netrs::skew::FIGURE,
    netrs::utilisation::FIGURE,
    netrs::service::FIGURE,
    netrs::change::FIGURE,
    netrs::flat::FIGURE,
    netrs::selectors::FIGURE,
    flair::clients::FIGURE,
    flair::skew::FIGURE,
    flair::ratio::FIGURE,
    flair::latency::FIGURE,
    flair::share::FIGURE,
    flair::faults::FIGURE,
    flair::scale::FIGURE,
    flair::balance::FIGURE,
    flair::kgroups::FIGURE,
];

/// A hash of all constants and rules, which are frozen. Verdicts under another hash are not comparable.
pub const RULES_VERSION: &str = env!("MIDFLIGHT_RULES_VERSION");

/// The figure of this name, or all whose names begin with this paper's: `bolt`, `falcon`, `flair`, `netrs`.
pub fn find(name: &str) -> impl Iterator<Item = &'static Figure> {
    ALL.iter().filter(move |figure| figure.name == name || figure.paper() == name)
}
