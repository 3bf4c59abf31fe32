//! Columns with real traces: the figure, sampled from a published trace as the Bolt thesis samples Google's (§5.1.3). Nothing is fitted to
//! them. The files are not part of this project; without a file, its column is missing.

use super::results::{Case, Results};
use crate::cell::{CellResult, Load, Replace, Work};
use crate::findings::{Class, Row};
use std::path::Path;

/// A published trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceFile {
    /// Its column, used in the names of rows and cases.
    pub name: &'static str,
    /// Its file in the folder of traces.
    pub file: &'static str,
}

/// All traces that have columns.
pub const TRACES: [TraceFile; 3] = [
    TraceFile { name: "google-sub", file: "google-sub.tr" },
    TraceFile { name: "google-like", file: "google-like-80.tr" },
    TraceFile { name: "alibaba", file: "alibaba2017-batch_task.csv" },
];

impl TraceFile {
    /// Whether the folder contains it.
    #[must_use]
    pub fn is_in(&self, folder: &Path) -> bool {
        folder.join(self.file).is_file()
    }

    pub(super) fn place(&self, place: &str) -> String {
        format!("{place}-{}", self.name)
    }

    /// With the thesis's median.
    pub(super) fn load(&self, load: f64, work: Work, priorities: bool) -> Load {
        let (file, replace) = (self.file.into(), Replace::Nothing);
        Load::Sample { file, median_ms: 5.0, load, priorities, clients: 2, work, replace }
    }

    /// That the Google traces yield another factor than the thesis was known before they were sampled.
    pub(super) fn class_of_13a(&self) -> Class {
        if self.name.starts_with("google") { Class::Seen } else { Class::Predicted }
    }

    /// Rows of our own programs keep their class.
    pub(super) fn column(&self, class: Class, rows: Vec<Row>) -> impl Iterator<Item = Row> {
        let name = self.name;
        rows.into_iter().map(move |row| {
            let class = if row.class.is_ours() { row.class } else { class };
            Row { class, ..row.in_column(name) }
        })
    }

    pub(super) fn note(&self, results: &Results, case: &str) -> String {
        let counted = |name: &str| results.mean(case, |result: &CellResult| counter(result, name));
        let squeezed = counted("squeezed_ppm") / 1e6;
        let squeezed = if squeezed > 1.0 {
            format!(", which is too little work: its arrivals are squeezed {squeezed:.2} times more than its durations")
        } else {
            String::new()
        };
        format!(
            "{}: {} % of the tasks of each job are taken{squeezed}; {:.2} tasks a job, the largest of a run has {:.0}; a pass through the trace \
             takes {:.1} s; over a whole run its tasks ask for {:.1} % of the cluster's time.",
            self.name,
            significant(counted("rate_ppm") / 1e4),
            counted("tasks") / counted("jobs"),
            counted("largest_job"),
            counted("pass_us") / 1e6,
            counted("offered_ppm") / 1e4,
        )
    }
}

/// The traces with results.
pub(super) fn shown(results: &Results, case: impl Fn(&TraceFile) -> String) -> Vec<TraceFile> {
    TRACES.into_iter().filter(|trace| !results.of(&case(trace)).is_empty()).collect()
}

/// The figure has no trace.
pub(super) fn none(_effort: super::Effort, _trace: &TraceFile) -> Vec<Case> {
    Vec::new()
}

fn counter(result: &CellResult, name: &str) -> f64 {
    result.counters.get(&format!("trace.{name}")).map_or(f64::NAN, |&number| number as f64)
}

fn significant(percent: f64) -> String {
    if percent < 0.1 { format!("{percent:.3}") } else { format!("{percent:.1}") }
}
