//! The rules that this campaign checks: what the store promises (`docs/store.md`). R3 is checked with R1.

use crate::check::Rule;

pub(super) const R1: Rule = Rule("R1");
pub(super) const R2: Rule = Rule("R2");
pub(super) const R4: Rule = Rule("R4");
pub(super) const R5: Rule = Rule("R5");
pub(super) const R6: Rule = Rule("R6");
pub(super) const R7: Rule = Rule("R7");
/// The core's structures are consistent.
pub(super) const SOUND: Rule = Rule("SOUND");
