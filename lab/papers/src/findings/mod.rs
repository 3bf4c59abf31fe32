//! What a measurement has shown, as data: a table of rows with verdicts, estimates over seeds, and plots. Who prints or draws
//! it is elsewhere. Nothing in this module knows the simulator, so that live measurements (`midflight-lab bench live`) use the same.

mod estimate;
mod holds;
pub mod plot;
mod row;

pub use estimate::Estimate;
pub use holds::{Band, Holds};
pub use row::{Class, Paper, RATIO_WITHIN, Row, SHAPE_WITHIN, Unit, VALUE_WITHIN, Verdict};

use plot::Plot;

/// What came out of a figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// The table.
    pub rows: Vec<Row>,
    /// The pictures.
    pub plots: Vec<Plot>,
    /// What else is worth knowing of this run, a sentence each.
    pub notes: Vec<String>,
    /// What has a name of its own among the results, beside the rows.
    pub numbers: Vec<Number>,
}

/// A result without a verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// All of it, with its dots.
    pub name: String,
    /// The mean over the seeds.
    pub value: f64,
    /// What it is counted in.
    pub unit: &'static str,
}

impl Findings {
    /// What to think of the row of this name, if there is one.
    #[must_use]
    pub fn verdict(&self, row: &str) -> Option<Verdict> {
        self.rows.iter().find(|it| it.name == row).map(Row::verdict)
    }
}
