//! The names of the rules.

use crate::check::Rule;

pub(super) const N1: Rule = Rule("N1");
pub(super) const N2: Rule = Rule("N2");
pub(super) const N3: Rule = Rule("N3");
pub(super) const N4: Rule = Rule("N4");
pub(super) const N5: Rule = Rule("N5");
pub(super) const N6: Rule = Rule("N6");
pub(super) const N7: Rule = Rule("N7");
pub(super) const N8: Rule = Rule("N8");
pub(super) const N9: Rule = Rule("N9");
/// A read ends once.
pub(super) const ONCE: Rule = Rule("ONCE");
/// After the last fault all reads are answered, and no request counts as outstanding.
pub(super) const HEALS: Rule = Rule("HEALS");
pub(super) const BOOKS: Rule = Rule("BOOKS");
/// The core's structures are consistent.
pub(super) const SOUND: Rule = Rule("SOUND");
