//! Bugs planted in cores, endpoints and drivers to test the fault campaigns, only with the feature `mutants`.
//! `docs/internals/mutants.md` lists them.

#[cfg(feature = "mutants")]
use std::cell::Cell;

#[cfg(feature = "mutants")]
thread_local! {
    /// The variable plants a mutant in unit tests, to check that they miss it.
    static PLANTED: Cell<u32> = Cell::new(std::env::var("MIDFLIGHT_MUTANT").ok().and_then(|n| n.parse().ok()).unwrap_or(0));
}

/// Plants this mutant on the current thread from now on; 0 plants none.
#[cfg(feature = "mutants")]
pub fn plant(number: u32) {
    PLANTED.set(number);
}

/// Number of the mutant planted on this thread, or 0.
#[cfg(feature = "mutants")]
#[must_use]
pub fn number() -> u32 {
    PLANTED.get()
}

/// Whether this mutant is planted on this thread.
#[cfg(feature = "mutants")]
#[must_use]
pub fn planted(number: u32) -> bool {
    PLANTED.get() == number
}

/// Does nothing without the feature.
#[cfg(not(feature = "mutants"))]
pub const fn plant(_number: u32) {}

/// Always false without the feature.
#[cfg(not(feature = "mutants"))]
#[must_use]
pub const fn planted(_number: u32) -> bool {
    false
}
