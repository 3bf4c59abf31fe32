//! Bugs planted in the C cores, only in builds for the fault campaigns. `docs/internals/mutants.md` lists them.

use midflight_endpoint::mutants;

unsafe extern "C" {
    fn mf_plant(number: u32);
}

/// Plants this thread's bug in the cores, before the first call.
pub(crate) fn arm() {
    // SAFETY: it writes a variable of this thread.
    unsafe { mf_plant(mutants::number()) };
}
