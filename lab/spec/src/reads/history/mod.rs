//! What clients of the store did and saw, and whether it is linearizable (R1).
//!
//! [`History`] is a list of operations; `json` reads and writes it as lines; `register` says what an operation does to a key;
//! `search` looks for an order that explains a key's operations, `timeline` is what it goes along, `pending` what it has not put in
//! order, and `seen` where it has been; `violation` tells what has no order. `docs/histories.md` has the format.

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

/// An operation of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Who did it; it has no meaning for the check.
    pub process: u64,
    /// What it does.
    #[serde(flatten)]
    pub call: Call,
    /// On which key.
    pub key: String,
    /// What its client saw. `None`: not known, so the operation may take effect at any time after its start, or never.
    #[serde(default)]
    pub result: Option<Outcome>,
    /// When its client began.
    pub start_ns: u64,
    /// When its client had the result.
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
    /// It is not: of the first such key.
    Violation(Box<Violation>),
    /// The search has reached a bound.
    TooHard {
        /// At this key.
        key: String,
        /// Operations on it.
        operations: usize,
        /// The search has found nothing yet that explains this one. If there is a violation, it is here or before.
        furthest: Box<Record>,
    },
}

/// A bound of the search, for each key: bytes of the situations that it has looked at, some 80 each; more where many outcomes are
/// unknown. Beside them it takes some 150 bytes for each operation of the key.
pub const BYTES_MAX: usize = 1 << 30;

impl History {
    /// Checks each key by itself: linearizability is a property of each object. It gives up a key that takes more than `bytes_max`,
    /// and all when `is_late`. A violation counts for more than that, and keys with few operations come first.
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
