//! Bugs planted in the C core; only a build for the fault campaign has them. `docs/internals/mutants.md` lists them.

use std::cell::Cell;

thread_local! {
    /// The environment variable lets the unit tests run with one, to see that they do not find it.
    static PLANTED: Cell<u32> = Cell::new(std::env::var("MIDFLIGHT_MUTANT").ok().and_then(|n| n.parse().ok()).unwrap_or(0));
}

unsafe extern "C" {
    fn mf_tasks_mutant(number: u32);
}

/// Of all, this one is planted in what this thread runs from now on; 0: none.
pub fn plant(number: u32) {
    PLANTED.set(number);
    arm();
}

/// Sets the core's own variable, before it is used on this thread.
pub(crate) fn arm() {
    // SAFETY: it writes a variable of this thread.
    unsafe { mf_tasks_mutant(PLANTED.get()) };
}
