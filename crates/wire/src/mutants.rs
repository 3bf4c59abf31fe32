//! Bugs planted in the codec for tests and the fault campaigns; `docs/internals/mutants.md` lists them.

#[cfg(feature = "mutants")]
pub(crate) use midflight_endpoint::mutants::planted;

/// Always false without the feature.
#[cfg(not(feature = "mutants"))]
pub(crate) const fn planted(_number: u32) -> bool {
    false
}
