//! What the protocol uses of Raft and adds to it: elections, replication, promises, leases, transfers; restarts and
//! lost disks. A message of a single Raft exchange is part of that exchange's one step.

use super::applied::Applied;
use super::planted::Planted;
use super::scope::{Members, majority};
use super::state::{Doubtful, Entry, Leader, Message, Passage, REPLICAS, Replica, Sid, What};
use super::world::World;

impl World<'_> {
    pub(super) fn places(&self) -> impl Iterator<Item = u8> + use<> {
        0..self.scope.members.places()
    }

    pub(super) fn voters(&self, replica: u8) -> u8 {
        self.state.replicas[usize::from(replica)].voters(Members::VOTERS)
    }

    /// To whom a leader replicates its log: voters, and replicas about to become one.
    pub(super) fn members(&self, leader: u8) -> u8 {
        self.voters(leader) | self.scope.members.learners()
    }

    /// Sets of other replicas, a bit each, whose votes make a candidate the leader.
    pub(super) fn quorums(&self, candidate: u8) -> impl Iterator<Item = u8> + '_ {
        let (voters, own) = (self.voters(candidate), 1 << candidate);
        let others = (0..1u8 << REPLICAS).filter(move |others| others & !(voters & !own) == 0);
        let enough = others.filter(move |others| others.count_ones() + 1 == majority(voters) && voters & own != 0);
        // A lone voter needs only its own vote.
        let asked = move |others: u8| if others == 0 { own } else { others };
        enough.filter(move |&others| {
            self.places().all(|one| asked(others) >> one & 1 == 0 || self.may_vote(candidate, one))
        })
    }

    fn may_vote(&self, candidate: u8, voter: u8) -> bool {
        let [one, other] = [candidate, voter].map(|replica| &self.state.replicas[usize::from(replica)]);
        let is_told = self.state.messages.iter().any(|message| {
            matches!(*message, Message::TimeoutNow { replica, term } if replica == candidate && term >= one.term)
        });
        let may_campaign = one.promise == 0 || self.scope.has(Planted::CampaignInsidePromise);
        let may_vote = other.promise == 0 || self.scope.has(Planted::VotesByTicks);
        let is_free = is_told || may_campaign && may_vote;
        one.voter && other.voter && one.leader.is_none() && is_free && one.is_up_to_date_with(other)
    }

    pub(super) fn elect(&mut self, candidate: u8, voters: u8, switch: u8) {
        let all: Vec<u8> = self.places().filter(|one| (voters | 1 << candidate) >> one & 1 == 1).collect();
        let replicas = &mut self.state.replicas;
        let term = all.iter().map(|one| replicas[usize::from(*one)].term).max().unwrap_or(0) + 1;
        for replica in all {
            let replica = &mut replicas[usize::from(replica)];
            (replica.term, replica.leader) = (term, None);
        }
        let doubtful = self.may_be_alive(candidate);
        let matched = [0; REPLICAS];
        self.state.replicas[usize::from(candidate)].leader = Some(Leader {
            sid: None,
            sessions: 0,
            start: 0,
            switch,
            incarnation: 0,
            lease: 0,
            heard: [0; REPLICAS],
            barred: false,
            matched,
            processed: Default::default(),
            waiting: Vec::new(),
            doubtful,
            since_answer: 0,
            flush: None,
            outside: Vec::new(),
        });
        self.propose_session(candidate, switch);
    }

    /// Sessions in the log that have begun and are not fenced. Their leases end within the fence's time.
    fn may_be_alive(&self, candidate: u8) -> Vec<Doubtful> {
        let mut alive = Vec::new();
        let wait = self.scope.timing.fence;
        for entry in &self.state.replicas[usize::from(candidate)].log {
            match entry.what {
                What::Session { sid, switch, .. } => alive.push(Doubtful { sid, switch, wait }),
                What::Fenced { sid: ended } => alive.retain(|session| session.sid != ended),
                What::FencedSwitch { switch } => alive.retain(|session| session.switch != switch),
                What::Write { .. } | What::Open | What::Expire { .. } | What::Members { .. } => {}
            }
        }
        if self.scope.has(Planted::FenceLastOnly) { alive.split_off(alive.len().saturating_sub(1)) } else { alive }
    }

    /// Whether a leader reaches a replica that accepts it as leader.
    pub(super) fn may_replicate(&self, leader: u8, follower: u8) -> bool {
        let [one, other] = [leader, follower].map(|replica| &self.state.replicas[usize::from(replica)]);
        let is_member = self.members(leader) >> follower & 1 == 1;
        leader != follower && is_member && one.leader.is_some() && other.term <= one.term
    }

    /// A follower takes the leader's log and promises not to vote. If the leader hears the answer, it has a quorum, and
    /// so a lease.
    pub(super) fn replicate(&mut self, leader: u8, follower: u8, is_heard: bool) {
        let timing = self.scope.timing;
        let [one, other] = [leader, follower].map(usize::from);
        let Replica { term, log, commit, .. } = self.state.replicas[one].clone();
        let last = log.len() as u8;
        let replica = &mut self.state.replicas[other];
        (replica.term, replica.log, replica.promise, replica.leader) = (term, log, timing.promise, None);
        replica.commit = replica.commit.max(commit.min(last));
        let has_disk = replica.voter;
        let voters = self.voters(leader);
        let counts = has_disk && (voters >> follower & 1 == 1 || self.scope.has(Planted::LearnerCounted));
        let counted = if self.scope.has(Planted::QuorumOfBefore) { Members::VOTERS } else { voters };
        let Some(memory) = self.leader(leader).filter(|_| is_heard) else { return };
        memory.matched[other] = last;
        if counts && !memory.barred {
            memory.renew(follower, majority(counted), timing.leader_lease);
        }
        self.commit(leader);
    }

    pub(super) fn is_alone(&self, leader: u8) -> bool {
        self.voters(leader) == 1 << leader
    }

    /// A leader's possible membership changes: one at a time, after the last one is applied.
    pub(super) fn changes(&self, leader: u8) -> impl Iterator<Item = u8> + use<> {
        let is_under_way = self.state.replicas[usize::from(leader)].has_pending_change();
        let may = !is_under_way || self.scope.has(Planted::TwoChangesAtOnce);
        let voters = self.newest_voters(leader);
        let grows = self.scope.members.learners() & !voters;
        let change = move |one: &u8| {
            may && *one != leader && if grows == 0 { voters >> one & 1 == 1 } else { grows >> one & 1 == 1 }
        };
        self.places().filter(change).map(move |one| voters ^ 1 << one)
    }

    fn newest_voters(&self, leader: u8) -> u8 {
        let replica = &self.state.replicas[usize::from(leader)];
        Replica { commit: replica.last(), ..replica.clone() }.voters(Members::VOTERS)
    }

    /// A leader hands over leadership: it drops its lease, and takes no other in this term.
    pub(super) fn begin_transfer(&mut self, leader: u8, to: u8) {
        let term = self.state.replicas[usize::from(leader)].term;
        if let Some(memory) = self.leader(leader) {
            (memory.barred, memory.lease) = (true, 0);
        }
        self.send(Message::TimeoutNow { replica: to, term });
    }

    pub(super) fn abort_transfer(&mut self, leader: u8) {
        if self.scope.has(Planted::LeaseAfterAbort) {
            self.leader(leader).into_iter().for_each(|memory| memory.barred = false);
        } else {
            self.state.replicas[usize::from(leader)].leader = None;
        }
    }

    /// A restarted replica keeps log and term, and forgets commits and promises. Of two membership changes in its log,
    /// it knows that the first is committed.
    pub(super) fn restart_replica(&mut self, replica: u8) {
        let forgets = self.scope.has(Planted::ChangeForgotten);
        let promise = if self.scope.has(Planted::VoteAfterRestart) { 0 } else { self.scope.timing.promise };
        let replica = &mut self.state.replicas[usize::from(replica)];
        let is_change = |index: &u8| matches!(replica.log[usize::from(*index) - 1].what, What::Members { .. });
        let before_last = (1..=replica.last()).rev().filter(is_change).nth(1).filter(|_| !forgets);
        (replica.leader, replica.promise, replica.commit) = (None, promise, before_last.unwrap_or(0));
    }

    /// A replica loses its disk, and so its vote; switches and leaders still know its place.
    pub(super) fn wipe(&mut self, replica: u8) {
        self.state.replicas[usize::from(replica)] =
            Replica { term: 0, log: Vec::new(), commit: 0, promise: 0, voter: false, leader: None };
    }

    pub(super) fn take_read(&mut self, message: Message) {
        let Message::Read { operation, replica, sid, seq, kgroup, log_index, switch } = message else { return };
        let by_length = self.scope.has(Planted::LogLength);
        let store = &mut self.state.replicas[usize::from(replica)];
        let is_leaders = store.term_at(log_index) == sid.term || by_length && store.last() >= log_index;
        if store.commit < log_index && !is_leaders {
            return self.turn_back(operation, switch);
        }
        store.commit = store.commit.max(log_index);
        let store = &self.state.replicas[usize::from(replica)];
        let shows_all = self.scope.has(Planted::AppliedBeforeCommit);
        let shown = if shows_all { store.last() } else { store.commit };
        let entries = &store.log[..usize::from(shown)];
        let value = Applied::of(entries, self.scope).value;
        let last = if self.scope.has(Planted::ReplySeqOfFormerSession) {
            entries.iter().filter_map(Entry::seq).max()
        } else {
            last_seq(entries, sid)
        };
        let seq = seq.max(last.unwrap_or(0));
        self.pass_follower_reply(operation, value, shown, Passage { sid, seq, kgroup, switch });
    }
}

/// The largest SEQ of a write among these entries, if the last session is this one. A leader proposes a session's
/// writes after its entry and before the next session's.
fn last_seq(entries: &[Entry], sid: Sid) -> Option<u8> {
    let is_session = |entry: &Entry| matches!(entry.what, What::Session { .. });
    let start = entries.iter().rposition(is_session)?;
    let is_present = matches!(entries[start].what, What::Session { sid: last, .. } if last == sid);
    if is_present { entries[start..].iter().filter_map(Entry::seq).max() } else { None }
}
