//! A row of a figure: what the paper says, what came out here, and what to think of it.

use super::Estimate;
use serde::{Deserialize, Serialize};

/// A row whose value is within this factor of the paper's passes.
pub const WITHIN: f64 = 1.5;

/// What a quantity is counted in; values are in the unit itself (nanoseconds for [`Unit::Time`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Nanoseconds.
    Time,
    /// One value by another.
    Factor,
    /// A share of one.
    Share,
    /// Decisions or packets a second.
    PerSecond,
    /// Tasks, and other things that are counted.
    Count,
}

/// What the paper says of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Paper {
    /// This value: within [`WITHIN`] of it is a pass.
    Is(f64),
    /// At least this value.
    AtLeast(f64),
    /// At most this value.
    AtMost(f64),
    /// A statement without a number; whether it holds is the row's check.
    Says(&'static str),
}

/// What to think of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As in the paper: the value within a factor of [`WITHIN`], the bound kept, the statement true.
    Pass,
    /// The value is another one, but order or bend are as in the paper.
    Shape,
    /// Neither.
    Fail,
}

impl Verdict {
    /// As in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Shape => "shape",
            Self::Fail => "fail",
        }
    }
}

/// One row of a figure's table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Stable, without a dot: `FIGURE.NAME.ours` is the result.
    pub name: String,
    /// For people.
    pub what: String,
    /// Of both values.
    pub unit: Unit,
    /// What the paper says.
    pub paper: Paper,
    /// What came out; `None` where nothing did, for example a median of no tasks.
    pub ours: Option<Estimate>,
    /// Whether order or bend are right, where the value is not; of a statement, whether it holds.
    pub holds: bool,
}

impl Row {
    /// A row of which nothing has come out yet.
    pub fn new(unit: Unit, name: impl Into<String>, what: impl Into<String>, paper: Paper) -> Self {
        Self { name: name.into(), what: what.into(), unit, paper, ours: None, holds: false }
    }

    /// What came out, and whether order or bend are right, or the statement holds.
    #[must_use]
    pub fn found(self, ours: Option<Estimate>, holds: bool) -> Self {
        Self { ours, holds, ..self }
    }

    /// The same where the mean alone decides.
    #[must_use]
    pub fn found_if(self, ours: Option<Estimate>, holds: impl FnOnce(f64) -> bool) -> Self {
        self.found(ours, ours.is_some_and(|ours| holds(ours.mean)))
    }

    /// Ours by the paper's; `None` for statements and where nothing came out.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let (Paper::Is(paper) | Paper::AtLeast(paper) | Paper::AtMost(paper)) = self.paper else { return None };
        self.ours.map(|ours| ours.mean / paper).filter(|ratio| ratio.is_finite())
    }

    /// What to think of it. A row without a value fails, whatever else holds.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let Some(ours) = self.ours else { return Verdict::Fail };
        let as_said = match self.paper {
            Paper::Is(_) => self.ratio().is_some_and(|ratio| (1.0 / WITHIN..=WITHIN).contains(&ratio)),
            Paper::AtLeast(bound) => ours.mean >= bound,
            Paper::AtMost(bound) => ours.mean <= bound,
            Paper::Says(_) if self.holds => true,
            Paper::Says(_) => return Verdict::Fail,
        };
        match (as_said, self.holds) {
            (true, _) => Verdict::Pass,
            (false, true) => Verdict::Shape,
            (false, false) => Verdict::Fail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(paper: Paper, ours: f64, holds: bool) -> Row {
        Row::new(Unit::Factor, "row", "", paper).found(Estimate::of(&[ours]), holds)
    }

    #[test]
    fn within_a_factor_of_one_and_a_half_is_a_pass() {
        let verdict = |ours, holds| row(Paper::Is(30.0), ours, holds).verdict();
        assert_eq!([20.0, 30.0, 45.0].map(|ours| verdict(ours, false)), [Verdict::Pass; 3]);
        assert_eq!([19.9, 45.1].map(|ours| verdict(ours, true)), [Verdict::Shape; 2]);
        assert_eq!([19.9, 45.1].map(|ours| verdict(ours, false)), [Verdict::Fail; 2]);
    }

    #[test]
    fn bounds_have_no_slack() {
        let verdict = |paper, ours| row(paper, ours, true).verdict();
        assert_eq!(verdict(Paper::AtLeast(14.0), 14.0), Verdict::Pass);
        assert_eq!(verdict(Paper::AtLeast(14.0), 13.9), Verdict::Shape);
        assert_eq!(verdict(Paper::AtMost(14.0), 14.0), Verdict::Pass);
        assert_eq!(verdict(Paper::AtMost(14.0), 14.1), Verdict::Shape);
    }

    #[test]
    fn a_statement_holds_or_fails() {
        assert_eq!(row(Paper::Says("flat"), 1.0, true).verdict(), Verdict::Pass);
        assert_eq!(row(Paper::Says("flat"), 1.0, false).verdict(), Verdict::Fail);
        assert_eq!(row(Paper::Says("flat"), 1.0, true).ratio(), None);
    }

    #[test]
    fn what_did_not_come_out_fails() {
        let nothing = row(Paper::Is(1.0), 1.0, true).found(None, true);
        assert_eq!((nothing.verdict(), nothing.ratio()), (Verdict::Fail, None));
    }
}
