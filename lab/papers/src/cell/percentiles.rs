//! A distribution in constant memory, and its summary.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Quantiles of a distribution: each hundredth, and the tail.
pub const QUANTILES: [f64; 104] = {
    let mut all = [0.0; 104];
    let mut i = 0;
    while i <= 100 {
        all[i] = i as f64 / 100.0;
        i += 1;
    }
    all[100] = 0.995;
    all[101] = 0.999;
    all[102] = 0.9999;
    all[103] = 1.0;
    all
};

/// Summary of a distribution of times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Number of values.
    pub count: u64,
    /// Mean in milliseconds.
    pub mean_ms: f64,
    /// Milliseconds at [`QUANTILES`], to four digits, exact to one in a thousand; empty if nothing was measured.
    pub quantiles_ms: Vec<f64>,
}

impl Percentiles {
    /// Milliseconds at this quantile (one of [`QUANTILES`], or the next above); NaN if nothing was measured.
    #[must_use]
    pub fn at(&self, quantile: f64) -> f64 {
        let index = QUANTILES.iter().position(|&q| q >= quantile - 1e-9).unwrap_or(QUANTILES.len() - 1);
        self.quantiles_ms.get(index).copied().unwrap_or(f64::NAN)
    }

    /// The median in milliseconds.
    #[must_use]
    pub fn median_ms(&self) -> f64 {
        self.at(0.5)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    histogram: Histogram<u64>,
    sum_ns: u128,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        // Longer times count as one hour. Three digits within these bounds cannot fail.
        #[allow(clippy::expect_used, reason = "constant bounds")]
        let histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("bounds are in order");
        Self { histogram, sum_ns: 0 }
    }

    pub(crate) fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
        self.sum_ns += u128::from(ns);
    }

    pub(crate) fn percentiles(&self) -> Percentiles {
        let count = self.histogram.len();
        if count == 0 {
            return Percentiles::default();
        }
        let quantiles_ms =
            QUANTILES.iter().map(|&q| four_digits(self.histogram.value_at_quantile(q)) as f64 / 1e6).collect();
        Percentiles { count, mean_ms: self.sum_ns as f64 / count as f64 / 1e6, quantiles_ms }
    }
}

/// The histogram is no more precise.
fn four_digits(ns: u64) -> u64 {
    let unit = 10_u64.pow(ns.checked_ilog10().unwrap_or(0).saturating_sub(3));
    (ns + unit / 2) / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_are_kept() {
        let (given, kept) = (
            [0, 9_999, 10_004, 10_005, 99_995, 3_600_000_000_000],
            [0, 9_999, 10_000, 10_010, 100_000, 3_600_000_000_000],
        );
        assert_eq!(given.map(four_digits), kept);
    }

    #[test]
    fn quantiles_are_those_of_what_was_recorded() {
        let mut recorder = Recorder::new();
        (1..=1_000).for_each(|i| recorder.record(i * 1_000_000));
        let summary = recorder.percentiles();
        assert_eq!(summary.count, 1_000);
        assert!((summary.mean_ms - 500.5).abs() < 1e-9);
        for (quantile, ms) in [(0.5, 500.0), (0.95, 950.0), (0.999, 999.0), (1.0, 1_000.0)] {
            assert!((summary.at(quantile) / ms - 1.0).abs() < 2e-3, "{quantile}: {}", summary.at(quantile));
        }
    }

    #[test]
    fn nothing_measured_is_no_number() {
        assert!(Recorder::new().percentiles().median_ms().is_nan());
    }
}
