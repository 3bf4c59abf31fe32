//! Bugs planted in client, executor and what drives them, to see whether the fault campaign finds them. Only a build for that
//! purpose has them; `docs/internals/mutants.md` lists them.

#[cfg(feature = "mutants")]
use std::cell::Cell;

#[cfg(feature = "mutants")]
thread_local! {
    /// The environment variable lets the unit tests run with one, to see that they do not find it.
    static PLANTED: Cell<u32> = Cell::new(std::env::var("MIDFLIGHT_MUTANT").ok().and_then(|n| n.parse().ok()).unwrap_or(0));
}

/// Of all, this one is planted in what this thread runs from now on; 0: none.
#[cfg(feature = "mutants")]
pub fn plant(number: u32) {
    PLANTED.set(number);
}

/// Whether this one is planted.
#[cfg(feature = "mutants")]
#[must_use]
pub fn planted(number: u32) -> bool {
    PLANTED.get() == number
}

/// Whether this one is planted: never in a build that is used.
#[cfg(not(feature = "mutants"))]
#[must_use]
pub const fn planted(_number: u32) -> bool {
    false
}
