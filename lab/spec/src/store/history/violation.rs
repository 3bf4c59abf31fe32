//! Prints why a history has no order.

use super::Record;
use super::timeline::Timeline;
use std::collections::BTreeSet;
use std::fmt::{Display, Formatter, Result};

const BEFORE: usize = 6;

/// Limit of reported operations of each kind.
const TOLD: usize = 20;

/// An operation whose result no order explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The operation. Its result is wrong in each order that explains all earlier ends.
    pub operation: Record,
    /// Some values that the key may have had just before.
    pub values: Vec<Option<String>>,
    /// Operations under way at its end that may have taken effect before it.
    pub under_way: Vec<Record>,
    /// The last operations that ended before its end, latest last.
    pub before: Vec<Record>,
}

impl Violation {
    pub(super) fn new(timeline: &Timeline<'_>, at: usize, values: BTreeSet<Option<String>>) -> Self {
        let record = |operation: usize| timeline.records[operation].clone();
        let under_way = timeline.under_way(at).map(record).collect();
        let before = timeline.ends[at.saturating_sub(BEFORE)..at].iter().copied().map(record).collect();
        Self { operation: record(timeline.ends[at]), values: values.into_iter().collect(), under_way, before }
    }
}

impl Display for Violation {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, "key {:?} is not linearizable: nothing explains", self.operation.key)?;
        writeln!(f, "  {}", Line(&self.operation))?;
        let value = |value: &Option<String>| value.as_ref().map_or("nothing".into(), |value| format!("{value:?}"));
        let values: Vec<_> = self.values.iter().map(value).collect();
        writeln!(f, "The key may have held then: {}", values.join(", "))?;
        for (title, records) in [("Ended before it:", &self.before), ("Under way at its end:", &self.under_way)] {
            if !records.is_empty() {
                writeln!(f, "{title}")?;
            }
            for record in records.iter().take(TOLD) {
                writeln!(f, "  {}", Line(record))?;
            }
            if records.len() > TOLD {
                writeln!(f, "  and {} more", records.len() - TOLD)?;
            }
        }
        Ok(())
    }
}

struct Line<'a>(&'a Record);

impl Display for Line<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Record { process, call, result, start_ns, end_ns, .. } = self.0;
        write!(f, "process {process}: {call:?} ")?;
        match (result, end_ns) {
            (Some(result), Some(end)) => write!(f, "gave {result:?}, from {start_ns} to {end} ns"),
            _ => write!(f, "with an unknown outcome, from {start_ns} ns on"),
        }
    }
}
