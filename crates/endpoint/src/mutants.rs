//! Bugs planted in cores, endpoints and drivers, to see whether the fault campaigns find them. Only a build for that purpose
//! contains them; `docs/internals/mutants.md` lists them.

#[cfg(feature = "mutants")]
use std::cell::Cell;

#[cfg(feature = "mutants")]
thread_local! {
    /// The environment variable runs the unit tests with a mutant, to check that they do not find it.
    static PLANTED: Cell<u32> = Cell::new(std::env::var("MIDFLIGHT_MUTANT").ok().and_then(|n| n.parse().ok()).unwrap_or(0));
}

/// Plants this mutant in all that this thread runs from now on; 0: none.
#[cfg(feature = "mutants")]
pub fn plant(number: u32) {
    PLANTED.set(number);
}

/// The mutant that is planted on this thread; 0: none.
#[cfg(feature = "mutants")]
#[must_use]
pub fn number() -> u32 {
    PLANTED.get()
}

/// Whether this mutant is planted.
#[cfg(feature = "mutants")]
#[must_use]
pub fn planted(number: u32) -> bool {
    PLANTED.get() == number
}

/// A normal build has none to plant.
#[cfg(not(feature = "mutants"))]
pub const fn plant(_number: u32) {}

/// Whether this mutant is planted: never in a normal build.
#[cfg(not(feature = "mutants"))]
#[must_use]
pub const fn planted(_number: u32) -> bool {
    false
}
