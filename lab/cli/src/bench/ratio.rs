//! The ratio of two series (builds, modes) from pairs of runs, with Student's confidence interval for the mean of the ratios' logarithms.
//!
//! - Both runs of a pair are adjacent in time, so slow changes (heat, other tenants of the machine) cancel in their ratio.
//! - On a logarithmic scale twice as slow and twice as fast are equally far from "the same", and swapping the builds inverts the interval.
//! - A run's value is already a median of many, so the remaining error of the logarithms is small and nearly symmetrical, as Student's t
//!   assumes. It works from two pairs on; rank methods (Wilcoxon, Hodges and Lehmann) need six for 95 %, and a bootstrap of ten values
//!   gives intervals that are too narrow.
//! - A disturbed pair widens the interval: the wrong result is then "the same".

use midflight_papers::findings::Estimate;
use midflight_terminal::envelope::{Measure, rounded};

/// A ratio with the ends of its 95 % interval, to three decimals as printed, so that verdicts use the printed numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Ratio {
    /// From at least two pairs; `None` if a value is NaN or not above zero.
    pub(super) fn of(this: &[f64], other: &[f64]) -> Option<Self> {
        let positive = |values: &[f64]| values.iter().all(|&value| value > 0.0);
        if !positive(this) || !positive(other) {
            return None;
        }
        let logarithms: Vec<f64> = this.iter().zip(other).map(|(this, other)| (this / other).ln()).collect();
        let Estimate { mean, half_width, .. } = Estimate::of(&logarithms)?;
        let half_width = half_width?;
        let ratio = |logarithm: f64| rounded(logarithm.exp());
        Some(Self { value: ratio(mean), low: ratio(mean - half_width), high: ratio(mean + half_width) })
    }
}

/// `NAME` with this end, `.low` and `.high`; nothing if there is no ratio.
pub(super) fn measures(name: &str, end: &str, this: &[f64], other: &[f64]) -> Vec<Measure> {
    let Some(Ratio { value, low, high }) = Ratio::of(this, other) else { return Vec::new() };
    let measure = |end: &str, value| Measure::quantity(&format!("{name}{end}"), value, "");
    vec![measure(end, value), measure(".low", low), measure(".high", high)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_what_a_hand_computes() {
        // Ratios 2 and 4: the mean of the logarithms is 1.03972 (√8), their deviation 0.490129, t(1) = 12.706:
        // 12.706 × 0.490129 / √2 = 4.40358.
        let ratio = Ratio::of(&[2.0, 8.0], &[1.0, 2.0]).unwrap();
        assert_eq!(ratio, Ratio { value: 2.828, low: 0.035, high: 231.2 });
        // Ratios 1.1, 1.2, 1.1 and 1.2: mean 0.138816, deviation 0.0502363, t(3) = 3.182: 3.182 × 0.0502363 / 2 =
        // 0.0799259.
        let ratio = Ratio::of(&[11.0, 12.0, 22.0, 24.0], &[10.0, 10.0, 20.0, 20.0]).unwrap();
        assert_eq!(ratio, Ratio { value: 1.149, low: 1.061, high: 1.245 });
    }

    #[test]
    fn what_drifts_in_both_of_a_pair_leaves_their_ratio() {
        let other = [10.0, 20.0, 40.0, 80.0];
        let ratio = Ratio::of(&other.map(|value| 1.05 * value), &other).unwrap();
        assert_eq!(ratio, Ratio { value: 1.05, low: 1.05, high: 1.05 });
    }

    #[test]
    fn swapping_the_builds_inverts_and_swaps_the_ends() {
        let (this, other) = ([1.0, 3.0, 2.0], [2.0, 2.0, 2.0]);
        let (there, back) = (Ratio::of(&this, &other).unwrap(), Ratio::of(&other, &this).unwrap());
        for (end, inverse) in [(there.value, back.value), (there.low, back.high), (there.high, back.low)] {
            assert!((end * inverse - 1.0).abs() < 5e-3, "{there:?} {back:?}");
        }
    }

    #[test]
    fn without_a_ratio_in_every_pair_there_is_none() {
        assert_eq!(Ratio::of(&[1.0, 0.0], &[1.0, 1.0]), None);
        assert_eq!(Ratio::of(&[1.0, 1.0], &[1.0, -1.0]), None);
        assert_eq!(Ratio::of(&[-1.0, -1.0], &[-1.0, -1.0]), None);
        assert_eq!(Ratio::of(&[1.0, f64::NAN], &[1.0, 1.0]), None);
        assert_eq!(Ratio::of(&[1.0], &[1.0]), None, "one pair has no interval");
    }
}
