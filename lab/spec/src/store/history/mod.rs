//! Histories of the store's clients, and whether they are linearizable (R1).
//!
//! [`History`] is a list of operations. `json` reads and writes it; `register` says what an operation does to a key;
//! `search` looks for an order that explains a key's operations, with `timeline` (order in time), `pending` (operations
//! not in order yet) and `seen` (visited situations); `violation` prints what has no order. `docs/histories.md` has the
//! format.

mod json;
mod pending;
mod register;
mod search;
mod seen;
mod timeline;
mod violation;

pub use json::HistoryError;
pub use register::{Call, Outcome};
pub use violation::Violation;

use search::{Found, search};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use timeline::Timeline;

/// A client's operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Which client; the check ignores it.
    pub process: u64,
    /// What it does.
    #[serde(flatten)]
    pub call: Call,
    /// On which key.
    pub key: String,
    /// What its client saw. `None`: unknown, so it may take effect at any time after its start, or never.
    #[serde(default)]
    pub result: Option<Outcome>,
    /// When the client began, in nanoseconds.
    pub start_ns: u64,
    /// When the client had the result, in nanoseconds.
    #[serde(default)]
    pub end_ns: Option<u64>,
}

/// Operations, in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// All of them.
    pub operations: Vec<Record>,
}

/// Whether a history is linearizable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Linearizable,
    /// It is not; the first such key.
    Violation(Box<Violation>),
    /// The search reached a bound.
    TooHard {
        /// At this key.
        key: String,
        /// Number of operations on it.
        operations: usize,
        /// The operation that the search could not explain yet. A violation, if any, is here or before.
        furthest: Box<Record>,
    },
}

/// Bound of the search for each key, in bytes of visited situations. Each takes about 80 bytes, more with many unknown
/// outcomes. The search takes about 150 further bytes for each operation of the key.
pub const BYTES_MAX: usize = 1 << 30;

impl History {
    /// Checks each key by itself, as linearizability is a property of each object; keys with few operations first.
    /// Gives up a key that needs more than `bytes_max`, and all keys once `is_late`. Reports a violation rather than a
    /// bound.
    #[must_use]
    pub fn check(&self, bytes_max: usize, is_late: &dyn Fn() -> bool) -> Verdict {
        let mut by_key = BTreeMap::<&str, Vec<&Record>>::new();
        for record in &self.operations {
            by_key.entry(&record.key).or_default().push(record);
        }
        let mut keys: Vec<_> = by_key.into_iter().collect();
        keys.sort_by_key(|(_, records)| records.len());
        let mut verdict = Verdict::Linearizable;
        for (key, records) in keys {
            let timeline = Timeline::new(records);
            match search(&timeline, bytes_max, is_late) {
                Found::Order => {}
                Found::None { at, values } => {
                    return Verdict::Violation(Box::new(Violation::new(&timeline, at, values)));
                }
                Found::TooMuch { at } => {
                    let furthest = Box::new(timeline.records[timeline.ends[at]].clone());
                    verdict = Verdict::TooHard { key: key.into(), operations: timeline.records.len(), furthest };
                }
            }
        }
        verdict
    }
}
