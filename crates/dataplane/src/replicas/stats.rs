//! What the replicas program counts: `struct mf_replicas_stats`.

use super::Verdict;
use zerocopy::FromZeros;

/// `MF_KIND_END`: kinds are numbered from 0.
pub const KINDS: usize = 6;
/// `MF_TIERS_MAX`: tiers of switches.
pub const TIERS_MAX: usize = 4;

/// By their numbers.
pub(super) const KIND_NAMES: [&str; KINDS] = ["version", "request", "response", "monitored", "cookie", "direct"];

/// What an operator has counted: `struct mf_replicas_stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros)]
pub struct Stats {
    /// Datagrams with a valid start, by the number of their kind.
    pub packets: [u64; KINDS],
    /// Datagrams by the number of the [`Verdict`] on them.
    pub reasons: [u64; Verdict::COUNT],
    /// Requests of hosts of this rack whose group has an RSNode that is known.
    pub labelled: u64,
    /// Requests that went to their backup: their group is degraded, or has no RSNode.
    pub degraded: u64,
    /// Requests that went to their backup: their RSNode is not known here, or was removed.
    pub without_rsnode: u64,
    /// Requests that went to this operator's selector, or to the server that this operator has chosen.
    pub selected: u64,
    /// Answers of which this operator's selector got a copy.
    pub copied: u64,
    /// Answers whose RSNode is not known here, or was removed: no selector got a copy.
    pub not_copied: u64,
    /// Answers that went to clients of this rack.
    pub delivered: u64,
    /// Of an operator that chooses itself: requests that went to their backup, because their replica group is not known.
    pub unknown_group: u64,
    /// Requests that it sent while as many were under way as the configuration admits.
    pub untracked: u64,
    /// Answers that were those of requests under way.
    pub answered: u64,
    /// Answers of no request under way: late, twice or forged.
    pub unmatched: u64,
    /// Of those that were answered: without a status that can be read.
    pub without_status: u64,
    /// Statuses with values that no server can have.
    pub statuses_absurd: u64,
    /// Statuses that a later one of the same server had overtaken.
    pub statuses_outdated: u64,
    /// Requests whose answers did not come in time.
    pub expired: u64,
    /// Requests under way now.
    pub under_way: u64,
}
