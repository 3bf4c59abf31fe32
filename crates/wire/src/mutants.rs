//! Bugs planted in the codec; only a build for the fault campaign and the tests has them. `docs/internals/mutants.md` lists them.

#[cfg(feature = "mutants")]
pub(crate) use midflight_endpoint::mutants::planted;

/// Whether this mutant is planted: never in a normal build.
#[cfg(not(feature = "mutants"))]
pub(crate) const fn planted(_number: u32) -> bool {
    false
}
