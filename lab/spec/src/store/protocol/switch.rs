//! The switch's rules: FLAIR, NSDI '20, sections 4.3 and 4.4, with lazy reset, leases by echo, and incarnations.

use super::planted::Planted;
use super::scope::ReplyCheck;
use super::state::{Kgroup, Message, Passage, Session, Sid, Switch};
use super::world::World;

impl World<'_> {
    fn switch(&mut self, switch: u8) -> &mut Switch {
        &mut self.state.switches[usize::from(switch)]
    }

    pub(super) fn active(&self, switch: u8) -> Option<&Session> {
        let session = self.state.switches[usize::from(switch)].session.as_ref();
        session.filter(|session| session.lease > 0)
    }

    /// A WRITE gets the next SEQ, and its key group is unstable until the reply passes.
    pub(super) fn pass_write(&mut self, operation: u8, switch: u8, kgroup: u8) {
        self.begin(operation);
        let Some(session) = &mut self.switch(switch).session else { return };
        session.seq += 1;
        let before = session.kgroup(kgroup);
        let (sid, leader, seq) = (session.sid, session.leader, session.seq);
        session.kgroups[usize::from(kgroup)] = Some(Kgroup { stable: false, seq, ..before });
        self.send(Message::Write { operation, leader, sid, seq, kgroup, switch });
    }

    /// A READ goes to this replica if its key group was `found` stable, else to the leader.
    pub(super) fn pass_read(&mut self, operation: u8, switch: u8, replica: u8, found: Kgroup) {
        self.begin(operation);
        let Some(session) = &self.switch(switch).session else { return };
        let (sid, leader, seq, kgroup) = (session.sid, session.leader, found.seq, 0);
        let log_index = found.log_index;
        self.send(if found.stable {
            Message::Read { operation, replica, sid, seq, kgroup, log_index, switch }
        } else {
            Message::LeaderRead { operation, leader, sid, seq, kgroup, switch }
        });
    }

    /// WRITE_REPLY, or REFRESH (no operation): closes the key group if no later write has passed, and goes to the
    /// client.
    pub(super) fn pass_close(&mut self, message: Message) {
        let Message::Close { operation, sid, seq, kgroup, log_index, consistent, switch } = message else { return };
        if let Some(session) = self.switch(switch).session.as_mut().filter(|session| session.sid == sid) {
            let found = session.kgroup(kgroup);
            if found.seq == seq && log_index >= found.log_index {
                session.kgroups[usize::from(kgroup)] = Some(Kgroup { stable: true, seq, log_index, consistent });
            }
        }
        if let Some(operation) = operation {
            self.answer(operation, operation + 1);
        }
    }

    /// READ_REPLY of a follower, with the log index that it shows and the last write to the key group there. It goes to
    /// the client unless another write has passed or the session has changed.
    pub(super) fn pass_follower_reply(&mut self, operation: u8, value: u8, shown: u8, reply: Passage) {
        let Passage { sid, seq, kgroup, switch } = reply;
        if self.scope.reply_check == ReplyCheck::Relaxed {
            return self.answer(operation, value);
        }
        let Some(session) = self.switch(switch).session.as_ref().filter(|session| session.sid == sid) else { return };
        let found = session.kgroup(kgroup);
        if found.seq == seq {
            self.state.let_through |= found.stable && shown < self.last_write(found.log_index);
            self.answer(operation, value);
        } else {
            self.turn_back(operation, switch);
        }
    }

    /// Index of the last committed write, up to this index.
    fn last_write(&self, index: u8) -> u8 {
        let furthest = self.state.replicas.iter().max_by_key(|replica| replica.commit);
        let committed = furthest.map_or(&[][..], |replica| &replica.log[..usize::from(replica.commit.min(index))]);
        committed.iter().rposition(|entry| entry.seq().is_some()).map_or(0, |place| place as u8 + 1)
    }

    /// READ_REPLY of a leader: goes to the client if its session is current.
    pub(super) fn pass_leader_reply(&mut self, operation: u8, value: u8, sid: Sid, switch: u8) {
        let is_present = self.switch(switch).session.as_ref().is_some_and(|session| session.sid == sid);
        if is_present || self.scope.reply_check == ReplyCheck::Relaxed {
            self.answer(operation, value);
        }
    }

    /// Sends a READ to the leader after a follower refused it, or a write passed before the follower's reply.
    pub(super) fn turn_back(&mut self, operation: u8, switch: u8) {
        let Some(session) = self.active(switch) else { return };
        let (sid, leader, seq, kgroup) = (session.sid, session.leader, session.kgroup(0).seq, 0);
        self.send(Message::LeaderRead { operation, leader, sid, seq, kgroup, switch });
    }

    /// ACTIVATE, or a later heartbeat, which is the same message.
    pub(super) fn activate(&mut self, message: Message) {
        let Message::Activate { sid, leader, start, switch, incarnation, matched, left, loses_chunk } = message else {
            return;
        };
        let (any_incarnation, lease) =
            (self.scope.has(Planted::SeqReused), left.unwrap_or(self.scope.timing.switch_lease));
        let ended = self.has_ended(switch, sid);
        let switch = self.switch(switch);
        if switch.incarnation != incarnation && !any_incarnation || ended {
            return;
        }
        match &mut switch.session {
            Some(session) if session.sid > sid => {}
            Some(session) if session.sid == sid => {
                session.lease = session.lease.max(lease);
                session.matched = matched;
            }
            before => {
                let kept = before.as_ref().filter(|_| loses_chunk).map(|session| session.kgroups);
                let kgroups = kept.unwrap_or_default();
                *before = Some(Session { sid, start, leader, lease, seq: 0, matched, kgroups });
            }
        }
    }

    /// If a session has ended at a switch, the switch accepts no heartbeat of it.
    pub(super) fn has_ended(&self, switch: u8, sid: Sid) -> bool {
        let ended = self.state.switches[usize::from(switch)].ended;
        ended > Some(sid) || ended == Some(sid) && !self.scope.has(Planted::EndedSessionRevived)
    }

    /// NEUTRALISE and its confirmation: ends this session and all before it.
    pub(super) fn neutralise(&mut self, switch: u8, sid: Sid) {
        let switch = self.switch(switch);
        switch.ended = switch.ended.max(Some(sid));
        if switch.session.as_ref().is_some_and(|session| session.sid <= sid) {
            switch.session = None;
        }
    }

    /// Loses all state.
    pub(super) fn restart_switch(&mut self, switch: u8) {
        let incarnation = self.switch(switch).incarnation + 1;
        *self.switch(switch) = Switch { incarnation, ..Switch::default() };
    }
}
