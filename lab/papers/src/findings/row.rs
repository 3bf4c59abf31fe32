//! A row of a figure: the paper's value, ours, how ours came about, and the verdict.

use super::Estimate;
use super::holds::{Band, Holds};
use serde::{Deserialize, Serialize};

/// A ratio of two schemes, or a share, passes within this factor; other values use [`VALUE_WITHIN`].
pub const RATIO_WITHIN: f64 = 1.25;
/// See [`RATIO_WITHIN`].
pub const VALUE_WITHIN: f64 = 1.5;
/// Beyond this factor a value lacks even the paper's shape.
pub const SHAPE_WITHIN: f64 = 3.0;

/// Unit of a quantity; values are in the unit itself (nanoseconds for [`Unit::Time`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Nanoseconds.
    Time,
    /// Ratio of two values.
    Factor,
    /// Share of one.
    Share,
    /// Decisions or packets a second.
    PerSecond,
    /// A count, for example of tasks.
    Count,
}

impl Unit {
    fn within(self) -> f64 {
        match self {
            Self::Factor | Self::Share => RATIO_WITHIN,
            Self::Time | Self::PerSecond | Self::Count => VALUE_WITHIN,
        }
    }
}

/// How a row's value came about. Only predictions are evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The named constant was fitted to the row, which is an input.
    Set(&'static str),
    /// The value was known when a constant or rule was chosen.
    Seen,
    /// A prediction: neither set nor seen.
    Predicted,
    /// Our programs at costs measured on Linux and known before; no machine ran it as a whole.
    Measured,
    /// Our programs at times that were not measured: a Tofino's.
    Hypothetical,
}

impl Class {
    /// All classes, in the order of reports.
    pub const ALL: [Self; 5] = [Self::Predicted, Self::Seen, Self::Set(""), Self::Measured, Self::Hypothetical];

    /// Whether the row is about our programs, and so no evidence for the papers.
    #[must_use]
    pub fn is_ours(self) -> bool {
        matches!(self, Self::Measured | Self::Hypothetical)
    }

    /// Name used in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Set(_) => "set",
            Self::Seen => "seen",
            Self::Predicted => "predicted",
            Self::Measured => "measured",
            Self::Hypothetical => "hypothetical",
        }
    }
}

/// What the paper says about a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Paper {
    /// A value: passes within [`RATIO_WITHIN`] or [`VALUE_WITHIN`].
    Is(f64),
    /// At least this value.
    AtLeast(f64),
    /// At most this value.
    AtMost(f64),
    /// A statement without a number, and the band that makes it true.
    Says(&'static str, Band),
}

impl Paper {
    /// The paper's value, if it gives one.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        match self {
            Self::Is(value) | Self::AtLeast(value) | Self::AtMost(value) => Some(value),
            Self::Says(..) => None,
        }
    }

    /// Band of values that agree with the paper.
    #[must_use]
    pub fn band(self, unit: Unit) -> Band {
        match self {
            Self::Is(value) => Band::around(value, unit.within()),
            Self::AtLeast(value) => Band::from(value),
            Self::AtMost(value) => Band::up_to(value),
            Self::Says(_, band) => band,
        }
    }

    /// `None` for a statement.
    fn shape(self) -> Option<Band> {
        match self {
            Self::Is(value) => Some(Band::around(value, SHAPE_WITHIN)),
            Self::AtLeast(value) => Some(Band::from(value / SHAPE_WITHIN)),
            Self::AtMost(value) => Some(Band::up_to(value * SHAPE_WITHIN)),
            Self::Says(..) => None,
        }
    }
}

/// Verdict on a row. Its interval decides, not its mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The 95 % interval lies in the band, keeps the bound, or satisfies the statement.
    Pass,
    /// The interval straddles an end of the band.
    Unsure,
    /// The value is within [`SHAPE_WITHIN`], and the schemes' order is the paper's.
    Shape,
    /// None of these.
    Fail,
}

impl Verdict {
    /// All verdicts, in the order of reports.
    pub const ALL: [Self; 4] = [Self::Pass, Self::Unsure, Self::Shape, Self::Fail];

    /// Name used in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Unsure => "unsure",
            Self::Shape => "shape",
            Self::Fail => "fail",
        }
    }
}

/// A row of a figure's table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Stable name without a dot: `FIGURE.NAME.ours` is the result.
    pub name: String,
    /// Description for people.
    pub what: String,
    /// Its real trace; none for the generated workload. The name begins with it.
    pub column: Option<&'static str>,
    /// Unit of both values.
    pub unit: Unit,
    /// How the value came about.
    pub class: Class,
    /// What the paper says.
    pub paper: Paper,
    /// Our value, if there is one.
    pub ours: Option<Estimate>,
    /// Whether the schemes' order is the paper's; for a statement, its other conditions.
    pub order: Holds,
}

impl Row {
    /// Whether the paper gives no number for it.
    #[must_use]
    pub fn is_statement(&self) -> bool {
        matches!(self.paper, Paper::Says(..))
    }

    /// Creates a row without a result.
    pub fn new(class: Class, unit: Unit, name: impl Into<String>, what: impl Into<String>, paper: Paper) -> Self {
        Self { name: name.into(), what: what.into(), column: None, unit, class, paper, ours: None, order: Holds::No }
    }

    /// Adds the result, and whether the order is right.
    #[must_use]
    pub fn found(self, ours: Option<Estimate>, order: impl Into<Holds>) -> Self {
        Self { ours, order: order.into(), ..self }
    }

    /// Adds a result without an order: the value alone decides.
    #[must_use]
    pub fn found_alone(self, ours: Option<Estimate>) -> Self {
        self.found(ours, Holds::Yes)
    }

    /// Puts the row in a column.
    #[must_use]
    pub fn in_column(self, column: &'static str) -> Self {
        Self { name: format!("{column}-{}", self.name), column: Some(column), ..self }
    }

    /// Its name without its column's.
    #[must_use]
    pub fn plain_name(&self) -> &str {
        let own = |column| self.name.strip_prefix(column)?.strip_prefix('-');
        self.column.and_then(own).unwrap_or(&self.name)
    }

    /// Ours divided by the paper's; `None` for statements and without a result.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let paper = self.paper.value()?;
        self.ours.map(|ours| ours.mean / paper).filter(|ratio| ratio.is_finite())
    }

    /// The verdict. A row without a value fails.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let as_said = Holds::within(self.ours, self.paper.band(self.unit));
        let Some(shape) = self.paper.shape() else {
            return match as_said.and(self.order) {
                Holds::Yes => Verdict::Pass,
                Holds::Unsure => Verdict::Unsure,
                Holds::No => Verdict::Fail,
            };
        };
        match (as_said, Holds::within(self.ours, shape).and(self.order)) {
            (Holds::Yes, _) => Verdict::Pass,
            (Holds::Unsure, _) | (Holds::No, Holds::Unsure) => Verdict::Unsure,
            (Holds::No, Holds::Yes) => Verdict::Shape,
            (Holds::No, Holds::No) => Verdict::Fail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For a result of ten seeds.
    fn row(unit: Unit, paper: Paper, (mean, half_width): (f64, f64), order: Holds) -> Verdict {
        let ours = Some(Estimate { mean, half_width: Some(half_width), seeds: 10 });
        Row::new(Class::Predicted, unit, "row", "", paper).found(ours, order).verdict()
    }

    #[test]
    fn a_value_passes_by_its_whole_interval() {
        let time = |ours, order| row(Unit::Time, Paper::Is(30.0), ours, order);
        assert_eq!([(30.0, 9.0), (20.0, 0.0), (45.0, 0.0)].map(|ours| time(ours, Holds::No)), [Verdict::Pass; 3]);
        assert_eq!(time((19.4, 18.9), Holds::Yes), Verdict::Unsure, "the mean alone shows nothing");
        assert_eq!([(50.0, 1.0), (11.0, 0.5)].map(|ours| time(ours, Holds::Yes)), [Verdict::Shape; 2]);
        assert_eq!(time((50.0, 1.0), Holds::Unsure), Verdict::Unsure);
        assert_eq!(time((50.0, 1.0), Holds::No), Verdict::Fail);
        assert_eq!(time((100.0, 1.0), Holds::Yes), Verdict::Fail, "beyond a factor of three it is no shape");
        assert_eq!(time((89.0, 3.0), Holds::Yes), Verdict::Unsure);
    }

    #[test]
    fn ratios_have_a_narrower_band_than_times() {
        let of = |unit| row(unit, Paper::Is(10.0), (13.0, 0.1), Holds::Yes);
        assert_eq!(
            (of(Unit::Factor), of(Unit::Share), of(Unit::Time)),
            (Verdict::Shape, Verdict::Shape, Verdict::Pass)
        );
    }

    #[test]
    fn bounds_have_no_slack() {
        let of = |paper, ours| row(Unit::Time, paper, ours, Holds::Yes);
        assert_eq!(of(Paper::AtLeast(14.0), (14.5, 0.5)), Verdict::Pass);
        assert_eq!(of(Paper::AtLeast(14.0), (14.5, 0.6)), Verdict::Unsure);
        assert_eq!(of(Paper::AtLeast(14.0), (13.0, 0.6)), Verdict::Shape);
        assert_eq!(of(Paper::AtLeast(14.0), (4.0, 0.6)), Verdict::Fail);
        assert_eq!(of(Paper::AtMost(14.0), (13.5, 0.5)), Verdict::Pass);
        assert_eq!(of(Paper::AtMost(14.0), (15.0, 0.5)), Verdict::Shape);
        assert_eq!(of(Paper::AtMost(14.0), (50.0, 0.5)), Verdict::Fail);
    }

    #[test]
    fn a_statement_holds_or_fails() {
        let flat = Paper::Says("flat", Band::around(1.0, 1.25));
        let of = |ours, order| row(Unit::Factor, flat, ours, order);
        assert_eq!(of((1.1, 0.1), Holds::Yes), Verdict::Pass);
        assert_eq!(of((1.1, 0.1), Holds::No), Verdict::Fail);
        assert_eq!(of((1.2, 0.1), Holds::Yes), Verdict::Unsure);
        assert_eq!(of((1.4, 0.1), Holds::Yes), Verdict::Fail, "there is no shape of a statement");
        let row = Row::new(Class::Seen, Unit::Factor, "row", "", flat).found_alone(Estimate::of(&[1.0, 1.0]));
        assert_eq!((row.ratio(), row.verdict()), (None, Verdict::Pass));
    }

    #[test]
    fn what_did_not_come_out_fails() {
        let nothing = Row::new(Class::Seen, Unit::Time, "row", "", Paper::Is(1.0)).found(None, true);
        assert_eq!((nothing.verdict(), nothing.ratio()), (Verdict::Fail, None));
    }
}
