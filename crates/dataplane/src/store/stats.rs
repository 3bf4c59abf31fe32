//! Counts of the store program: `struct mf_store_stats`.

use super::Verdict;
use zerocopy::FromZeros;

/// `MF_STORE_OP_END`: operations are numbered from 1.
pub const OPERATIONS: usize = 9;
/// `MF_SETS_MAX`: replica sets of a switch.
pub const SETS_MAX: usize = 64;

/// By number.
pub(super) const OPERATION_NAMES: [&str; OPERATIONS] =
    ["version", "read", "read_reply", "write", "write_reply", "hello", "heartbeat", "end_session", "state"];

/// Counts of a switch: `struct mf_store_stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros)]
pub struct Stats {
    /// Datagrams with a valid header, by operation number.
    pub packets: [u64; OPERATIONS],
    /// Datagrams by the number of their [`Verdict`].
    pub reasons: [u64; Verdict::COUNT],
    /// By the set's place on the switch.
    pub sets: [SetStats; SETS_MAX],
}

impl Stats {
    /// The sets in use.
    pub fn present(&self) -> impl Iterator<Item = &SetStats> {
        self.sets.iter().filter(|set| set.is_used != 0)
    }
}

/// Counts of one replica set since it was added.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros)]
pub struct SetStats {
    /// Reads of stable key groups sent to followers.
    pub to_followers: u64,
    /// Reads of stable key groups sent to the leader.
    pub to_leader: u64,
    /// Reads that only the leader could answer.
    pub leader_only: u64,
    /// Reads that a replica may answer directly; also counted above.
    pub direct: u64,
    /// Followers' replies turned back into reads.
    pub turned_back: u64,
    /// Late replies of the leader, whose clients had to retry.
    pub outdated: u64,
    /// Writes.
    pub writes: u64,
    /// Replies to writes that closed their key group.
    pub closed: u64,
    /// Sessions started.
    pub sessions: u64,
    /// Requests without a session here, of clients that no switch serves.
    pub unserved: u64,
    /// Unstable key groups of the current session.
    pub unstable: u32,
    /// Number of the set.
    pub set: u16,
    /// 0: this place is free.
    pub is_used: u16,
}
