//! Whether and when this replica may answer a READ ([`Here::decide`]), and READs that wait.

use super::config::Mode;
use super::leases::Leases;
use super::node::Node;
use super::replies::Replies;
use midflight_endpoint::Nanos;
use midflight_endpoint::mutants::planted;
use midflight_wire::store::{FLAG_ANY_REPLICA, FLAG_LEADER_ONLY, Request, Status};
use std::collections::VecDeque;
use std::net::SocketAddr;

#[derive(Default)]
pub(super) struct Reads {
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    since: Nanos,
    from: SocketAddr,
    request: Request,
    key: Box<[u8]>,
    until: Until,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    Applied(u64),
    /// A round sent at or after this time is confirmed, and this index applied.
    Confirmed(Nanos, u64),
    Answered(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    Consistent(u64),
    /// Answer once this index is applied and a later round is confirmed.
    Confirmed(u64),
    /// Answer once the index that the leader names is applied.
    Asked,
    Refused(Status),
}

/// What decides about a read, besides the read itself.
#[derive(Clone, Copy)]
pub(super) struct Here<'a> {
    pub(super) now: Nanos,
    pub(super) mode: Mode,
    pub(super) node: &'a Node,
    pub(super) applied: u64,
    pub(super) leases: Option<&'a Leases>,
    /// SID of the leader's active session, if this replica leads.
    pub(super) session: Option<u64>,
}

impl Here<'_> {
    /// Whether this replica may answer a READ, and when.
    pub(super) fn decide(&self, request: &Request) -> Path {
        let (sid, index) = (request.sid.get(), request.index.get());
        if self.mode == Mode::Flair && request.flags & (FLAG_LEADER_ONLY | FLAG_ANY_REPLICA) == 0 {
            return self.consistent_path(sid, index);
        }
        match self.mode {
            _ if self.session == Some(sid) => self.leader_path(),
            _ if request.flags & FLAG_LEADER_ONLY != 0 => Path::Refused(Status::NotLeader),
            Mode::FollowerReadIndex => Path::Asked,
            Mode::FollowerLease if self.has_lease_for(request.hash.get()) => Path::Consistent(self.applied),
            // The switch claims no consistency, or the lease is revoked. The leader may answer.
            Mode::FollowerLease | Mode::Flair => Path::Refused(Status::Behind),
            Mode::Raft | Mode::LeaderLease | Mode::Unreplicated => Path::Refused(Status::NotLeader),
        }
    }

    fn has_lease_for(&self, hash: u32) -> bool {
        let term = self.node.term();
        self.leases.is_some_and(|leases| leases.held.covers(self.now, term, self.applied, hash))
    }

    fn consistent_path(&self, sid: u64, index: u64) -> Path {
        let node = self.node;
        // Log matching: the log is the leader's up to this index, which the leader has committed.
        let is_leaders = node.term_at(index) == Some(sid >> 32);
        if planted(151) && index > node.last_index() {
            return Path::Consistent(node.committed());
        }
        if node.committed() >= index || is_leaders { Path::Consistent(index) } else { Path::Refused(Status::Behind) }
    }

    fn leader_path(&self) -> Path {
        // If followers hold leases, committed entries that are not applied are unacknowledged, and must not be shown yet.
        let index = if self.leases.is_some() { self.applied } else { self.node.committed() };
        if self.mode != Mode::Raft && self.node.has_lease(self.now) {
            Path::Consistent(index)
        } else {
            Path::Confirmed(index)
        }
    }
}

impl Reads {
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn wants_round(&self, round: Nanos) -> bool {
        self.waiting.iter().rev().any(|waiting| matches!(waiting.until, Until::Confirmed(wanted, _) if wanted > round))
    }

    pub(super) fn wants_answer(&self, question: u64) -> bool {
        self.waiting.iter().rev().any(|waiting| matches!(waiting.until, Until::Answered(wanted) if wanted == question))
    }

    /// The leader has answered ASK_INDEX: the READs of this question wait until `index` is applied.
    pub(super) fn leader_answered(&mut self, question: u64, index: u64) {
        for waiting in &mut self.waiting {
            if matches!(waiting.until, Until::Answered(wanted) if wanted == question) {
                waiting.until = Until::Applied(index);
            }
        }
    }

    pub(super) fn give_up(&mut self, replies: &mut Replies<'_>) {
        self.waiting.retain(|Waiting { from, request, key, until, .. }| {
            let waits = matches!(until, Until::Answered(_) | Until::Applied(_));
            if waits {
                replies.refuse(*from, request, key, Status::Behind);
            }
            !waits
        });
    }

    pub(super) fn push(&mut self, since: Nanos, from: SocketAddr, request: &Request, key: &[u8], until: Until) {
        self.waiting.push_back(Waiting { since, from, request: *request, key: key.into(), until });
    }

    /// Answers what can be answered. Refuses reads that wait for a leader which no longer leads.
    pub(super) fn answer(&mut self, now: Nanos, applied: u64, confirmed: Option<Nanos>, replies: &mut Replies<'_>) {
        self.waiting.retain(|Waiting { since, from, request, key, until }| {
            match (*until, confirmed) {
                (Until::Answered(_), _) => return true,
                (Until::Confirmed(..), None) => replies.refuse(*from, request, key, Status::NotLeader),
                (Until::Confirmed(round, _), Some(confirmed)) if round > confirmed => return true,
                (Until::Applied(index) | Until::Confirmed(_, index), _) if index > applied => return true,
                _ => replies.serve(now.saturating_sub(*since), *from, request, key),
            }
            false
        });
    }
}
