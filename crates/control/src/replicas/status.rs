//! The status and the metrics of an operator.

use crate::metrics::{ProgramStatus, counter};
use midflight_dataplane::replicas::{ReplicasProgram, Stats};
use prometheus_client::encoding::DescriptorEncoder;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What an operator has done with requests and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicasStatus {
    /// Requests of hosts of its rack that were sent towards their RSNode.
    pub labelled: u64,
    /// Requests that went to their backup: their group is degraded.
    pub degraded: u64,
    /// Requests that went to their backup: their RSNode is not known here.
    pub without_rsnode: u64,
    /// Requests that went to the selector here.
    pub selected: u64,
    /// Answers of which the selector here got a copy.
    pub copied: u64,
    /// Answers whose RSNode is not known here.
    pub not_copied: u64,
    /// Answers that went to clients of its rack.
    pub delivered: u64,
}

impl From<&Stats> for ReplicasStatus {
    fn from(stats: &Stats) -> Self {
        Self {
            labelled: stats.labelled,
            degraded: stats.degraded,
            without_rsnode: stats.without_rsnode,
            selected: stats.selected,
            copied: stats.copied,
            not_copied: stats.not_copied,
            delivered: stats.delivered,
        }
    }
}

impl ProgramStatus for ReplicasStatus {
    type Program = ReplicasProgram;

    fn encode(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let counts = [
            ("labelled", "Requests of hosts of this rack that were sent towards their RSNode", self.labelled),
            ("degraded", "Requests that went to their backup: their group is degraded", self.degraded),
            ("without_rsnode", "Requests that went to their backup: their RSNode is not known", self.without_rsnode),
            ("selected", "Requests that went to the selector here", self.selected),
            ("copied", "Answers of which the selector here got a copy", self.copied),
            ("not_copied", "Answers whose RSNode is not known here", self.not_copied),
            ("delivered", "Answers that went to clients of this rack", self.delivered),
        ];
        counts.into_iter().try_for_each(|(name, help, count)| counter(e, name, help, count))
    }
}
