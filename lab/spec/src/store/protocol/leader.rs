//! The leader's rules: WRITEs, READs, closing, and the begin and end of sessions.

use super::applied::{Applied, Known};
use super::planted::Planted;
use super::scope::{ReplyCheck, majority};
use super::state::{Doubtful, Entry, Leader, Message, Passage, REPLICAS, Sid, Waiting, What};
use super::world::World;

impl Leader {
    /// Handles a follower's answer. The lease starts at the oldest of the latest answers that make a majority with the
    /// leader.
    pub(super) fn renew(&mut self, follower: u8, majority: u32, lease: u8) {
        if majority <= 2 {
            self.lease = lease;
            return;
        }
        self.heard[usize::from(follower)] = lease;
        let mut latest = self.heard;
        latest.sort_unstable_by(|one, other| other.cmp(one));
        self.lease = self.lease.max(latest[majority as usize - 2]);
    }
}

impl World<'_> {
    pub(super) fn leader(&mut self, replica: u8) -> Option<&mut Leader> {
        self.state.replicas[usize::from(replica)].leader.as_mut()
    }

    pub(super) fn append(&mut self, leader: u8, what: What) -> u8 {
        let replica = &mut self.state.replicas[usize::from(leader)];
        replica.log.push(Entry { term: replica.term, what });
        let last = replica.last();
        if let Some(memory) = &mut replica.leader {
            memory.matched[usize::from(leader)] = last;
        }
        last
    }

    /// The order of the checks is part of the protocol.
    pub(super) fn take_write(&mut self, message: Message) {
        let Message::Write { operation, leader, sid, seq, kgroup, switch } = message else { return };
        let closing = Passage { sid, seq, kgroup, switch };
        let takes_old = self.scope.has(Planted::OldSessionWrite);
        let Some(memory) = self.leader(leader) else { return self.closes_without_leading(leader, closing) };
        let is_old = memory.sid.is_some_and(|present| present.term == sid.term && present > sid);
        if memory.sid != Some(sid) && !(takes_old && is_old) {
            return; // NOT_LEADER
        }
        if !is_old {
            if seq <= memory.processed[usize::from(kgroup)] {
                return; // REORDERED
            }
            memory.processed[usize::from(kgroup)] = seq;
        }
        let closes = Some(closing);
        let last = self.state.replicas[usize::from(leader)].last();
        if kgroup != 0 && !self.scope.has(Planted::TwoMappings) {
            return self.wait(leader, Waiting { index: last, operation: None, closes }); // BAD_HASH
        }
        let client = self.state.operations[usize::from(operation)].client;
        let log = &self.state.replicas[usize::from(leader)].log;
        match Applied::of(log, self.scope).knows(operation, client) {
            Known::Done => self.wait(leader, Waiting { index: last, operation: Some(operation), closes }),
            Known::NoClient => self.wait(leader, Waiting { index: last, operation: None, closes }),
            Known::New if self.scope.has(Planted::AcceptedOutsideLog) => {
                self.leader(leader).into_iter().for_each(|memory| memory.outside.push((operation, closing)));
            }
            Known::New => self.propose(leader, operation, closing),
        }
    }

    /// Planted: appends an accepted write late.
    pub(super) fn append_outside(&mut self, leader: u8) {
        let Some(memory) = self.leader(leader) else { return };
        let (operation, closing) = memory.outside.remove(0);
        self.propose(leader, operation, closing);
    }

    fn propose(&mut self, leader: u8, operation: u8, closing: Passage) {
        let client = self.state.operations[usize::from(operation)].client;
        let is_asked = self.scope.reply_check == ReplyCheck::Strict && closing.kgroup == 0;
        let seq = if is_asked { closing.seq } else { 0 };
        let index = self.append(leader, What::Write { operation, client, seq });
        self.wait(leader, Waiting { index, operation: Some(operation), closes: Some(closing) });
    }

    /// Planted: a former leader of that session answers with an error, which closes.
    fn closes_without_leading(&mut self, replica: u8, passage: Passage) {
        if self.scope.has(Planted::RestartedLeaderCloses) {
            let log_index = self.state.replicas[usize::from(replica)].commit;
            let Passage { sid, seq, kgroup, switch } = passage;
            self.send(Message::Close { operation: None, sid, seq, kgroup, log_index, consistent: 0b111, switch });
        }
    }

    pub(super) fn take_leader_read(&mut self, message: Message) {
        let Message::LeaderRead { operation, leader, sid, switch, .. } = message else { return };
        let needs_lease = !self.scope.has(Planted::LeaderReadWithoutLease) && !self.is_alone(leader);
        let replica = &self.state.replicas[usize::from(leader)];
        let Some(memory) = &replica.leader else { return };
        if memory.sid != Some(sid) || replica.commit < memory.start || needs_lease && memory.lease == 0 {
            return;
        }
        let value = Applied::of(&replica.log[..usize::from(replica.commit)], self.scope).value;
        self.pass_leader_reply(operation, value, sid, switch);
    }

    /// The limit after a leader-only READ has passed, and the write of its SEQ has not come.
    pub(super) fn refresh(&mut self, message: Message) {
        let Message::LeaderRead { leader, sid, seq, kgroup, switch, .. } = message else { return };
        let low = self.scope.has(Planted::RefreshTooLow);
        let (last, commit) = {
            let replica = &self.state.replicas[usize::from(leader)];
            (replica.last(), replica.commit)
        };
        let Some(memory) = self.leader(leader).filter(|memory| memory.sid == Some(sid)) else { return };
        let processed = &mut memory.processed[usize::from(kgroup)];
        *processed = seq.max(*processed);
        let index = if low { commit } else { last };
        self.wait(leader, Waiting { index, operation: None, closes: Some(Passage { sid, seq, kgroup, switch }) });
    }

    /// The closing rule: an answer waits until its index is committed (and so applied).
    fn wait(&mut self, leader: u8, answer: Waiting) {
        if let Some(memory) = self.leader(leader) {
            memory.waiting.push(answer);
        }
        self.commit(leader);
    }

    /// Commits what a quorum has, and sends the answers that waited for it.
    pub(super) fn commit(&mut self, leader: u8) {
        let voters = self.voters(leader);
        let counts: Vec<bool> =
            (0..).zip(&self.state.replicas).map(|(one, replica)| replica.voter && voters >> one & 1 == 1).collect();
        let replica = &mut self.state.replicas[usize::from(leader)];
        let Some(memory) = &mut replica.leader else { return };
        let holders =
            |index: u8| (0..REPLICAS).filter(|&other| counts[other] && memory.matched[other] >= index).count();
        let of_this_term = |index: u8| replica.log[usize::from(index) - 1].term == replica.term;
        let last = replica.log.len() as u8;
        let committed =
            (1..=last).rev().find(|&index| of_this_term(index) && holders(index) >= majority(voters) as usize);
        replica.commit = replica.commit.max(committed.unwrap_or(0));
        let commit = replica.commit;
        let (ready, rest) = memory.waiting.iter().partition(|answer| answer.index <= commit);
        memory.waiting = rest;
        let ready: Vec<Waiting> = ready;
        let matched = self.matched(leader);
        for Waiting { index, operation, closes } in ready {
            let Some(Passage { sid, seq, kgroup, switch }) = closes else {
                operation.into_iter().for_each(|operation| self.answer(operation, operation + 1));
                continue;
            };
            let consistent = (0..REPLICAS).map(|other| u8::from(matched[other] >= index) << other).sum();
            self.send(Message::Close { operation, sid, seq, kgroup, log_index: index, consistent, switch });
        }
        if self.voters(leader) >> leader & 1 == 0 {
            self.state.replicas[usize::from(leader)].leader = None; // it has left
        }
    }

    /// Matched indices as switches hear them, without replicas that have left.
    fn matched(&self, leader: u8) -> [u8; REPLICAS] {
        let matched =
            self.state.replicas[usize::from(leader)].leader.as_ref().map_or([0; REPLICAS], |memory| memory.matched);
        let members = if self.scope.has(Planted::OutsidersServe) { !0 } else { self.members(leader) };
        std::array::from_fn(|one| if members >> one & 1 == 1 { matched[one] } else { 0 })
    }

    pub(super) fn change(&mut self, leader: u8, voters: u8) {
        self.append(leader, What::Members { voters });
        self.commit(leader);
    }

    /// Carries the echo of an answer that has just come.
    pub(super) fn may_send_heartbeat(&self, leader: u8) -> bool {
        let replica = &self.state.replicas[usize::from(leader)];
        let Some(memory) = &replica.leader else { return false };
        let incarnation = self.state.switches[usize::from(memory.switch)].incarnation;
        let is_same = incarnation == memory.incarnation || self.scope.has(Planted::OneSidTwoIncarnations);
        let has_lease = memory.lease > 0 || self.is_alone(leader) || self.scope.has(Planted::HeartbeatWithoutLease);
        let is_fenced = memory.doubtful.is_empty();
        memory.sid.is_some() && has_lease && !memory.barred && is_fenced && is_same && replica.commit >= memory.start
    }

    pub(super) fn send_heartbeat(&mut self, leader: u8, loses_chunk: bool) {
        let timing = self.scope.timing;
        let left = (!self.scope.has(Planted::ActivateWithoutEcho)).then_some(timing.switch_lease);
        let matched = self.matched(leader);
        let Some(memory) = self.leader(leader) else { return };
        memory.since_answer = timing.fence;
        let (sid, start, switch) = (memory.sid.unwrap_or_default(), memory.start, memory.switch);
        let incarnation = self.state.switches[usize::from(switch)].incarnation;
        self.send(Message::Activate { sid, leader, start, switch, incarnation, matched, left, loses_chunk });
    }

    /// Ends the session for the leader. The next may start when it has ended at its switch too.
    pub(super) fn leave_session(&mut self, leader: u8) {
        let Some(memory) = self.leader(leader) else { return };
        if let Some(sid) = memory.sid.take() {
            let wait = memory.since_answer;
            memory.doubtful.push(Doubtful { sid, switch: memory.switch, wait });
        }
        self.end_waits(leader);
    }

    pub(super) fn propose_session(&mut self, leader: u8, switch: u8) {
        let term = self.state.replicas[usize::from(leader)].term;
        let incarnation = self.state.switches[usize::from(switch)].incarnation;
        let Some(memory) = self.leader(leader) else { return };
        memory.sessions += 1;
        let sid = Sid { term, number: memory.sessions };
        let start = self.append(leader, What::Session { sid, switch, incarnation });
        let Some(memory) = self.leader(leader) else { return };
        (memory.sid, memory.start, memory.processed, memory.since_answer) = (Some(sid), start, Default::default(), 0);
        (memory.switch, memory.incarnation) = (switch, incarnation);
    }

    /// FLUSHDB: ends the session, then proposes the flush, then the next session.
    pub(super) fn flush(&mut self, leader: u8, operation: u8) {
        self.begin(operation);
        if self.scope.has(Planted::FlushBeforeFence) {
            return self.propose_flush(leader, operation);
        }
        if let Some(memory) = self.leader(leader) {
            memory.flush = Some(operation);
        }
        self.leave_session(leader);
    }

    fn propose_flush(&mut self, leader: u8, operation: u8) {
        let index = self.append(leader, What::Write { operation, client: 0, seq: 0 });
        self.wait(leader, Waiting { index, operation: Some(operation), closes: None });
    }

    /// Drops sessions whose wait is over, as they have ended; FLUSHDB waits for the last of them.
    pub(super) fn end_waits(&mut self, leader: u8) {
        while let Some(place) =
            self.leader(leader).and_then(|memory| memory.doubtful.iter().position(|session| session.wait == 0))
        {
            self.end_doubt(leader, place);
        }
    }

    pub(super) fn end_doubt(&mut self, leader: u8, place: usize) {
        let names_switch = self.scope.has(Planted::FenceNamesSwitch);
        let Some(memory) = self.leader(leader) else { return };
        let Doubtful { sid, switch, .. } = memory.doubtful.remove(place);
        let is_last = memory.doubtful.is_empty();
        let flush = if is_last { memory.flush.take() } else { None };
        let next = memory.switch;
        self.append(leader, if names_switch { What::FencedSwitch { switch } } else { What::Fenced { sid } });
        if let Some(operation) = flush {
            self.propose_flush(leader, operation);
            self.propose_session(leader, next);
        }
    }
}
