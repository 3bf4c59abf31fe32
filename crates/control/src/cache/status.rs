//! The status and the metrics of an operator.

use crate::metrics::{ProgramStatus, counter};
use midflight_dataplane::cache::CacheProgram;
use prometheus_client::encoding::DescriptorEncoder;
use std::fmt;

pub use midflight_dataplane::cache::Stats as CacheStatus;

/// Each with its help.
fn named(stats: &CacheStatus) -> [(&'static str, &'static str, u64); 15] {
    [
        ("labelled", "Requests of hosts of this rack that were sent towards their RSNode", stats.labelled),
        ("degraded", "Requests that went to their backup: their group is degraded", stats.degraded),
        ("without_rsnode", "Requests that went to their backup: their RSNode is not known", stats.without_rsnode),
        ("selected", "Requests that went to the selector here", stats.selected),
        ("copied", "Answers of which the selector here got a copy", stats.copied),
        ("not_copied", "Answers whose RSNode is not known here", stats.not_copied),
        ("delivered", "Answers that went to clients of this rack", stats.delivered),
        ("unknown_group", "Requests that went to their backup: their replica group is not known", stats.unknown_group),
        ("untracked", "Requests sent while as many were under way as there may be", stats.untracked),
        ("answered", "Answers that were those of requests under way", stats.answered),
        ("unmatched", "Answers of no request under way: late, twice or forged", stats.unmatched),
        ("without_status", "Answers without a status that can be read", stats.without_status),
        ("statuses_invalid", "Statuses with values that no server can have", stats.statuses_invalid),
        ("statuses_outdated", "Statuses that a later one of the same server had overtaken", stats.statuses_outdated),
        ("expired", "Requests whose answers did not come in time", stats.expired),
    ]
}

impl ProgramStatus for CacheStatus {
    type Program = CacheProgram;

    fn counts(&self) -> Vec<(String, u64)> {
        named(self).map(|(name, _, count)| (name.to_owned(), count)).into()
    }

    fn encode(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        named(self).into_iter().try_for_each(|(name, help, count)| counter(e, name, help, count))
    }
}
