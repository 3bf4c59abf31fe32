//! Tables: a gateway, keys, entries in priority order, and the action of each.

use crate::action::Action;
use crate::field::{At, Field};
use crate::program::Pipeline;
use std::panic::Location;

/// One comparison of a gateway; a gateway is true if all of its comparisons are.
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

/// How a key is matched, which determines its memory.
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

/// An entry's condition on one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Match {
    /// The bits under `mask` are those of `value`.
    Masked {
        /// The bits that count.
        mask: u32,
        /// Their values.
        value: u32,
    },
    /// Between two values, inclusive, unsigned. Range keys only.
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
    /// Index into the table's actions.
    pub(crate) action: usize,
    pub(crate) arguments: Vec<u32>,
}

/// A table of one stage. If its gateway is true, the first matching entry runs its action; without one the default runs, if any.
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
    /// Capacity, if the controller adds entries.
    pub(crate) room: usize,
    pub(crate) note: String,
    pub(crate) at: At,
}

impl Table {
    pub(crate) fn new(pipeline: Pipeline, stage: usize, name: String, at: At) -> Self {
        let (gateway, keys, entries, actions) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { name, pipeline, stage, gateway, keys, entries, actions, default: None, room: 0, note: String::new(), at }
    }

    /// Adds a condition to the gateway.
    pub fn when(&mut self, compare: Compare) -> &mut Self {
        self.gateway.push(compare);
        self
    }

    /// Adds a key that each entry gives in full.
    #[track_caller]
    pub fn exact(&mut self, field: Field) -> &mut Self {
        self.key(field, KeyKind::Exact)
    }

    /// Adds a key of which each entry gives some bits.
    #[track_caller]
    pub fn ternary(&mut self, field: Field) -> &mut Self {
        self.key(field, KeyKind::Ternary)
    }

    /// Adds a key for which each entry gives an interval.
    #[track_caller]
    pub fn range(&mut self, field: Field) -> &mut Self {
        self.key(field, KeyKind::Range)
    }

    /// Adds an entry: a match for each key, in order, and its action with arguments. The first match wins.
    pub fn entry<const N: usize>(&mut self, matches: [Match; N], action: &Action, arguments: &[u32]) -> &mut Self {
        self.entry_of(matches.to_vec(), action, arguments)
    }

    /// The same, if the number of keys is computed.
    pub fn entry_of(&mut self, matches: Vec<Match>, action: &Action, arguments: &[u32]) -> &mut Self {
        let action = self.action(action);
        self.entries.push(Entry { matches, action, arguments: arguments.to_vec() });
        self
    }

    /// Sets the default, which runs if no entry matches or there are no keys.
    pub fn run(&mut self, action: &Action) -> &mut Self {
        self.default = Some(self.action(action));
        self
    }

    /// Sets the capacity for entries that the controller adds at run time.
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
