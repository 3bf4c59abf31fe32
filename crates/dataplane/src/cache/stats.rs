//! Counts of the cache program: `struct mf_cache_stats`.

use super::Verdict;
use zerocopy::FromZeros;

/// `MF_KIND_END`: kinds are numbered from 0.
pub const KINDS: usize = 6;
/// `MF_TIERS_MAX`: tiers of switches.
pub const TIERS_MAX: usize = 4;

/// By number.
pub(super) const KIND_NAMES: [&str; KINDS] = ["version", "request", "response", "monitored", "cookie", "direct"];

/// Counts of an operator: `struct mf_cache_stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stats {
    /// Datagrams with a valid start, by kind.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub packets: [u64; KINDS],
    /// Datagrams by the number of their [`Verdict`].
    #[cfg_attr(feature = "serde", serde(skip, default = "zeros"))]
    pub reasons: [u64; Verdict::COUNT],
    /// Requests of this rack's hosts whose group has a known RSNode.
    pub labelled: u64,
    /// Requests sent to their backup: their group is degraded or has no RSNode.
    pub degraded: u64,
    /// Requests sent to their backup: their RSNode is unknown here or removed.
    pub without_rsnode: u64,
    /// Requests sent to this operator's selector, or to the server it selected.
    pub selected: u64,
    /// Answers copied to this operator's selector.
    pub copied: u64,
    /// Answers not copied: their RSNode is unknown here or removed.
    pub not_copied: u64,
    /// Answers delivered to clients of this rack.
    pub delivered: u64,
    /// If the operator selects itself: requests sent to their backup, because their replica group is unknown.
    pub unknown_group: u64,
    /// Requests sent untracked, because the table was full.
    pub untracked: u64,
    /// Answers that matched a tracked request.
    pub answered: u64,
    /// Answers that matched none: late, duplicate or forged.
    pub unmatched: u64,
    /// Matched answers without a readable status.
    pub without_status: u64,
    /// Statuses with impossible values.
    pub statuses_invalid: u64,
    /// Statuses older than the server's last.
    pub statuses_outdated: u64,
    /// Requests whose answer timed out.
    pub expired: u64,
    /// Requests in flight now.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub under_way: u64,
}

#[cfg(feature = "serde")]
fn zeros<const N: usize>() -> [u64; N] {
    [0; N]
}
