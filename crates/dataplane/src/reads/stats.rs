//! What the reads program counts: `struct mf_reads_stats`.

use super::Verdict;
use zerocopy::FromZeros;

/// `MF_READS_OP_END`: operations are numbered from 1.
pub const OPERATIONS: usize = 9;
/// `MF_SETS_MAX`: replica sets of a switch.
pub const SETS_MAX: usize = 64;

/// By their numbers.
pub(super) const OPERATION_NAMES: [&str; OPERATIONS] =
    ["version", "read", "read_reply", "write", "write_reply", "hello", "heartbeat", "end_session", "state"];

/// What a switch has counted: `struct mf_reads_stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros)]
pub struct Stats {
    /// Datagrams with a valid header, by the number of their operation.
    pub packets: [u64; OPERATIONS],
    /// Datagrams by the number of the [`Verdict`] on them.
    pub reasons: [u64; Verdict::COUNT],
    /// By the place that a set has on the switch.
    pub sets: [SetStats; SETS_MAX],
}

impl Stats {
    /// The sets that there are.
    pub fn present(&self) -> impl Iterator<Item = &SetStats> {
        self.sets.iter().filter(|set| set.is_used != 0)
    }
}

/// What became of the requests for one replica set, since it was added.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros)]
pub struct SetStats {
    /// Reads of stable key groups that went to replicas which do not lead.
    pub to_followers: u64,
    /// Reads of stable key groups that went to the leader.
    pub to_leader: u64,
    /// Reads that only the leader could answer.
    pub leader_only: u64,
    /// Reads that went to a replica which may answer the client directly. They are counted above too.
    pub direct: u64,
    /// Replies of replicas that became such reads.
    pub turned_back: u64,
    /// Replies of the leader that came too late, so that the client had to repeat the request.
    pub outdated: u64,
    /// Writes.
    pub writes: u64,
    /// Answers to writes that closed their key group.
    pub closed: u64,
    /// Sessions that began.
    pub sessions: u64,
    /// Requests without a session here, of clients that say that no switch serves them.
    pub unserved: u64,
    /// Key groups that are unstable in the present session.
    pub unstable: u32,
    /// Its number.
    pub set: u16,
    /// 0: no set has this place.
    pub is_used: u16,
}
