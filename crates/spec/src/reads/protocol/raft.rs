//! What the protocol takes from Raft, and what it adds to it: elections, replication, promises, leases, transfers; replicas
//! that restart, or lose their disk. A message that only one exchange of Raft needs is part of that exchange's one step.

use super::planted::Planted;
use super::state::{Doubtful, Leader, Message, Passage, REPLICAS, Replica, What};
use super::world::World;

impl World<'_> {
    /// Whether a candidate can win an election with this voter's vote.
    pub(super) fn may_elect(&self, candidate: u8, voter: u8) -> bool {
        let [one, other] = [candidate, voter].map(|replica| &self.state.replicas[usize::from(replica)]);
        let is_told = self.state.messages.iter().any(|message| {
            matches!(*message, Message::TimeoutNow { replica, term } if replica == candidate && term >= one.term)
        });
        let may_campaign = one.promise == 0 || self.scope.has(Planted::CampaignInsidePromise);
        let may_vote = other.promise == 0 || self.scope.has(Planted::VotesByTicks);
        let is_free = is_told || may_campaign && may_vote;
        one.voter && other.voter && one.leader.is_none() && is_free && one.is_up_to_date_with(other)
    }

    /// The candidate leads, and proposes a session at a switch.
    pub(super) fn elect(&mut self, candidate: u8, voter: u8, switch: u8) {
        let replicas = &mut self.state.replicas;
        let term = replicas[usize::from(candidate)].term.max(replicas[usize::from(voter)].term) + 1;
        for replica in [voter, candidate] {
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

    /// The sessions on the log's list: those that have begun and are not fenced. Their leases end within the fence's time.
    fn may_be_alive(&self, candidate: u8) -> Vec<Doubtful> {
        let mut alive = Vec::new();
        let wait = self.scope.timing.fence;
        for entry in &self.state.replicas[usize::from(candidate)].log {
            match entry.what {
                What::Session { sid, switch, .. } => alive.push(Doubtful { sid, switch, wait }),
                What::Fenced { sid: ended } => alive.retain(|session| session.sid != ended),
                What::FencedSwitch { switch } => alive.retain(|session| session.switch != switch),
                What::Write { .. } | What::Open | What::Expire { .. } => {}
            }
        }
        if self.scope.has(Planted::FenceLastOnly) { alive.split_off(alive.len().saturating_sub(1)) } else { alive }
    }

    /// Whether a leader reaches a replica that takes it for the leader, or will.
    pub(super) fn may_replicate(&self, leader: u8, follower: u8) -> bool {
        let [one, other] = [leader, follower].map(|replica| &self.state.replicas[usize::from(replica)]);
        leader != follower && one.leader.is_some() && other.term <= one.term
    }

    /// A follower takes the leader's log and promises not to vote. If its answer is heard, the leader has a quorum, and so a
    /// lease.
    pub(super) fn replicate(&mut self, leader: u8, follower: u8, is_heard: bool) {
        let timing = self.scope.timing;
        let [one, other] = [leader, follower].map(usize::from);
        let Replica { term, log, commit, .. } = self.state.replicas[one].clone();
        let last = log.len() as u8;
        let replica = &mut self.state.replicas[other];
        (replica.term, replica.log, replica.promise, replica.leader) = (term, log, timing.promise, None);
        replica.commit = replica.commit.max(commit.min(last));
        let counts = replica.voter;
        let Some(memory) = self.leader(leader).filter(|_| is_heard) else { return };
        memory.matched[other] = last;
        if counts && !memory.barred {
            memory.lease = timing.leader_lease;
        }
        self.commit(leader);
    }

    /// A leader hands leadership over: it drops its lease, and takes none again in this term.
    pub(super) fn begin_transfer(&mut self, leader: u8, to: u8) {
        let term = self.state.replicas[usize::from(leader)].term;
        if let Some(memory) = self.leader(leader) {
            (memory.barred, memory.lease) = (true, 0);
        }
        self.send(Message::TimeoutNow { replica: to, term });
    }

    /// The transfer does not succeed in time: the leader steps down.
    pub(super) fn abort_transfer(&mut self, leader: u8) {
        if self.scope.has(Planted::LeaseAfterAbort) {
            self.leader(leader).into_iter().for_each(|memory| memory.barred = false);
        } else {
            self.state.replicas[usize::from(leader)].leader = None;
        }
    }

    /// A replica restarts: it has its log and term, but what it knew of commits and promises is lost.
    pub(super) fn restart_replica(&mut self, replica: u8) {
        let promise = if self.scope.has(Planted::VoteAfterRestart) { 0 } else { self.scope.timing.promise };
        let replica = &mut self.state.replicas[usize::from(replica)];
        (replica.leader, replica.promise, replica.commit) = (None, promise, 0);
    }

    /// A replica loses its disk. It is a voter no more, but switches and leaders still know its place.
    pub(super) fn wipe(&mut self, replica: u8) {
        self.state.replicas[usize::from(replica)] =
            Replica { term: 0, log: Vec::new(), commit: 0, promise: 0, voter: false, leader: None };
    }

    /// A READ reaches a replica that the switch takes for consistent.
    pub(super) fn take_read(&mut self, message: Message) {
        let Message::Read { operation, replica, sid, seq, kgroup, log_index, switch } = message else { return };
        let by_length = self.scope.has(Planted::LogLength);
        let store = &mut self.state.replicas[usize::from(replica)];
        let is_leaders = store.term_at(log_index) == sid.term || by_length && store.last() >= log_index;
        if store.commit < log_index && !is_leaders {
            return self.turn_back(operation, switch);
        }
        store.commit = store.commit.max(log_index);
        let value = self.value_at(replica);
        self.pass_follower_reply(operation, value, Passage { sid, seq, kgroup, switch });
    }
}
