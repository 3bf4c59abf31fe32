//! Whether a statement holds, given a measurement's interval: yes, no, or unsure.

use super::Estimate;

/// A closed interval of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Band {
    /// At least a value.
    #[must_use]
    pub const fn from(low: f64) -> Self {
        Self { low, high: f64::INFINITY }
    }

    /// At most a value.
    #[must_use]
    pub const fn up_to(high: f64) -> Self {
        Self { low: f64::NEG_INFINITY, high }
    }

    /// Between two values.
    #[must_use]
    pub const fn between(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    /// Within a factor of a value above 0, in both directions.
    #[must_use]
    pub fn around(value: f64, factor: f64) -> Self {
        Self { low: value / factor, high: value * factor }
    }
}

/// Whether a statement holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holds {
    /// The whole interval is outside the band.
    No,
    /// The interval straddles an end of the band, or there is no interval (one seed).
    Unsure,
    /// The whole interval is in the band.
    Yes,
}

impl Holds {
    /// Whether a value lies in a band. `None` does not.
    #[must_use]
    pub fn within(value: Option<Estimate>, band: Band) -> Self {
        let Some(value) = value else { return Self::No };
        let Some(half_width) = value.half_width else { return Self::Unsure };
        let (low, high) = (value.mean - half_width, value.mean + half_width);
        if low >= band.low && high <= band.high {
            Self::Yes
        } else if low > band.high || high < band.low {
            Self::No
        } else {
            Self::Unsure
        }
    }

    /// Whether both hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.min(other)
    }
}

/// For statements without chance: the same for all seeds.
impl From<bool> for Holds {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(mean: f64, half_width: f64) -> Option<Estimate> {
        Some(Estimate { mean, half_width: Some(half_width), seeds: 10 })
    }

    #[test]
    fn the_whole_interval_decides() {
        let band = Band::around(30.0, 1.5);
        let holds = |mean, half_width| Holds::within(value(mean, half_width), band);
        assert_eq!([holds(30.0, 9.0), holds(20.0, 0.0), holds(45.0, 0.0)], [Holds::Yes; 3]);
        assert_eq!([holds(30.0, 11.0), holds(44.0, 2.0), holds(50.0, 6.0)], [Holds::Unsure; 3]);
        assert_eq!([holds(50.0, 4.0), holds(10.0, 5.0)], [Holds::No; 2]);
    }

    #[test]
    fn one_seed_shows_nothing_and_none_less() {
        assert_eq!(Holds::within(Estimate::of(&[30.0]), Band::from(1.0)), Holds::Unsure);
        assert_eq!(Holds::within(None, Band::from(1.0)), Holds::No);
    }

    #[test]
    fn both_must_hold() {
        assert_eq!(Holds::Yes.and(Holds::Unsure), Holds::Unsure);
        assert_eq!(Holds::No.and(Holds::Yes), Holds::No);
        assert_eq!(Holds::Yes.and(true.into()), Holds::Yes);
    }
}
