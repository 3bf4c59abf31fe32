//! What an operation does to a key.

use serde::{Deserialize, Serialize};

/// What an operation does. In JSON: the fields `operation` and `argument`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "operation", content = "argument", rename_all = "snake_case")]
pub enum Call {
    /// Reads the value.
    Get,
    /// Whether there is a value.
    Exists,
    /// Sets it.
    Put(String),
    /// Removes it.
    Delete,
    /// Sets it to the second value if it is the first.
    Cas(String, String),
    /// Sets it if there is none.
    Create(String),
    /// Adds to it; a missing value counts as 0.
    Incr(i64),
    /// The store removes it if it is this one, because it has expired. The result is unknown.
    Expire(String),
}

/// What a client saw.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// PUT, CAS and CREATE: done.
    Done,
    /// GET and CAS: there is no value.
    NotFound,
    /// EXISTS: whether there is one; DELETE: whether there was.
    Existed(bool),
    /// GET: this value.
    Value(String),
    /// CAS and CREATE: there is another value, this one.
    Conflict(String),
    /// INCR: the sum.
    Number(i64),
    /// INCR: the value or the sum is no 64-bit number.
    NotANumber,
    /// Any operation: refused, without effect.
    Failed,
}

impl Outcome {
    /// Whether an operation with this outcome changed nothing.
    pub(super) fn leaves_all(&self) -> bool {
        match self {
            Self::Value(_) | Self::NotFound | Self::Conflict(_) | Self::NotANumber | Self::Failed => true,
            Self::Existed(existed) => !existed,
            Self::Done | Self::Number(_) => false,
        }
    }
}

impl Call {
    pub(super) fn is_read(&self) -> bool {
        matches!(self, Self::Get | Self::Exists)
    }

    /// Whether an operation with this outcome depends on the value before it.
    pub(super) fn looks(&self, outcome: Option<&Outcome>) -> bool {
        match self {
            Self::Put(_) => false,
            Self::Delete => outcome.is_some(),
            Self::Get | Self::Exists | Self::Cas(..) | Self::Create(_) | Self::Incr(_) | Self::Expire(_) => true,
        }
    }

    pub(super) fn may_give(&self, outcome: &Outcome) -> bool {
        use Outcome::{Conflict, Done, Existed, Failed, NotANumber, NotFound, Number, Value};
        match self {
            Self::Get => matches!(outcome, Value(_) | NotFound | Failed),
            Self::Exists | Self::Delete => matches!(outcome, Existed(_) | Failed),
            Self::Put(_) => matches!(outcome, Done | Failed),
            Self::Cas(..) => matches!(outcome, Done | NotFound | Conflict(_) | Failed),
            Self::Create(_) => matches!(outcome, Done | Conflict(_) | Failed),
            Self::Incr(_) => matches!(outcome, Number(_) | NotANumber | Failed),
            Self::Expire(_) => false,
        }
    }

    /// Its outcome for this value, and the value afterwards.
    #[must_use]
    pub fn run(&self, value: Option<&str>) -> (Outcome, Option<String>) {
        let same = || value.map(str::to_owned);
        match (self, value) {
            (Self::Get, Some(value)) => (Outcome::Value(value.into()), same()),
            (Self::Get, None) => (Outcome::NotFound, None),
            (Self::Exists, _) => (Outcome::Existed(value.is_some()), same()),
            (Self::Put(new), _) | (Self::Create(new), None) => (Outcome::Done, Some(new.clone())),
            (Self::Delete, _) => (Outcome::Existed(value.is_some()), None),
            (Self::Cas(..), None) => (Outcome::NotFound, None),
            (Self::Cas(expected, new), Some(value)) if value == expected => (Outcome::Done, Some(new.clone())),
            (Self::Cas(..) | Self::Create(_), Some(value)) => (Outcome::Conflict(value.into()), same()),
            (Self::Expire(expired), Some(value)) if value == expired => (Outcome::Done, None),
            (Self::Expire(_), _) => (Outcome::NotFound, same()),
            (Self::Incr(by), _) => {
                match value.unwrap_or("0").parse::<i64>().ok().and_then(|old| old.checked_add(*by)) {
                    Some(sum) => (Outcome::Number(sum), Some(sum.to_string())),
                    None => (Outcome::NotANumber, same()),
                }
            }
        }
    }
}
