//! Rates that add up exactly.

/// Requests per second, counted in thousandths: sums and comparisons with a limit are exact, in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub(crate) u64);

/// The highest rate of an entry. Sums over all groups then stay within 64 bits.
pub const RATE_MAX_PER_S: f64 = 1e9;

impl Rate {
    /// No requests.
    pub const ZERO: Self = Self(0);

    /// From requests per second, rounded to thousandths. `None` if that is negative, not a number, or above [`RATE_MAX_PER_S`].
    #[must_use]
    pub fn from_per_s(per_s: f64) -> Option<Self> {
        (0.0..=RATE_MAX_PER_S).contains(&per_s).then(|| Self((per_s * 1000.0).round() as u64))
    }

    /// Requests per second.
    #[must_use]
    pub fn per_s(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

impl std::iter::Sum for Rate {
    fn sum<I: Iterator<Item = Self>>(rates: I) -> Self {
        Self(rates.map(|rate| rate.0).sum())
    }
}
