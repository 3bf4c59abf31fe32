//! Reads at followers by the leader's word (mode `follower-readindex`): which index must be applied. One question is under way at a
//! time, and all reads that come meanwhile share the next one. `docs/internals/reads-modes.md`.

use super::Replica;
use super::letters::{Letter, Other};
use super::node::Node;
use super::switches::SILENT_HEARTBEATS;
use midflight_endpoint::mutants::planted;
use midflight_endpoint::{Lane, Nanos};
use std::collections::BTreeMap;

/// Both sides: a replica may lead, and follow again.
pub(super) struct ReadIndex {
    /// The number of the next question. It begins at random: an answer to a question from before a restart fits none.
    pub(super) next: u64,
    /// When the last question was sent, if it has no answer.
    asked: Option<Nanos>,
    awaited: Option<Awaited>,
    /// Questions that wait until a quorum confirms this leader, by who asks.
    questions: BTreeMap<u64, Question>,
}

/// Indexes that the leader has said, and that are not applied here.
struct Awaited {
    first: u64,
    last: u64,
    /// Since when `first` is awaited.
    since: Nanos,
}

struct Question {
    number: u64,
    /// A round that began then or later must be confirmed.
    since: Nanos,
    /// What was committed then.
    index: u64,
}

impl ReadIndex {
    pub(super) fn new(seed: u64) -> Self {
        Self { next: seed, asked: None, awaited: None, questions: BTreeMap::new() }
    }

    /// Whether a question waits for a round that begins after `round`.
    pub(super) fn wants_round(&self, round: Nanos) -> bool {
        self.questions.values().any(|question| question.since > round)
    }

    /// What must be applied now for reads that wait.
    fn wait_for(&mut self, now: Nanos, index: u64) {
        let awaited = self.awaited.get_or_insert(Awaited { first: index, last: index, since: now });
        awaited.last = awaited.last.max(index);
    }

    /// What is applied is awaited no more.
    fn note_applied(&mut self, now: Nanos, applied: u64) {
        let rest = self.awaited.take().filter(|awaited| awaited.last > applied);
        self.awaited = rest.map(|awaited| match awaited {
            Awaited { first, last, .. } if first <= applied => Awaited { first: last, last, since: now },
            awaited => awaited,
        });
    }

    /// Questions to which the answer is known now.
    fn confirmed(&mut self, node: &Node) -> Vec<(u64, Question)> {
        if !node.is_leader() {
            self.questions.clear();
        }
        self.questions.extract_if(.., |_, question| question.since <= node.confirmed()).collect()
    }
}

impl Replica {
    /// When a question counts as lost, or the entries up to the index that the leader said.
    pub(super) fn index_timeout(&self) -> Option<Nanos> {
        let awaited = self.read_index.awaited.as_ref().map(|awaited| awaited.since);
        let since = self.read_index.asked.into_iter().chain(awaited).min()?;
        Some(since + SILENT_HEARTBEATS * self.config.timing.heartbeat)
    }

    /// Asks for the index of all reads that wait for it; gives them up if nobody can say it, or what it names does not come.
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
        let ask = Letter::Other(Other::AskIndex { number });
        if leader.is_some_and(|leader| self.links.queue(leader, Lane::Prompt, ask)) {
            self.read_index.asked = Some(now);
            self.read_index.next = number.wrapping_add(1);
        } else {
            self.give_up_reads();
        }
    }

    /// The switch sends them to the leader.
    fn give_up_reads(&mut self) {
        let (reads, mut replies) = self.replies();
        reads.give_up(&mut replies);
    }

    /// A follower asks what is committed. Under its lease the leader knows; else a quorum must confirm first that it leads.
    pub(super) fn take_ask_index(&mut self, now: Nanos, peer: u64, number: u64) {
        let (node, index) = (&self.node, self.node.committed());
        let is_member = self.state.members.iter().any(|member| member.id == peer);
        // Before an entry of its own term is committed, a leader does not know all that is.
        if !node.is_leader() || !is_member || node.term_at(index) != Some(node.term()) {
            self.counters.grants_astray += 1;
        } else if node.has_lease(now) {
            self.links.queue(peer, Lane::Prompt, Letter::Other(Other::Index { number, index }));
        } else {
            self.read_index.questions.insert(peer, Question { number, since: now, index });
        }
    }

    /// Answers what a round has confirmed.
    pub(super) fn answer_questions(&mut self) {
        for (peer, Question { number, index, .. }) in self.read_index.confirmed(&self.node) {
            self.links.queue(peer, Lane::Prompt, Letter::Other(Other::Index { number, index }));
        }
    }

    /// The leader's answer. Whoever gave it, it led when it did, which was after the question.
    pub(super) fn take_index(&mut self, now: Nanos, number: u64, index: u64) {
        if self.read_index.asked.is_none() || number.wrapping_add(1) != self.read_index.next {
            self.counters.grants_astray += 1;
            return;
        }
        self.read_index.asked = None;
        self.read_index.wait_for(now, index);
        self.reads.may_answer(number, if planted(175) { 0 } else { index });
    }
}
