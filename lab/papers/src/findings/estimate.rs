//! A mean over seeds, with a confidence interval.

use serde::{Deserialize, Serialize};

/// A mean over seeds with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean over the seeds.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval (Student's t); `None` with one seed.
    pub half_width: Option<f64>,
    /// Number of seeds.
    pub seeds: usize,
}

impl Estimate {
    /// Estimates from one value per seed; `None` without values or with a NaN.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let seeds = values.len();
        if seeds == 0 || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mean = values.iter().sum::<f64>() / seeds as f64;
        let half_width = (seeds > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            let deviation = (squares / (seeds - 1) as f64).sqrt();
            student_t(seeds - 1) * deviation / (seeds as f64).sqrt()
        });
        Some(Self { mean, half_width, seeds })
    }
}

/// 97.5th percentile.
fn student_t(degrees_of_freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    let tabled = degrees_of_freedom.checked_sub(1).and_then(|index| TABLE.get(index)).copied();
    tabled.unwrap_or_else(|| beyond_the_table(degrees_of_freedom as f64))
}

/// First terms of its expansion around the normal distribution (Abramowitz and Stegun, 26.7.5), here exact to three decimals.
fn beyond_the_table(degrees_of_freedom: f64) -> f64 {
    const NORMAL: f64 = 1.959_964;
    let first = (NORMAL.powi(3) + NORMAL) / 4.0;
    let second = (5.0 * NORMAL.powi(5) + 16.0 * NORMAL.powi(3) + 3.0 * NORMAL) / 96.0;
    NORMAL + first / degrees_of_freedom + second / degrees_of_freedom.powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_textbook() {
        // Mean 5, standard deviation 1.5811, t(4) = 2.776: 2.776 × 1.5811 / √5 = 1.963.
        let estimate = Estimate::of(&[3.0, 4.0, 5.0, 6.0, 7.0]).unwrap();
        assert_eq!((estimate.mean, estimate.seeds), (5.0, 5));
        assert!((estimate.half_width.unwrap() - 1.963).abs() < 1e-3);
    }

    #[test]
    fn one_seed_has_no_interval_and_none_no_mean() {
        assert_eq!(Estimate::of(&[2.0]), Some(Estimate { mean: 2.0, half_width: None, seeds: 1 }));
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn student_t_matches_tables_beyond_30_degrees() {
        assert_eq!((student_t(1), student_t(30)), (12.706, 2.042));
        // From tables of the distribution.
        for (degrees_of_freedom, tabled) in [(31, 2.040), (40, 2.021), (60, 2.000), (120, 1.980), (1_000_000, 1.960)] {
            let ours = student_t(degrees_of_freedom);
            assert!((ours - tabled).abs() < 6e-4, "{degrees_of_freedom}: {ours}");
        }
    }
}
