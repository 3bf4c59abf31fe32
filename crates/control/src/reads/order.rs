//! What an operator may ask of a switch of replica sets.

use midflight_dataplane::reads::{Policy, ReplyCheck};
use serde::{Deserialize, Serialize};

/// A request to a switch about one of its sets. What is not named stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetRequest {
    /// The set's number.
    pub set: u16,
    /// Which of the consistent replicas gets a read.
    pub policy: Option<Policy>,
    /// Which replies of followers pass.
    pub reply_check: Option<ReplyCheck>,
}

/// What the set has now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAnswer {
    /// Which of the consistent replicas gets a read.
    pub policy: Policy,
    /// Which replies of followers pass.
    pub reply_check: ReplyCheck,
}
