//! The reads of a replica: each waits until it may be answered.

use super::config::Mode;
use super::leases::Leases;
use super::node::Node;
use super::replies::Replies;
use midflight_endpoint::Nanos;
use midflight_endpoint::mutants::planted;
use midflight_wire::reads::{FLAG_ANY_REPLICA, FLAG_LEADER_ONLY, Request, Status};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Reads that wait for an index to be applied, or for a quorum to confirm the leader.
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

/// What a read waits for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    /// This index is applied.
    Applied(u64),
    /// A round that began then or later is confirmed, and this index applied.
    Confirmed(Nanos, u64),
    /// The leader answers this question.
    Answered(u64),
}

/// Who answers a read, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// Once this index is applied.
    Consistent(u64),
    /// Once this index is applied, and a round that begins from now on is confirmed.
    Confirmed(u64),
    /// Once the index is applied that the leader says.
    Asked,
    /// Not here.
    Refused(Status),
}

/// What decides about a read, beside the read itself.
#[derive(Clone, Copy)]
pub(super) struct Here<'a> {
    pub(super) now: Nanos,
    pub(super) mode: Mode,
    pub(super) node: &'a Node,
    pub(super) applied: u64,
    pub(super) leases: Option<&'a Leases>,
    /// The SID of the leader's present session, where this replica leads and its session is active.
    pub(super) session: Option<u64>,
}

impl Here<'_> {
    /// Whether this replica may answer a READ, and when.
    pub(super) fn path(&self, request: &Request) -> Path {
        let (sid, index) = (request.sid.get(), request.index.get());
        if self.mode == Mode::Flair && request.flags & (FLAG_LEADER_ONLY | FLAG_ANY_REPLICA) == 0 {
            return self.consistent_path(sid, index);
        }
        match self.mode {
            _ if self.session == Some(sid) => self.leader_path(),
            _ if request.flags & FLAG_LEADER_ONLY != 0 => Path::Refused(Status::NotLeader),
            Mode::FollowerReadIndex => Path::Asked,
            Mode::FollowerLease if self.has_lease_for(request.hash.get()) => Path::Consistent(self.applied),
            // What the switch claims nothing of, or what is revoked: the leader may.
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
        // Its log is the leader's up to there, and the leader has committed that: so it may commit it too.
        let is_leaders = node.term_at(index) == Some(sid >> 32);
        if planted(151) && index > node.last_index() {
            return Path::Consistent(node.committed());
        }
        if node.committed() >= index || is_leaders { Path::Consistent(index) } else { Path::Refused(Status::Behind) }
    }

    fn leader_path(&self) -> Path {
        // Where followers hold leases, what is committed and not applied is acknowledged to nobody, and must not be shown yet.
        let index = if self.leases.is_some() { self.applied } else { self.node.committed() };
        if self.mode != Mode::Raft && self.node.has_lease(self.now) {
            Path::Consistent(index)
        } else {
            Path::Confirmed(index)
        }
    }
}

impl Reads {
    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether one waits for a round that begins after `round`.
    pub(super) fn wants_round(&self, round: Nanos) -> bool {
        self.waiting.iter().rev().any(|waiting| matches!(waiting.until, Until::Confirmed(wanted, _) if wanted > round))
    }

    /// Whether one waits for the leader's answer to this question.
    pub(super) fn wants_answer(&self, question: u64) -> bool {
        self.waiting.iter().rev().any(|waiting| matches!(waiting.until, Until::Answered(wanted) if wanted == question))
    }

    /// The leader has answered a question: this index.
    pub(super) fn may_answer(&mut self, question: u64, index: u64) {
        for waiting in &mut self.waiting {
            if matches!(waiting.until, Until::Answered(wanted) if wanted == question) {
                waiting.until = Until::Applied(index);
            }
        }
    }

    /// Refuses what waits for answers of the leader, or for the indexes that it has said.
    pub(super) fn give_up(&mut self, replies: &mut Replies<'_>) {
        self.waiting.retain(|Waiting { from, request, key, until, .. }| {
            let waits = matches!(until, Until::Answered(_) | Until::Applied(_));
            if waits {
                replies.refuse(*from, request, key, Status::Behind);
            }
            !waits
        });
    }

    /// A read that waits.
    pub(super) fn push(&mut self, since: Nanos, from: SocketAddr, request: &Request, key: &[u8], until: Until) {
        self.waiting.push_back(Waiting { since, from, request: *request, key: key.into(), until });
    }

    /// Answers what can be answered; what waited for a leader that leads no more is refused.
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
