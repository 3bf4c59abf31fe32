//! What a replica reports of itself.

use super::Replica;
use super::config::{Member, Mode};
use midflight_endpoint::Nanos;
use std::net::SocketAddr;

/// A replica's role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It leads.
    Leader,
    /// It follows, or looks for a leader.
    Follower,
    /// A member that has not caught up and has no vote yet.
    Learner,
    /// Its set has not begun; it waits for the other first members.
    Founder,
    /// Not a member yet.
    Outside,
    /// A former member.
    Removed,
}

/// A replica's state, for people and metrics. Fields marked (L) are known to the leader only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusReport {
    /// Raft id.
    pub id: u64,
    /// Its role.
    pub role: Role,
    /// How reads are served.
    pub mode: Mode,
    /// Raft's term.
    pub term: u64,
    /// The leader, if known.
    pub leader: Option<u64>,
    /// (L) SID and switch of the active session.
    pub session: Option<(u64, SocketAddr)>,
    /// (L) Earlier sessions that may be alive.
    pub sessions_in_doubt: usize,
    /// (L) Whether it has its lease.
    pub has_lease: bool,
    /// Last index of its log.
    pub last_index: u64,
    /// Its commit index.
    pub committed: u64,
    /// Last applied index.
    pub applied: u64,
    /// Keys in the store.
    pub keys: usize,
    /// Bytes of keys and values, with overhead.
    pub store_bytes: usize,
    /// Bytes of log since the last snapshot.
    pub log_bytes: usize,
    /// Bytes waiting for the disk.
    pub unsafe_bytes: usize,
    /// Whether the disk is full.
    pub disk_full: bool,
    /// (L) Whether a majority of the disks has room, so that all writes are accepted.
    pub has_room: bool,
    /// Open client ids.
    pub clients: usize,
    /// Reads that wait for an index or a quorum.
    pub reads_waiting: usize,
    /// (L) Answers that wait for an index.
    pub answers_waiting: usize,
    /// (L) Key groups known to be unstable.
    pub kgroups_unstable: usize,
    /// (L) A change of the members is not complete; a leaving member must keep running.
    pub is_changing: bool,
    /// The members, and (L) each one's matched index.
    pub members: Vec<(Member, u64)>,
}

impl Replica {
    /// The current state.
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
