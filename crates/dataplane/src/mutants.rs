//! Bugs planted in the C cores; only a build for the fault campaigns has them. `docs/internals/mutants.md` lists them.

use midflight_endpoint::mutants;

unsafe extern "C" {
    fn mf_plant(number: u32);
}

/// Plants the bug of this thread in the cores, before one is used on it.
pub(crate) fn arm() {
    // SAFETY: it writes a variable of this thread.
    unsafe { mf_plant(mutants::number()) };
}
