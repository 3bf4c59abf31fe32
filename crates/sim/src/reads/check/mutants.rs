//! The bugs that the campaign must find. `docs/internals/mutants.md` says what each does.

use crate::check::Mutant;

/// All of them.
pub(super) const MUTANTS: &[Mutant] = &[];
