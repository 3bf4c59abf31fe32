//! The reads of a replica: each waits until it may be answered.

use super::config::Mode;
use super::node::Node;
use super::packets;
use super::session::Datagrams;
use super::store::Store;
use midflight_endpoint::Nanos;
use midflight_endpoint::mutants::planted;
use midflight_wire::reads::{FLAG_EXISTS, FLAG_LEADER_ONLY, Operation, Request, Status};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Reads that wait for an index to be applied, or for a quorum to confirm the leader.
#[derive(Default)]
pub(super) struct Reads {
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    from: SocketAddr,
    request: Request,
    key: Box<[u8]>,
    /// What must be applied.
    index: u64,
    /// A round that began then or later must be confirmed; `None`: it needs none.
    round: Option<Nanos>,
}

/// Who answers a read, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// Once this index is applied.
    Consistent(u64),
    /// Once this index is applied, and a round that begins from now on is confirmed.
    Confirmed(u64),
    /// Not here.
    Refused(Status),
}

/// What decides about a read, beside the read itself.
#[derive(Clone, Copy)]
pub(super) struct Here<'a> {
    pub(super) now: Nanos,
    pub(super) mode: Mode,
    pub(super) node: &'a Node,
    /// The SID of the leader's present session, where this replica leads and its session is active.
    pub(super) session: Option<u64>,
}

impl Here<'_> {
    /// Whether this replica may answer a READ, and when.
    pub(super) fn path(&self, request: &Request) -> Path {
        let (sid, index) = (request.sid.get(), request.index.get());
        let leads = self.session == Some(sid);
        if request.flags & FLAG_LEADER_ONLY != 0 || self.mode != Mode::Flair {
            return if leads { self.leader_path() } else { Path::Refused(Status::NotLeader) };
        }
        let node = self.node;
        // Its log is the leader's up to there, and the leader has committed that: so it may commit it too.
        let is_leaders = node.term_at(index) == Some(sid >> 32);
        if planted(151) && index > node.last_index() {
            return Path::Consistent(node.committed());
        }
        if node.committed() >= index || is_leaders { Path::Consistent(index) } else { Path::Refused(Status::Behind) }
    }

    fn leader_path(&self) -> Path {
        let committed = self.node.committed();
        match self.mode {
            Mode::Flair | Mode::LeaderLease if self.node.has_lease(self.now) => Path::Consistent(committed),
            _ => Path::Confirmed(committed),
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
        self.waiting.iter().rev().any(|waiting| waiting.round.is_some_and(|wanted| wanted > round))
    }

    /// A read that waits.
    pub(super) fn push(&mut self, from: SocketAddr, request: &Request, key: &[u8], index: u64, round: Option<Nanos>) {
        self.waiting.push_back(Waiting { from, request: *request, key: key.into(), index, round });
    }

    /// Answers what can be answered; what waited for a leader that leads no more is refused.
    pub(super) fn answer(
        &mut self,
        applied: u64,
        confirmed: Option<Nanos>,
        slot: u8,
        store: &Store,
        out: &mut Datagrams,
    ) -> Answered {
        let mut answered = Answered::default();
        self.waiting.retain(|waiting| {
            let Waiting { from, request, key, index, round } = waiting;
            let status = match (round, confirmed) {
                (Some(_), None) => Status::NotLeader,
                (Some(round), Some(confirmed)) if *round > confirmed => return true,
                _ if *index > applied => return true,
                _ => Status::Done,
            };
            if status == Status::Done {
                answered.served += 1;
                out.push_back((*from, reply(request, key, slot, store)));
            } else {
                answered.refused += 1;
                out.push_back((*from, refusal(request, key, slot, status)));
            }
            false
        });
        answered
    }
}

/// Reads that were answered in one call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answered {
    pub(super) served: u64,
    pub(super) refused: u64,
}

/// The value of a key, or that there is none.
pub(super) fn reply(request: &Request, key: &[u8], slot: u8, store: &Store) -> Vec<u8> {
    let wants_value = request.flags & FLAG_EXISTS == 0;
    let (status, value) = match store.get(key) {
        Some(value) if wants_value => (Status::Done, &value[..]),
        Some(_) => (Status::Done, &[][..]),
        None => (Status::NotFound, &[][..]),
    };
    packets::reply(request, Operation::ReadReply, slot, status, [key, value])
}

/// A READ that is not served, with its key, so that the switch can turn it back.
pub(super) fn refusal(request: &Request, key: &[u8], slot: u8, status: Status) -> Vec<u8> {
    packets::reply(request, Operation::ReadReply, slot, status, [key, &[]])
}
