//! What a replica says of itself.

use super::Replica;
use super::config::{Member, Mode};
use midflight_endpoint::Nanos;
use std::net::SocketAddr;

/// The part that a replica plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It leads.
    Leader,
    /// It follows, or looks for a leader.
    Follower,
    /// It is a member that has not caught up, and has no vote yet.
    Learner,
    /// Its set has not begun: it waits for the other first members.
    Founder,
    /// The set does not know it yet.
    Outside,
    /// It was a member, and has been removed.
    Removed,
}

/// The state of a replica, for people and metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusReport {
    /// Its id.
    pub id: u64,
    /// Its part.
    pub role: Role,
    /// How reads are served.
    pub mode: Mode,
    /// Raft's term.
    pub term: u64,
    /// Who leads, as far as it knows.
    pub leader: Option<u64>,
    /// The leader's: the SID of the present session, and its switch, if it is active.
    pub session: Option<(u64, SocketAddr)>,
    /// The leader's: earlier sessions that may be alive.
    pub sessions_in_doubt: usize,
    /// The leader's: whether it has its lease.
    pub has_lease: bool,
    /// The last index of its log.
    pub last_index: u64,
    /// What it knows to be committed.
    pub committed: u64,
    /// What it has applied.
    pub applied: u64,
    /// Keys in its store.
    pub keys: usize,
    /// Bytes of keys and values in its store, with what they cost beside.
    pub store_bytes: usize,
    /// Bytes of log since the last snapshot.
    pub log_bytes: usize,
    /// Bytes that wait for its disk.
    pub unsafe_bytes: usize,
    /// Whether its disk is full.
    pub disk_full: bool,
    /// The leader's: whether a majority of the disks has room, so that it takes all writes.
    pub has_room: bool,
    /// Client ids that may write.
    pub clients: usize,
    /// Reads that wait for an index or a quorum.
    pub reads_waiting: usize,
    /// The leader's: answers that wait for an index.
    pub answers_waiting: usize,
    /// The leader's: key groups that are unstable, as far as it knows.
    pub kgroups_unstable: usize,
    /// The leader's: a change of the members is not done. Until then who leaves is needed.
    pub is_changing: bool,
    /// The members, and the index up to which the leader knows each to have the log.
    pub members: Vec<(Member, u64)>,
}

impl Replica {
    /// How it is.
    #[must_use]
    pub fn status(&self, now: Nanos) -> StatusReport {
        let node = &self.node;
        let present = self.sessions.as_ref().and_then(|sessions| sessions.present.as_ref());
        let is_member = self.state.members.iter().any(|member| member.id == self.config.id);
        StatusReport {
            id: self.config.id,
            role: match is_member {
                _ if node.is_leader() => Role::Leader,
                _ if self.is_founding() => Role::Founder,
                _ if self.has_left => Role::Removed,
                true if node.learner() == Some(self.config.id) => Role::Learner,
                true => Role::Follower,
                false => Role::Outside,
            },
            mode: self.config.mode,
            term: node.term(),
            leader: node.leader(),
            session: present
                .filter(|present| present.begun.is_some())
                .map(|present| (present.name.sid, present.name.switch)),
            sessions_in_doubt: self.sessions.as_ref().map_or(0, super::session::Sessions::in_doubt),
            has_lease: node.has_lease(now),
            last_index: node.last_index(),
            committed: node.committed(),
            applied: self.applied,
            keys: self.state.store.keys(),
            store_bytes: self.state.store.bytes(),
            log_bytes: self.log_bytes,
            unsafe_bytes: node.unsafe_bytes(),
            disk_full: self.is_full(),
            has_room: self.majority_has_room(),
            clients: self.state.clients.len(),
            reads_waiting: self.reads.waiting(),
            answers_waiting: present.map_or(0, |present| present.writes.waiting()),
            kgroups_unstable: present.map_or(0, |present| present.writes.unstable()),
            is_changing: self.is_changing(),
            members: self.state.members.iter().map(|member| (member.clone(), node.matched(member.id))).collect(),
        }
    }
}
