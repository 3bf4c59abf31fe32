//! Tables: a gateway, keys, entries in the order of their priority, and the action of each.

use crate::action::Action;
use crate::field::{At, Field};
use crate::program::Pipeline;
use std::panic::Location;

/// One comparison of a gateway; a gateway is true where all of its comparisons are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Compare {
    pub(crate) field: Field,
    pub(crate) relation: Relation,
    pub(crate) at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Relation {
    Masked { mask: u32, value: u32, equal: bool },
    Below(u32),
    AtLeast(u32),
    Field { other: Field, equal: bool },
}

/// How a key is matched, which decides its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum KeyKind {
    /// SRAM.
    Exact,
    /// TCAM.
    Ternary,
    /// TCAM, a nibble at a time.
    Range,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) field: Field,
    pub(crate) kind: KeyKind,
    pub(crate) at: At,
}

/// What an entry requires of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Match {
    /// The bits under `mask` are those of `value`.
    Masked {
        /// Which bits count.
        mask: u32,
        /// What they are.
        value: u32,
    },
    /// Between two values, both included, unsigned. Range keys only.
    Between(u32, u32),
}

impl Match {
    /// Anything.
    pub const ANY: Self = Self::Masked { mask: 0, value: 0 };

    /// This value.
    #[must_use]
    pub const fn is(value: u32) -> Self {
        Self::Masked { mask: u32::MAX, value }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) matches: Vec<Match>,
    /// One of the table's actions.
    pub(crate) action: usize,
    pub(crate) arguments: Vec<u32>,
}

/// A table of one stage, as the program declares it: `when` its gateway is true, the first entry that matches runs its
/// action, or the default does, where there is one.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) name: String,
    pub(crate) pipeline: Pipeline,
    pub(crate) stage: usize,
    pub(crate) gateway: Vec<Compare>,
    pub(crate) keys: Vec<Key>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) actions: Vec<Action>,
    pub(crate) default: Option<usize>,
    /// Entries that it has room for, if the controller adds some.
    pub(crate) room: usize,
    pub(crate) note: String,
    pub(crate) at: At,
}

impl Table {
    pub(crate) fn new(pipeline: Pipeline, stage: usize, name: String, at: At) -> Self {
        let (gateway, keys, entries, actions) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { name, pipeline, stage, gateway, keys, entries, actions, default: None, room: 0, note: String::new(), at }
    }

    /// Runs only where this is true too.
    pub fn when(&mut self, compare: Compare) -> &mut Self {
        self.gateway.push(compare);
        self
    }

    /// A key that each entry gives in full.
    #[track_caller]
    pub fn exact(&mut self, field: Field) -> &mut Self {
        self.key(field, KeyKind::Exact)
    }

    /// A key of which each entry gives some bits.
    #[track_caller]
    pub fn ternary(&mut self, field: Field) -> &mut Self {
        self.key(field, KeyKind::Ternary)
    }

    /// A key for which each entry gives an interval.
    #[track_caller]
    pub fn range(&mut self, field: Field) -> &mut Self {
        self.key(field, KeyKind::Range)
    }

    /// An entry: what it requires of each key, in their order, and its action with arguments. The first that matches wins.
    pub fn entry<const N: usize>(&mut self, matches: [Match; N], action: &Action, arguments: &[u32]) -> &mut Self {
        self.entry_of(matches.to_vec(), action, arguments)
    }

    /// The same, for a table whose number of keys is computed.
    pub fn entry_of(&mut self, matches: Vec<Match>, action: &Action, arguments: &[u32]) -> &mut Self {
        let action = self.action(action);
        self.entries.push(Entry { matches, action, arguments: arguments.to_vec() });
        self
    }

    /// What runs where no entry matches, or where there are no keys.
    pub fn run(&mut self, action: &Action) -> &mut Self {
        self.default = Some(self.action(action));
        self
    }

    /// Has room for so many entries, which the controller adds while the switch runs: its memory is that of as many.
    pub fn room(&mut self, entries: usize) -> &mut Self {
        self.room = entries;
        self
    }

    /// A sentence for the reader of the stages.
    pub fn note(&mut self, note: impl Into<String>) -> &mut Self {
        self.note = note.into();
        self
    }

    #[track_caller]
    fn key(&mut self, field: Field, kind: KeyKind) -> &mut Self {
        self.keys.push(Key { field, kind, at: Location::caller() });
        self
    }

    fn action(&mut self, action: &Action) -> usize {
        if let Some(known) = self.actions.iter().position(|known| known == action) {
            return known;
        }
        self.actions.push(action.clone());
        self.actions.len() - 1
    }
}
