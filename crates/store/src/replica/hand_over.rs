//! Handing leadership to another replica at a request.

use super::members::{ChangeError, HandOverError};
use super::{Event, Replica};
use midflight_endpoint::Nanos;

/// Time limit of a hand-over, in promises: one for the attempt, the others for an election.
pub const HAND_OVER_PROMISES: u64 = 10;

#[derive(Clone, Copy)]
pub(super) struct HandOver {
    to: u64,
    /// This replica's term at the start.
    term: u64,
    pub(super) until: Nanos,
}

impl Replica {
    /// Hands leadership over to another member. [`Event::HandedOver`] reports the outcome within [`HAND_OVER_PROMISES`].
    ///
    /// # Errors
    /// If this replica does not lead, or that member cannot take over.
    pub fn transfer(&mut self, now: Nanos, to: u64) -> Result<(), ChangeError> {
        self.check_leads()?;
        if to == self.config.id {
            return Err(ChangeError::Leads(to));
        }
        if self.state.members.iter().all(|member| member.id != to) {
            return Err(ChangeError::NoMember(to));
        }
        if self.node.learner() == Some(to) {
            return Err(ChangeError::Learns(to));
        }
        if !self.is_heard(now, to) {
            return Err(ChangeError::Silent(to));
        }
        if self.hand_over.is_some() || !self.node.transfer(now, to) {
            return Err(ChangeError::HandsOver);
        }
        let until = now + HAND_OVER_PROMISES * self.config.timing.promise;
        self.hand_over = Some(HandOver { to, term: self.node.term(), until });
        self.go_on(now);
        Ok(())
    }

    pub(super) fn check_hand_over(&mut self, now: Nanos) {
        let Some(HandOver { to, term, until }) = self.hand_over else { return };
        let outcome = match self.node.leader().filter(|_| self.node.term() > term) {
            Some(leader) if leader == to => Ok(()),
            Some(leader) => Err(HandOverError::Other(leader)),
            None if now >= until => Err(HandOverError::NoLeader),
            None => return,
        };
        self.hand_over = None;
        self.events.push_back(Event::HandedOver(outcome));
    }

    /// Hands leadership over to the follower with the longest log if this leader's disk is slow, or is full while a majority has room.
    pub(super) fn leave_bad_disk(&mut self, now: Nanos) {
        let is_full = self.is_full() && self.majority_has_room();
        if self.hand_over.is_some() || !(is_full || self.node.has_slow_disk(now)) {
            return;
        }
        let others = self.state.members.iter().map(|member| member.id).filter(|&id| id != self.config.id);
        // If all disks are full, a leader that does not know it yet must not hand over to one that would do the same.
        let has_room = |id| if is_full { self.room_of(id) == Some(true) } else { self.room_of(id) != Some(false) };
        let able = others.filter(|&id| self.node.learner() != Some(id) && self.is_heard(now, id) && has_room(id));
        let Some(to) = able.max_by_key(|&id| self.node.matched(id)) else { return };
        if self.transfer(now, to).is_ok() {
            self.counters.bad_disk_hand_overs += 1;
            self.events.push_back(if is_full { Event::FullDisk(to) } else { Event::SlowDisk(to) });
        }
    }
}
