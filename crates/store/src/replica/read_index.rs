//! Follower reads by the leader's commit index (mode `follower-readindex`). One question is in flight at a time; later reads share the
//! next one. `docs/internals/store-modes.md`.

use super::Replica;
use super::node::Node;
use super::peer_messages::{OwnMessage, PeerMessage};
use super::switches::SILENT_HEARTBEATS;
use midflight_endpoint::mutants::planted;
use midflight_endpoint::{Lane, Nanos};
use std::collections::BTreeMap;

/// Both sides, because the role changes.
pub(super) struct ReadIndex {
    /// Number of the next question. Starts at random, so that answers from before a restart do not match.
    pub(super) next: u64,
    asked: Option<Nanos>,
    awaited: Option<Awaited>,
    /// Questions that wait until a quorum confirms this leader, by sender.
    questions: BTreeMap<u64, Question>,
}

struct Awaited {
    first: u64,
    last: u64,
    /// Since when `first` is awaited.
    since: Nanos,
}

struct Question {
    number: u64,
    /// A round sent at or after this time must be confirmed.
    since: Nanos,
    /// The commit index at that time.
    index: u64,
}

impl ReadIndex {
    pub(super) fn new(seed: u64) -> Self {
        Self { next: seed, asked: None, awaited: None, questions: BTreeMap::new() }
    }

    pub(super) fn wants_round(&self, round: Nanos) -> bool {
        self.questions.values().any(|question| question.since > round)
    }

    fn wait_for(&mut self, now: Nanos, index: u64) {
        let awaited = self.awaited.get_or_insert(Awaited { first: index, last: index, since: now });
        awaited.last = awaited.last.max(index);
    }

    fn note_applied(&mut self, now: Nanos, applied: u64) {
        let rest = self.awaited.take().filter(|awaited| awaited.last > applied);
        self.awaited = rest.map(|awaited| match awaited {
            Awaited { first, last, .. } if first <= applied => Awaited { first: last, last, since: now },
            awaited => awaited,
        });
    }

    fn confirmed(&mut self, node: &Node) -> Vec<(u64, Question)> {
        if !node.is_leader() {
            self.questions.clear();
        }
        self.questions.extract_if(.., |_, question| question.since <= node.confirmed()).collect()
    }
}

impl Replica {
    /// When the question, or the entries up to the awaited index, count as lost.
    pub(super) fn index_timeout(&self) -> Option<Nanos> {
        let awaited = self.read_index.awaited.as_ref().map(|awaited| awaited.since);
        let since = self.read_index.asked.into_iter().chain(awaited).min()?;
        Some(since + SILENT_HEARTBEATS * self.config.timing.heartbeat)
    }

    /// Asks for the index that the waiting reads need. Refuses them if no leader answers or the index is not reached.
    pub(super) fn ask_index(&mut self, now: Nanos) {
        self.read_index.note_applied(now, self.applied);
        if self.index_timeout().is_some_and(|end| now >= end) {
            (self.read_index.asked, self.read_index.awaited) = (None, None);
            self.give_up_reads();
        }
        let number = self.read_index.next;
        if self.read_index.asked.is_some() || !self.reads.wants_answer(number) {
            return;
        }
        let leader = self.node.leader().filter(|_| !self.node.is_leader());
        let ask = PeerMessage::Own(OwnMessage::AskIndex { number });
        if leader.is_some_and(|leader| self.links.queue(leader, Lane::Prompt, ask)) {
            self.read_index.asked = Some(now);
            self.read_index.next = number.wrapping_add(1);
        } else {
            self.give_up_reads();
        }
    }

    /// The switch then asks the leader.
    fn give_up_reads(&mut self) {
        let (reads, mut replies) = self.replies();
        reads.give_up(&mut replies);
    }

    /// A follower's question. Under its lease the leader answers at once; otherwise a quorum must confirm it first.
    pub(super) fn take_ask_index(&mut self, now: Nanos, peer: u64, number: u64) {
        let (node, index) = (&self.node, self.node.committed());
        let is_member = self.state.members.iter().any(|member| member.id == peer);
        // Before an entry of its own term is committed, a leader does not know the whole commit index.
        if !node.is_leader() || !is_member || node.term_at(index) != Some(node.term()) {
            self.counters.grants_astray += 1;
        } else if node.has_lease(now) {
            self.links.queue(peer, Lane::Prompt, PeerMessage::Own(OwnMessage::Index { number, index }));
        } else {
            self.read_index.questions.insert(peer, Question { number, since: now, index });
        }
    }

    pub(super) fn answer_questions(&mut self) {
        for (peer, Question { number, index, .. }) in self.read_index.confirmed(&self.node) {
            self.links.queue(peer, Lane::Prompt, PeerMessage::Own(OwnMessage::Index { number, index }));
        }
    }

    /// The answering replica led when it answered, which was after the question.
    pub(super) fn take_index(&mut self, now: Nanos, number: u64, index: u64) {
        if self.read_index.asked.is_none() || number.wrapping_add(1) != self.read_index.next {
            self.counters.grants_astray += 1;
            return;
        }
        self.read_index.asked = None;
        self.read_index.wait_for(now, index);
        self.reads.leader_answered(number, if planted(175) { 0 } else { index });
    }
}
