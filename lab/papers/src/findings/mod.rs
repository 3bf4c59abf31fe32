//! Findings of a measurement as data: rows with verdicts, estimates over seeds, and plots. Printing and drawing are elsewhere. This module
//! does not depend on the simulator, so live measurements (`midflight-lab bench live`) use it too.

mod estimate;
mod holds;
pub mod plot;
mod row;

pub use estimate::Estimate;
pub use holds::{Band, Holds};
pub use row::{Class, Paper, RATIO_WITHIN, Row, SHAPE_WITHIN, Unit, VALUE_WITHIN, Verdict};

use plot::Plot;

/// Findings of a figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Table of verdicts.
    pub rows: Vec<Row>,
    /// Plots to draw.
    pub plots: Vec<Plot>,
    /// Remarks on this run, a sentence each.
    pub notes: Vec<String>,
    /// Named results besides the rows.
    pub numbers: Vec<Number>,
}

/// A result without a verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// Full dotted name.
    pub name: String,
    /// The mean over the seeds.
    pub value: f64,
    /// Unit of the value.
    pub unit: &'static str,
}

impl Findings {
    /// Verdict of the row with this name, if any.
    #[must_use]
    pub fn verdict(&self, row: &str) -> Option<Verdict> {
        self.rows.iter().find(|it| it.name == row).map(Row::verdict)
    }
}
