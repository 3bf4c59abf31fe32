//! The status and the metrics of an operator.

use crate::metrics::{ProgramStatus, counter};
use midflight_dataplane::cache::{CacheProgram, Stats};
use prometheus_client::encoding::DescriptorEncoder;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Counters of an operator's requests and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheStatus {
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
    /// Of an operator that selects: requests that went to their backup, because their replica group is unknown.
    pub unknown_group: u64,
    /// The same: requests that it sent without tracking, with too many in flight.
    pub untracked: u64,
    /// The same: answers to requests in flight.
    pub answered: u64,
    /// The same: answers to no request in flight: late, duplicate or forged.
    pub unmatched: u64,
    /// The same: answers without a readable status.
    pub without_status: u64,
    /// The same: statuses with values that no server can have.
    pub statuses_absurd: u64,
    /// The same: statuses that a later one of the same server had overtaken.
    pub statuses_outdated: u64,
    /// The same: requests whose answers did not come in time.
    pub expired: u64,
}

impl From<&Stats> for CacheStatus {
    fn from(stats: &Stats) -> Self {
        Self {
            labelled: stats.labelled,
            degraded: stats.degraded,
            without_rsnode: stats.without_rsnode,
            selected: stats.selected,
            copied: stats.copied,
            not_copied: stats.not_copied,
            delivered: stats.delivered,
            unknown_group: stats.unknown_group,
            untracked: stats.untracked,
            answered: stats.answered,
            unmatched: stats.unmatched,
            without_status: stats.without_status,
            statuses_absurd: stats.statuses_absurd,
            statuses_outdated: stats.statuses_outdated,
            expired: stats.expired,
        }
    }
}

impl CacheStatus {
    fn named(&self) -> [(&'static str, &'static str, u64); 15] {
        [
            ("labelled", "Requests of hosts of this rack that were sent towards their RSNode", self.labelled),
            ("degraded", "Requests that went to their backup: their group is degraded", self.degraded),
            ("without_rsnode", "Requests that went to their backup: their RSNode is not known", self.without_rsnode),
            ("selected", "Requests that went to the selector here", self.selected),
            ("copied", "Answers of which the selector here got a copy", self.copied),
            ("not_copied", "Answers whose RSNode is not known here", self.not_copied),
            ("delivered", "Answers that went to clients of this rack", self.delivered),
            (
                "unknown_group",
                "Requests that went to their backup: their replica group is not known",
                self.unknown_group,
            ),
            ("untracked", "Requests sent while as many were under way as there may be", self.untracked),
            ("answered", "Answers that were those of requests under way", self.answered),
            ("unmatched", "Answers of no request under way: late, twice or forged", self.unmatched),
            ("without_status", "Answers without a status that can be read", self.without_status),
            ("statuses_absurd", "Statuses with values that no server can have", self.statuses_absurd),
            ("statuses_outdated", "Statuses that a later one of the same server had overtaken", self.statuses_outdated),
            ("expired", "Requests whose answers did not come in time", self.expired),
        ]
    }
}

impl ProgramStatus for CacheStatus {
    type Program = CacheProgram;

    fn counts(&self) -> Vec<(String, u64)> {
        self.named().map(|(name, _, count)| (name.to_owned(), count)).into()
    }

    fn encode(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        self.named().into_iter().try_for_each(|(name, help, count)| counter(e, name, help, count))
    }
}
