//! A figure's cells and their results, seed by seed.

use super::traces::TRACES;
use crate::cell::{Cell, CellResult, Load, Percentiles, QUANTILES, Step};
use crate::experiment::Experiment;
use crate::findings::plot::{Curve, Hue, Point};
use crate::findings::{Band, Estimate, Holds};
use std::collections::BTreeMap;

/// Results are in milliseconds, rows and plots in nanoseconds.
pub(super) const NS_PER_MS: f64 = 1e6;

/// A cell of a figure, to be run with each seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The case's name, unique within a figure.
    pub name: String,
    /// The cell; its seed is replaced.
    pub cell: Experiment,
}

impl Case {
    /// The real trace of its column; `None` for the generated workload.
    #[must_use]
    pub fn column(&self) -> Option<&'static str> {
        let Experiment::Tasks(Cell { load: Load::Sample { file, .. }, .. }) = &self.cell else { return None };
        TRACES.iter().find(|trace| file.ends_with(trace.file)).map(|trace| trace.name)
    }
}

/// Results by case name, one per seed in the order of seeds.
#[derive(Clone, Debug)]
pub struct Results<R = CellResult>(BTreeMap<String, Vec<R>>);

impl<R> Default for Results<R> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<R> Results<R> {
    /// Adds the next seed's result of a case.
    pub fn push(&mut self, case: &str, result: R) {
        self.0.entry(case.to_owned()).or_default().push(result);
    }

    /// A case's results, one per seed; empty if it has not run.
    #[must_use]
    pub fn of(&self, case: &str) -> &[R] {
        self.0.get(case).map_or(&[], Vec::as_slice)
    }

    /// The same with the results of each case whose variant's name ends so replaced by the variant's.
    #[must_use]
    pub fn preferring(&self, end: &str) -> Self
    where
        R: Clone,
    {
        let of = |(name, results): (&String, &Vec<R>)| Some((name.strip_suffix(end)?.to_owned(), results.clone()));
        let mut all = self.clone();
        all.0.extend(self.0.iter().filter_map(of));
        all
    }

    /// A quantity of a case over its seeds.
    #[must_use]
    pub fn estimate(&self, case: &str, quantity: impl Fn(&R) -> f64) -> Option<Estimate> {
        let values: Vec<f64> = self.of(case).iter().map(quantity).collect();
        Estimate::of(&values)
    }

    /// The same, over the seeds that have the quantity: a rare kind of task may be missing in a short run.
    #[must_use]
    pub fn estimate_where_it_occurs(&self, case: &str, quantity: impl Fn(&R) -> f64) -> Option<Estimate> {
        let values: Vec<f64> = self.of(case).iter().map(quantity).filter(|value| !value.is_nan()).collect();
        Estimate::of(&values)
    }

    /// Ratio of a quantity between two cases, seed by seed: they had the same arrivals.
    #[must_use]
    pub fn factor(&self, over: &str, under: &str, quantity: impl Fn(&R) -> f64) -> Option<Estimate> {
        let pairs = self.of(over).iter().zip(self.of(under));
        let values: Vec<f64> = pairs.map(|(over, under)| quantity(over) / quantity(under)).collect();
        Estimate::of(&values)
    }

    /// By how much a quantity of one case is below another's, as a share of the latter, seed by seed.
    #[must_use]
    pub fn reduction(&self, over: &str, under: &str, quantity: impl Fn(&R) -> f64) -> Option<Estimate> {
        let shares = self.factor(under, over, quantity)?;
        Some(Estimate { mean: 1.0 - shares.mean, ..shares })
    }

    /// Whether a quantity of one case is above another's, seed by seed.
    #[must_use]
    pub fn is_above(&self, over: &str, under: &str, quantity: impl Fn(&R) -> f64) -> Holds {
        Holds::within(self.factor(over, under, quantity), Band::from(1.0))
    }

    /// Mean over the seeds; NaN without results, so that every comparison fails.
    #[must_use]
    pub fn mean(&self, case: &str, quantity: impl Fn(&R) -> f64) -> f64 {
        self.estimate(case, quantity).map_or(f64::NAN, |estimate| estimate.mean)
    }

    /// Cumulative distribution; quantiles are averaged over the seeds.
    #[must_use]
    pub fn cumulative(&self, case: &str, part: impl Fn(&R) -> Option<&Percentiles>) -> Vec<Point> {
        let points = QUANTILES.iter().map(|&quantile| {
            let ms = self.mean(case, |result| part(result).map_or(f64::NAN, |percentiles| percentiles.at(quantile)));
            Point::new(ms * NS_PER_MS, quantile)
        });
        points.filter(|point| point.x.is_finite()).collect()
    }
}

impl Results {
    pub(super) fn distribution(
        &self,
        case: &str,
        name: &str,
        hue: Hue,
        part: impl Fn(&CellResult) -> Option<&Percentiles>,
    ) -> Curve {
        Curve { name: name.into(), hue, dashed: false, points: self.cumulative(case, part), dots: false }
    }
}

/// In nanoseconds.
pub(super) fn delay(quantile: f64) -> impl Fn(&CellResult) -> f64 {
    move |result| result.delay.at(quantile) * NS_PER_MS
}

/// Quantile of the time from submit to the start of a job's last task, in nanoseconds.
pub(super) fn job_delay(quantile: f64) -> impl Fn(&CellResult) -> f64 {
    move |result| result.jobs.at(quantile) * NS_PER_MS
}

/// In nanoseconds.
pub(super) fn step(step: Step, quantile: f64) -> impl Fn(&CellResult) -> f64 {
    move |result| result.steps.get(&step).map_or(f64::NAN, |percentiles| percentiles.at(quantile) * NS_PER_MS)
}

/// 0 if the scheme has no such step.
pub(super) fn mean_step(result: &CellResult, step: Step) -> f64 {
    result.steps.get(&step).map_or(0.0, |percentiles| percentiles.mean_ms * NS_PER_MS)
}

pub(super) fn level_step(level: u8, step: Step, quantile: f64) -> impl Fn(&CellResult) -> f64 {
    move |result| {
        let percentiles = result.levels.get(&level).and_then(|level| level.steps.get(&step));
        percentiles.map_or(f64::NAN, |percentiles| percentiles.at(quantile) * NS_PER_MS)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn constant(ms: f64) -> Percentiles {
        Percentiles { count: 1_000, mean_ms: ms, quantiles_ms: vec![ms; QUANTILES.len()] }
    }

    pub(crate) fn delayed(ms: f64) -> CellResult {
        CellResult { delay: constant(ms), ..CellResult::default() }
    }

    #[test]
    fn a_seed_without_the_quantity_counts_only_where_it_must_occur() {
        let mut results = Results::default();
        for ms in [1.0, f64::NAN, 3.0] {
            results.push("one", delayed(ms));
        }
        let median = |result: &CellResult| result.delay.at(0.5);
        assert_eq!(results.estimate("one", median), None);
        assert_eq!(results.estimate_where_it_occurs("one", median).map(|estimate| estimate.mean), Some(2.0));
        assert_eq!(results.estimate_where_it_occurs("another", median), None);
    }

    #[test]
    fn factors_are_taken_seed_by_seed() {
        let mut results = Results::default();
        for (slow, fast) in [(10.0, 1.0), (40.0, 2.0)] {
            results.push("slow", delayed(slow));
            results.push("fast", delayed(fast));
        }
        assert_eq!(results.factor("slow", "fast", delay(0.5)).unwrap().mean, 15.0);
        assert_eq!(results.mean("slow", delay(0.5)), 25.0 * NS_PER_MS);
        assert_eq!(results.estimate("absent", delay(0.5)), None);
        assert!(results.mean("absent", delay(0.5)).is_nan());
    }

    #[test]
    fn a_distribution_without_tasks_has_no_points() {
        let mut results = Results::default();
        results.push("nothing", CellResult::default());
        assert!(results.cumulative("nothing", |result| Some(&result.delay)).is_empty());
        results.push("some", delayed(2.0));
        let points = results.cumulative("some", |result| Some(&result.delay));
        assert_eq!(points.last(), Some(&Point::new(2.0 * NS_PER_MS, 1.0)));
    }
}
