//! The ratio of one's values to another's (builds, modes), from pairs of runs, with its confidence interval.
//!
//! Each pair gives the logarithm of a ratio, and the interval is Student's of their mean, taken back to a ratio. Why so:
//!
//! - Both runs of a pair were made right after each other. What changes slowly (heat, other tenants of the machine) is in
//!   both, and leaves their ratio.
//! - On the scale of logarithms twice as slow and twice as fast are as far from "the same", and swapping the builds swaps
//!   the ends of the interval, each inverted.
//! - A run's value is a median of many already, so what is left in the logarithms is small and nearly symmetrical: what
//!   Student's t is for. It works from two pairs on; methods with ranks (Wilcoxon, Hodges and Lehmann) need six for 95 %, and a
//!   bootstrap of ten values is known to give intervals that are too narrow.
//! - A disturbed pair makes the interval wider. The mistake is then "the same", with a width that shows it.

use midflight_papers::findings::Estimate;
use midflight_terminal::envelope::rounded;

/// One's value by the other's, with the ends of its 95 % interval; to three decimals, as results are printed, so
/// that verdicts are of the numbers that everybody sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Ratio {
    /// Of pairs, at least two; nothing where a value is not above zero, or not a number.
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
