//! Places: where slots are, and where tasks prefer to run (T19).

use crate::functions::function_id;
use midflight_wire::PATIENCE_MAX;
use std::time::Duration;

/// How long a task waits for its place at most; the switch rounds patience up to a power of two of milliseconds.
pub const LONGEST_PATIENCE: Duration = Duration::from_millis(PATIENCE_MAX as u64);

/// The number of a place's name: hashed like that of a function, and never 0, which means no place. Two names with one number
/// are one place: that costs tasks their locality, and nothing else.
#[must_use]
pub const fn place_id(name: &str) -> u32 {
    match function_id(name) {
        0 => 1,
        number => number,
    }
}

/// Where a task prefers to run, and how long it waits for a slot there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Preference {
    /// The place: [`place_id`] of its name.
    pub place: u32,
    /// In milliseconds. 0: it takes a slot that waits there, or goes anywhere at once.
    pub patience_ms: u32,
}

impl Preference {
    /// A place by its name. Patience is rounded up to milliseconds, and [`LONGEST_PATIENCE`] bounds it.
    #[must_use]
    pub fn new(place: &str, patience: Duration) -> Self {
        let ms = patience.min(LONGEST_PATIENCE).as_nanos().div_ceil(1_000_000);
        Self { place: place_id(place), patience_ms: ms as u32 }
    }

    /// As it ends a SUBMIT.
    pub(crate) fn on_the_wire(self) -> midflight_wire::Preference {
        midflight_wire::Preference { place: self.place.into(), patience_ms: self.patience_ms.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t19_patience_is_whole_milliseconds_within_its_bound() {
        let ms = |patience| Preference::new("rack1", patience).patience_ms;
        assert_eq!([ms(Duration::ZERO), ms(Duration::from_nanos(1)), ms(Duration::from_millis(50))], [0, 1, 50]);
        assert_eq!(ms(Duration::MAX), PATIENCE_MAX);
    }
}
