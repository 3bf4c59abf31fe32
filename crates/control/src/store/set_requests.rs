//! The operator's requests to a switch of replica sets.

use midflight_dataplane::store::{Policy, ReplyCheck};
use serde::{Deserialize, Serialize};

/// Changes one of a switch's sets. Fields that are not set keep their value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetRequest {
    /// The set's number.
    pub set: u16,
    /// How a consistent replica is chosen for a read.
    pub policy: Option<Policy>,
    /// Which replies of followers pass.
    pub reply_check: Option<ReplyCheck>,
}

/// The set's values after the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAnswer {
    /// How a consistent replica is chosen for a read.
    pub policy: Policy,
    /// Which replies of followers pass.
    pub reply_check: ReplyCheck,
}
