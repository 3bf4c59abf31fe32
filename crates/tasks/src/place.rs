//! Places: where slots are, and where tasks prefer to run (T19).

use crate::functions::function_id;
use midflight_wire::tasks::PATIENCE_MAX;
use std::time::Duration;

/// Longest wait of a task for its place; the switch rounds it up to a power of two of milliseconds.
pub const LONGEST_PATIENCE: Duration = Duration::from_millis(PATIENCE_MAX as u64);

/// Number of a place: the hash of its name, as for functions, but never 0, which means no place. A collision only costs tasks
/// their locality.
#[must_use]
pub const fn place_id(name: &str) -> u32 {
    match function_id(name) {
        0 => 1,
        number => number,
    }
}

/// A placement preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Preference {
    /// [`place_id`] of the place's name.
    pub place: u32,
    /// Wait for a slot at the place, in milliseconds. 0: the task takes a slot that waits there, or another at once.
    pub patience_ms: u32,
}

impl Preference {
    /// Rounds the patience up to milliseconds; [`LONGEST_PATIENCE`] bounds it.
    #[must_use]
    pub fn new(place: &str, patience: Duration) -> Self {
        let ms = patience.min(LONGEST_PATIENCE).as_nanos().div_ceil(1_000_000);
        Self { place: place_id(place), patience_ms: ms as u32 }
    }

    pub(crate) fn on_the_wire(self) -> midflight_wire::tasks::Preference {
        midflight_wire::tasks::Preference { place: self.place.into(), patience_ms: self.patience_ms.into() }
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
