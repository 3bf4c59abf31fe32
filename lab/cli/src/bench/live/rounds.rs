//! One sample per round for each contender at each place, and their medians.

use super::contender::{ALL, Contender};
use crate::median::{at, median};
use crate::report::figures::value;
use midflight_papers::findings::{Estimate, Unit};
use midflight_terminal::envelope::Measure;
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter, Result};

/// [`Quantity::unit`] has the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Quantity {
    /// Percentile of the scheduling delay.
    P5,
    P50,
    P95,
    P99,
    /// Decisions.
    Rate,
}

impl Quantity {
    pub(super) fn unit(self) -> Unit {
        match self {
            Self::P5 | Self::P50 | Self::P95 | Self::P99 => Unit::Time,
            Self::Rate => Unit::PerSecond,
        }
    }

    fn measure(self, name: &str, value: f64) -> Measure {
        let name = |what| format!("{name}.{what}");
        match self {
            Self::P5 => Measure::quantity(&name("delay_p5_us"), value / 1e3, "us"),
            Self::P50 => Measure::quantity(&name("delay_p50_us"), value / 1e3, "us"),
            Self::P95 => Measure::quantity(&name("delay_p95_us"), value / 1e3, "us"),
            Self::P99 => Measure::quantity(&name("delay_p99_us"), value / 1e3, "us"),
            Self::Rate => Measure::quantity(&name("decisions_per_s"), value, "1/s"),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample(Vec<(Quantity, f64)>);

impl Sample {
    pub(super) fn rate(per_second: f64) -> Self {
        Self(vec![(Quantity::Rate, per_second)])
    }

    /// From delays in nanoseconds; NaN if there are none.
    pub(super) fn delays(delays: &[u64]) -> Self {
        let delays: Vec<f64> = delays.iter().map(|&delay| delay as f64).collect();
        let shares = [(Quantity::P5, 0.05), (Quantity::P50, 0.5), (Quantity::P95, 0.95), (Quantity::P99, 0.99)];
        Self(shares.map(|(quantity, share)| (quantity, at(delays.clone(), share))).into())
    }
}

impl Display for Sample {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let shown = self.0.iter().filter(|(quantity, _)| ![Quantity::P5, Quantity::P99].contains(quantity));
        let words = shown.map(|&(quantity, number)| {
            let number = value(quantity.unit(), number);
            match quantity {
                Quantity::P95 => format!("95th percentile {number}"),
                Quantity::P50 => format!("median delay {number}"),
                _ => format!("{number} decisions"),
            }
        });
        f.write_str(&words.collect::<Vec<_>>().join(", "))
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Rounds(BTreeMap<(Contender, u32, Quantity), Vec<f64>>);

impl Rounds {
    pub(super) fn push(&mut self, contender: Contender, place: u32, sample: Sample) {
        for (quantity, value) in sample.0 {
            self.0.entry((contender, place, quantity)).or_default().push(value);
        }
    }

    pub(super) fn contenders(&self) -> impl Iterator<Item = Contender> {
        ALL.into_iter().filter(|contender| self.0.keys().any(|(who, ..)| who == contender))
    }

    pub(super) fn of(&self, contender: Contender, place: u32, quantity: Quantity) -> &[f64] {
        self.0.get(&(contender, place, quantity)).map_or(&[], Vec::as_slice)
    }

    /// NaN without samples, so that every comparison fails.
    pub(super) fn median(&self, contender: Contender, place: u32, quantity: Quantity) -> f64 {
        self.estimate(contender, place, quantity).map_or(f64::NAN, |estimate| estimate.mean)
    }

    pub(super) fn estimate(&self, contender: Contender, place: u32, quantity: Quantity) -> Option<Estimate> {
        estimate(self.of(contender, place, quantity).to_vec())
    }

    /// The median of the rounds' ratios: a disturbance of a round affects both values.
    pub(super) fn factor(
        &self,
        over: (Contender, u32),
        under: (Contender, u32),
        quantity: Quantity,
    ) -> Option<Estimate> {
        let pairs = self.of(over.0, over.1, quantity).iter().zip(self.of(under.0, under.1, quantity));
        estimate(pairs.map(|(over, under)| over / under).collect())
    }

    /// `NAME.CONTENDER.PLACE.QUANTITY`.
    pub(super) fn measures(&self, name: &str) -> Vec<Measure> {
        let measure = |(&(contender, place, quantity), values): (&(Contender, u32, Quantity), &Vec<f64>)| {
            quantity.measure(&format!("{name}.{}.{place}", contender.key()), median(values.clone()))
        };
        self.0.iter().map(measure).collect()
    }
}

/// A median, so that one disturbed round does not move it; the interval is the mean's, which such a round widens.
fn estimate(values: Vec<f64>) -> Option<Estimate> {
    let of_mean = Estimate::of(&values)?;
    Some(Estimate { mean: median(values), ..of_mean })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Contender::{Sparrow, User};

    #[test]
    fn percentiles_are_of_the_delays_that_were() {
        let Sample(percentiles) = Sample::delays(&(1..=100).rev().collect::<Vec<_>>());
        let expected = [(Quantity::P5, 5.0), (Quantity::P50, 50.0), (Quantity::P95, 95.0), (Quantity::P99, 99.0)];
        assert_eq!(percentiles, expected);
        let Sample(one) = Sample::delays(&[7]);
        assert!(one.iter().all(|&(_, ns)| ns == 7.0));
        let Sample(none) = Sample::delays(&[]);
        assert!(none.iter().all(|&(_, ns)| ns.is_nan()));
    }

    #[test]
    fn the_median_of_the_rounds_counts_and_factors_are_taken_round_by_round() {
        let mut rounds = Rounds::default();
        for (user, sparrow) in [(10.0, 30.0), (100.0, 200.0), (20.0, 100.0)] {
            rounds.push(User, 50, Sample::rate(user));
            rounds.push(Sparrow, 50, Sample::rate(sparrow));
        }
        assert_eq!(rounds.median(User, 50, Quantity::Rate), 20.0);
        assert_eq!(rounds.factor((Sparrow, 50), (User, 50), Quantity::Rate).unwrap().mean, 3.0);
        assert!(rounds.median(User, 80, Quantity::Rate).is_nan());
        assert_eq!(rounds.factor((Sparrow, 80), (User, 80), Quantity::Rate), None);
        assert_eq!(rounds.contenders().collect::<Vec<_>>(), [User, Sparrow]);
        assert_eq!(rounds.measures("live.x")[0].name, "live.x.user.50.decisions_per_s");
    }

    #[test]
    fn a_round_without_tasks_is_not_hidden() {
        let mut rounds = Rounds::default();
        rounds.push(User, 50, Sample::delays(&[5]));
        rounds.push(User, 50, Sample::delays(&[]));
        assert_eq!(rounds.estimate(User, 50, Quantity::P50), None);
    }
}
