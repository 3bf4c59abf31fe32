//! The ratio of each result of two builds, or why it cannot be compared.

use crate::bench::ratio::Ratio;
use crate::median::median;
use midflight_terminal::envelope::{Envelope, Measure};

/// What both builds printed, one run per round.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub this: Vec<Envelope>,
    pub other: Vec<Envelope>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub name: String,
    pub unit: String,
    /// Medians of the runs.
    pub this: f64,
    pub other: f64,
    pub ratio: Ratio,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Left {
    pub name: String,
    pub why: String,
}

#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub rows: Vec<Row>,
    pub left: Vec<Left>,
}

impl Comparison {
    pub(super) fn of(runs: &Runs) -> Self {
        let mut comparison = Self::default();
        for name in names(runs) {
            match row(name, runs) {
                Ok(row) => comparison.rows.push(row),
                Err(why) => comparison.left.push(Left { name: name.into(), why }),
            }
        }
        comparison
    }
}

impl Row {
    /// Bounds of the candidate's slowdown; `None` for units other than time and rate.
    pub(super) fn slowdown(&self) -> Option<(f64, f64)> {
        let Ratio { low, high, .. } = self.ratio;
        match Counted::of(&self.unit) {
            Counted::Time => Some((low, high)),
            Counted::Rate => Some((1.0 / high, 1.0 / low)),
            Counted::Other => None,
        }
    }

    /// Whether the interval excludes 1.
    pub(super) fn verdict(&self) -> &'static str {
        let (above, below) = match Counted::of(&self.unit) {
            Counted::Time => ("slower", "faster"),
            Counted::Rate => ("faster", "slower"),
            Counted::Other => ("more", "less"),
        };
        match self.ratio {
            Ratio { low, .. } if low > 1.0 => above,
            Ratio { high, .. } if high < 1.0 => below,
            _ => "same",
        }
    }
}

/// Whether more is better.
enum Counted {
    Time,
    Rate,
    /// Bytes, tasks, percents, factors.
    Other,
}

impl Counted {
    fn of(unit: &str) -> Self {
        match unit {
            "ns" | "us" | "ms" | "s" => Self::Time,
            _ if unit.ends_with("/s") => Self::Rate,
            _ => Self::Other,
        }
    }
}

/// Names of all results, in the order of their first appearance.
fn names(runs: &Runs) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for result in runs.this.iter().chain(&runs.other).flat_map(Envelope::results) {
        if !names.contains(&result.name.as_str()) {
            names.push(&result.name);
        }
    }
    names
}

/// A result of both builds, or why it cannot be compared.
fn row(name: &str, runs: &Runs) -> Result<Row, String> {
    let (this, other) = match (unit(name, &runs.this), unit(name, &runs.other)) {
        (Some(this), Some(other)) => (this, other),
        (Some(_), None) => return Err("only in this".into()),
        (None, _) => return Err("only in other".into()),
    };
    if this != other {
        return Err(format!("this counts {this:?} and other {other:?}"));
    }
    let (these, others) = (values(name, &runs.this), values(name, &runs.other));
    let ratio = Ratio::of(&these, &others).ok_or("not a number above zero in every run")?;
    Ok(Row { name: name.into(), unit: this.into(), this: median(these), other: median(others), ratio })
}

/// The result's unit in this build, if the build prints it.
fn unit<'a>(name: &str, runs: &'a [Envelope]) -> Option<&'a str> {
    let mut results = runs.iter().flat_map(Envelope::results);
    results.find(|result| result.name == name).map(|Measure { unit, .. }| unit.as_ref())
}

/// One per run, in order; NaN if missing.
fn values(name: &str, runs: &[Envelope]) -> Vec<f64> {
    runs.iter().map(|run| run.number(name).unwrap_or(f64::NAN)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(name: &str, unit: &'static str, values: &[f64]) -> Vec<Envelope> {
        values.iter().map(|&value| Envelope::new("core", vec![Measure::quantity(name, value, unit)])).collect()
    }

    fn compared(unit: &'static str, this: &[f64], other: &[f64]) -> Row {
        let runs = Runs { this: runs("core.x", unit, this), other: runs("core.x", unit, other) };
        Comparison::of(&runs).rows.remove(0)
    }

    const MORE: [f64; 4] = [20.0, 21.0, 20.0, 22.0];
    const LESS: [f64; 4] = [10.0, 10.0, 11.0, 10.0];

    #[test]
    fn more_of_a_time_is_slower_and_more_of_a_rate_faster() {
        for unit in ["ns", "us", "ms", "s"] {
            assert_eq!(compared(unit, &MORE, &LESS).verdict(), "slower", "{unit}");
            assert_eq!(compared(unit, &LESS, &MORE).verdict(), "faster", "{unit}");
        }
        for unit in ["1/s", "tasks/s"] {
            assert_eq!(compared(unit, &MORE, &LESS).verdict(), "faster", "{unit}");
            assert_eq!(compared(unit, &LESS, &MORE).verdict(), "slower", "{unit}");
        }
        for unit in ["bytes", "tasks", "%", ""] {
            assert_eq!(compared(unit, &MORE, &LESS).verdict(), "more", "{unit}");
            assert_eq!(compared(unit, &LESS, &MORE).verdict(), "less", "{unit}");
        }
    }

    #[test]
    fn an_interval_around_one_is_the_same() {
        let row = compared("ns", &[10.0, 11.0, 10.0, 12.0], &[11.0, 10.0, 12.0, 10.0]);
        assert!(row.ratio.low < 1.0 && row.ratio.high > 1.0, "{row:?}");
        assert_eq!(row.verdict(), "same");
        assert_eq!(compared("bytes", &[7.0, 7.0], &[7.0, 7.0]).verdict(), "same");
    }

    #[test]
    fn a_rate_is_slower_by_the_inverse_of_its_ratio() {
        let half = compared("tasks/s", &[50.0, 50.0], &[100.0, 100.0]);
        assert_eq!((half.ratio.value, half.slowdown()), (0.5, Some((2.0, 2.0))));
        let double = compared("us", &[100.0, 100.0], &[50.0, 50.0]);
        assert_eq!((double.this, double.other, double.slowdown()), (100.0, 50.0, Some((2.0, 2.0))));
        assert_eq!(compared("bytes", &[2.0, 2.0], &[1.0, 1.0]).slowdown(), None);
    }

    #[test]
    fn what_cannot_be_compared_is_named_with_its_reason() {
        let why = |this: Vec<Envelope>, other: Vec<Envelope>| {
            let comparison = Comparison::of(&Runs { this, other });
            assert!(comparison.rows.is_empty());
            comparison.left.into_iter().map(|Left { name, why }| format!("{name}: {why}")).collect::<Vec<_>>()
        };
        let one = |name: &str| runs(name, "ns", &[1.0, 1.0]);
        assert_eq!(why(one("core.new"), one("core.old")), ["core.new: only in this", "core.old: only in other"]);
        let other = runs("core.x", "us", &[1.0, 1.0]);
        assert_eq!(why(one("core.x"), other), ["core.x: this counts \"ns\" and other \"us\""]);
        let zero = "core.x: not a number above zero in every run";
        assert_eq!(why(one("core.x"), runs("core.x", "ns", &[1.0, 0.0])), [zero]);
        let sometimes = [runs("core.x", "ns", &[1.0]), vec![Envelope::new("core", Vec::new())]].concat();
        assert_eq!(why(one("core.x"), sometimes), [zero]);
    }
}
